//! Wires the webhook intake: secrets, listener, workers.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::AppError;
use crate::config::host::{GitHub, HostConfig, Listen};
use crate::reconcile::worker::Workers;
use crate::server::listen;
use crate::server::webhook::body::Budget;
use crate::server::webhook::refusals::Refusals;
use crate::server::webhook::rules::SecretFiles;
use crate::server::webhook::{self, Parts, Webhooks};

/// Starts the intake where `[server] listen` says; without it, nothing is listened on.
///
/// # Errors
/// A secret's file is of no use, the place cannot be listened on, or the store cannot be read.
pub(super) async fn start(
    host: &HostConfig,
    workers: &Arc<Workers>,
    (github, refusals): (watch::Receiver<GitHub>, &Arc<Refusals>),
) -> Result<Vec<JoinHandle<()>>, AppError> {
    let Some(place) = &host.server.listen else {
        if !host.github.webhook_secret_files.is_empty() {
            tracing::warn!("webhook_secret_files is set, but `[server] listen` is not: nobody can deliver");
        }
        return Ok(Vec::new());
    };
    let (files, rules) = SecretFiles::open(&host.github)?;
    let is_on = !rules.keys.is_empty();
    let (rules, rules_now) = watch::channel(Arc::new(rules));
    let listening = listen::bind(place).await?;
    let ports = workers.ports();
    let webhooks = Webhooks::start(Parts {
        store: Arc::clone(&ports.store),
        waker: waker_of(workers),
        clock: Arc::clone(&ports.clock),
        catalog: ports.catalog.clone(),
        rules: rules_now,
        refusals: Arc::clone(refusals),
        budget: Budget::default(),
    })
    .await?;
    let shown = match place {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => path.clone(),
    };
    tracing::info!(listen = %shown, webhooks = is_on, "deliveries are taken in at {}", webhook::PATH);
    let follow = webhook::follow((files, rules), github, (Arc::clone(&ports.clock), Arc::clone(refusals)));
    Ok(vec![tokio::spawn(follow), tokio::spawn(listening.serve(webhook::router(webhooks)))])
}

/// Removes the Unix socket that was listened on.
pub(super) fn tidy(host: &HostConfig) {
    if let Some(Listen::Unix(path)) = &host.server.listen {
        drop(std::fs::remove_file(path));
    }
}

fn waker_of(workers: &Arc<Workers>) -> Arc<dyn webhook::pace::Waker> {
    let workers: Arc<Workers> = Arc::clone(workers);
    workers
}

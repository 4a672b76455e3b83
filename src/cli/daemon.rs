//! Where answers come from: the daemon behind its socket, or its store alone.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::remote::{Remote, RemoteError};
use super::target::{Global, TargetArgs};
use crate::app;
use crate::model::{ReleaseNumber, TargetName};
use crate::server::api::{DriftAnswer, Refusal};
use crate::server::views::{self, Delivered, ReleaseLog, ReleaseView, TargetStatus, Why};
use crate::store::Store;
use crate::trigger::config_dir;

/// Prints a value as JSON, for machines and for people who pipe it.
pub(super) fn print_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("error: the answer has no JSON form: {error}"),
    }
}

/// The daemon of a configuration.
pub(super) fn remote(global: &Global) -> Remote {
    Remote::new(&places(global).0)
}

/// The socket and the state directory that a configuration names; the defaults where it cannot be read.
fn places(global: &Global) -> (PathBuf, PathBuf) {
    let host = config_dir::load(&global.config).host.unwrap_or_default();
    (PathBuf::from(host.server.socket), PathBuf::from(host.platform.state_dir))
}

/// Where answers come from.
pub(super) enum Daemon {
    /// The daemon.
    Online(Remote),
    /// The store alone (ruling 27).
    Offline(Arc<dyn Store>),
}

impl Daemon {
    pub(super) async fn of(global: &Global, is_offline: bool) -> Result<Self, RemoteError> {
        let (socket, state_dir) = places(global);
        if !is_offline {
            return Ok(Self::Online(Remote::new(&socket)));
        }
        Ok(Self::Offline(app::open_offline(&state_dir).await.map_err(unread)?))
    }

    pub(super) async fn status(&self, name: &TargetName) -> Result<TargetStatus, RemoteError> {
        match self {
            Self::Online(remote) => remote.get(&format!("/api/v1/targets/{}/{}", name.project, name.target)).await,
            Self::Offline(store) => {
                let known = store.known_targets().await.map_err(unread)?;
                let Some((_, is_orphaned)) = known.iter().find(|(known, _)| known == name) else {
                    return Err(missing(format!("the store knows no target `{name}`")));
                };
                views::status(store.as_ref(), name, *is_orphaned).await.map_err(unread)
            }
        }
    }

    pub(super) async fn statuses(&self) -> Result<Vec<TargetStatus>, RemoteError> {
        match self {
            Self::Online(remote) => remote.get("/api/v1/targets").await,
            Self::Offline(store) => {
                let mut all = Vec::new();
                for (name, is_orphaned) in store.known_targets().await.map_err(unread)? {
                    all.push(views::status(store.as_ref(), &name, is_orphaned).await.map_err(unread)?);
                }
                Ok(all)
            }
        }
    }

    pub(super) async fn releases(&self, target: &TargetArgs, limit: u32) -> Result<Vec<ReleaseView>, RemoteError> {
        match self {
            Self::Online(remote) => remote.get(&target.path(&format!("/releases?limit={limit}"))).await,
            Self::Offline(store) => views::releases(store.as_ref(), &target.name(), limit).await.map_err(unread),
        }
    }

    pub(super) async fn log(
        &self,
        target: &TargetArgs,
        release: Option<ReleaseNumber>,
    ) -> Result<ReleaseLog, RemoteError> {
        match self {
            Self::Online(remote) => {
                let query = release.map(|number| format!("?release={number}")).unwrap_or_default();
                remote.get(&target.path(&format!("/log{query}"))).await
            }
            Self::Offline(store) => {
                let found = views::log(store.as_ref(), &target.name(), release).await.map_err(unread)?;
                found.ok_or_else(|| missing(format!("the store has no such release of {}", target.name())))
            }
        }
    }

    pub(super) async fn why(&self, target: &TargetArgs, about: Option<&str>) -> Result<Why, RemoteError> {
        match self {
            Self::Online(remote) => {
                let query = about.map(|about| format!("?about={}", word(about))).unwrap_or_default();
                remote.get(&target.path(&format!("/why{query}"))).await
            }
            Self::Offline(store) => views::why(store.as_ref(), &target.name(), about).await.map_err(unread),
        }
    }

    pub(super) async fn delivery(&self, id: &str) -> Result<Delivered, RemoteError> {
        match self {
            Self::Online(remote) => remote.get(&format!("/api/v1/deliveries/{}", word(id))).await,
            Self::Offline(store) => {
                let found = views::delivery(store.as_ref(), id).await.map_err(unread)?;
                found.ok_or_else(|| missing(format!("the store has no delivery `{id}`")))
            }
        }
    }

    pub(super) async fn drift(&self, name: &TargetName) -> Result<DriftAnswer, RemoteError> {
        match self {
            Self::Online(remote) => {
                remote.get(&format!("/api/v1/targets/{}/{}/drift", name.project, name.target)).await
            }
            Self::Offline(_) => Err(missing("drift is looked for by the daemon alone".to_owned())),
        }
    }
}

/// A word as it may stand in a query: what is no letter, digit, `-` or `_` cannot be part of a sha or an id.
fn word(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect()
}

fn unread(error: crate::store::StoreError) -> RemoteError {
    RemoteError::Refused {
        refusal: Refusal {
            error: crate::reconcile::worker::chain(&error),
            fix: "check the state directory in huta.toml, and that you may read it".to_owned(),
        },
    }
}

fn missing(error: String) -> RemoteError {
    RemoteError::Refused { refusal: Refusal { error, fix: "`trueup status` lists the targets".to_owned() } }
}

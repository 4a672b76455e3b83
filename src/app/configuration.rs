//! The operator's files while the daemon runs: a broken edit keeps the last good one, and says so in
//! `status`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::{Problems, ReasonCode, TargetName};
use crate::reconcile::ports::Catalog;
use crate::reconcile::queue::Wake;
use crate::reconcile::worker::{Workers, chain};
use crate::store::StoreError;
use crate::store::record::Condition;
use crate::trigger::config_dir::{self, LoadedConfig};
use crate::trigger::watch::{Notice, Pace, Place};

/// Follows the configuration directory.
pub(super) struct Configuration {
    pub(super) dir: PathBuf,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    pub(super) workers: Arc<Workers>,
}

/// Tells the log what is wrong with the files.
pub(super) fn report(loaded: &LoadedConfig) {
    for problems in &loaded.problems {
        for problem in &problems.list {
            let line = problem.place.map_or(0, |place| place.line);
            tracing::error!(file = %problems.file, line, key = %problem.key, fix = %problem.fix, "{}", problem.message);
        }
    }
}

impl Configuration {
    pub(super) async fn follow(self) {
        let places = [self.dir.clone(), self.dir.join("projects.d")].map(Place::Config).into_iter().collect();
        let mut watching = crate::trigger::watch::start(places, Pace::default(), CancellationToken::new()).await;
        // What changed between the first reading and the first watch.
        let loaded = self.reload();
        self.remember(&loaded).await;
        while let Some(notice) = watching.notices.recv().await {
            if let Notice::Degraded { why } = &notice {
                tracing::warn!(%why, "changes of the configuration are looked for by polling");
            }
            let loaded = self.reload();
            self.remember(&loaded).await;
            self.workers.wake_all(Wake::CONFIG);
        }
    }

    fn reload(&self) -> LoadedConfig {
        let loaded = config_dir::load(&self.dir);
        report(&loaded);
        let before = self.catalog.borrow().clone();
        let mut projects = loaded.projects.clone();
        for (name, project) in &before.projects {
            // Unreadable is not empty: a broken file's project stays as it was.
            let is_kept = !loaded.is_complete || loaded.broken.iter().any(|broken| broken == name.as_str());
            if is_kept && !projects.contains_key(name) {
                projects.insert(name.clone(), project.clone());
            }
        }
        self.catalog.send_if_modified(|catalog| {
            let is_new = catalog.projects != projects;
            if is_new {
                *catalog = Arc::new(Catalog { projects });
            }
            is_new
        });
        loaded
    }

    /// Notes which targets the registry names, which it no longer does (ruling 4), and whose files are
    /// broken.
    pub(super) async fn remember(&self, loaded: &LoadedConfig) {
        let store = &self.workers.ports().store;
        let named: Vec<TargetName> = self.catalog.borrow().targets().collect();
        let known = store.known_targets().await.unwrap_or_default();
        let gone = known.into_iter().filter(|(name, _)| !named.contains(name));
        // What cannot be read names nothing, and takes nothing away (promise P7).
        let gone = gone.map(|(name, was_orphaned)| {
            let is_unread = !loaded.is_complete || is_broken(loaded, &name);
            (name, was_orphaned || !is_unread)
        });
        let all = gone.chain(named.iter().cloned().map(|name| (name, false)));
        for (name, is_orphaned) in all.collect::<Vec<_>>() {
            if let Err(error) = self.note(loaded, &name, is_orphaned).await {
                tracing::error!(target = %name, error = %chain(&error), "a target could not be remembered");
            }
        }
    }

    async fn note(&self, loaded: &LoadedConfig, name: &TargetName, is_orphaned: bool) -> Result<(), StoreError> {
        let ports = self.workers.ports();
        ports.store.put_known_target(name, is_orphaned).await?;
        let broken = broken(loaded, name);
        let condition = Condition {
            kind: "ConfigValid".to_owned(),
            is_true: broken.is_empty(),
            reason: if broken.is_empty() { "Read" } else { ReasonCode::ConfigInvalid.as_str() }.to_owned(),
            message: if broken.is_empty() {
                "the files on disk are the ones that rule".to_owned()
            } else {
                format!("the last good one rules, since a file on disk is broken: {}", broken.join("; "))
            },
            since: ports.clock.now(),
        };
        ports.store.put_condition(name, &condition).await.map(|_| ())
    }
}

fn is_broken(loaded: &LoadedConfig, name: &TargetName) -> bool {
    loaded.broken.iter().any(|stem| stem == name.project.as_str())
}

/// What is wrong with the files that a target is made from: its project's, and those of the whole host.
fn broken(loaded: &LoadedConfig, name: &TargetName) -> Vec<String> {
    let is_about = |problems: &&Problems| {
        let path = std::path::Path::new(&problems.file);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem == name.project.as_str() || !loaded.broken.iter().any(|broken| broken == stem)
    };
    loaded.problems.iter().filter(is_about).map(ToString::to_string).collect()
}

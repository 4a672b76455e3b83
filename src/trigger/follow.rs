//! Follows what can change by itself: the configuration, repositories on this machine, the engine.
//! Each change wakes targets, and no more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::config_dir::{self, LoadedConfig};
use super::watch::{Notice, Pace, Place, start};
use crate::config::host::GitHub;
use crate::model::TargetName;
use crate::model::policy::Repository;
use crate::reconcile::ports::Catalog;
use crate::reconcile::queue::Wake;
use crate::reconcile::worker::{Workers, chain};
use crate::store::record::Condition;

/// Follows the configuration directory: a broken edit keeps the last good one, and says so.
pub struct Configuration {
    /// The directory of `huta.toml` and `projects.d`.
    pub dir: PathBuf,
    /// Where the registry goes.
    pub catalog: watch::Sender<Arc<Catalog>>,
    /// Who is woken.
    pub workers: Arc<Workers>,
    /// Where `[github]` goes, for the webhooks.
    pub github: watch::Sender<GitHub>,
}

impl Configuration {
    /// Follows until the process ends.
    pub async fn follow(self) {
        let places = [self.dir.clone(), self.dir.join("projects.d")].map(Place::Config).into_iter().collect();
        let mut watching = start(places, Pace::default(), CancellationToken::new()).await;
        // What changed between the first reading and the first watch.
        let loaded = self.reload().await;
        self.remember(&loaded).await;
        while let Some(notice) = watching.notices.recv().await {
            if let Notice::Degraded { why } = &notice {
                tracing::warn!(%why, "changes of the configuration are looked for by polling");
            }
            let loaded = self.reload().await;
            self.remember(&loaded).await;
            self.workers.wake_all(Wake::CONFIG);
        }
    }

    async fn reload(&self) -> LoadedConfig {
        let loaded = config_dir::load(&self.dir);
        report(&loaded);
        if let Some(host) = &loaded.host {
            self.github.send_if_modified(|github| {
                let is_new = *github != host.github;
                github.clone_from(&host.github);
                is_new
            });
        }
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

    /// Says at every target whether its configuration is the one on disk, or the last good one.
    async fn note(&self, loaded: &LoadedConfig, names: &[TargetName]) {
        let ports = self.workers.ports();
        for name in names {
            let is_theirs = |file: &str| {
                let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
                stem == Some(name.project.as_str()) || stem == Some("huta")
            };
            let found = loaded.problems.iter().find(|problems| is_theirs(&problems.file));
            let condition = Condition {
                kind: "ConfigValid".to_owned(),
                is_true: found.is_none(),
                reason: if found.is_none() { "AsOnDisk" } else { "ConfigInvalid" }.to_owned(),
                message: found.map_or_else(
                    || "the files on disk are in force".to_owned(),
                    |problems| format!("{}: the last good one stays in force", problems.summary()),
                ),
                since: ports.clock.now(),
            };
            if let Err(error) = ports.store.put_condition(name, &condition).await {
                tracing::error!(target = %name, error = %chain(&error), "a condition could not be recorded");
            }
        }
    }

    /// Notes which targets the registry names, and which it no longer does (ruling 4).
    pub async fn remember(&self, loaded: &LoadedConfig) {
        let store = &self.workers.ports().store;
        let mut named: Vec<TargetName> = self.catalog.borrow().targets().collect();
        let known = store.known_targets().await.unwrap_or_default();
        for (name, was_orphaned) in known.into_iter().filter(|(name, _)| !named.contains(name)).collect::<Vec<_>>() {
            // What cannot be read names nothing, and takes nothing away (promise P7).
            let is_unread = !loaded.is_complete || loaded.broken.iter().any(|broken| broken == name.project.as_str());
            if is_unread && !was_orphaned {
                named.push(name);
            } else {
                self.put_known(&name, true).await;
            }
        }
        for name in &named {
            self.put_known(name, false).await;
        }
        self.note(loaded, &named).await;
    }

    async fn put_known(&self, name: &TargetName, is_orphaned: bool) {
        if let Err(error) = self.workers.ports().store.put_known_target(name, is_orphaned).await {
            tracing::error!(target = %name, error = %chain(&error), "a target could not be remembered");
        }
    }
}

/// Follows repositories on this machine, so that a push is seen at once; all others are polled.
pub async fn repositories(workers: Arc<Workers>) {
    let mut catalogs = workers.ports().catalog.clone();
    let first = places(&catalogs.borrow_and_update());
    let mut watching = start(first, Pace::default(), CancellationToken::new()).await;
    loop {
        tokio::select! {
            changed = catalogs.changed() => {
                if changed.is_err() {
                    return;
                }
                watching.places.send_replace(places(&catalogs.borrow_and_update()));
            }
            notice = watching.notices.recv() => match notice {
                None => return,
                Some(Notice::Changed(path)) => wake_users_of(&workers, &path),
                Some(Notice::Degraded { why }) => tracing::warn!(%why, "local repositories are polled"),
                Some(Notice::Restored) => tracing::info!("local repositories are watched again"),
            },
        }
    }
}

fn local_path(repository: &Repository) -> Option<PathBuf> {
    let Repository::Url(url) = repository else { return None };
    Some(PathBuf::from(url.strip_prefix("file://")?))
}

fn places(catalog: &Catalog) -> BTreeSet<Place> {
    catalog.projects.values().filter_map(|project| local_path(&project.repo)).map(Place::Refs).collect()
}

fn wake_users_of(workers: &Workers, path: &Path) {
    let catalog = workers.ports().catalog.borrow().clone();
    for name in catalog.targets() {
        let is_user = catalog.find(&name).and_then(|(project, _)| local_path(&project.repo)).as_deref() == Some(path);
        if is_user {
            workers.wake(&name, Wake::SOURCE);
        }
    }
}

/// Logs every problem of the configuration.
pub fn report(loaded: &LoadedConfig) {
    for problems in &loaded.problems {
        for problem in &problems.list {
            let line = problem.place.map_or(0, |place| place.line);
            tracing::error!(file = %problems.file, line, key = %problem.key, fix = %problem.fix, "{}", problem.message);
        }
    }
}

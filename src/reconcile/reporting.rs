//! Tells GitHub how each target stands with each commit: on change only, one write a second, and never in the
//! way of a release.
//!
//! It listens to what passes say. A line that it misses is said again by the next pass, and what GitHub has is
//! on record, so nothing is written twice (field report 48).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::broadcast::error::RecvError;

use crate::model::policy::{Repository, TargetKind};
use crate::model::{ReasonCode, ReleaseNumber, Sha, TargetName};
use crate::report::{self, Report, ReportError, State, Status};
use crate::store::StoreError;
use crate::store::record::ReportRecord;

use super::ports::Ports;
use super::progress::{Progress, Rest};
use super::stand_in::pin_words;

/// The wait between two writes.
///
/// Source: GitHub facts, section 5: at least a second between writes.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);

/// The wait before what failed is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// How long nothing more is tried once a right was found missing.
const WITHOUT_RIGHT: Duration = Duration::from_secs(3600);

/// Commits that wait to be told about; more than that are dropped, oldest names first.
const MOST_WAITING: usize = 10_000;

/// What is to be told of one commit on one target; the newest replaces what waits.
#[derive(Debug, Clone)]
struct News {
    state: State,
    description: String,
    /// A release and the state of its deployment.
    deployment: Option<(ReleaseNumber, &'static str)>,
    /// Whether it may take the place of a failure: what merely waits may not.
    is_event: bool,
}

/// The task that tells.
pub struct Reporter {
    ports: Ports,
    report: Arc<dyn Report>,
    waiting: BTreeMap<(TargetName, Sha), News>,
    silent_until: Option<Timestamp>,
}

impl Reporter {
    /// A reporter that knows of nothing yet.
    #[must_use]
    pub fn new(ports: Ports, report: Arc<dyn Report>) -> Self {
        Self { ports, report, waiting: BTreeMap::new(), silent_until: None }
    }

    /// Follows the passes until the daemon ends.
    pub async fn follow(mut self) {
        let mut watcher = self.ports.teller.watch();
        loop {
            let told = if self.waiting.is_empty() {
                watcher.recv().await
            } else {
                tokio::select! {
                    told = watcher.recv() => told,
                    () = self.ports.clock.sleep(RETRY) => {
                        self.flush().await;
                        continue;
                    }
                }
            };
            match told {
                Ok(told) => self.hear(&told.progress).await,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
            self.flush().await;
        }
    }

    /// Takes note of one line.
    pub(super) async fn hear(&mut self, progress: &Progress) {
        if let Err(error) = self.note(progress).await {
            tracing::warn!(error = %super::worker::chain(&error), "what to report could not be read");
        }
    }

    async fn note(&mut self, progress: &Progress) -> Result<(), StoreError> {
        let target = progress.target().clone();
        match progress {
            Progress::Began { release, revision, .. } => {
                let description = format!("release {release} is under way");
                let deployment = Some((*release, "in_progress"));
                self.wait(&target, revision, News { state: State::Pending, description, deployment, is_event: true });
            }
            Progress::Ended { release, revision, outcome, reason, .. } => {
                let (state, word) = report::of_outcome(*outcome);
                let description = if *outcome == crate::model::outcome::Outcome::Live {
                    live_words(*release)
                } else {
                    report::outcome_words(*outcome, reason.as_ref())
                };
                let deployment = Some((*release, word));
                self.wait(&target, revision, News { state, description, deployment, is_event: true });
            }
            Progress::Idle { rest, .. } => self.rest(&target, rest).await?,
            Progress::Step { .. } | Progress::StepDone { .. } | Progress::StepFailed { .. } | Progress::Line { .. } => {
            }
        }
        Ok(())
    }

    async fn rest(&mut self, target: &TargetName, rest: &Rest) -> Result<(), StoreError> {
        let tip = self.ports.store.observed_ref(target).await?.and_then(|seen| seen.tip);
        let pin = self.ports.store.pin(target).await?;
        let waits = |description: String, state: State| News { state, description, deployment: None, is_event: false };
        if let (Some(pin), Some(tip)) = (&pin, &tip)
            && pin.sha != *tip
        {
            self.wait(target, tip, waits(report::cut(&pin_words(target, pin)), State::Pending));
        }
        let wanted = pin.map(|pin| pin.sha).or(tip);
        match (rest, wanted) {
            (Rest::Converged { revision, release }, _) => {
                let news = News { is_event: true, ..waits(live_words(*release), State::Success) };
                self.wait(target, revision, news);
            }
            (Rest::Held { reason, .. }, Some(sha)) if reason.code != ReasonCode::Quarantined => {
                self.wait(target, &sha, waits(report::held_words(target, &sha, reason), State::Pending));
            }
            (Rest::Denied { reason }, Some(sha)) => {
                self.wait(target, &sha, waits(report::held_words(target, &sha, reason), State::Failure));
            }
            (Rest::Held { .. } | Rest::Denied { .. }, _) => {}
        }
        Ok(())
    }

    fn wait(&mut self, target: &TargetName, sha: &Sha, news: News) {
        let place = (target.clone(), sha.clone());
        // An event that waits to be told is not replaced by what only waits.
        let is_kept = self.waiting.get(&place).is_some_and(|known| known.is_event && !news.is_event);
        if !is_kept {
            self.waiting.insert(place, news);
        }
        while self.waiting.len() > MOST_WAITING {
            self.waiting.pop_first();
        }
    }

    /// Tells what waits; what fails stays.
    pub(super) async fn flush(&mut self) {
        let now = self.ports.clock.now();
        if self.silent_until.is_some_and(|until| until > now) {
            self.waiting.clear();
            return;
        }
        let all: Vec<((TargetName, Sha), News)> =
            self.waiting.iter().map(|(place, news)| (place.clone(), news.clone())).collect();
        for ((target, sha), news) in all {
            match self.tell(&target, &sha, &news).await {
                Ok(()) => {
                    self.waiting.remove(&(target, sha));
                }
                Err(ReportError::Full(said)) => {
                    tracing::warn!(%target, %sha, "GitHub takes no more reports of this commit: {said}");
                    self.waiting.remove(&(target, sha));
                }
                Err(error @ ReportError::NoRight { .. }) => {
                    tracing::error!(%target, "reporting is off for an hour: {error}; `trueup doctor` says more");
                    self.silent_until = later(now, WITHOUT_RIGHT);
                    return;
                }
                Err(ReportError::Later { why, until }) => {
                    tracing::warn!(%target, %sha, ?until, "reporting is tried again: {why}");
                    return;
                }
            }
        }
    }

    async fn tell(&self, target: &TargetName, sha: &Sha, news: &News) -> Result<(), ReportError> {
        let catalog = self.ports.catalog.borrow().clone();
        let Some((project, policy)) = catalog.find(target) else { return Ok(()) };
        let Repository::GitHub { .. } = project.repo else { return Ok(()) };
        self.status(&project.repo, (target, sha), news).await?;
        if let Some((release, state)) = news.deployment {
            let url = match &policy.kind {
                TargetKind::Host(host) => host.hosts.first().map(|host| format!("https://{host}")),
                TargetKind::Cluster(_) => None,
            };
            let progress = report::Progress { state, description: news.description.clone(), url };
            self.deployment(&project.repo, (target, sha, release), &progress).await?;
        }
        Ok(())
    }

    async fn status(
        &self,
        repo: &Repository,
        (target, sha): (&TargetName, &Sha),
        news: &News,
    ) -> Result<(), ReportError> {
        let context = report::context(target);
        let known = self.known(repo, sha, &context).await?;
        let is_told = known.as_ref().is_some_and(|known| {
            let is_same = known.state == news.state.as_str() && known.description == news.description;
            let is_final = matches!(known.state.as_str(), "failure" | "error") && !news.is_event;
            known.is_full || is_same || is_final
        });
        if is_told {
            return Ok(());
        }
        let status = Status { context: context.clone(), state: news.state, description: news.description.clone() };
        let told = self.report.status(repo, sha, &status).await;
        let mut record = self.record(repo, sha, (context, news.state.as_str(), &news.description));
        match told {
            Ok(()) => {}
            Err(ReportError::Full(said)) => {
                record.is_full = true;
                tracing::warn!(%target, %sha, "GitHub takes no more statuses: {said}");
            }
            Err(error) => return Err(error),
        }
        self.remember(&record).await;
        self.ports.clock.sleep(BETWEEN_WRITES).await;
        Ok(())
    }

    async fn deployment(
        &self,
        repo: &Repository,
        (target, sha, release): (&TargetName, &Sha, ReleaseNumber),
        progress: &report::Progress,
    ) -> Result<(), ReportError> {
        let context = format!("{}#{release}", report::context(target));
        let known = self.known(repo, sha, &context).await?;
        if known.as_ref().is_some_and(|known| known.is_full || known.state == progress.state) {
            return Ok(());
        }
        let mut record = self.record(repo, sha, (context, "", ""));
        let number = match known.and_then(|known| known.deployment) {
            Some(number) => number,
            None => {
                let environment = format!("{}/{}", target.project, target.target);
                let number = self.report.deployment(repo, sha, &environment).await?;
                record.deployment = Some(number);
                self.remember(&record).await;
                self.ports.clock.sleep(BETWEEN_WRITES).await;
                number
            }
        };
        self.report.progress(repo, number, progress).await?;
        let record = ReportRecord {
            deployment: Some(number),
            state: progress.state.to_owned(),
            description: progress.description.clone(),
            ..record
        };
        self.remember(&record).await;
        self.ports.clock.sleep(BETWEEN_WRITES).await;
        Ok(())
    }

    fn record(&self, repo: &Repository, sha: &Sha, told: (String, &str, &str)) -> ReportRecord {
        let (context, state, description) = told;
        ReportRecord {
            repo: repo.to_string(),
            sha: sha.clone(),
            context,
            state: state.to_owned(),
            description: description.to_owned(),
            at: self.ports.clock.now(),
            deployment: None,
            is_full: false,
        }
    }

    async fn known(&self, repo: &Repository, sha: &Sha, context: &str) -> Result<Option<ReportRecord>, ReportError> {
        let known = self.ports.store.report(&repo.to_string(), sha, context).await;
        known.map_err(|error| ReportError::Later { why: super::worker::chain(&error), until: None })
    }

    /// What cannot be remembered is told once more after a restart, which is no harm.
    async fn remember(&self, record: &ReportRecord) {
        if let Err(error) = self.ports.store.put_report(record).await {
            tracing::warn!(error = %super::worker::chain(&error), "a report could not be recorded");
        }
    }
}

fn live_words(release: ReleaseNumber) -> String {
    format!("live as release {release}")
}

fn later(now: Timestamp, wait: Duration) -> Option<Timestamp> {
    now.checked_add(jiff::SignedDuration::try_from(wait).ok()?).ok()
}

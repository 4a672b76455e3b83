//! One pass for one target: level-triggered, it re-reads what is wanted and what is live, and takes it
//! from there.

use jiff::Timestamp;

use crate::gate;
use crate::manifest::{self, Commit, apptoml};
use crate::model::desired::DesiredState;
use crate::model::policy::{Project, TargetPolicy};
use crate::model::{Class, Digest, Fault, Problems, Reason, ReasonCode, Sha, TargetName};
use crate::plan::{self, Plan};
use crate::release::Phase;
use crate::source::{CommitFacts, SourceError};
use crate::store::record::{AuditEvent, ManifestRecord, ReleaseRecord};

use super::backoff;
use super::ports::{Halt, Interrupts, Ports, StepError};
use super::progress::{Progress, Rest};
use super::queue::{Requeue, Wake};

/// Bytes of a manifest that are read. Source: design, section 3, step 1.
pub(super) const MANIFEST_LIMIT: u64 = 256 * 1024;

/// What a target's worker remembers between passes; losing it costs a wait, never truth.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Failures of the surroundings in a row, for one sha.
    pub failures: Option<Failures>,
    /// Whether what runs is to be put right although no new revision asks for it.
    pub heal: bool,
    /// The commit whose failure needs no more answer in Git.
    pub answered: Option<Sha>,
    /// The tip at which a rollback's pin was last found to be needed still.
    pub pin_needed_at: Option<Sha>,
}

/// Failures of the surroundings in a row.
#[derive(Debug, Clone)]
pub struct Failures {
    /// The wanted sha when they happened: another one starts anew.
    pub sha: Option<Sha>,
    /// How many.
    pub count: u32,
    /// When to try again.
    pub until: Timestamp,
    /// The last one.
    pub reason: Reason,
}

/// One pass.
pub struct Pass<'a> {
    /// The effects.
    pub ports: &'a Ports,
    /// Whose.
    pub target: &'a TargetName,
    /// What asked for it.
    pub wake: Wake,
    /// How it learns of an interrupt.
    pub interrupts: Interrupts,
    /// What the worker remembers.
    pub memory: &'a mut Memory,
    /// Whether it only shows what would be done: it records no refusal and begins nothing.
    pub is_preview: bool,
}

/// A pass that ended early, which is most of them.
pub(super) enum Stop {
    /// The wanted revision is live.
    Converged { revision: Sha, release: crate::model::ReleaseNumber, message: String },
    /// Not now.
    Held { reason: Reason, until: Option<Timestamp>, plan: Option<String> },
    /// Never for this revision.
    Denied(Reason),
    /// The surroundings failed.
    Failed { reason: Reason, class: Class },
    /// It cannot go on.
    Halt(Halt),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl From<crate::store::StoreError> for Stop {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Halt(Halt::Store(error))
    }
}

impl From<StepError> for Stop {
    fn from(error: StepError) -> Self {
        Self::Failed { reason: error.reason, class: error.class }
    }
}

/// What a pass works on once the registry was read.
pub(super) struct Subject {
    pub(super) project: Project,
    pub(super) policy: TargetPolicy,
    pub(super) registry: Digest,
    pub(super) serving: Option<ReleaseRecord>,
    /// Whether a person's rollback leads back to what was live here: that is the consent.
    pub(super) is_rollback: bool,
    /// The tip whose tree an older release has, while that release's revision is wanted for it (ruling 18).
    pub(super) stands_for: Option<Sha>,
}

impl Pass<'_> {
    /// Runs the pass.
    ///
    /// # Errors
    /// [`Halt`] when the store cannot be written or the daemon stops.
    pub async fn run(mut self) -> Result<Requeue, Halt> {
        let result = self.steps().await;
        let now = self.ports.clock.now();
        let poll = self.ports.settings.poll_every.as_secs().max(1);
        match result {
            Ok(record) => {
                self.settle(&record).await?;
                Ok(Requeue::after(0, "a release ended: look whether its revision is still wanted"))
            }
            Err(Stop::Converged { revision, release, message }) => {
                self.memory.failures = None;
                self.note_ready(true, "Converged", &message).await?;
                self.note_held(None).await?;
                self.idle(Rest::Converged { revision, release });
                Ok(Requeue::after(poll, "the next look at the branch"))
            }
            Err(Stop::Held { reason, until, plan }) => {
                self.note_held(Some(&reason)).await?;
                if reason.code == ReasonCode::Quarantined {
                    self.answer_in_git().await?;
                }
                let wait = until.map_or(poll, |until| super::millis_between(now, until).div_ceil(1000).clamp(1, poll));
                self.idle(Rest::Held { reason, plan });
                Ok(Requeue::after(wait, "what it is held for may be over"))
            }
            Err(Stop::Denied(reason)) => {
                self.note_held(Some(&reason)).await?;
                self.idle(Rest::Denied { reason });
                Ok(Requeue::after(poll, "the next look at the branch"))
            }
            Err(Stop::Failed { reason, class }) => self.failed(reason, class).await,
            Err(Stop::Halt(halt)) => Err(halt),
        }
    }

    async fn failed(&mut self, reason: Reason, class: Class) -> Result<Requeue, Halt> {
        let now = self.ports.clock.now();
        let sha = self.wanted_as_recorded().await?;
        let count = match &self.memory.failures {
            Some(failures) if failures.sha == sha => failures.count.saturating_add(1),
            Some(_) | None => 1,
        };
        let seed = self.target.bridge().bytes().map(u64::from).sum();
        let wait = match class {
            Class::Transient => backoff::spread(backoff::wait(count), seed),
            Class::Stalled | Class::Bug => backoff::spread(backoff::wait(count.saturating_add(3)), seed),
        };
        let until = now.checked_add(jiff::SignedDuration::try_from(wait).unwrap_or_default()).unwrap_or(now);
        self.memory.failures = Some(Failures { sha, count, until, reason: reason.clone() });
        self.note_held(Some(&reason)).await?;
        tracing::warn!(target = %self.target, %reason, count, "held by the surroundings");
        self.idle(Rest::Held { reason, plan: None });
        Ok(Requeue::after(wait.as_secs().max(1), "the surroundings failed; back-off"))
    }

    async fn wanted_as_recorded(&self) -> Result<Option<Sha>, Halt> {
        let pin = self.ports.store.pin(self.target).await?;
        let seen = self.ports.store.observed_ref(self.target).await?;
        Ok(pin.map(|pin| pin.sha).or_else(|| seen.and_then(|seen| seen.tip)))
    }

    /// The whole pass; ends early in a [`Stop`], or with a release that ran.
    async fn steps(&mut self) -> Result<ReleaseRecord, Stop> {
        let mut subject = self.subject().await?;
        if subject.serving.is_none() {
            subject.serving = self.rebuilt(&subject).await?;
        }
        self.heal_if_asked().await?;
        let wanted = self.look(&subject).await?;
        self.still_backing_off(&wanted)?;
        self.is_converged(&subject, &wanted)?;
        let facts = self.fetch(&subject, &wanted).await?;
        self.is_satisfied(&subject, &wanted, &facts)?;
        let (wanted, facts) = self.proven_before(&mut subject, wanted, facts).await?;
        let (desired, manifest) = self.desired(&subject, &wanted, &facts).await?;
        let admitted = self.admit(&subject, &wanted).await?;
        if let Some(reason) = plan::support::unsupported(&desired) {
            return Err(self.refuse(&subject, &desired.revision, reason).await);
        }
        let prepared = self.prepare(&subject, desired, &manifest).await?;
        self.consent(&subject, &prepared).await?;
        // All of it again at the last moment before the first mutation (ruling 6, field report 19).
        drop(admitted);
        self.admit(&subject, &wanted).await?;
        self.release(&subject, prepared, manifest).await
    }

    pub(super) async fn subject(&self) -> Result<Subject, Stop> {
        let catalog = self.ports.catalog.borrow().clone();
        let Some((project, policy)) = catalog.find(self.target) else {
            return Err(Stop::Held { reason: self.unnamed().await?, until: None, plan: None });
        };
        self.nobody_must_look().await?;
        Ok(Subject {
            registry: project.release_digest(&self.target.target),
            project: project.clone(),
            policy: policy.clone(),
            serving: self.ports.store.live_release(self.target).await?,
            is_rollback: false,
            stands_for: None,
        })
    }

    /// A person who asks for a sync of what is live means what is known to be wrong with it.
    async fn heal_if_asked(&mut self) -> Result<(), Stop> {
        let is_drifted = self.wake.by_person && self.ports.store.drift(self.target).await?.is_some();
        if !is_drifted || self.is_preview {
            return Ok(());
        }
        if let Ok(super::drift::Look::Compared(found)) = super::drift::look(self.ports, self.target).await? {
            self.memory.heal = !found.is_empty();
        }
        Ok(())
    }

    /// Why the registry does not name the target: what cannot be read takes nothing away (promise P7).
    async fn unnamed(&self) -> Result<Reason, Halt> {
        let known = self.ports.store.known_targets().await?;
        Ok(if known.contains(&(self.target.clone(), false)) {
            let message = "the registry's file of this project cannot be read, and this daemon has not read a good one: the target keeps serving";
            Reason::new(ReasonCode::ConfigInvalid, message)
        } else {
            let message = "the registry no longer names this target: it keeps serving and keeps its hosts and ports; put its file back, or take its containers and its vhost away by hand";
            Reason::new(ReasonCode::Orphaned, message)
        })
    }

    /// A stuck release holds everything until a person has looked (`trueup retry`).
    async fn nobody_must_look(&self) -> Result<(), Stop> {
        let newest = self.ports.store.releases(self.target, 1).await?.into_iter().next();
        match newest {
            Some(ReleaseRecord { phase: Phase::Stuck(reason), retired_at: None, number, .. }) => {
                let message = format!(
                    "release {number} is stuck: {}; look at it, repair it, then `trueup retry`",
                    reason.message
                );
                let held = Reason { message, ..reason };
                Err(Stop::Held { reason: held, until: None, plan: None })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn still_backing_off(&self, wanted: &Sha) -> Result<(), Stop> {
        let Some(failures) = &self.memory.failures else { return Ok(()) };
        let is_waiting = failures.sha.as_ref() == Some(wanted) && self.ports.clock.now() < failures.until;
        if !is_waiting || self.wake.by_person || self.wake.by_config {
            return Ok(());
        }
        Err(Stop::Held { reason: failures.reason.clone(), until: Some(failures.until), plan: None })
    }

    /// The cheap end of most passes: nothing is fetched, no engine is asked.
    pub(super) fn is_converged(&self, subject: &Subject, wanted: &Sha) -> Result<(), Stop> {
        match &subject.serving {
            Some(live)
                if !self.memory.heal && live.new.revision == *wanted && live.new.registry == subject.registry =>
            {
                Err(Stop::Converged {
                    revision: wanted.clone(),
                    release: live.number,
                    message: format!("{} is live as release {}", wanted.short(), live.number),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) async fn fetch(&self, subject: &Subject, wanted: &Sha) -> Result<CommitFacts, Stop> {
        let branch = self.branch(subject);
        let fetched = self.ports.source.fetch(&subject.project.repo, branch, wanted).await;
        fetched.map_err(|error| Stop::from(StepError::from(error)))
    }

    /// A commit whose tree runs already needs no release: a revert's, above all (ruling 18).
    pub(super) fn is_satisfied(&self, subject: &Subject, wanted: &Sha, facts: &CommitFacts) -> Result<(), Stop> {
        let Some(live) = subject.serving.as_ref().filter(|_| !self.memory.heal) else { return Ok(()) };
        let tree = live.new.desired.as_ref().and_then(|desired| desired.get("tree")).and_then(|tree| tree.as_str());
        if tree == Some(facts.tree.as_str()) && live.new.registry == subject.registry {
            return Err(Stop::Converged {
                revision: wanted.clone(),
                release: live.number,
                message: format!(
                    "{} is satisfied by release {}: its tree is the same as that of {}, so nothing is to be done",
                    wanted.short(),
                    live.number,
                    live.new.revision.short()
                ),
            });
        }
        Ok(())
    }

    /// Reads and joins the manifest; what is wrong with it is the commit's own.
    pub(super) async fn desired(
        &mut self,
        subject: &Subject,
        wanted: &Sha,
        facts: &CommitFacts,
    ) -> Result<(DesiredState, ManifestRecord), Stop> {
        self.is_quarantined(subject, wanted).await?;
        let path = &subject.project.app_toml;
        let read = self.ports.source.read(&subject.project.repo, wanted, path, MANIFEST_LIMIT).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.unreadable(subject, wanted, error).await),
        };
        let file = path.as_str().rsplit('/').next().unwrap_or("app.toml");
        let joined = apptoml::parse(&bytes, file, Some(&subject.project.name)).and_then(|app| {
            let commit = Commit { revision: wanted.clone(), tree: facts.tree.clone() };
            manifest::desired(&app, &subject.project, &self.target.target, &commit)
        });
        let desired = match joined {
            Ok(desired) => desired,
            Err(problems) => {
                let reason = invalid(path.as_str(), wanted, &problems);
                return Err(self.refuse(subject, wanted, reason).await);
            }
        };
        let record = ManifestRecord {
            digest: desired.manifest.clone(),
            path: path.to_string(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        };
        Ok((desired, record))
    }

    async fn unreadable(&mut self, subject: &Subject, wanted: &Sha, error: SourceError) -> Stop {
        if error.reason.code.fault() == Fault::Commit {
            return self.refuse(subject, wanted, error.reason).await;
        }
        Stop::from(StepError::from(error))
    }

    pub(super) async fn audit(
        &self,
        kind: &str,
        message: &str,
        (sha, release): (Option<&Sha>, Option<crate::model::ReleaseNumber>),
    ) -> Result<(), Halt> {
        let event = AuditEvent {
            at: self.ports.clock.now(),
            target: Some(self.target.clone()),
            by: "daemon".to_owned(),
            kind: kind.to_owned(),
            message: message.to_owned(),
            sha: sha.cloned(),
            release,
        };
        Ok(self.ports.store.audit(&event).await?)
    }

    fn idle(&self, rest: Rest) {
        self.ports.teller.tell(Progress::Idle { target: self.target.clone(), rest });
    }
}

/// A plan that waits for nothing more than consent.
pub(super) struct Prepared {
    pub(super) id: String,
    pub(super) desired: DesiredState,
    pub(super) plan: Plan,
}

fn invalid(path: &str, wanted: &Sha, problems: &Problems) -> Reason {
    let places: Vec<String> = problems
        .list
        .iter()
        .map(|problem| match problem.place {
            Some(place) => format!("{path}:{}:{}: {} ({})", place.line, place.column, problem.message, problem.fix),
            None => format!("{path}: {} ({})", problem.message, problem.fix),
        })
        .collect();
    Reason::new(
        ReasonCode::ManifestInvalid,
        format!("`{path}` at {} is refused: {}", wanted.short(), problems.summary()),
    )
    .with_evidence(places.join("\n"))
}

/// Kept here so that the gate's permission is named where it is used.
pub(super) type Admitted = gate::Admitted;

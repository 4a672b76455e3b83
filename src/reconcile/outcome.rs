//! How a pass begins a release or refuses one, and what its outcome says about the target.

use crate::model::{Fault, Reason, ReasonCode, Sha};
use crate::plan::Plan;
use crate::release::Phase;
use crate::store::record::{ManifestRecord, NewRelease, QuarantineEntry, ReleaseRecord};

use super::backoff;
use super::pass::{Failures, Pass, Prepared, Stop, Subject};
use super::ports::Halt;
use super::progress::Progress;
use super::queue::Wake;
use super::run::Run;

impl Pass<'_> {
    /// Records, once, that a revision may not run; the commit's own failures quarantine it.
    pub(super) async fn refuse(&mut self, subject: &Subject, revision: &Sha, reason: Reason) -> Stop {
        if self.is_preview {
            return Stop::Denied(reason);
        }
        match self.record_refusal(subject, revision, &reason).await {
            Ok(()) => Stop::Denied(reason),
            Err(halt) => Stop::Halt(halt),
        }
    }

    async fn record_refusal(&mut self, subject: &Subject, revision: &Sha, reason: &Reason) -> Result<(), Halt> {
        let store = &self.ports.store;
        let newest = store.releases(self.target, 1).await?.into_iter().next();
        let is_known = newest.is_some_and(|newest| {
            newest.new.revision == *revision
                && newest.new.registry == subject.registry
                && newest.phase == Phase::Refused(reason.clone())
        });
        if is_known {
            return Ok(());
        }
        let at = self.ports.clock.now();
        let new = NewRelease {
            target: self.target.clone(),
            revision: revision.clone(),
            slot: None,
            plan_id: None,
            manifest: None,
            registry: subject.registry.clone(),
            desired: None,
            trigger: self.trigger().to_owned(),
            at,
        };
        let record = store.begin_release(&new).await?;
        if reason.code.fault() == Fault::Commit {
            let entry = QuarantineEntry {
                target: self.target.clone(),
                sha: revision.clone(),
                registry: subject.registry.clone(),
                reason: reason.clone(),
                release: record.number,
                at,
                lifted: None,
            };
            store.put_quarantine(&entry).await?;
        }
        // Last, since from here on the refusal counts as recorded.
        store.put_phase(self.target, record.number, &Phase::Refused(reason.clone()), at).await?;
        let message = format!("release {} was refused: {reason}", record.number);
        self.audit("release-refused", &message, (Some(revision), Some(record.number))).await
    }

    pub(super) fn trigger(&self) -> &'static str {
        match self.wake {
            _ if self.memory.heal => "drift",
            Wake { by_person: true, .. } => "asked",
            Wake { by_config: true, .. } => "registry",
            _ => "commit",
        }
    }

    /// Stores the plan's manifest, begins the release and drives it.
    pub(super) async fn release(
        &mut self,
        subject: &Subject,
        prepared: Prepared,
        manifest: ManifestRecord,
    ) -> Result<ReleaseRecord, Stop> {
        let store = &self.ports.store;
        store.put_manifest(&manifest).await?;
        let desired = serde_json::to_value(&prepared.desired)
            .map_err(|error| Halt::Plan { id: prepared.id.clone(), detail: format!("its desired state: {error}") })?;
        let new = NewRelease {
            target: self.target.clone(),
            revision: prepared.desired.revision.clone(),
            slot: Some(prepared.plan.slot),
            plan_id: Some(prepared.id.clone()),
            manifest: Some(manifest.digest.clone()),
            registry: subject.registry.clone(),
            desired: Some(desired),
            trigger: self.trigger().to_owned(),
            at: self.ports.clock.now(),
        };
        let record = store.begin_release(&new).await?;
        self.memory.heal = false;
        self.note_held(None).await?;
        self.announce(&record, &prepared.plan).await?;
        let run = Run::new(self.ports.clone(), record, prepared.plan, (&[], self.interrupts.clone()))?;
        Ok(run.drive().await?)
    }

    async fn announce(&self, record: &ReleaseRecord, plan: &Plan) -> Result<(), Halt> {
        let cause = plan.cause.as_str();
        self.ports.teller.tell(Progress::Began {
            target: self.target.clone(),
            release: record.number,
            revision: record.new.revision.clone(),
            cause: cause.to_owned(),
        });
        let message = format!(
            "release {} of {} began on slot {}: {cause}",
            record.number,
            record.new.revision.short(),
            plan.slot
        );
        self.audit("release-began", &message, (Some(&record.new.revision), Some(record.number))).await
    }

    /// After a release: what it says about the target.
    pub(super) async fn settle(&mut self, record: &ReleaseRecord) -> Result<(), Halt> {
        match &record.phase {
            Phase::Live => {
                self.memory.failures = None;
                let message = format!("{} is live as release {}", record.new.revision.short(), record.number);
                self.note_ready(true, "Converged", &message).await
            }
            Phase::NothingActivated(reason) | Phase::Reverted(reason) => {
                let outcome = record.phase.to_string();
                self.note_ready(false, &reason.code.to_string(), &format!("release {} ended {outcome}", record.number))
                    .await?;
                // The commit's own fault is quarantined, and what overtook it is wanted at once; anything else
                // is tried again, later.
                if reason.code.fault() != Fault::Commit && reason.code != ReasonCode::Superseded {
                    self.back_off_after(record, reason);
                }
                Ok(())
            }
            Phase::Stuck(reason) => {
                let message = format!("release {} is stuck: {reason}; a person must look", record.number);
                self.note_ready(false, "Stuck", &message).await
            }
            Phase::Planned
            | Phase::Converging
            | Phase::Verifying
            | Phase::Switching
            | Phase::Proving
            | Phase::Undoing(_)
            | Phase::Reverting(_)
            | Phase::Refused(_) => Ok(()),
        }
    }

    fn back_off_after(&mut self, record: &ReleaseRecord, reason: &Reason) {
        let now = self.ports.clock.now();
        let sha = Some(record.new.revision.clone());
        let count = match &self.memory.failures {
            Some(failures) if failures.sha == sha => failures.count.saturating_add(1),
            Some(_) | None => 1,
        };
        // A try that took a release's number is not repeated as fast as one that did not.
        let wait = backoff::wait(count.saturating_add(2));
        let wait = jiff::SignedDuration::try_from(wait).unwrap_or_default();
        let until = now.checked_add(wait).unwrap_or(now);
        self.memory.failures = Some(Failures { sha, count, until, reason: reason.clone() });
    }
}

//! One release, driven through its phases: intent is on disk before each step, and every phase has a
//! way back.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::desired::DesiredState;
use crate::model::{Class, Fault, ImageId, Reason, TargetName};
use crate::plan::{Plan, Step};
use crate::release::{Event, Phase};
use crate::store::record::{AuditEvent, JournalEntry, QuarantineEntry, ReleaseRecord, Section, StepState};
use crate::verify::{Healthy, Verified};

use super::ports::{Halt, Interrupts, Ports, StepError};
use super::progress::Progress;

/// How long a step before the public proof is tried again when what it needs is away: an engine's or
/// an edge's restart takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a step of an undo or of a retirement is tried again: giving up means that a person must look.
const UNDO_PATIENCE: Duration = Duration::from_secs(180);

/// What the journal keeps of the look in public before the switch (ruling 36).
pub(super) const WAS_DARK: &str = "before the switch the old release could not be seen in public";

/// The wait between two tries of one step.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// A release under way.
pub struct Run {
    pub(super) ports: Ports,
    pub(super) record: ReleaseRecord,
    pub(super) plan: Plan,
    pub(super) desired: DesiredState,
    pub(super) image: Option<ImageId>,
    pub(super) healthy: Option<Healthy>,
    pub(super) proof: Option<Verified>,
    pub(super) was_public_good: Option<bool>,
    pub(super) unproven: Option<Reason>,
    pub(super) interrupts: Interrupts,
    /// When the drain of an undo began: a second try waits for what is left of it.
    pub(super) draining_since: Option<Timestamp>,
    done: BTreeSet<(Section, u32)>,
}

impl Run {
    /// A release that begins, or goes on from its journal.
    ///
    /// # Errors
    /// [`Halt`] when the record lacks its desired state: it was refused and cannot run.
    pub fn new(
        ports: Ports,
        record: ReleaseRecord,
        plan: Plan,
        (journal, interrupts): (&[JournalEntry], Interrupts),
    ) -> Result<Self, Halt> {
        let desired = record.new.desired.clone().unwrap_or_default();
        let desired = serde_json::from_value(desired).map_err(|error| Halt::Plan {
            id: record.new.plan_id.clone().unwrap_or_default(),
            detail: format!("its desired state: {error}"),
        })?;
        // What an earlier process heard from the candidate is no proof: it is asked again (invariant I3).
        let is_heard = |entry: &&JournalEntry| {
            let step = usize::try_from(entry.ordinal).ok().and_then(|ordinal| plan.converge.get(ordinal));
            entry.section == Section::Converge && step.is_some_and(is_question)
        };
        let done = journal
            .iter()
            .filter(|entry| entry.state == StepState::Done && !is_heard(entry))
            .map(|entry| (entry.section, entry.ordinal))
            .collect();
        let was_dark = journal.iter().any(|entry| {
            entry.section == Section::Commit
                && entry.state == StepState::Done
                && entry.note.as_deref() == Some(WAS_DARK)
        });
        let image = record.image_id.as_deref().and_then(|id| id.parse().ok());
        Ok(Self {
            ports,
            record,
            plan,
            desired,
            image,
            healthy: None,
            proof: None,
            was_public_good: was_dark.then_some(false),
            unproven: None,
            interrupts,
            draining_since: None,
            done,
        })
    }

    pub(super) fn target(&self) -> &TargetName {
        &self.record.new.target
    }

    pub(super) fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// Drives the release until it has its outcome and nothing is left to retire.
    ///
    /// # Errors
    /// [`Halt`] when it stopped in the middle.
    pub async fn drive(mut self) -> Result<ReleaseRecord, Halt> {
        loop {
            match self.record.phase.clone() {
                Phase::Planned => self.advance(Event::Started).await?,
                Phase::Converging | Phase::Verifying => self.converge().await?,
                Phase::Switching | Phase::Proving => self.commit().await?,
                Phase::Undoing(_) => self.undo(Section::UndoBefore).await?,
                Phase::Reverting(_) => self.undo(Section::UndoAfter).await?,
                Phase::Live if self.record.retired_at.is_none() => {
                    self.retire().await?;
                    return Ok(self.record);
                }
                Phase::Live | Phase::NothingActivated(_) | Phase::Reverted(_) | Phase::Refused(_) | Phase::Stuck(_) => {
                    return Ok(self.record);
                }
            }
        }
    }

    fn steps(&self, section: Section) -> Vec<Step> {
        let plan = &self.plan;
        match section {
            Section::Converge => plan.converge.clone(),
            Section::Commit => plan.commit.clone(),
            Section::Retire => plan.retire.clone(),
            Section::UndoBefore => plan.undo_before.clone(),
            Section::UndoAfter => plan.undo_after.clone(),
        }
    }

    /// The first step of a section that is not known to be done.
    fn next(&self, section: Section) -> Option<(u32, Step)> {
        (0_u32..).zip(self.steps(section)).find(|(ordinal, _)| !self.done.contains(&(section, *ordinal)))
    }

    async fn converge(&mut self) -> Result<(), Halt> {
        if let Some(why) = self.superseded()? {
            return self.fail(why).await;
        }
        let Some((ordinal, step)) = self.next(Section::Converge) else {
            if self.record.phase == Phase::Converging {
                self.advance(Event::Converged).await?;
            }
            return self.earn_proof().await;
        };
        if is_question(&step) && self.record.phase == Phase::Converging {
            self.advance(Event::Converged).await?;
        }
        match self.one(Section::Converge, ordinal, &step).await? {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error.reason).await,
        }
    }

    /// Moves on to the switch, but only with a proof that this process has seen itself: after a crash
    /// the candidate is asked again (invariant I3).
    async fn earn_proof(&mut self) -> Result<(), Halt> {
        match self.prove_candidate().await? {
            Ok(()) => self.advance(Event::Verified).await,
            Err(error) => self.fail(error.reason).await,
        }
    }

    /// Asks the candidate's health and smoke, unless this process holds the proof already.
    async fn prove_candidate(&mut self) -> Result<Result<(), StepError>, Halt> {
        if self.proof.is_some() {
            return Ok(Ok(()));
        }
        let steps = self.steps(Section::Converge);
        let questions = (0_u32..).zip(steps).filter(|(_, step)| is_question(step));
        for (ordinal, step) in questions {
            if let Err(error) = self.one(Section::Converge, ordinal, &step).await? {
                return Ok(Err(error));
            }
        }
        match self.proof {
            Some(_) => Ok(Ok(())),
            None => Ok(Err(StepError::bug("the plan's questions were answered and gave no proof"))),
        }
    }

    async fn commit(&mut self) -> Result<(), Halt> {
        if self.is_shutdown() {
            return Err(Halt::Shutdown);
        }
        // The last step of the switch may be done and only its event not written, when a crash came between.
        if self.record.phase == Phase::Switching && self.is_switched() {
            return self.advance(Event::Switched).await;
        }
        if self.record.phase == Phase::Switching
            && let Err(error) = self.prove_candidate().await?
        {
            return self.fail(error.reason).await;
        }
        let Some((ordinal, step)) = self.next(Section::Commit) else {
            return self.advance(Event::Proved).await;
        };
        if matches!(step, Step::Route { .. }) {
            self.look_in_public_before().await;
        }
        match self.one(Section::Commit, ordinal, &step).await? {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error.reason).await,
        }
    }

    /// Whether the traffic is moved and confirmed.
    fn is_switched(&self) -> bool {
        let is_of_the_switch = |step: &Step| matches!(step, Step::Route { .. } | Step::ConfirmEdge { .. });
        let commit = (0_u32..).zip(&self.plan.commit);
        commit
            .filter(|(_, step)| is_of_the_switch(step))
            .all(|(ordinal, _)| self.done.contains(&(Section::Commit, ordinal)))
    }

    async fn undo(&mut self, section: Section) -> Result<(), Halt> {
        if self.is_shutdown() {
            return Err(Halt::Shutdown);
        }
        let Some((ordinal, step)) = self.next(section) else {
            return self.advance(Event::Undone).await;
        };
        match self.one(section, ordinal, &step).await? {
            Ok(()) => Ok(()),
            Err(error) => self.advance(Event::UndoFailed(error.reason)).await,
        }
    }

    async fn retire(&mut self) -> Result<(), Halt> {
        while let Some((ordinal, step)) = self.next(Section::Retire) {
            if self.is_shutdown() {
                return Err(Halt::Shutdown);
            }
            // What cannot be retired now is recorded and left: it takes nothing from the release, and
            // the next release of this target removes what is still there.
            if self.one(Section::Retire, ordinal, &step).await?.is_err() {
                self.done.insert((Section::Retire, ordinal));
            }
        }
        let at = self.now();
        self.ports.store.put_retired(&self.record.new.target, self.record.number, at).await?;
        self.record.retired_at = Some(at);
        Ok(())
    }

    /// One step with its journal lines, tried again while what it needs is away.
    async fn one(&mut self, section: Section, ordinal: u32, step: &Step) -> Result<Result<(), StepError>, Halt> {
        let text = step.to_string();
        let line = Line { section, ordinal, text: &text };
        self.write(&line, StepState::Intent, None).await?;
        self.tell(Progress::Step { target: self.target().clone(), release: self.record.number, text: text.clone() });
        let began = self.now();
        let result = self.patiently(section, step).await?;
        match result {
            Ok(note) => {
                self.write(&line, StepState::Done, note).await?;
                self.done.insert((section, ordinal));
                let elapsed_ms = super::millis_between(began, self.now());
                self.tell(Progress::StepDone {
                    target: self.target().clone(),
                    release: self.record.number,
                    elapsed_ms,
                });
                Ok(Ok(()))
            }
            Err(error) => {
                self.write(&line, StepState::Failed, Some(error.reason.to_string())).await?;
                self.tell(Progress::StepFailed {
                    target: self.target().clone(),
                    release: self.record.number,
                    reason: error.reason.clone(),
                });
                Ok(Err(error))
            }
        }
    }

    async fn patiently(&mut self, section: Section, step: &Step) -> Result<Result<Option<String>, StepError>, Halt> {
        let patience = match section {
            Section::Converge | Section::Commit => PATIENCE,
            Section::Retire | Section::UndoBefore | Section::UndoAfter => UNDO_PATIENCE,
        };
        // From the first failure: a drain or a build may have taken longer than all patience before it.
        let mut failing_since = None;
        loop {
            let error = match self.perform(section, step).await? {
                Ok(note) => return Ok(Ok(note)),
                Err(error) => error,
            };
            let waited = super::millis_between(*failing_since.get_or_insert(self.now()), self.now());
            let is_over = u128::from(waited) >= patience.as_millis();
            let is_wanted = section != Section::Converge || self.superseded()?.is_none();
            if error.class != Class::Transient || is_over || !is_wanted {
                return Ok(Err(error));
            }
            tracing::warn!(target = %self.target(), step = %step, reason = %error.reason, "trying again");
            self.ports.clock.sleep(RETRY_EVERY).await;
            if self.is_shutdown() {
                return Err(Halt::Shutdown);
            }
        }
    }

    async fn write(&self, line: &Line<'_>, state: StepState, note: Option<String>) -> Result<(), Halt> {
        let entry = JournalEntry {
            target: self.record.new.target.clone(),
            release: self.record.number,
            section: line.section,
            ordinal: line.ordinal,
            step: line.text.to_owned(),
            state,
            at: self.now(),
            note,
        };
        Ok(self.ports.store.journal(&entry).await?)
    }

    /// A failure: what is the commit's own is remembered before anything is undone (field report 54).
    async fn fail(&mut self, reason: Reason) -> Result<(), Halt> {
        if reason.code.fault() == Fault::Commit {
            let entry = QuarantineEntry {
                target: self.record.new.target.clone(),
                sha: self.record.new.revision.clone(),
                registry: self.record.new.registry.clone(),
                reason: reason.clone(),
                release: self.record.number,
                at: self.now(),
                lifted: None,
            };
            self.ports.store.put_quarantine(&entry).await?;
        }
        self.advance(Event::Failed(reason)).await
    }

    /// The only way to move: phase, store, audit, watchers.
    async fn advance(&mut self, event: Event) -> Result<(), Halt> {
        let phase = self.record.phase.clone().on(event)?;
        let at = self.now();
        let store = &self.ports.store;
        store.put_phase(&self.record.new.target, self.record.number, &phase, at).await?;
        if phase == Phase::Proving {
            self.record.switched_at = Some(at);
        }
        self.record.phase = phase;
        if let Some(outcome) = self.record.outcome() {
            self.record.ended_at = Some(at);
            let reason = self.record.phase.reason().cloned();
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.audit(&format!("release-{outcome}"), &format!("release {} ended {outcome}{why}", self.record.number))
                .await?;
            self.tell(Progress::Ended {
                target: self.target().clone(),
                release: self.record.number,
                revision: self.record.new.revision.clone(),
                outcome,
                reason,
            });
        }
        Ok(())
    }

    pub(super) async fn audit(&self, kind: &str, message: &str) -> Result<(), Halt> {
        let event = AuditEvent {
            at: self.now(),
            target: Some(self.record.new.target.clone()),
            by: "daemon".to_owned(),
            kind: kind.to_owned(),
            message: message.to_owned(),
            sha: Some(self.record.new.revision.clone()),
            release: Some(self.record.number),
        };
        Ok(self.ports.store.audit(&event).await?)
    }

    pub(super) fn tell(&self, progress: Progress) {
        self.ports.teller.tell(progress);
    }
}

/// Whether a step asks the candidate, and changes nothing.
fn is_question(step: &Step) -> bool {
    matches!(step, Step::AwaitHealth { .. } | Step::SmokeSlot { .. })
}

struct Line<'a> {
    section: Section,
    ordinal: u32,
    text: &'a str,
}

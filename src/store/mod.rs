//! The store: intent before mutation, and every reason afterwards.
//!
//! One schema, two engines. All times are UTC microseconds: what is finer is cut off. Nothing in
//! it is secret. It refuses to guess: a row that does not read as what was written is an error, never a
//! default, and a damaged file is never replaced by an empty one.

#![expect(clippy::too_many_arguments, reason = "`put_phase` names a release by two arguments, like its neighbours")]

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::{BranchName, ReleaseNumber, Sha, TargetName};

#[cfg(test)]
mod contract;
pub mod deliveries;
mod error;
pub mod record;
pub mod schema;
pub mod sqlite;

pub use error::StoreError;

use crate::release::Phase;
use deliveries::Deliveries;
use record::{
    Approval, AuditEvent, CiRecord, Condition, DriftFinding, JournalEntry, ManifestRecord, NewRelease, ObservedRef,
    Pause, Pin, PlanRecord, QuarantineEntry, ReleaseRecord, ReportRecord, RevertRecord,
};

/// Where records survive a crash. Every write is durable when it returns.
#[async_trait]
pub trait Store: Send + Sync {
    /// This installation's id: made once, kept for ever; part of our labels.
    async fn instance(&self) -> Result<String, StoreError>;

    // Refs
    /// What was last seen of a target's branch.
    async fn observed_ref(&self, target: &TargetName) -> Result<Option<ObservedRef>, StoreError>;
    /// Records a look (field report 35: one source of truth, with its time). Where nothing but its time
    /// is new, an engine may write it a little later, together with others.
    async fn put_observed_ref(&self, target: &TargetName, seen: &ObservedRef) -> Result<(), StoreError>;

    // Controls by people
    /// The pause in force.
    async fn pause(&self, target: &TargetName) -> Result<Option<Pause>, StoreError>;
    /// Sets or lifts it.
    async fn put_pause(&self, target: &TargetName, pause: Option<&Pause>) -> Result<(), StoreError>;
    /// The pin in force.
    async fn pin(&self, target: &TargetName) -> Result<Option<Pin>, StoreError>;
    /// Sets or lifts it.
    async fn put_pin(&self, target: &TargetName, pin: Option<&Pin>) -> Result<(), StoreError>;

    // Quarantine
    /// The entry for a sha that has not been lifted.
    async fn quarantine(&self, target: &TargetName, sha: &Sha) -> Result<Option<QuarantineEntry>, StoreError>;
    /// All entries of a target, newest first, at most 100.
    async fn quarantines(&self, target: &TargetName) -> Result<Vec<QuarantineEntry>, StoreError>;
    /// Adds or replaces the entry of its (target, sha).
    async fn put_quarantine(&self, entry: &QuarantineEntry) -> Result<(), StoreError>;
    /// Lifts the entry for a sha; says whether there was one.
    async fn lift_quarantine(
        &self,
        target: &TargetName,
        sha: &Sha,
        lifted: (&str, Timestamp),
    ) -> Result<bool, StoreError>;

    // Plans and approvals
    /// Stores a plan under its id (idempotent): what is stored stays, and the plan becomes its target's latest.
    async fn put_plan(&self, plan: &PlanRecord) -> Result<(), StoreError>;
    /// A plan by its id, or by a unique prefix of at least 8 characters; none when the prefix fits several.
    async fn plan(&self, id: &str) -> Result<Option<PlanRecord>, StoreError>;
    /// The newest plan of a target that waits for a decision or ran.
    async fn latest_plan(&self, target: &TargetName) -> Result<Option<PlanRecord>, StoreError>;
    /// The decision on a plan's hash.
    async fn approval(&self, target: &TargetName, plan_hash: &str) -> Result<Option<Approval>, StoreError>;
    /// Records a decision.
    async fn put_approval(&self, approval: &Approval) -> Result<(), StoreError>;

    // Releases and their journal
    /// Begins a release in `Phase::Planned` with the target's next number. Its plan, if it names
    /// one, must be stored already (invariant I2).
    async fn begin_release(&self, new: &NewRelease) -> Result<ReleaseRecord, StoreError>;
    /// Records a release that serves although the store does not know it: what an empty store is rebuilt
    /// from (ruling 3). It counts as live and retired at `new.at`; later numbers are above `number`.
    async fn restore_release(
        &self,
        new: &NewRelease,
        number: ReleaseNumber,
        image_id: Option<&str>,
    ) -> Result<ReleaseRecord, StoreError>;
    /// Moves a release to a phase; sets `switched_at` when it enters Proving, `ended_at` when it
    /// has an outcome. A time that is set stays, so the call may be repeated.
    async fn put_phase(
        &self,
        target: &TargetName,
        number: ReleaseNumber,
        phase: &Phase,
        at: Timestamp,
    ) -> Result<(), StoreError>;
    /// Notes that nothing is left to retire.
    async fn put_retired(&self, target: &TargetName, number: ReleaseNumber, at: Timestamp) -> Result<(), StoreError>;
    /// Notes the image a release runs.
    async fn put_image(&self, target: &TargetName, number: ReleaseNumber, image_id: &str) -> Result<(), StoreError>;
    /// One release.
    async fn release(&self, target: &TargetName, number: ReleaseNumber) -> Result<Option<ReleaseRecord>, StoreError>;
    /// Newest first, at most `limit`.
    async fn releases(&self, target: &TargetName, limit: u32) -> Result<Vec<ReleaseRecord>, StoreError>;
    /// The newest release that ended `live`.
    async fn live_release(&self, target: &TargetName) -> Result<Option<ReleaseRecord>, StoreError>;
    /// Every release without an outcome, or live and not retired yet, of all targets, oldest first.
    async fn unfinished(&self) -> Result<Vec<ReleaseRecord>, StoreError>;
    /// Writes one line of a release's journal: before a step `Intent`, after it `Done` or `Failed`.
    async fn journal(&self, entry: &JournalEntry) -> Result<(), StoreError>;
    /// A release's journal, in order.
    async fn journal_of(&self, target: &TargetName, number: ReleaseNumber) -> Result<Vec<JournalEntry>, StoreError>;

    // Manifests, CI, conditions, drift
    /// Keeps the text of an applied manifest (field report 24).
    async fn put_manifest(&self, manifest: &ManifestRecord) -> Result<(), StoreError>;
    /// The text by its digest.
    async fn manifest(&self, digest: &str) -> Result<Option<ManifestRecord>, StoreError>;
    /// What is known of a sha's CI.
    async fn ci(&self, target: &TargetName, sha: &Sha) -> Result<Option<CiRecord>, StoreError>;
    /// Records what is known.
    async fn put_ci(&self, record: &CiRecord) -> Result<(), StoreError>;
    /// A target's conditions.
    async fn conditions(&self, target: &TargetName) -> Result<Vec<Condition>, StoreError>;
    /// Sets a condition; `since` moves only when status or reason changes. Says whether it was new or
    /// one of these two changed.
    async fn put_condition(&self, target: &TargetName, condition: &Condition) -> Result<bool, StoreError>;
    /// The drift found last and not gone.
    async fn drift(&self, target: &TargetName) -> Result<Option<DriftFinding>, StoreError>;
    /// Sets or clears it; `since` of an equal finding is kept.
    async fn put_drift(&self, target: &TargetName, finding: Option<&DriftFinding>) -> Result<(), StoreError>;

    // Reverts and reports
    /// The revert that was written for a commit of a branch.
    async fn revert(&self, repo: &str, branch: &BranchName, bad: &Sha) -> Result<Option<RevertRecord>, StoreError>;
    /// Records one, replacing what is recorded for its (repository, branch, commit).
    async fn put_revert(&self, revert: &RevertRecord) -> Result<(), StoreError>;
    /// The newest revert that went back to a revision on a branch.
    async fn revert_to(&self, repo: &str, branch: &BranchName, good: &Sha) -> Result<Option<RevertRecord>, StoreError>;
    /// What was last reported of a commit under a context.
    async fn report(&self, repo: &str, sha: &Sha, context: &str) -> Result<Option<ReportRecord>, StoreError>;
    /// Records a report, replacing the one before.
    async fn put_report(&self, report: &ReportRecord) -> Result<(), StoreError>;

    // Audit and known targets
    /// Appends one event; events are never changed or removed.
    async fn audit(&self, event: &AuditEvent) -> Result<(), StoreError>;
    /// Newest first, at most `limit`; of one target, or of all.
    async fn audit_events(&self, target: Option<&TargetName>, limit: u32) -> Result<Vec<AuditEvent>, StoreError>;
    /// Remembers that the registry names a target (ruling 4).
    async fn put_known_target(&self, target: &TargetName, is_orphaned: bool) -> Result<(), StoreError>;
    /// All targets ever named, with whether they are orphaned.
    async fn known_targets(&self) -> Result<Vec<(TargetName, bool)>, StoreError>;

    /// The part that keeps webhook deliveries; a store without one cannot take any in.
    fn deliveries(&self) -> Option<&dyn Deliveries> {
        None
    }
}

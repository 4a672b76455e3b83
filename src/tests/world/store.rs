//! The real store, with time standing still while it works, and a process that may end at each write.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::process::Process;
use crate::model::{BranchName, ReleaseNumber, Sha, TargetName};
use crate::release::Phase;
use crate::store::record::{
    Approval, AuditEvent, CiRecord, Condition, DriftFinding, JournalEntry, ManifestRecord, NewRelease, ObservedRef,
    Pause, Pin, PlanRecord, QuarantineEntry, ReleaseRecord, ReportRecord, RevertRecord,
};
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, StoreError};

pub(crate) struct HeldStore {
    pub(super) inner: Arc<SqliteStore>,
    pub(super) process: Arc<Process>,
}

impl HeldStore {
    async fn read<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.process.alive().await;
        let answer = held(work).await;
        self.process.alive().await;
        answer
    }

    async fn write<T>(&self, method: &str, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.process.alive().await;
        if self.process.fails(method) {
            return Err(StoreError::Full { what: "this write", path: "trueup.db".to_owned() });
        }
        let answer = held(work).await;
        if let Some((target, pause)) = self.process.pauses_after(method) {
            held(self.inner.put_pause(&target, Some(&pause))).await?;
        }
        self.process.touched(method).await;
        answer
    }
}

/// The engine works on threads of its own, which a paused clock does not see: a blocking task beside it
/// keeps the clock from jumping meanwhile.
pub(super) async fn held<T>(work: impl Future<Output = T>) -> T {
    let (working, done) = std::sync::mpsc::channel::<()>();
    let hold = tokio::task::spawn_blocking(move || done.recv().is_ok());
    let answer = work.await;
    drop(working);
    drop(hold);
    answer
}

macro_rules! forwarded {
    ($($kind:ident $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for HeldStore {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                forwarded!(@$kind self, $name, $($arg),*)
            })*
        }
    };
    (@read $self:ident, $name:ident, $($arg:ident),*) => { $self.read($self.inner.$name($($arg),*)).await };
    (@write $self:ident, $name:ident, $($arg:ident),*) => {
        $self.write(stringify!($name), $self.inner.$name($($arg),*)).await
    };
}

forwarded! {
    read instance() -> String;
    read observed_ref(target: &TargetName) -> Option<ObservedRef>;
    write put_observed_ref(target: &TargetName, seen: &ObservedRef) -> ();
    read pause(target: &TargetName) -> Option<Pause>;
    write put_pause(target: &TargetName, pause: Option<&Pause>) -> ();
    read pin(target: &TargetName) -> Option<Pin>;
    write put_pin(target: &TargetName, pin: Option<&Pin>) -> ();
    read quarantine(target: &TargetName, sha: &Sha) -> Option<QuarantineEntry>;
    read quarantines(target: &TargetName) -> Vec<QuarantineEntry>;
    write put_quarantine(entry: &QuarantineEntry) -> ();
    write lift_quarantine(target: &TargetName, sha: &Sha, lifted: (&str, Timestamp)) -> bool;
    write put_plan(plan: &PlanRecord) -> ();
    read plan(id: &str) -> Option<PlanRecord>;
    read latest_plan(target: &TargetName) -> Option<PlanRecord>;
    read approval(target: &TargetName, plan_hash: &str) -> Option<Approval>;
    write put_approval(approval: &Approval) -> ();
    write begin_release(new: &NewRelease) -> ReleaseRecord;
    write restore_release(new: &NewRelease, number: ReleaseNumber, image_id: Option<&str>) -> ReleaseRecord;
    read revert(repo: &str, branch: &BranchName, bad: &Sha) -> Option<RevertRecord>;
    write put_revert(revert: &RevertRecord) -> ();
    read revert_to(repo: &str, branch: &BranchName, good: &Sha) -> Option<RevertRecord>;
    read report(repo: &str, sha: &Sha, context: &str) -> Option<ReportRecord>;
    write put_report(report: &ReportRecord) -> ();
    write put_phase(target: &TargetName, number: ReleaseNumber, phase: &Phase, at: Timestamp) -> ();
    write put_retired(target: &TargetName, number: ReleaseNumber, at: Timestamp) -> ();
    write put_image(target: &TargetName, number: ReleaseNumber, image_id: &str) -> ();
    read release(target: &TargetName, number: ReleaseNumber) -> Option<ReleaseRecord>;
    read releases(target: &TargetName, limit: u32) -> Vec<ReleaseRecord>;
    read live_release(target: &TargetName) -> Option<ReleaseRecord>;
    read unfinished() -> Vec<ReleaseRecord>;
    write journal(entry: &JournalEntry) -> ();
    read journal_of(target: &TargetName, number: ReleaseNumber) -> Vec<JournalEntry>;
    write put_manifest(manifest: &ManifestRecord) -> ();
    read manifest(digest: &str) -> Option<ManifestRecord>;
    read ci(target: &TargetName, sha: &Sha) -> Option<CiRecord>;
    write put_ci(record: &CiRecord) -> ();
    read conditions(target: &TargetName) -> Vec<Condition>;
    write put_condition(target: &TargetName, condition: &Condition) -> bool;
    read drift(target: &TargetName) -> Option<DriftFinding>;
    write put_drift(target: &TargetName, finding: Option<&DriftFinding>) -> ();
    write audit(event: &AuditEvent) -> ();
    read audit_events(target: Option<&TargetName>, limit: u32) -> Vec<AuditEvent>;
    write put_known_target(target: &TargetName, is_orphaned: bool) -> ();
    read known_targets() -> Vec<(TargetName, bool)>;
}

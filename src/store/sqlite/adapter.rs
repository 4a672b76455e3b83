//! [`Store`] as calls of the statements, so that which connection answers is decided in one place.

use async_trait::async_trait;
use jiff::Timestamp;

use super::looks::Put;
use super::{SqliteStore, controls, facts, releases, told};
use crate::model::{BranchName, ReleaseNumber, Sha, TargetName};
use crate::release::Phase;
use crate::store::deliveries::Deliveries;
use crate::store::record::{
    Approval, AuditEvent, CiRecord, Condition, DriftFinding, JournalEntry, ManifestRecord, NewRelease, ObservedRef,
    Pause, Pin, PlanRecord, QuarantineEntry, ReleaseRecord, ReportRecord, RevertRecord,
};
use crate::store::{Store, StoreError};

#[async_trait]
impl Store for SqliteStore {
    async fn instance(&self) -> Result<String, StoreError> {
        facts::instance(&self.readers).await
    }

    async fn observed_ref(&self, target: &TargetName) -> Result<Option<ObservedRef>, StoreError> {
        if let Some(known) = self.looks.of(target) {
            return Ok(Some(known));
        }
        let found = controls::observed_ref(&self.readers, target).await?;
        if let (Some(found), Some(_)) = (&found, &self.writer) {
            self.looks.read(target, found);
        }
        Ok(found)
    }

    async fn put_observed_ref(&self, target: &TargetName, seen: &ObservedRef) -> Result<(), StoreError> {
        match self.looks.put(target, seen) {
            Put::Kept => return Ok(()),
            Put::Due(looks) => return self.write_looks(&looks).await,
            Put::Changed => self.looks.forget(target),
        }
        self.durably(|db| controls::put_observed_ref(db, target, seen)).await?;
        // What is read back is what was stored: times without what the engine cuts off.
        if let Some(stored) = controls::observed_ref(&self.readers, target).await? {
            self.looks.stored(target, &stored);
        }
        Ok(())
    }

    async fn pause(&self, target: &TargetName) -> Result<Option<Pause>, StoreError> {
        controls::pause(&self.readers, target).await
    }

    async fn put_pause(&self, target: &TargetName, pause: Option<&Pause>) -> Result<(), StoreError> {
        self.durably(|db| controls::put_pause(db, target, pause)).await
    }

    async fn pin(&self, target: &TargetName) -> Result<Option<Pin>, StoreError> {
        controls::pin(&self.readers, target).await
    }

    async fn put_pin(&self, target: &TargetName, pin: Option<&Pin>) -> Result<(), StoreError> {
        self.durably(|db| controls::put_pin(db, target, pin)).await
    }

    async fn quarantine(&self, target: &TargetName, sha: &Sha) -> Result<Option<QuarantineEntry>, StoreError> {
        controls::quarantine(&self.readers, target, sha).await
    }

    async fn quarantines(&self, target: &TargetName) -> Result<Vec<QuarantineEntry>, StoreError> {
        controls::quarantines(&self.readers, target).await
    }

    async fn put_quarantine(&self, entry: &QuarantineEntry) -> Result<(), StoreError> {
        self.durably(|db| controls::put_quarantine(db, entry)).await
    }

    async fn lift_quarantine(
        &self,
        target: &TargetName,
        sha: &Sha,
        lifted: (&str, Timestamp),
    ) -> Result<bool, StoreError> {
        self.durably(|db| controls::lift_quarantine(db, (target, sha), lifted)).await
    }

    async fn put_plan(&self, plan: &PlanRecord) -> Result<(), StoreError> {
        self.durably(|db| releases::put_plan(db, plan)).await
    }

    async fn plan(&self, id: &str) -> Result<Option<PlanRecord>, StoreError> {
        releases::plan(&self.readers, id).await
    }

    async fn latest_plan(&self, target: &TargetName) -> Result<Option<PlanRecord>, StoreError> {
        releases::latest_plan(&self.readers, target).await
    }

    async fn approval(&self, target: &TargetName, plan_hash: &str) -> Result<Option<Approval>, StoreError> {
        controls::approval(&self.readers, target, plan_hash).await
    }

    async fn put_approval(&self, approval: &Approval) -> Result<(), StoreError> {
        self.durably(|db| controls::put_approval(db, approval)).await
    }

    async fn begin_release(&self, new: &NewRelease) -> Result<ReleaseRecord, StoreError> {
        self.durably(|db| releases::begin_release(db, new)).await
    }

    async fn restore_release(
        &self,
        new: &NewRelease,
        number: ReleaseNumber,
        image_id: Option<&str>,
    ) -> Result<ReleaseRecord, StoreError> {
        self.durably(|db| releases::restore_release(db, new, (number, image_id))).await
    }

    async fn put_phase(
        &self,
        target: &TargetName,
        number: ReleaseNumber,
        phase: &Phase,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.durably(|db| releases::put_phase(db, (target, number), (phase, at))).await
    }

    async fn put_retired(&self, target: &TargetName, number: ReleaseNumber, at: Timestamp) -> Result<(), StoreError> {
        self.durably(|db| releases::put_retired(db, (target, number), at)).await
    }

    async fn put_image(&self, target: &TargetName, number: ReleaseNumber, image_id: &str) -> Result<(), StoreError> {
        self.durably(|db| releases::put_image(db, (target, number), image_id)).await
    }

    async fn release(&self, target: &TargetName, number: ReleaseNumber) -> Result<Option<ReleaseRecord>, StoreError> {
        releases::release(&self.readers, (target, number)).await
    }

    async fn releases(&self, target: &TargetName, limit: u32) -> Result<Vec<ReleaseRecord>, StoreError> {
        releases::releases(&self.readers, target, limit).await
    }

    async fn live_release(&self, target: &TargetName) -> Result<Option<ReleaseRecord>, StoreError> {
        releases::live_release(&self.readers, target).await
    }

    async fn unfinished(&self) -> Result<Vec<ReleaseRecord>, StoreError> {
        releases::unfinished(&self.readers).await
    }

    async fn journal(&self, entry: &JournalEntry) -> Result<(), StoreError> {
        self.durably(|db| releases::journal(db, entry)).await
    }

    async fn journal_of(&self, target: &TargetName, number: ReleaseNumber) -> Result<Vec<JournalEntry>, StoreError> {
        releases::journal_of(&self.readers, (target, number)).await
    }

    async fn put_manifest(&self, manifest: &ManifestRecord) -> Result<(), StoreError> {
        self.durably(|db| facts::put_manifest(db, manifest)).await
    }

    async fn manifest(&self, digest: &str) -> Result<Option<ManifestRecord>, StoreError> {
        facts::manifest(&self.readers, digest).await
    }

    async fn ci(&self, target: &TargetName, sha: &Sha) -> Result<Option<CiRecord>, StoreError> {
        facts::ci(&self.readers, target, sha).await
    }

    async fn put_ci(&self, record: &CiRecord) -> Result<(), StoreError> {
        self.durably(|db| facts::put_ci(db, record)).await
    }

    async fn conditions(&self, target: &TargetName) -> Result<Vec<Condition>, StoreError> {
        facts::conditions(&self.readers, target).await
    }

    async fn put_condition(&self, target: &TargetName, condition: &Condition) -> Result<bool, StoreError> {
        self.durably(|db| facts::put_condition(db, target, condition)).await
    }

    async fn drift(&self, target: &TargetName) -> Result<Option<DriftFinding>, StoreError> {
        facts::drift(&self.readers, target).await
    }

    async fn put_drift(&self, target: &TargetName, finding: Option<&DriftFinding>) -> Result<(), StoreError> {
        self.durably(|db| facts::put_drift(db, target, finding)).await
    }

    async fn revert(&self, repo: &str, branch: &BranchName, bad: &Sha) -> Result<Option<RevertRecord>, StoreError> {
        told::revert(&self.readers, (repo, branch), bad).await
    }

    async fn put_revert(&self, revert: &RevertRecord) -> Result<(), StoreError> {
        self.durably(|db| told::put_revert(db, revert)).await
    }

    async fn revert_to(&self, repo: &str, branch: &BranchName, good: &Sha) -> Result<Option<RevertRecord>, StoreError> {
        told::revert_to(&self.readers, (repo, branch), good).await
    }

    async fn report(&self, repo: &str, sha: &Sha, context: &str) -> Result<Option<ReportRecord>, StoreError> {
        told::report(&self.readers, (repo, sha), context).await
    }

    async fn put_report(&self, report: &ReportRecord) -> Result<(), StoreError> {
        self.durably(|db| told::put_report(db, report)).await
    }

    async fn audit(&self, event: &AuditEvent) -> Result<(), StoreError> {
        self.durably(|db| facts::audit(db, event)).await
    }

    async fn audit_events(&self, target: Option<&TargetName>, limit: u32) -> Result<Vec<AuditEvent>, StoreError> {
        facts::audit_events(&self.readers, target, limit).await
    }

    async fn put_known_target(&self, target: &TargetName, is_orphaned: bool) -> Result<(), StoreError> {
        self.durably(|db| facts::put_known_target(db, target, is_orphaned)).await
    }

    async fn known_targets(&self) -> Result<Vec<(TargetName, bool)>, StoreError> {
        facts::known_targets(&self.readers).await
    }

    fn deliveries(&self) -> Option<&dyn Deliveries> {
        Some(self)
    }
}

//! The records of the store, as plain data.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;
use crate::model::{BranchName, Digest, Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};
use crate::release::Phase;

/// What was last seen of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedRef {
    /// The branch.
    pub branch: BranchName,
    /// Its tip; none when the remote has no such branch.
    pub tip: Option<Sha>,
    /// When it was last looked at with success.
    pub looked_at: Timestamp,
    /// When the tip last changed.
    pub moved_at: Timestamp,
    /// A tip that is no descendant of `tip`, seen once, and when (ruling 10).
    pub suspect: Option<(Sha, Timestamp)>,
}

pub use crate::gate::Pause;

/// A person's wish for a revision other than the tip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The wanted revision.
    pub sha: Sha,
    /// The tip when it was set: `sync --sha` holds until the branch moves on from it.
    pub tip: Option<Sha>,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub note: String,
}

/// A sha that failed (promise P5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// The target.
    pub target: TargetName,
    /// The sha.
    pub sha: Sha,
    /// The registry it failed with: another one lifts the entry once (ruling 7).
    pub registry: Digest,
    /// Why it failed.
    pub reason: Reason,
    /// In which release.
    pub release: ReleaseNumber,
    /// When.
    pub at: Timestamp,
    /// Who lifted it and when.
    pub lifted: Option<(String, Timestamp)>,
}

/// A plan, as stored before its first step (invariant I2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The plan's hash: what consent is bound to (ruling 6).
    pub id: String,
    /// The target.
    pub target: TargetName,
    /// The commit.
    pub revision: Sha,
    /// When it was first made.
    pub at: Timestamp,
    /// `plan::Plan` as JSON.
    pub plan: serde_json::Value,
    /// The unified difference shown with it.
    pub difference: String,
}

/// A person's decision on a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The target.
    pub target: TargetName,
    /// The plan's hash.
    pub plan_hash: String,
    /// Approved, or denied.
    pub is_approved: bool,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A release about to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRelease {
    /// The target.
    pub target: TargetName,
    /// The commit.
    pub revision: Sha,
    /// The slot it takes; none for one that is refused.
    pub slot: Option<Slot>,
    /// The plan's id; none for one that is refused before a plan.
    pub plan_id: Option<String>,
    /// The desired state's manifest digest.
    pub manifest: Option<Digest>,
    /// The registry digest.
    pub registry: Digest,
    /// `DesiredState` as JSON, for drift and rollback; none for a refused one.
    pub desired: Option<serde_json::Value>,
    /// What made it begin: `commit`, `sync`, `registry`, `drift`, `rollback`.
    pub trigger: String,
    /// When.
    pub at: Timestamp,
}

/// A release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseRecord {
    /// Its number.
    pub number: ReleaseNumber,
    /// What it began as.
    #[serde(flatten)]
    pub new: NewRelease,
    /// Where it is.
    pub phase: Phase,
    /// The image it runs, once pinned.
    pub image_id: Option<String>,
    /// When traffic was moved.
    pub switched_at: Option<Timestamp>,
    /// When it got its outcome.
    pub ended_at: Option<Timestamp>,
    /// When nothing was left to retire.
    pub retired_at: Option<Timestamp>,
}

impl ReleaseRecord {
    /// The outcome word, once it has one.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.phase.outcome()
    }
}

/// Which list of a plan a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// `converge`.
    Converge,
    /// `commit`.
    Commit,
    /// `retire`.
    Retire,
    /// `undo_before`.
    UndoBefore,
    /// `undo_after`.
    UndoAfter,
}

/// What a journal line says of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It is about to begin.
    Intent,
    /// It is done.
    Done,
    /// It failed.
    Failed,
}

/// One line of a release's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The target.
    pub target: TargetName,
    /// The release.
    pub release: ReleaseNumber,
    /// Which list.
    pub section: Section,
    /// 0-based place in the list.
    pub ordinal: u32,
    /// The step's words.
    pub step: String,
    /// What became of it.
    pub state: StepState,
    /// When.
    pub at: Timestamp,
    /// What it gave (the image's id), or why it failed; free of secrets.
    pub note: Option<String>,
}

/// The text of an applied manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRecord {
    /// Digest of the bytes.
    pub digest: Digest,
    /// Its path in the repository.
    pub path: String,
    /// The text.
    pub text: String,
}

/// What is known of a sha's CI for a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiRecord {
    /// The target.
    pub target: TargetName,
    /// The sha.
    pub sha: Sha,
    /// When it was first asked for: the grace time counts from here.
    pub first_asked_at: Timestamp,
    /// When it was last asked for.
    pub asked_at: Timestamp,
    /// `None` = green; else the reason it is not.
    pub reason: Option<ReasonCode>,
    /// A sentence.
    pub message: String,
    /// The run's page.
    pub link: Option<String>,
}

/// One condition of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `Ready`, `SourceReady`, `Held`, `Drifted`, `ConfigValid`.
    pub kind: String,
    /// True or false.
    pub is_true: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Since when it is so.
    pub since: Timestamp,
}

/// A difference that no new revision explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftFinding {
    /// The live revision.
    pub revision: Sha,
    /// The unified difference.
    pub difference: String,
    /// What differs, a line each.
    pub summary: Vec<String>,
    /// Since when.
    pub since: Timestamp,
    /// When it was last looked at.
    pub looked_at: Timestamp,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEvent {
    /// When.
    pub at: Timestamp,
    /// Which target; none for the daemon itself.
    pub target: Option<TargetName>,
    /// Who: `uid 0`, `daemon`.
    pub by: String,
    /// `release-started`, `paused`, `approved`, …
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// The commit it is about, so that `why SHA` finds it.
    pub sha: Option<Sha>,
    /// The release it is about.
    pub release: Option<ReleaseNumber>,
}

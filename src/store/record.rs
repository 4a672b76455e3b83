//! The records of the store, as plain data.
//!
//! Times are kept to the microsecond: what is finer is cut off when it is written.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{BranchName, Digest, Reason, ReasonCode, ReleaseNumber, Sha, TargetName};

// The words of a release belong to the decisions about it; here they are records like the others.
pub use crate::release::record::{JournalEntry, NewRelease, ReleaseRecord, Section, StepState};

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
    /// `Ready`, `SourceReady`, `Held`, `Drifted`, `Healing`, `ConfigValid`.
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

/// A revert that was written to Git: at most one automatic one for each commit and branch (ruling 20).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertRecord {
    /// The repository, as the registry names it.
    pub repo: String,
    /// The branch that it is for.
    pub branch: BranchName,
    /// The newest commit that it undoes.
    pub bad: Sha,
    /// The revision that it goes back to.
    pub good: Sha,
    /// The target that asked for it first.
    pub target: TargetName,
    /// Who: `uid 0`, `daemon`.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The commit, if it is known.
    pub commit: Option<Sha>,
    /// The branch that the commit is on.
    pub on_branch: String,
    /// The pull request's page.
    pub link: Option<String>,
}

/// What was last reported of a commit under one name; only a change is reported again (field report 48).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportRecord {
    /// The repository, as the registry names it.
    pub repo: String,
    /// The commit.
    pub sha: Sha,
    /// The status's context.
    pub context: String,
    /// The state that GitHub has.
    pub state: String,
    /// The sentence that GitHub has.
    pub description: String,
    /// When.
    pub at: Timestamp,
    /// GitHub's number of the deployment, if one was made.
    pub deployment: Option<u64>,
    /// Whether GitHub takes no more statuses for it: final.
    pub is_full: bool,
}

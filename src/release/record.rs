//! A release and its journal, as plain data: what the store keeps and the decisions read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::phase::Phase;
use crate::model::outcome::Outcome;
use crate::model::{Digest, ReleaseNumber, Sha, Slot, TargetName};

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

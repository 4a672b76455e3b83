//! What people are shown, made from the store alone: the same for a living daemon and for
//! `--offline` (ruling 27).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};
use crate::release::Phase;
use crate::store::record::{Condition, JournalEntry, Pause, Pin, ReleaseRecord};
use crate::store::{Store, StoreError};

mod delivery;
mod why;

pub use delivery::{Delivered, delivery, refused};
pub use why::{Why, advice, why};

/// A target's state, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateWord {
    /// The wanted revision is live.
    Live,
    /// A release is under way.
    Releasing,
    /// Not now, with a reason.
    Held,
    /// A person must look.
    Stuck,
    /// Nothing was ever released.
    Empty,
    /// The registry no longer names it.
    Orphaned,
}

impl StateWord {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Releasing => "releasing",
            Self::Held => "held",
            Self::Stuck => "stuck",
            Self::Empty => "empty",
            Self::Orphaned => "orphaned",
        }
    }
}

/// One target's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetStatus {
    /// The target.
    pub target: TargetName,
    /// In one word.
    pub state: StateWord,
    /// What serves.
    pub live: Option<LiveView>,
    /// The branch's tip as last seen.
    pub tip: Option<Sha>,
    /// The tracked branch.
    pub branch: Option<String>,
    /// When the remote was last looked at with success.
    pub looked_at: Option<Timestamp>,
    /// What is wanted: the pin, or the tip.
    pub wanted: Option<Sha>,
    /// Why the wanted revision is not live.
    pub held: Option<HeldView>,
    /// A person's pause.
    pub paused: Option<Pause>,
    /// A person's pin.
    pub pin: Option<Pin>,
    /// Drift.
    pub drift: Option<DriftView>,
    /// The newest release, whatever became of it.
    pub last_release: Option<ReleaseView>,
    /// All conditions.
    pub conditions: Vec<Condition>,
}

/// What serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// Its release.
    pub release: ReleaseNumber,
    /// Its commit.
    pub revision: Sha,
    /// Its slot.
    pub slot: Option<Slot>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Its image.
    pub image_id: Option<String>,
}

/// Why not now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// The reason's word.
    pub reason: String,
    /// The reason's sentence.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// The plan that waits for a decision.
    pub plan: Option<String>,
}

/// Drift, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftView {
    /// Since when.
    pub since: Timestamp,
    /// When it was last looked at.
    pub looked_at: Timestamp,
    /// A line for each document that differs.
    pub summary: Vec<String>,
    /// The unified difference: `a` is what was released, `b` what runs.
    pub difference: String,
}

/// A release, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseView {
    /// Its number.
    pub release: ReleaseNumber,
    /// Its commit.
    pub revision: Sha,
    /// The outcome's word, or the phase's while it has none.
    pub state: String,
    /// Its slot.
    pub slot: Option<Slot>,
    /// What made it begin.
    pub trigger: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When traffic was moved.
    pub switched_at: Option<Timestamp>,
    /// When it got its outcome.
    pub ended_at: Option<Timestamp>,
    /// Why, unless it is live.
    pub reason: Option<Reason>,
}

impl From<&ReleaseRecord> for ReleaseView {
    fn from(record: &ReleaseRecord) -> Self {
        Self {
            release: record.number,
            revision: record.new.revision.clone(),
            state: record.phase.to_string(),
            slot: record.new.slot,
            trigger: record.new.trigger.clone(),
            started_at: record.new.at,
            switched_at: record.switched_at,
            ended_at: record.ended_at,
            reason: record.phase.reason().cloned(),
        }
    }
}

/// One release with its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLog {
    /// The release.
    pub release: ReleaseView,
    /// Its journal, in order.
    pub journal: Vec<JournalEntry>,
}

/// Reads one target's status.
///
/// # Errors
/// When the store cannot be read.
pub async fn status(store: &dyn Store, target: &TargetName, is_orphaned: bool) -> Result<TargetStatus, StoreError> {
    let seen = store.observed_ref(target).await?;
    let pin = store.pin(target).await?;
    let live = store.live_release(target).await?;
    let last = store.releases(target, 1).await?.into_iter().next();
    let conditions = store.conditions(target).await?;
    let tip = seen.as_ref().and_then(|seen| seen.tip.clone());
    let held = held_view(store, target, &conditions).await?;
    let drift = store.drift(target).await?.map(|found| DriftView {
        since: found.since,
        looked_at: found.looked_at,
        summary: found.summary,
        difference: found.difference,
    });
    Ok(TargetStatus {
        target: target.clone(),
        state: state_word(is_orphaned, live.as_ref(), last.as_ref(), held.is_some()),
        live: live.as_ref().map(live_view),
        wanted: pin.as_ref().map(|pin| pin.sha.clone()).or_else(|| tip.clone()),
        tip,
        branch: seen.as_ref().map(|seen| seen.branch.to_string()),
        looked_at: seen.map(|seen| seen.looked_at),
        held,
        paused: store.pause(target).await?,
        pin,
        drift,
        last_release: last.as_ref().map(ReleaseView::from),
        conditions,
    })
}

fn live_view(record: &ReleaseRecord) -> LiveView {
    LiveView {
        release: record.number,
        revision: record.new.revision.clone(),
        slot: record.new.slot,
        since: record.switched_at,
        image_id: record.image_id.clone(),
    }
}

async fn held_view(
    store: &dyn Store,
    target: &TargetName,
    conditions: &[Condition],
) -> Result<Option<HeldView>, StoreError> {
    let Some(held) = conditions.iter().find(|condition| condition.kind == "Held" && condition.is_true) else {
        return Ok(None);
    };
    let plan = if held.reason == ReasonCode::NeedsApproval.as_str() {
        store.latest_plan(target).await?.map(|plan| plan.id)
    } else {
        None
    };
    Ok(Some(HeldView { reason: held.reason.clone(), message: held.message.clone(), since: held.since, plan }))
}

fn state_word(
    is_orphaned: bool,
    live: Option<&ReleaseRecord>,
    last: Option<&ReleaseRecord>,
    is_held: bool,
) -> StateWord {
    let phase = last.map(|record| &record.phase);
    match phase {
        _ if is_orphaned => StateWord::Orphaned,
        Some(Phase::Stuck(_)) => StateWord::Stuck,
        Some(phase) if phase.outcome().is_none() => StateWord::Releasing,
        _ if is_held => StateWord::Held,
        _ if live.is_some() => StateWord::Live,
        _ => StateWord::Empty,
    }
}

/// Reads the releases of a target, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn releases(store: &dyn Store, target: &TargetName, limit: u32) -> Result<Vec<ReleaseView>, StoreError> {
    Ok(store.releases(target, limit).await?.iter().map(ReleaseView::from).collect())
}

/// Reads one release with its journal; the newest when no number is given.
///
/// # Errors
/// When the store cannot be read.
pub async fn log(
    store: &dyn Store,
    target: &TargetName,
    number: Option<ReleaseNumber>,
) -> Result<Option<ReleaseLog>, StoreError> {
    let record = match number {
        Some(number) => store.release(target, number).await?,
        None => store.releases(target, 1).await?.into_iter().next(),
    };
    let Some(record) = record else { return Ok(None) };
    let journal = store.journal_of(target, record.number).await?;
    Ok(Some(ReleaseLog { release: ReleaseView::from(&record), journal }))
}

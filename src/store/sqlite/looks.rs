//! When branches were looked at. Most looks see nothing new: their time is kept in memory and written
//! together with that of the others, so that a round over a thousand targets costs one flush of the disk
//! instead of a thousand.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use sqlx::query;

use super::db::{Db, json, micros};
use crate::model::TargetName;
use crate::store::StoreError;
use crate::store::record::ObservedRef;

/// How long the time of a look may wait to be written: what a crash makes `looked_at` older by.
pub const LOOK_HELD: SignedDuration = SignedDuration::from_secs(30);

/// The observed refs as stored, with the time of their last look.
#[derive(Debug, Default)]
pub(super) struct Looks {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    seen: BTreeMap<TargetName, ObservedRef>,
    waiting: BTreeMap<TargetName, Timestamp>,
    /// When the first of those that wait began to.
    since: Option<Timestamp>,
}

/// What is to be done with a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Something other than its time changed: it is written at once.
    Changed,
    /// It waits.
    Kept,
    /// It waits no longer: all of these are written together.
    Due(BTreeMap<TargetName, Timestamp>),
}

impl Looks {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a target without asking the engine.
    pub(super) fn of(&self, target: &TargetName) -> Option<ObservedRef> {
        self.held().seen.get(target).cloned()
    }

    /// Keeps what was read from the engine, unless a look has told more since.
    pub(super) fn read(&self, target: &TargetName, seen: &ObservedRef) {
        self.held().seen.entry(target.clone()).or_insert_with(|| seen.clone());
    }

    /// Keeps what was written to the engine.
    pub(super) fn stored(&self, target: &TargetName, seen: &ObservedRef) {
        let mut held = self.held();
        held.seen.insert(target.clone(), seen.clone());
    }

    /// Forgets a target: what the engine has of it is not known.
    pub(super) fn forget(&self, target: &TargetName) {
        let mut held = self.held();
        held.waiting.remove(target);
        held.seen.remove(target);
    }

    /// Takes a look.
    pub(super) fn put(&self, target: &TargetName, seen: &ObservedRef) -> Put {
        let mut held = self.held();
        let is_same = held
            .seen
            .get(target)
            .is_some_and(|known| ObservedRef { looked_at: seen.looked_at, ..known.clone() } == *seen);
        if !is_same {
            return Put::Changed;
        }
        if let Some(known) = held.seen.get_mut(target) {
            known.looked_at = seen.looked_at;
        }
        held.waiting.insert(target.clone(), seen.looked_at);
        let since = *held.since.get_or_insert(seen.looked_at);
        if seen.looked_at.duration_since(since) < LOOK_HELD {
            return Put::Kept;
        }
        Put::Due(held.waiting.clone())
    }

    /// All that waits.
    pub(super) fn waiting(&self) -> BTreeMap<TargetName, Timestamp> {
        self.held().waiting.clone()
    }

    /// Notes that these are written.
    pub(super) fn written(&self, looks: &BTreeMap<TargetName, Timestamp>) {
        let mut held = self.held();
        held.waiting.retain(|target, at| looks.get(target).is_none_or(|written| written < at));
        held.since = held.waiting.values().min().copied();
    }
}

/// Writes the times of many looks in one statement, so all or none.
pub(super) async fn write(db: &Db, looks: &BTreeMap<TargetName, Timestamp>) -> Result<(), StoreError> {
    const WHAT: &str = "record when branches were looked at";
    let times: BTreeMap<String, i64> = looks.iter().map(|(target, at)| (target.to_string(), micros(*at))).collect();
    let statement = query(
        "UPDATE observed_refs SET looked_at = looks.value
         FROM json_each(?1) AS looks WHERE observed_refs.target = looks.key",
    )
    .bind(json(WHAT, &times)?);
    db.run(WHAT, statement).await?;
    Ok(())
}

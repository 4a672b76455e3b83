//! Deliveries that were turned away: told in the log, and kept in memory for `why`.
//!
//! Everything here is an unverified word of a stranger, so it is bounded: in the log by a number for each
//! tick, in memory by a ring, and nothing of it is stored.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Lines in the log between two ticks.
const LINES: u32 = 20;

/// Refusals that `why` can answer about.
const KEPT: usize = 200;

/// One that was turned away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The delivery's id, as the sender named it.
    pub id: String,
    /// The hook's id, as the sender named it.
    pub hook: String,
    /// The event, as the sender named it.
    pub event: String,
    /// When.
    pub at: Timestamp,
    /// The status that was answered.
    pub status: u16,
    /// Why.
    pub message: String,
}

/// The last refusals.
#[derive(Debug)]
pub struct Refusals {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    ring: VecDeque<Refusal>,
    lines_left: u32,
    hidden: u32,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { ring: VecDeque::new(), lines_left: LINES, hidden: 0 }) }
    }
}

impl Refusals {
    /// Notes and logs one.
    pub fn note(&self, refusal: Refusal) {
        let mut inner = self.inner();
        if inner.lines_left > 0 {
            inner.lines_left -= 1;
            let Refusal { id, hook, event, status, message, .. } = &refusal;
            tracing::warn!(delivery = %id, hook = %hook, event = %event, status, "a webhook delivery was refused: {message}");
        } else {
            inner.hidden = inner.hidden.saturating_add(1);
        }
        if inner.ring.len() >= KEPT {
            inner.ring.pop_front();
        }
        inner.ring.push_back(refusal);
    }

    /// Lets the log speak again, after saying how many lines it left out.
    pub fn tick(&self) {
        let mut inner = self.inner();
        if inner.hidden > 0 {
            tracing::warn!(count = inner.hidden, "more webhook deliveries were refused");
        }
        inner.hidden = 0;
        inner.lines_left = LINES;
    }

    /// The newest with an id, or a prefix of at least 8 characters.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Refusal> {
        let inner = self.inner();
        (id.len() >= 8).then(|| inner.ring.iter().rev().find(|refusal| refusal.id.starts_with(id)).cloned()).flatten()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_refusals_are_kept_and_found_by_id() {
        let refusals = Refusals::default();
        let refusal = |number: usize| Refusal {
            id: format!("{number:08}-aaaa"),
            hook: "1".to_owned(),
            event: "push".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            status: 401,
            message: "no".to_owned(),
        };
        for number in 0..KEPT + 1 {
            refusals.note(refusal(number));
        }
        assert_eq!(refusals.find("00000000"), None, "the first made room");
        assert_eq!(refusals.find("00000001-a"), Some(refusal(1)));
        assert_eq!(refusals.find(""), None);
        assert_eq!(refusals.inner().hidden, 181);
        refusals.tick();
        assert_eq!(refusals.inner().lines_left, LINES);
    }
}

//! A target's place on the queue: wakes that wait are merged, and counted by the pass that will know of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::queue::Wake;

/// A target's place on the queue.
#[derive(Debug, Default)]
pub(super) struct Seat {
    waiting: Mutex<Waiting>,
    pub(super) notify: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    wake: Wake,
    begun: u64,
}

impl Seat {
    /// Asks for a pass; gives the number of the first one that will know of it.
    pub(super) fn wake(&self, wake: Wake) -> u64 {
        let mut waiting = self.waiting();
        waiting.wake = waiting.wake.merged(wake);
        let next = waiting.begun.saturating_add(1);
        drop(waiting);
        self.notify.notify_one();
        next
    }

    /// Begins a pass: gives its number and what asked for it.
    pub(super) fn begin(&self) -> (u64, Wake) {
        let mut waiting = self.waiting();
        waiting.begun = waiting.begun.saturating_add(1);
        (waiting.begun, std::mem::take(&mut waiting.wake))
    }

    pub(super) fn peek(&self) -> Wake {
        self.waiting().wake
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! One life of the daemon: where it is stopped dead, and what it may not write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::model::TargetName;
use crate::store::record::Pause;

/// The effect or write after which the daemon was stopped.
pub(crate) type Stop = String;

/// One life of the daemon. After its end, whatever it calls never returns: nothing more is done in its name.
#[derive(Default)]
pub(super) struct Process {
    life: Mutex<Life>,
    end: Notify,
}

#[derive(Default)]
struct Life {
    is_over: bool,
    touches: usize,
    last: Option<usize>,
    stopped_at: Option<Stop>,
    is_twice: bool,
    failing: Vec<(&'static str, u32)>,
    pausing: Option<(&'static str, (TargetName, Pause))>,
}

impl Process {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on only while the daemon lives.
    pub(super) async fn alive(&self) {
        if self.life().is_over {
            std::future::pending::<()>().await;
        }
    }

    /// An effect or a write was done; perhaps it was the last one.
    pub(super) async fn touched(&self, what: &str) {
        let is_end = {
            let mut life = self.life();
            life.touches += 1;
            let is_end = life.last.is_some_and(|last| life.touches >= last) && !life.is_over;
            if is_end {
                life.is_over = true;
                life.stopped_at = Some(what.to_owned());
            }
            is_end
        };
        if is_end {
            self.end.notify_waiters();
        }
        self.alive().await;
    }

    pub(super) fn stop(&self) {
        self.life().is_over = true;
        self.end.notify_waiters();
    }

    /// Returns when the daemon is stopped.
    pub(super) async fn stopped(&self) {
        loop {
            let end = self.end.notified();
            tokio::pin!(end);
            end.as_mut().enable();
            if self.life().is_over {
                return;
            }
            end.await;
        }
    }

    pub(super) fn stop_after(&self, touches: usize) {
        let mut life = self.life();
        life.last = Some(life.touches + touches);
    }

    pub(super) fn touches(&self) -> usize {
        self.life().touches
    }

    pub(super) fn where_stopped(&self) -> Option<Stop> {
        self.life().stopped_at.clone()
    }

    pub(super) fn everything_twice(&self) {
        self.life().is_twice = true;
    }

    pub(super) fn times(&self) -> u32 {
        if self.life().is_twice { 2 } else { 1 }
    }

    pub(super) fn fail_writes(&self, method: &'static str, times: u32) {
        self.life().failing.push((method, times));
    }

    pub(super) fn pause_after_write(&self, method: &'static str, pause: (TargetName, Pause)) {
        self.life().pausing = Some((method, pause));
    }

    /// The pause that a person sets just after this write.
    pub(super) fn pauses_after(&self, method: &str) -> Option<(TargetName, Pause)> {
        let mut life = self.life();
        life.pausing.take_if(|(known, _)| *known == method).map(|(_, pause)| pause)
    }

    /// Whether this write fails.
    pub(super) fn fails(&self, method: &str) -> bool {
        let mut life = self.life();
        let failing = life.failing.iter_mut().find(|(known, left)| *known == method && *left > 0);
        failing.map(|(_, left)| *left -= 1).is_some()
    }
}

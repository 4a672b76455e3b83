//! The loop: one pass for one target, serial for each target, parallel across targets.

pub mod backoff;
mod documents;
pub mod drift;
mod facts;
pub mod heal;
mod history;
mod interrupt;
mod outcome;
pub mod pass;
pub mod ports;
mod prepare;
pub mod preview;
pub mod progress;
mod proof;
pub mod queue;
mod rebuild;
pub mod reporting;
pub mod resume;
pub mod rollback;
pub mod run;
mod seat;
mod stand_in;
mod steps;
pub mod worker;

use jiff::Timestamp;

/// Milliseconds from `from` to `to`; 0 when the clock went backwards.
#[must_use]
pub fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

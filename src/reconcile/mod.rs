//! The loop: one pass for one target, serial for each target, parallel across targets.

pub mod backoff;
mod documents;
pub mod drift;
mod facts;
pub mod pass;
mod prepare;
pub mod preview;
pub mod progress;
pub mod queue;
pub mod resume;
pub mod worker;
pub mod ports;
mod proof;
pub mod run;
mod steps;

use jiff::Timestamp;

/// Milliseconds from `from` to `to`; 0 when the clock went backwards.
#[must_use]
pub fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

//! The clock: the one place that asks for the time.

use jiff::Timestamp;

/// Gives the time.
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

/// Now, by the machine's clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

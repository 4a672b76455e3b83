//! The clock: the one place that asks for the time, and that waits.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

/// Gives the time.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;

    /// Returns when `duration` has passed.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Now, by the machine's clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

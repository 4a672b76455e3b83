//! The clock: the one module that asks the system what time it is.
//!
//! Everything else takes the time as an argument, so that equal inputs give equal answers.

/// Returns the present time of the system clock, in UTC.
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
#[must_use]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

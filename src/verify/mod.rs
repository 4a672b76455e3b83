//! From samples to a verdict, and the permission to move traffic.
//!
//! Pure: the time that has passed, the answer that was seen and what the container does are arguments.
//! Nothing here asks, waits or logs; the loop asks again after the time that a verdict names.
//!
//! - [`health()`]: the contract's 30 s rule on the idle slot; gives a [`Healthy`].
//! - [`smoke()`]: one check on one answer; [`verified`] joins a [`Healthy`] with all of them to a [`Verified`].
//! - [`mod@public`]: the same questions through the edge and through Cloudflare, after the switch.

use std::time::Duration;

use crate::model::desired::SmokeCheck;
use crate::model::sample::Sample;
use crate::model::{Reason, ReasonCode, Sha};

pub mod evidence;
pub mod health;
pub mod public;
pub mod smoke;

#[cfg(test)]
mod tests;

pub use health::health;
pub use public::{edge_health, public_health, public_smoke};
pub use smoke::smoke;

/// What one sample means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<T> {
    /// As it should be.
    Passed(T),
    /// Not yet; ask again.
    Waiting {
        /// How long to wait before the next sample.
        after: Duration,
        /// What was seen, in one line.
        why: String,
    },
    /// Final: another sample would not change it, or the time is over.
    Failed(Reason),
}

/// What is asked for, and how much time has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The commit that must answer.
    pub revision: Sha,
    /// From the start of the step to the end of this sample.
    pub elapsed: Duration,
    /// The bound; [`HEALTH_BOUND`] for a candidate.
    pub within: Duration,
}

/// How long a container has to say that it is healthy. Source: app.toml contract, '/healthz'.
pub const HEALTH_BOUND: Duration = Duration::from_secs(30);

/// Proof that a container itself said that it is this commit. Only [`health()`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healthy {
    revision: Sha,
}

impl Healthy {
    /// The commit that answered.
    #[must_use]
    pub fn revision(&self) -> &Sha {
        &self.revision
    }
}

/// Permission to move traffic (invariant I3): the candidate was healthy and passed every smoke check.
///
/// Only [`verified`] makes one. It is not stored: after a crash it is earned again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    revision: Sha,
}

impl Verified {
    /// The commit that was proved.
    #[must_use]
    pub fn revision(&self) -> &Sha {
        &self.revision
    }
}

/// Turns health and one sample for each smoke check into the permission to move traffic.
///
/// # Errors
/// The first failed check's reason (`SmokeFailed`), or `Bug` when the samples do not match the checks one to one.
pub fn verified(healthy: Healthy, checks: &[SmokeCheck], samples: &[Sample]) -> Result<Verified, Reason> {
    if checks.len() != samples.len() {
        let message = format!("{} smoke checks have {} samples: each needs its own", checks.len(), samples.len());
        return Err(Reason::new(ReasonCode::Bug, message));
    }
    for (check, sample) in checks.iter().zip(samples) {
        smoke(check, sample)?;
    }
    Ok(Verified { revision: healthy.revision })
}

/// When to look again: often at first, since most applications start fast, then less.
fn next_look(expectation: &Expectation) -> Duration {
    let step = match expectation.elapsed.as_millis() {
        0..2_000 => 50,
        2_000..10_000 => 200,
        10_000.. => 500,
    };
    Duration::from_millis(step).min(expectation.within.saturating_sub(expectation.elapsed))
}

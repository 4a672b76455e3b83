//! Waiting after failures of the surroundings: doubling, bounded, spread.

use std::time::Duration;

/// The first wait.
pub const FIRST: Duration = Duration::from_secs(2);

/// The longest wait: an operator who repaired something waits no longer than this, or types `retry`.
pub const LONGEST: Duration = Duration::from_secs(300);

/// How long to wait after `failures` failures in a row (1 = the first), before spreading.
///
/// 2 s, 4 s, 8 s, … at most [`LONGEST`].
#[must_use]
pub fn wait(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(LONGEST)
}

/// Spreads a wait by up to a tenth, by a number that differs between targets, so that many targets
/// that fail together do not come back together (field report 2).
#[must_use]
pub fn spread(wait: Duration, seed: u64) -> Duration {
    let tenth = wait / 10;
    let share = u32::try_from(seed % 1000).unwrap_or(0);
    wait + tenth.saturating_mul(share) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<u64> = (1..=10).map(|failures| wait(failures).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(wait(u32::MAX), LONGEST);
        assert_eq!(wait(0), FIRST);
    }

    #[test]
    fn a_spread_wait_is_never_shorter_and_at_most_a_tenth_longer() {
        for seed in [0, 1, 999, 1000, u64::MAX] {
            let spread = spread(Duration::from_secs(100), seed);
            assert!(spread >= Duration::from_secs(100) && spread < Duration::from_secs(110), "{seed}: {spread:?}");
        }
    }
}

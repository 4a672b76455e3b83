//! Waiting after failures of the surroundings: doubling, bounded, spread.

use std::time::Duration;

use jiff::Timestamp;

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

/// How long until the next look of everybody with this seed: one instant in each interval, so that all
/// targets of one repository look together, and different repositories do not (field report 2).
///
/// More than nothing, and at most `every`.
#[must_use]
pub fn until_beat(now: Timestamp, every: Duration, seed: u64) -> Duration {
    let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
    let now = u64::try_from(now.as_millisecond()).unwrap_or(0);
    let since = now.wrapping_sub(seed % every) % every;
    Duration::from_millis(every - since)
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

    #[test]
    fn a_beat_comes_once_in_each_interval_and_at_the_same_instant_for_one_seed() {
        let every = Duration::from_secs(60);
        for seed in [0, 1, 59_999, 60_000, 123_456_789, u64::MAX] {
            let beats: Vec<i64> = [0, 1, 17_000, 59_999]
                .map(|late| {
                    let now = Timestamp::from_millisecond(1_700_000_000_000 + late).unwrap();
                    let wait = until_beat(now, every, seed);
                    assert!(!wait.is_zero() && wait <= every, "{seed}: {wait:?}");
                    (now.as_millisecond() + i64::try_from(wait.as_millis()).unwrap()) % 60_000
                })
                .to_vec();
            assert!(beats.iter().all(|beat| *beat == beats[0]), "{seed}: {beats:?}");
        }
    }
}

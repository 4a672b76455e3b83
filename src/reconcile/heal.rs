//! How often the same drift is healed before it is left to a person (field report 44).

use jiff::{SignedDuration, Timestamp};

use crate::model::{Slot, TargetName};
use crate::store::record::Condition;

/// Equal findings in a row after which healing stops: somebody else undoes it.
pub const HEALS_IN_A_ROW: u32 = 3;

/// How long nothing may differ before equal findings count anew: a healed target looks fine for a while
/// also when something undoes every heal.
pub const STEADY: SignedDuration = SignedDuration::from_hours(1);

/// What was healed lately.
#[derive(Debug, Clone, Default)]
pub struct Heals {
    what: String,
    count: u32,
    last: Option<Timestamp>,
}

impl Heals {
    /// Says whether a finding may be healed, and the condition that people see.
    #[must_use]
    pub fn found(&mut self, target: &TargetName, summary: &[String], now: Timestamp) -> (bool, Condition) {
        let what = without_slot(target, &summary.join("; "));
        if what != self.what {
            *self = Self { what, count: 0, last: None };
        }
        let may_heal = self.count < HEALS_IN_A_ROW;
        if may_heal {
            self.count = self.count.saturating_add(1);
            self.last = Some(now);
        }
        let (reason, message) = if may_heal {
            ("Healing", format!("put right for the {} time in a row: {}", ordinal(self.count), self.what))
        } else {
            let message = format!(
                "oscillating: put right {HEALS_IN_A_ROW} times in a row and different again, so it is left as it is: {}; find what changes it, then `trueup retry {} {}`",
                self.what, target.project, target.target
            );
            ("Oscillating", message)
        };
        (
            may_heal,
            Condition { kind: "Healing".to_owned(), is_true: may_heal, reason: reason.to_owned(), message, since: now },
        )
    }

    /// Nothing differs.
    pub fn clean(&mut self, now: Timestamp) {
        if self.last.is_some_and(|last| now.duration_since(last) >= STEADY) {
            *self = Self::default();
        }
    }
}

/// Each heal goes to the other slot, so the slot's name is no part of what is compared.
fn without_slot(target: &TargetName, text: &str) -> String {
    Slot::BOTH.iter().fold(text.to_owned(), |text, slot| text.replace(&target.container(*slot), &target.network()))
}

fn ordinal(count: u32) -> String {
    match count {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        more => format!("{more}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    fn found(heals: &mut Heals, what: &str, minutes: i64) -> bool {
        let target: TargetName = "shop/prod".parse().unwrap();
        heals.found(&target, &[what.to_owned()], at(minutes)).0
    }

    #[test]
    fn the_same_finding_is_healed_three_times_whatever_slot_it_is_in_and_then_left() {
        let mut heals = Heals::default();
        for (round, slot) in ["a", "b", "a", "b", "a"].iter().enumerate() {
            heals.clean(at(0));
            let healed = found(&mut heals, &format!("container shop.prod.{slot} is gone"), 0);
            assert_eq!(healed, round < 3, "{round}");
        }
        assert!(found(&mut heals, "marker differs", 0), "another finding is another matter");
    }

    #[test]
    fn a_steady_hour_forgives_and_a_shorter_one_does_not() {
        let mut heals = Heals::default();
        for _ in 0..3 {
            assert!(found(&mut heals, "marker differs", 0));
        }
        heals.clean(at(59));
        assert!(!found(&mut heals, "marker differs", 59));
        heals.clean(at(60));
        assert!(found(&mut heals, "marker differs", 60));
    }
}

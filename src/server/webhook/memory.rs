//! What earlier deliveries told: a repository's names, and which hooks deliver it.
//!
//! All of it can be lost without harm: names are stored too, and hooks show themselves again.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::judge::Names;
use crate::store::deliveries::{DeliveryRecord, RepositoryName};

/// A hook that was silent for so long no longer counts.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Hooks remembered for one repository and event; GitHub allows 20.
const HOOKS_KEPT: usize = 20;

/// Names and hooks.
#[derive(Debug, Default)]
pub struct Memory {
    /// Names by id.
    pub names: Names,
    hooks: HashMap<(String, String), BTreeMap<String, Timestamp>>,
}

/// Which hooks deliver one event of one repository, when that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksChanged {
    /// The hooks' ids.
    pub hooks: Vec<String>,
}

impl Memory {
    /// What the store remembers; deliveries newest first.
    #[must_use]
    pub fn from_store(names: &[RepositoryName], recent: &[DeliveryRecord]) -> Self {
        let mut memory = Self::default();
        for name in names {
            memory.names.learn(name.id, &name.name);
        }
        for record in recent.iter().rev().filter(|record| is_tracked(&record.reason)) {
            let repository = record.repository.clone().unwrap_or_default();
            memory.saw_hook((&repository, &record.event), &record.hook, record.last_at);
        }
        memory
    }

    /// Notes that a hook delivered an event of a repository; says so when several do since this one came, or
    /// when only one is left (field report 6).
    pub fn saw_hook(&mut self, (repository, event): (&str, &str), hook: &str, at: Timestamp) -> Option<HooksChanged> {
        let seen = self.hooks.entry((repository.to_lowercase(), event.to_owned())).or_default();
        let before = seen.len();
        let is_new = !seen.contains_key(hook);
        seen.retain(|_, last| at.duration_since(*last) < FORGOTTEN_AFTER);
        if seen.len() < HOOKS_KEPT || seen.contains_key(hook) {
            seen.insert(hook.to_owned(), at);
        }
        let is_news = (is_new && seen.len() > 1) || (before > 1 && seen.len() == 1);
        is_news.then(|| HooksChanged { hooks: seen.keys().cloned().collect() })
    }
}

/// Whether a delivery was of a repository of the registry.
#[must_use]
pub fn is_tracked(reason: &str) -> bool {
    matches!(reason, "Woke" | "OtherRef")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + hour * 3600).unwrap()
    }

    #[test]
    fn a_second_hook_is_told_once_and_its_end_too() {
        let mut memory = Memory::default();
        let push = ("acme/shop", "push");
        let both = HooksChanged { hooks: vec!["1".to_owned(), "2".to_owned()] };
        assert_eq!(memory.saw_hook(push, "1", at(0)), None);
        assert_eq!(memory.saw_hook(push, "2", at(1)), Some(both));
        assert_eq!(memory.saw_hook(push, "1", at(2)), None);
        assert_eq!(memory.saw_hook(("acme/shop", "ping"), "2", at(2)), None, "another event");
        assert_eq!(memory.saw_hook(("acme/blog", "push"), "2", at(2)), None, "another repository");
        let one = HooksChanged { hooks: vec!["1".to_owned()] };
        assert_eq!(memory.saw_hook(("Acme/Shop", "push"), "1", at(25)), Some(one));
        assert_eq!(memory.saw_hook(push, "1", at(26)), None);
    }
}

//! What woke a target, merged: ten thousand deliveries of one ref are one pass.

use serde::{Deserialize, Serialize};

/// Everything that asked for a pass since the last one began.
///
/// A wake says who to look at, never what to do: the pass reads for itself what is wanted (I7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wake {
    /// The interval is over.
    pub by_timer: bool,
    /// Something told us that the branch may have moved.
    pub by_source: bool,
    /// The registry or the host file changed.
    pub by_config: bool,
    /// The engine or the edge told us that something changed.
    pub by_engine: bool,
    /// A person asked: waits for nothing that only time would lift (back-off).
    pub by_person: bool,
}

impl Wake {
    /// A wake by time.
    pub const TIMER: Self = Self { by_timer: true, ..Self::NONE };
    /// A wake by the source.
    pub const SOURCE: Self = Self { by_source: true, ..Self::NONE };
    /// A wake by configuration.
    pub const CONFIG: Self = Self { by_config: true, ..Self::NONE };
    /// A wake by the engine.
    pub const ENGINE: Self = Self { by_engine: true, ..Self::NONE };
    /// A wake by a person.
    pub const PERSON: Self = Self { by_person: true, ..Self::NONE };
    /// Nobody asked.
    pub const NONE: Self =
        Self { by_timer: false, by_source: false, by_config: false, by_engine: false, by_person: false };

    /// Both together.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            by_timer: self.by_timer || other.by_timer,
            by_source: self.by_source || other.by_source,
            by_config: self.by_config || other.by_config,
            by_engine: self.by_engine || other.by_engine,
            by_person: self.by_person || other.by_person,
        }
    }

    /// Whether anybody asked.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::NONE
    }
}

/// When to look again, and why: every pass ends in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requeue {
    /// Seconds from now.
    pub after_seconds: u64,
    /// For people.
    pub why: String,
}

impl Requeue {
    /// Look again after `after_seconds`.
    pub fn after(after_seconds: u64, why: impl Into<String>) -> Self {
        Self { after_seconds, why: why.into() }
    }
}

//! How a release ends: one word.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The one word a release ends in (design, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It serves.
    Live,
    /// It failed before the switch; nothing changed.
    NothingActivated,
    /// It failed after the switch; the old one serves.
    Reverted,
    /// A newer commit was wanted before anything changed.
    Superseded,
    /// The plan may not run.
    Refused,
    /// A person must look.
    Stuck,
}

impl Outcome {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NothingActivated => "nothing-activated",
            Self::Reverted => "reverted",
            Self::Superseded => "superseded",
            Self::Refused => "refused",
            Self::Stuck => "stuck",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

//! The state machine of a release (ruling 14).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;
use crate::model::{Reason, ReasonCode};

/// Where a release is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", content = "reason", rename_all = "kebab-case")]
pub enum Phase {
    /// Its plan is stored; nothing was done yet.
    Planned,
    /// The idle slot is being made.
    Converging,
    /// The idle slot is being asked.
    Verifying,
    /// The traffic is being moved.
    Switching,
    /// The traffic is moved and the public proof is being taken.
    Proving,
    /// It serves, proven.
    Live,
    /// It failed before the switch; the plan's `undo_before` runs.
    Undoing(Reason),
    /// Undone; nothing was ever switched.
    NothingActivated(Reason),
    /// It failed after the switch; the plan's `undo_after` runs.
    Reverting(Reason),
    /// Undone; the old one serves.
    Reverted(Reason),
    /// The plan may not run; nothing was done.
    Refused(Reason),
    /// An undo failed: a person must look.
    Stuck(Reason),
}

/// What can happen to a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first step begins.
    Started,
    /// The idle slot runs.
    Converged,
    /// The idle slot is healthy, is the commit, and passed its checks.
    Verified,
    /// The traffic is moved and confirmed through the edge.
    Switched,
    /// The public proof is in.
    Proved,
    /// Something failed.
    Failed(Reason),
    /// The undo is complete.
    Undone,
    /// The undo failed.
    UndoFailed(Reason),
    /// The plan may not run.
    Refused(Reason),
}

/// An event that cannot happen in a phase: a bug of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a release that is {from} cannot take the event {event:?}")]
pub struct IllegalTransition {
    /// The phase.
    pub from: Phase,
    /// The event.
    pub event: Event,
}

impl Phase {
    /// The only way to move.
    ///
    /// # Errors
    /// [`IllegalTransition`] when `event` cannot happen in this phase.
    pub fn on(self, event: Event) -> Result<Self, IllegalTransition> {
        use Event as E;
        use Phase as P;
        Ok(match (self, event) {
            (P::Planned, E::Started) => P::Converging,
            (P::Planned, E::Refused(why)) => P::Refused(why),
            (P::Converging, E::Converged) => P::Verifying,
            (P::Verifying, E::Verified) => P::Switching,
            (P::Switching, E::Switched) => P::Proving,
            (P::Proving, E::Proved) => P::Live,
            // Nothing was switched: the old one never noticed.
            (P::Planned | P::Converging | P::Verifying, E::Failed(why)) => P::Undoing(why),
            (P::Switching | P::Proving, E::Failed(why)) => P::Reverting(why),
            (P::Undoing(why), E::Undone) => P::NothingActivated(why),
            (P::Reverting(why), E::Undone) => P::Reverted(why),
            (P::Undoing(_) | P::Reverting(_), E::UndoFailed(why)) => P::Stuck(why),
            // Names everything, so that a new phase or event stops the build right here.
            (
                from @ (P::Planned
                | P::Converging
                | P::Verifying
                | P::Switching
                | P::Proving
                | P::Live
                | P::Undoing(_)
                | P::NothingActivated(_)
                | P::Reverting(_)
                | P::Reverted(_)
                | P::Refused(_)
                | P::Stuck(_)),
                event @ (E::Started
                | E::Converged
                | E::Verified
                | E::Switched
                | E::Proved
                | E::Failed(_)
                | E::Undone
                | E::UndoFailed(_)
                | E::Refused(_)),
            ) => return Err(IllegalTransition { from, event }),
        })
    }

    /// The phase's word, for people and for the store.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Converging => "converging",
            Self::Verifying => "verifying",
            Self::Switching => "switching",
            Self::Proving => "proving",
            Self::Live => "live",
            Self::Undoing(_) => "undoing",
            Self::NothingActivated(_) => "nothing-activated",
            Self::Reverting(_) => "reverting",
            Self::Reverted(_) => "reverted",
            Self::Refused(_) => "refused",
            Self::Stuck(_) => "stuck",
        }
    }

    /// Why, where there is a why.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Undoing(why)
            | Self::NothingActivated(why)
            | Self::Reverting(why)
            | Self::Reverted(why)
            | Self::Refused(why)
            | Self::Stuck(why) => Some(why),
            Self::Planned
            | Self::Converging
            | Self::Verifying
            | Self::Switching
            | Self::Proving
            | Self::Live => None,
        }
    }

    /// The one outcome word, once the release has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Live => Some(Outcome::Live),
            Self::NothingActivated(why) if why.code == ReasonCode::Superseded => {
                Some(Outcome::Superseded)
            }
            Self::NothingActivated(_) => Some(Outcome::NothingActivated),
            Self::Reverted(_) => Some(Outcome::Reverted),
            Self::Refused(_) => Some(Outcome::Refused),
            Self::Stuck(_) => Some(Outcome::Stuck),
            Self::Planned
            | Self::Converging
            | Self::Verifying
            | Self::Switching
            | Self::Proving
            | Self::Undoing(_)
            | Self::Reverting(_) => None,
        }
    }

    /// Whether the traffic may have been moved: from here on the way back is `undo_after`.
    #[must_use]
    pub fn is_after_switch(&self) -> bool {
        matches!(self, Self::Switching | Self::Proving | Self::Reverting(_))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome() {
            Some(outcome) => formatter.write_str(outcome.as_str()),
            None => formatter.write_str(self.word()),
        }
    }
}

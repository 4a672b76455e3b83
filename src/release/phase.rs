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
    pub from: Box<Phase>,
    /// The event.
    pub event: Box<Event>,
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
            ) => {
                return Err(IllegalTransition { from: Box::new(from), event: Box::new(event) });
            }
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
            Self::Planned | Self::Converging | Self::Verifying | Self::Switching | Self::Proving | Self::Live => None,
        }
    }

    /// The one outcome word, once the release has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Live => Some(Outcome::Live),
            Self::NothingActivated(why) if why.code == ReasonCode::Superseded => Some(Outcome::Superseded),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Event, Phase};
    use crate::model::outcome::Outcome;
    use crate::model::{Reason, ReasonCode};

    fn why() -> Reason {
        Reason::new(ReasonCode::NeverHealthy, "`/healthz` answered 503 for 30 s")
    }

    fn phases() -> [Phase; 12] {
        [
            Phase::Planned,
            Phase::Converging,
            Phase::Verifying,
            Phase::Switching,
            Phase::Proving,
            Phase::Live,
            Phase::Undoing(why()),
            Phase::NothingActivated(why()),
            Phase::Reverting(why()),
            Phase::Reverted(why()),
            Phase::Refused(why()),
            Phase::Stuck(why()),
        ]
    }

    fn events() -> [(&'static str, Event); 9] {
        [
            ("started", Event::Started),
            ("converged", Event::Converged),
            ("verified", Event::Verified),
            ("switched", Event::Switched),
            ("proved", Event::Proved),
            ("failed", Event::Failed(why())),
            ("undone", Event::Undone),
            ("undo-failed", Event::UndoFailed(why())),
            ("refused", Event::Refused(why())),
        ]
    }

    fn table() -> BTreeMap<(&'static str, &'static str), &'static str> {
        include_str!("../../testdata/release/transitions.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let mut fields = line.split('\t');
                let mut field = || fields.next().expect("three fields");
                ((field(), field()), field())
            })
            .collect()
    }

    #[test]
    fn every_pair_of_phase_and_event_is_answered_as_the_table_says() {
        let mut table = table();
        for phase in phases() {
            for (word, event) in events() {
                let wanted = table.remove(&(phase.word(), word));
                let got = phase.clone().on(event.clone());
                match wanted {
                    Some(next) => {
                        let got = got.expect("the table says that it is legal");
                        assert_eq!(got.word(), next, "{phase} on {word}");
                        assert!(got.reason().is_none_or(|reason| *reason == why()));
                    }
                    None => {
                        let refused = got.expect_err("the table says that it is illegal");
                        assert_eq!((&*refused.from, &*refused.event), (&phase, &event));
                    }
                }
            }
        }
        assert!(table.is_empty(), "the table names no such pair: {table:?}");
    }

    #[test]
    fn from_every_phase_that_goes_on_a_failure_leads_back_to_an_end() {
        for phase in phases() {
            let undoing = match phase.clone().on(Event::Failed(why())) {
                Ok(undoing) => undoing,
                Err(refused) => *refused.from,
            };
            if phase.outcome().is_some() {
                assert_eq!(undoing, phase, "an end stays an end");
                continue;
            }
            assert_eq!(
                undoing.is_after_switch(),
                phase.is_after_switch(),
                "{phase}: the way back is chosen by whether the traffic may have moved"
            );
            let undone = undoing.clone().on(Event::Undone).expect("an undo can end");
            let wanted = if phase.is_after_switch() { Outcome::Reverted } else { Outcome::NothingActivated };
            assert_eq!(undone.outcome(), Some(wanted), "{phase}");
            let stuck = undoing.on(Event::UndoFailed(why())).expect("or fail");
            assert_eq!(stuck.outcome(), Some(Outcome::Stuck), "{phase}");
        }
    }

    #[test]
    fn an_end_takes_no_event_at_all() {
        for phase in phases().into_iter().filter(|it| it.outcome().is_some()) {
            for (word, event) in events() {
                assert!(phase.clone().on(event).is_err(), "{phase} took {word}");
            }
        }
    }

    #[test]
    fn a_release_that_a_newer_commit_overtook_is_superseded() {
        let overtaken = Reason::new(ReasonCode::Superseded, "a newer commit is wanted");
        let phase = Phase::Converging
            .on(Event::Failed(overtaken))
            .and_then(|phase| phase.on(Event::Undone))
            .expect("both are legal");
        assert_eq!(phase.outcome(), Some(Outcome::Superseded));
        assert_eq!(phase.to_string(), "superseded");
    }

    #[test]
    fn a_phase_reads_back_from_its_json() {
        for phase in phases() {
            let text = serde_json::to_string(&phase).expect("plain data");
            assert!(text.contains(phase.word()), "{text}");
            let back: Phase = serde_json::from_str(&text).expect("what we wrote");
            assert_eq!(back, phase);
        }
    }
}

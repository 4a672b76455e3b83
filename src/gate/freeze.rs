//! What people froze: a pause, a pin, a tip that moved on, and the windows of the registry.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Facts, Stop};
use crate::model::{Reason, ReasonCode, Sha};
use crate::schedule::windows;

/// A person's pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, in their words; may be empty.
    #[serde(default)]
    pub note: String,
}

/// A person's wish for one revision: a rollback, or `sync --sha` (ruling 17).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The wanted revision.
    pub sha: Sha,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, in their words; may be empty.
    #[serde(default)]
    pub note: String,
}

/// A pause, a pin on another revision, or a newer tip.
pub(super) fn person(facts: &Facts<'_>) -> Option<Stop> {
    let target = facts.target;
    if let Some(pause) = facts.paused {
        let message =
            format!("{} paused {target} at {}{}; `trueup resume` lifts it", pause.by, pause.at, note(&pause.note));
        return Some(Stop::hold(ReasonCode::Paused, message));
    }
    match facts.pin {
        Some(pin) if pin.sha == *facts.sha => None,
        Some(pin) => {
            let message = format!(
                "{} holds {target} at {} since {}{}; the pin lifts when the revert lands on `{}`, on `trueup resume`, or on `trueup sync --sha`",
                pin.by,
                pin.sha.short(),
                pin.at,
                note(&pin.note),
                facts.branch
            );
            Some(Stop::hold(ReasonCode::Pinned, message))
        }
        None if facts.sha == facts.tip => None,
        None => {
            let message = format!(
                "{} is no longer the tip of `{}`: only the tip is wanted, and that is {}",
                facts.sha.short(),
                facts.branch,
                facts.tip.short()
            );
            Some(Stop::deny(ReasonCode::Superseded, message))
        }
    }
}

/// The windows of the registry; rules that cannot be followed hold too.
pub(super) fn window(facts: &Facts<'_>, now: Timestamp) -> Option<Stop> {
    let windows = match windows::is_open(&facts.policy.windows, now) {
        Ok(windows) => windows,
        Err(error) => {
            let message =
                format!("{error}; correct it in the registry, until then no release of {} starts", facts.target);
            return Some(Stop::hold(ReasonCode::ConfigInvalid, message));
        }
    };
    if windows.is_open {
        return None;
    }
    let next = match windows.until {
        Some(until) => format!("; asked again at {until}"),
        None => "; no opening is in sight, so `windows` in the registry must change first".to_owned(),
    };
    let reason = Reason::new(ReasonCode::OutsideWindow, format!("{} is {}{next}", facts.target, windows.why));
    Some(Stop::Hold { reason, until: windows.until, link: None })
}

fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" (\"{text}\")") }
}

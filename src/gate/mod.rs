//! Whether a commit may go live on a target now: admitted, held or denied.
//!
//! Pure, one file per rule. The order is ruling 6: pause (with pin and tip), quarantine, window, CI;
//! then, once there is a plan, consent. All of it is asked again at the last moment before the
//! first mutation, with fresh facts. Nothing here asks anybody or remembers anything.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::policy::{Repository, TargetPolicy};
use crate::model::{BranchName, Digest, Reason, ReasonCode, Sha, TargetName};

mod approval;
mod checks;
mod freeze;
mod quarantine;
#[cfg(test)]
mod tests;

pub use approval::{Approval, Consent, Consented, consent};
pub use checks::{CI_GRACE, CiFailure, CiKnowledge};
pub use freeze::{Pause, Pin};
pub use quarantine::Quarantine;

/// Every reason the gate itself gives. Beside them it passes on the reason of a failed question to
/// GitHub, which is [`ReasonCode::GithubUnavailable`].
pub const REASONS: &[ReasonCode] = &[
    ReasonCode::Paused,
    ReasonCode::Pinned,
    ReasonCode::Superseded,
    ReasonCode::Quarantined,
    ReasonCode::OutsideWindow,
    ReasonCode::ConfigInvalid,
    ReasonCode::CiPending,
    ReasonCode::CiRed,
    ReasonCode::CiCancelled,
    ReasonCode::CiMissing,
    ReasonCode::GithubUnavailable,
    ReasonCode::NeedsApproval,
    ReasonCode::Denied,
];

/// All that the decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The target.
    pub target: &'a TargetName,
    /// What the operator decided for it.
    pub policy: &'a TargetPolicy,
    /// Where its commits come from.
    pub repo: &'a Repository,
    /// The branch it tracks.
    pub branch: &'a BranchName,
    /// The commit that would go live.
    pub sha: &'a Sha,
    /// The branch's tip, as last observed.
    pub tip: &'a Sha,
    /// The digest of what the registry says of the target.
    pub registry: &'a Digest,
    /// A person's pause.
    pub paused: Option<&'a Pause>,
    /// A person's wish for one revision, if it is still in force.
    pub pin: Option<&'a Pin>,
    /// The target's quarantine, in any order.
    pub quarantine: &'a [Quarantine],
    /// What is known of the commit's CI run; absent before the first question.
    pub ci: Option<&'a CiKnowledge>,
    /// Whether nothing the release is made of differs from the live revision; absent when unknown.
    /// Looked at for `no_ci_run = "allow-if-release-paths-unchanged"` only.
    pub release_paths_unchanged: Option<bool>,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on to a plan.
    Admitted(Admitted),
    /// Not now.
    Held {
        /// Why.
        reason: Reason,
        /// When to ask again without an event; absent = on events alone.
        until: Option<Timestamp>,
        /// A page for people.
        link: Option<String>,
    },
    /// Not this revision, as long as nobody changes something.
    Denied {
        /// Why.
        reason: Reason,
    },
}

/// The permission to plan a release of one sha on one target. Only [`admit`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    target: TargetName,
    sha: Sha,
    ci: CiProof,
}

impl Admitted {
    /// The target it was given for.
    #[must_use]
    pub fn target(&self) -> &TargetName {
        &self.target
    }

    /// The commit it was given for.
    #[must_use]
    pub fn sha(&self) -> &Sha {
        &self.sha
    }

    /// What stood for CI.
    #[must_use]
    pub fn ci(&self) -> &CiProof {
        &self.ci
    }
}

/// What satisfied the CI rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CiProof {
    /// `require_ci = false`.
    NotRequired,
    /// The newest run is completed with success.
    Green {
        /// The run's number.
        number: u64,
        /// The attempt, from 1.
        attempt: u64,
        /// The run's page.
        link: String,
    },
    /// No run came, and nothing the release is made of changed (ruling 9).
    NothingChanged,
}

/// Decides whether a commit may go live on a target now.
///
/// Source: rulings 6 to 9 and 17.
#[must_use]
pub fn admit(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let stopped = freeze::person(facts).or_else(|| quarantine::check(facts)).or_else(|| freeze::window(facts, now));
    if let Some(stop) = stopped {
        return stop.into();
    }
    match checks::check(facts, now) {
        Ok(ci) => Verdict::Admitted(Admitted { target: facts.target.clone(), sha: facts.sha.clone(), ci }),
        Err(stop) => stop.into(),
    }
}

/// Why a rule does not let a commit through.
#[derive(Debug)]
enum Stop {
    Hold { reason: Reason, until: Option<Timestamp>, link: Option<String> },
    Deny(Reason),
}

impl Stop {
    fn hold(code: ReasonCode, message: impl Into<String>) -> Self {
        Self::Hold { reason: Reason::new(code, message), until: None, link: None }
    }

    fn deny(code: ReasonCode, message: impl Into<String>) -> Self {
        Self::Deny(Reason::new(code, message))
    }
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Hold { reason, until, link } => Self::Held { reason, until, link },
            Stop::Deny(reason) => Self::Denied { reason },
        }
    }
}

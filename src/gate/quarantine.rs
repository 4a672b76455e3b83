//! A sha that failed is not tried again until something changes (promise P5, ruling 7).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Facts, Stop};
use crate::model::{Digest, Reason, ReasonCode, ReleaseNumber, Sha};

/// A sha that failed on this target, by the commit's own fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// The sha.
    pub sha: Sha,
    /// The registry it failed with.
    pub registry: Digest,
    /// Why it failed.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
    /// In which release, if it came that far.
    pub release: Option<ReleaseNumber>,
    /// Whether a person lifted it (`trueup retry`).
    pub is_lifted: bool,
}

/// An entry holds its sha only together with the registry it failed with: another registry gets one
/// try, and going back to the first one gets none.
pub(super) fn check(facts: &Facts<'_>) -> Option<Stop> {
    let entry = facts
        .quarantine
        .iter()
        .filter(|entry| entry.sha == *facts.sha && entry.registry == *facts.registry && !entry.is_lifted)
        .max_by_key(|entry| entry.at)?;
    let release = entry.release.map_or_else(String::new, |number| format!(" in release {number}"));
    let message = format!(
        "{} failed on {} at {}{release} ({}); a newer commit, a change of the registry or `trueup retry` lifts it",
        facts.sha.short(),
        facts.target,
        entry.at,
        entry.reason
    );
    let mut reason = Reason::new(ReasonCode::Quarantined, message);
    reason.evidence.clone_from(&entry.reason.evidence);
    Some(Stop::Hold { reason, until: None, link: None })
}

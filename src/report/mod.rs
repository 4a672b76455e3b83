//! What others are told of a release: a commit status for each target, and a deployment with its statuses.
//!
//! Telling is never part of a release: whatever fails here is logged and tried again, and no more.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::outcome::Outcome;
use crate::model::policy::Repository;
use crate::model::{Reason, Sha, TargetName};

pub mod github;

/// Characters of a description that GitHub takes.
///
/// Source: GitHub facts, section 6.
pub const DESCRIPTION_CHARS: usize = 140;

/// The state of a commit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Under way, or waiting.
    Pending,
    /// It serves.
    Success,
    /// It does not serve, by its own fault or by a decision.
    Failure,
    /// A person must look, or something newer is wanted.
    Error,
}

impl State {
    /// GitHub's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error => "error",
        }
    }
}

/// A commit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `trueup/<project>/<target>`.
    pub context: String,
    /// The state.
    pub state: State,
    /// At most [`DESCRIPTION_CHARS`].
    pub description: String,
}

/// A state of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// `in_progress`, `success`, `failure`, `error` or `inactive`.
    pub state: &'static str,
    /// At most [`DESCRIPTION_CHARS`].
    pub description: String,
    /// Where it can be seen.
    pub url: Option<String>,
}

/// The context of a target's statuses.
#[must_use]
pub fn context(target: &TargetName) -> String {
    format!("trueup/{}/{}", target.project, target.target)
}

/// What each outcome is for a commit status and for a deployment.
#[must_use]
pub fn of_outcome(outcome: Outcome) -> (State, &'static str) {
    match outcome {
        Outcome::Live => (State::Success, "success"),
        Outcome::NothingActivated | Outcome::Reverted | Outcome::Refused => (State::Failure, "failure"),
        Outcome::Superseded => (State::Error, "inactive"),
        Outcome::Stuck => (State::Error, "error"),
    }
}

/// The sentence for an outcome.
#[must_use]
pub fn outcome_words(outcome: Outcome, reason: Option<&Reason>) -> String {
    let what = match outcome {
        Outcome::Live => "live",
        Outcome::NothingActivated => "nothing activated, what ran keeps running",
        Outcome::Reverted => "put back, the release before serves",
        Outcome::Superseded => "superseded by a newer commit",
        Outcome::Refused => "refused",
        Outcome::Stuck => "stuck: a person must look",
    };
    cut(&reason.map_or_else(|| what.to_owned(), |reason| format!("{what}: {}", reason.message)))
}

/// The sentence for something that waits: the word alone, since a sentence with times in it would be written
/// anew at each pass (field report 48).
#[must_use]
pub fn held_words(target: &TargetName, sha: &Sha, reason: &Reason) -> String {
    cut(&format!("{}: `trueup why {} {} {}` says more", reason.code, target.project, target.target, sha.short()))
}

/// One line, as long as GitHub takes it.
#[must_use]
pub fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= DESCRIPTION_CHARS {
        return line;
    }
    line.chars().take(DESCRIPTION_CHARS - 1).chain(std::iter::once('…')).collect()
}

/// Why something was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// No more can be told under this name: final.
    #[error("no more is taken: {0}")]
    Full(String),
    /// The credential lacks a right.
    #[error("{right} is missing: {said}")]
    NoRight {
        /// The right, as GitHub names it.
        right: &'static str,
        /// What was said.
        said: String,
    },
    /// Not now.
    #[error("{why}")]
    Later {
        /// Why.
        why: String,
        /// Before this instant another try is useless.
        until: Option<Timestamp>,
    },
}

/// Tells others.
#[async_trait]
pub trait Report: Send + Sync {
    /// Sets a commit status.
    ///
    /// # Errors
    /// [`ReportError`].
    async fn status(&self, repo: &Repository, sha: &Sha, status: &Status) -> Result<(), ReportError>;

    /// Makes a deployment of a commit; gives its number.
    ///
    /// # Errors
    /// [`ReportError`].
    async fn deployment(&self, repo: &Repository, sha: &Sha, environment: &str) -> Result<u64, ReportError>;

    /// Adds a status to a deployment.
    ///
    /// # Errors
    /// [`ReportError`].
    async fn progress(&self, repo: &Repository, deployment: u64, progress: &Progress) -> Result<(), ReportError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ReasonCode;

    const ALL: [Outcome; 6] = [
        Outcome::Live,
        Outcome::NothingActivated,
        Outcome::Reverted,
        Outcome::Superseded,
        Outcome::Refused,
        Outcome::Stuck,
    ];

    #[test]
    fn every_outcome_has_its_own_words_and_only_live_is_a_success() {
        let words: std::collections::BTreeSet<String> =
            ALL.iter().map(|outcome| outcome_words(*outcome, None)).collect();
        assert_eq!(words.len(), ALL.len());
        for outcome in ALL {
            assert_eq!(of_outcome(outcome).0 == State::Success, outcome == Outcome::Live, "{outcome}");
            assert_eq!(of_outcome(outcome).1 == "success", outcome == Outcome::Live, "{outcome}");
        }
    }

    #[test]
    fn a_description_is_one_line_that_github_takes() {
        let reason = Reason::new(ReasonCode::SmokeFailed, format!("line\nline {}", "ü".repeat(300)));
        let words = outcome_words(Outcome::Reverted, Some(&reason));
        assert_eq!(words.chars().count(), DESCRIPTION_CHARS);
        assert!(!words.contains('\n'));
        let target: TargetName = "shop/prod".parse().unwrap();
        let sha: Sha = "a".repeat(40).parse().unwrap();
        let held = held_words(&target, &sha, &reason);
        assert_eq!(held, "SmokeFailed: `trueup why shop prod aaaaaaaaaaaa` says more");
    }
}

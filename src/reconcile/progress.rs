//! What a pass tells those who watch it; losing a line costs nothing.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::model::outcome::Outcome;
use crate::model::{Reason, ReleaseNumber, Sha, TargetName};

/// A line of progress and the pass it belongs to.
#[derive(Debug, Clone)]
pub struct Told {
    /// Counts the passes of one target.
    pub pass: u64,
    /// The line.
    pub progress: Progress,
}

/// Tells those who watch.
#[derive(Debug, Clone)]
pub struct Teller {
    sender: broadcast::Sender<Told>,
    pass: u64,
}

impl Teller {
    /// A teller that nobody watches yet.
    #[must_use]
    pub fn new() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), pass: 0 }
    }

    /// The same, for one pass.
    #[must_use]
    pub fn for_pass(&self, pass: u64) -> Self {
        Self { sender: self.sender.clone(), pass }
    }

    /// Tells. Nobody watching is no error.
    pub fn tell(&self, progress: Progress) {
        drop(self.sender.send(Told { pass: self.pass, progress }));
    }

    /// Watches from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Told> {
        self.sender.subscribe()
    }
}

impl Default for Teller {
    fn default() -> Self {
        Self::new()
    }
}

/// Lines that a slow watcher may be behind before it misses some.
const BACKLOG: usize = 4096;

/// One line of progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Progress {
    /// A release began.
    Began {
        /// Whose.
        target: TargetName,
        /// Its number.
        release: ReleaseNumber,
        /// Of which commit.
        revision: Sha,
        /// Why.
        cause: String,
    },
    /// A step began.
    Step {
        /// Whose.
        target: TargetName,
        /// Of which release.
        release: ReleaseNumber,
        /// Its words.
        text: String,
    },
    /// The step that began last is done.
    StepDone {
        /// Whose.
        target: TargetName,
        /// Of which release.
        release: ReleaseNumber,
        /// How long it took, in milliseconds.
        elapsed_ms: u64,
    },
    /// The step that began last failed.
    StepFailed {
        /// Whose.
        target: TargetName,
        /// Of which release.
        release: ReleaseNumber,
        /// Why.
        reason: Reason,
    },
    /// A line that an image's build wrote.
    Line {
        /// Whose.
        target: TargetName,
        /// The text.
        text: String,
    },
    /// A release has its outcome; what is left is to retire.
    Ended {
        /// Whose.
        target: TargetName,
        /// Its number.
        release: ReleaseNumber,
        /// Of which commit.
        revision: Sha,
        /// The word.
        outcome: Outcome,
        /// Why, unless it is live.
        reason: Option<Reason>,
    },
    /// A pass ended without a release.
    Idle {
        /// Whose.
        target: TargetName,
        /// What the pass found.
        rest: Rest,
    },
}

/// How a pass ended that began no release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rest", rename_all = "kebab-case")]
pub enum Rest {
    /// The wanted revision is live.
    Converged {
        /// The revision.
        revision: Sha,
        /// The release that serves it.
        release: ReleaseNumber,
    },
    /// Not now.
    Held {
        /// Why.
        reason: Reason,
        /// The plan that waits, if one does.
        plan: Option<String>,
    },
    /// Never for this revision.
    Denied {
        /// Why.
        reason: Reason,
    },
}

impl Progress {
    /// Whose line it is.
    #[must_use]
    pub fn target(&self) -> &TargetName {
        match self {
            Self::Began { target, .. }
            | Self::Step { target, .. }
            | Self::StepDone { target, .. }
            | Self::StepFailed { target, .. }
            | Self::Line { target, .. }
            | Self::Ended { target, .. }
            | Self::Idle { target, .. } => target,
        }
    }

    /// Whether the pass that it belongs to has said its last word.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Idle { .. })
    }
}

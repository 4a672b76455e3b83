//! What a CI service says of a commit: plain data, judged by `gate` alone.

use serde::{Deserialize, Serialize};

/// One run of a CI workflow, as GitHub gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiRun {
    /// The run's id; a re-run keeps it.
    pub id: u64,
    /// Counts the runs of the workflow.
    pub number: u64,
    /// Counts the attempts of the run, from 1.
    pub attempt: u64,
    /// The workflow's id.
    pub workflow_id: u64,
    /// The commit it ran for.
    pub head_sha: String,
    /// The branch, if any.
    pub head_branch: Option<String>,
    /// `push`, `pull_request`, …
    pub event: String,
    /// Full name of the repository the commit came from.
    pub head_repository: Option<String>,
    /// `completed` or something before it.
    pub status: String,
    /// An open set; nothing but `success` is green.
    pub conclusion: Option<String>,
    /// For people.
    pub link: String,
}

/// What GitHub knows of a workflow and a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CiFacts {
    /// The workflow's runs for the sha, unjudged, in any order.
    Runs {
        /// The workflow that has the wanted name.
        workflow_id: u64,
        /// Whether it is switched off (`disabled_*`).
        is_disabled: bool,
        /// The `owner/name` that GitHub gives the repository now, when it is not the one asked for:
        /// it was renamed or moved, and GitHub forwarded the question.
        renamed_to: Option<String>,
        /// Its runs.
        runs: Vec<CiRun>,
    },
    /// No workflow has that name.
    NoSuchWorkflow {
        /// The names there are.
        names: Vec<String>,
    },
    /// Several workflows have that name.
    Ambiguous {
        /// Their paths.
        paths: Vec<String>,
    },
}

//! Sources give revisions: the traits, and their adapters beside them.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, RepoPath, Sha};

pub mod git;
pub mod github;

/// What one look at a branch saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The branch's tip.
    At(Sha),
    /// The remote answered, and has no such branch.
    Gone,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its tree.
    pub tree: Sha,
    /// Its parents, in order.
    pub parents: Vec<Sha>,
    /// `Name <email>` of the author.
    pub author: String,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// First line of the message.
    pub subject: String,
    /// The whole message.
    pub message: String,
}

/// How one commit stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ancestry {
    /// The first is the second, or one of its ancestors.
    Ancestor,
    /// It is not.
    Unrelated,
}

/// Where commits come from: one bare mirror for each repository, never a work tree.
#[async_trait]
pub trait Source: Send + Sync {
    /// One look at one branch: a single `ls-refs` with the one ref prefix.
    ///
    /// # Errors
    /// [`SourceError`] when the remote did not answer; never `Gone` instead (promise P7).
    async fn look(&self, repo: &Repository, branch: &BranchName) -> Result<Look, SourceError>;

    /// Makes one commit and its tree be in the mirror: fetched by its sha, depth 1.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be had.
    async fn fetch(&self, repo: &Repository, branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError>;

    /// Reads one file at a fetched commit as a blob, at most `limit` bytes.
    ///
    /// # Errors
    /// [`SourceError`] with [`crate::model::ReasonCode::ManifestMissing`] or `ManifestInvalid` when the path is absent, a symlink
    /// (itself or above), a submodule, a directory, an LFS pointer or too large, each by name.
    async fn read(&self, repo: &Repository, sha: &Sha, path: &RepoPath, limit: u64) -> Result<Vec<u8>, SourceError>;

    /// Writes the tree below `context` as a tar archive to `to` (new, private, at most `limit` bytes).
    ///
    /// # Errors
    /// [`SourceError`] when the tree cannot be read or is too large.
    async fn export(&self, repo: &Repository, sha: &Sha, export: &Export<'_>) -> Result<PathBuf, SourceError>;

    /// Says whether `old` is `new` or an ancestor of it, deepening the mirror as needed.
    ///
    /// # Errors
    /// [`SourceError`] when the remote did not answer.
    async fn ancestry(
        &self,
        repo: &Repository,
        branch: &BranchName,
        pair: (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError>;
}

/// What part of a tree to write where.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    /// The directory inside the tree.
    pub context: &'a RepoPath,
    /// The archive to make.
    pub to: &'a Path,
    /// Bytes of file content allowed.
    pub limit: u64,
}

/// One run of a CI workflow, as GitHub gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiRun {
    /// The run's id.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CiFacts {
    /// The workflow's runs for the sha, unjudged, in any order.
    Runs {
        /// The workflow that has the wanted name.
        workflow_id: u64,
        /// Whether it is switched off (`disabled_*`).
        is_disabled: bool,
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

/// Asks for CI runs.
#[async_trait]
pub trait Checks: Send + Sync {
    /// The runs of the workflow named `workflow` for exactly this sha.
    ///
    /// # Errors
    /// [`SourceError`] when GitHub did not answer or refuses.
    async fn runs(
        &self,
        repo: &Repository,
        workflow: &str,
        commit: (&BranchName, &Sha),
    ) -> Result<CiFacts, SourceError>;
}

/// Why a source gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct SourceError {
    /// What is recorded.
    pub reason: Reason,
    /// What the loop does next.
    pub class: Class,
}

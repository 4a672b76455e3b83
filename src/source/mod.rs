//! Sources give revisions: the traits, and their adapters beside them.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, RepoPath, Sha};

pub use crate::model::ci::{CiFacts, CiRun};

pub mod git;
pub mod github;
pub mod shared;

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
    #[expect(clippy::too_many_arguments, reason = "where (repository, sha, path) and how much, each of its own type")]
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

/// Asks for CI runs.
#[async_trait]
pub trait Checks: Send + Sync {
    /// The runs of the workflow named `workflow` for exactly this sha.
    ///
    /// # Errors
    /// [`ChecksError`] when GitHub did not answer or refuses; never an empty list instead (promise P7).
    async fn runs(
        &self,
        repo: &Repository,
        workflow: &str,
        commit: (&BranchName, &Sha),
    ) -> Result<CiFacts, ChecksError>;
}

/// Why there are no facts about CI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ChecksError {
    /// What is recorded.
    pub reason: Reason,
    /// What the loop does next; `Stalled` is a missing right or a repository that is not there.
    pub class: Class,
    /// Before this instant another try is useless, or unwelcome (rate limits).
    pub until: Option<Timestamp>,
}

impl From<ChecksError> for SourceError {
    fn from(error: ChecksError) -> Self {
        Self { reason: error.reason, class: error.class }
    }
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

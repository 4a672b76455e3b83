//! Sources give revisions: the traits, and their adapters beside them.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, RepoPath, Secret, Sha};
use crate::release::revert::{Order, Survey};

pub use crate::model::ci::{CiFacts, CiRun};

pub mod git;
pub mod github;
pub mod http;
pub mod joined;
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

    /// Who writes reverts to these repositories, if somebody does.
    fn reverts(&self) -> Option<&dyn Reverts> {
        None
    }
}

/// Writes reverts: one commit on top of a branch, or on a branch of its own; never a force push.
#[async_trait]
pub trait Reverts: Send + Sync {
    /// What lies between a good and a bad revision, and between that and the branch's tip now.
    ///
    /// # Errors
    /// [`SourceError`] when the remote did not answer, or has no such branch.
    async fn survey(&self, repo: &Repository, branch: &BranchName, pair: (&Sha, &Sha)) -> Result<Survey, SourceError>;

    /// Whether the branch is known to take no direct commits.
    ///
    /// # Errors
    /// [`SourceError`] when that cannot be asked.
    async fn is_protected(&self, repo: &Repository, branch: &BranchName) -> Result<bool, SourceError>;

    /// Writes what was ordered, dated `at`. May be repeated: a proposal that is there already is found.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was written then, but for a proposal's branch, which the next try finds.
    async fn write(&self, repo: &Repository, order: (&Order, Timestamp)) -> Result<Written, WriteError>;
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The commit; none when it was there already and is not known.
    pub commit: Option<Sha>,
    /// The branch that it is on.
    pub branch: String,
    /// The pull request's page.
    pub link: Option<String>,
    /// Whether it was there already.
    pub is_old: bool,
}

/// Why nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The branch moved meanwhile: read it again, and decide again.
    #[error("the branch moved meanwhile")]
    Moved,
    /// The branch takes no direct commits.
    #[error("{0}")]
    Protected(Reason),
    /// The credential may not write.
    #[error("{0}")]
    NoRight(Reason),
    /// It could not be done now.
    #[error("{0}")]
    Failed(SourceError),
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

/// One call of GitHub's REST API.
#[derive(Debug, Clone)]
pub struct Call {
    /// `GET`, `POST` or `PATCH`.
    pub method: &'static str,
    /// Below `/repos/{owner}/{name}`, with a slash at its beginning or empty; percent-encoded.
    pub path: String,
    /// What is sent.
    pub body: Option<serde_json::Value>,
    /// What for: the rights of the token and the share of the rate limit follow from it.
    pub purpose: Purpose,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To read commits and CI runs.
    Read,
    /// To write a revert: it may use the reserve of the rate limit.
    Revert,
    /// To report statuses and deployments.
    Report,
}

/// An answer of GitHub's.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The JSON; null when there was none.
    pub body: serde_json::Value,
}

impl Reply {
    /// Whether it was done.
    #[must_use]
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// GitHub's own words, its list of errors included, on one short line.
    #[must_use]
    pub fn words(&self) -> String {
        let text = |value: &serde_json::Value| value.get("message").and_then(|text| text.as_str()).map(str::to_owned);
        let errors = self.body.get("errors").and_then(|errors| errors.as_array()).into_iter().flatten();
        let all = text(&self.body).into_iter().chain(errors.filter_map(text)).collect::<Vec<_>>().join("; ");
        all.chars().filter(|character| !character.is_control()).take(300).collect()
    }
}

/// The one way to GitHub's REST API: one queue, one memory of the rate limit, one credential.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Makes one call about a repository. An answer that refuses is an answer.
    ///
    /// # Errors
    /// [`ChecksError`] when GitHub did not answer, asks to wait, or does not accept the token.
    async fn call(&self, repo: &Repository, call: Call) -> Result<Reply, ChecksError>;
}

/// Gives tokens that are fresh.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// A token for a repository with the rights that the purpose needs; none = ask without one.
    ///
    /// # Errors
    /// [`ChecksError`] when none can be had.
    async fn token(&self, repo: &Repository, purpose: Purpose) -> Result<Option<Secret>, ChecksError>;
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

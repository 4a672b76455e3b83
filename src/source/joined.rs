//! Git and GitHub as one source: Git reads every repository, GitHub writes to its own, and an App's token is
//! fresh before Git is asked.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::git::GitSource;
use super::github::GithubReverts;
use super::{Ancestry, CommitFacts, Export, Look, Purpose, Reverts, Source, SourceError, Tokens, WriteError, Written};
use crate::model::policy::Repository;
use crate::model::{BranchName, Reason, ReasonCode, RepoPath, Sha};
use crate::release::revert::{Order, Survey};

/// The source that the daemon uses.
pub struct Joined {
    /// Reads, and writes to plain remotes.
    pub git: GitSource,
    /// Writes to GitHub; none without a credential.
    pub github: Option<GithubReverts>,
    /// Keeps tokens fresh; none for a fixed one.
    pub tokens: Option<Arc<dyn Tokens>>,
}

impl Joined {
    /// Has the token for reading be there, where one ends within the hour.
    async fn ready(&self, repo: &Repository) -> Result<(), SourceError> {
        let (Some(tokens), Repository::GitHub { .. }) = (&self.tokens, repo) else { return Ok(()) };
        tokens.token(repo, Purpose::Read).await?;
        Ok(())
    }

    fn hub(&self, repo: &Repository) -> Result<&GithubReverts, WriteError> {
        self.github.as_ref().ok_or_else(|| {
            let message = format!("`[github]` has neither `token_file` nor `app`, so nothing can be written to {repo}");
            WriteError::NoRight(Reason::new(ReasonCode::GithubUnavailable, message))
        })
    }
}

#[async_trait]
impl Source for Joined {
    async fn look(&self, repo: &Repository, branch: &BranchName) -> Result<Look, SourceError> {
        self.ready(repo).await?;
        self.git.look(repo, branch).await
    }

    async fn fetch(&self, repo: &Repository, branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError> {
        // What is in the mirror already needs no token, so one that cannot be had is no reason to give up.
        drop(self.ready(repo).await);
        self.git.fetch(repo, branch, sha).await
    }

    async fn read(&self, repo: &Repository, sha: &Sha, path: &RepoPath, limit: u64) -> Result<Vec<u8>, SourceError> {
        self.git.read(repo, sha, path, limit).await
    }

    async fn export(&self, repo: &Repository, sha: &Sha, export: &Export<'_>) -> Result<PathBuf, SourceError> {
        self.git.export(repo, sha, export).await
    }

    async fn ancestry(
        &self,
        repo: &Repository,
        branch: &BranchName,
        pair: (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError> {
        self.ready(repo).await?;
        self.git.ancestry(repo, branch, pair).await
    }

    fn reverts(&self) -> Option<&dyn Reverts> {
        Some(self)
    }
}

#[async_trait]
impl Reverts for Joined {
    async fn survey(&self, repo: &Repository, branch: &BranchName, pair: (&Sha, &Sha)) -> Result<Survey, SourceError> {
        self.ready(repo).await?;
        self.git.survey(repo, branch, pair).await
    }

    async fn is_protected(&self, repo: &Repository, branch: &BranchName) -> Result<bool, SourceError> {
        match (repo, &self.github) {
            (Repository::GitHub { .. }, Some(github)) => github.is_protected(repo, branch).await,
            // A plain remote says so when it is pushed to.
            (Repository::GitHub { .. } | Repository::Url(_), _) => Ok(false),
        }
    }

    async fn write(&self, repo: &Repository, (order, at): (&Order, Timestamp)) -> Result<Written, WriteError> {
        match repo {
            Repository::GitHub { .. } => self.hub(repo)?.write(repo, order).await,
            Repository::Url(_) => self.git.write(repo, (order, at)).await,
        }
    }
}

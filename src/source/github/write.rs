//! Reverts through GitHub's Git data API: a tree where one is needed, a commit with one parent, and a branch
//! that only moves forward.
//!
//! `force` is always false: a branch that moved meanwhile answers 422, and is read again by the caller.
//!
//! Source: GitHub's REST API, "Git database", "Pull requests"; rulings 19 and 20.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{failure, wire};
use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, ReasonCode, Sha};
use crate::release::revert::{Content, Leaf, Order, Proposal};
use crate::source::{Call, Forge, Purpose, Reply, SourceError, WriteError, Written};

/// Writes reverts to repositories on GitHub.
#[derive(Clone)]
pub struct GithubReverts {
    forge: Arc<dyn Forge>,
}

impl std::fmt::Debug for GithubReverts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GithubReverts").finish_non_exhaustive()
    }
}

impl GithubReverts {
    /// Makes the adapter; it asks nothing yet.
    #[must_use]
    pub fn new(forge: Arc<dyn Forge>) -> Self {
        Self { forge }
    }

    async fn ask(
        &self,
        repo: &Repository,
        what: (&'static str, String),
        body: Option<Value>,
    ) -> Result<Reply, WriteError> {
        let call = Call { method: what.0, path: what.1, body, purpose: Purpose::Revert };
        self.forge.call(repo, call).await.map_err(|error| match error.class {
            Class::Stalled => WriteError::NoRight(error.reason),
            Class::Transient | Class::Bug => WriteError::Failed(error.into()),
        })
    }

    /// Whether GitHub says that the branch is protected; unreadable counts as an error, never as "no".
    ///
    /// # Errors
    /// [`SourceError`].
    pub async fn is_protected(&self, repo: &Repository, branch: &BranchName) -> Result<bool, SourceError> {
        let path = format!("/branches/{}", wire::encode(branch.as_str()));
        let call = Call { method: "GET", path, body: None, purpose: Purpose::Read };
        let reply = self.forge.call(repo, call).await.map_err(SourceError::from)?;
        match reply.body.get("protected").and_then(Value::as_bool) {
            Some(is_protected) if reply.is_good() => Ok(is_protected),
            _ => Err(odd(&format!("GitHub does not say whether `{branch}` is protected"), &reply)),
        }
    }

    /// Writes what was ordered.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn write(&self, repo: &Repository, order: &Order) -> Result<Written, WriteError> {
        let Some(proposal) = &order.proposal else {
            let commit = self.commit(repo, order).await?;
            self.forward(repo, (&order.branch, &commit)).await?;
            return Ok(Written { commit: Some(commit), branch: order.branch.to_string(), link: None, is_old: false });
        };
        if let Some(link) = self.open_request(repo, proposal).await? {
            return Ok(Written { commit: None, branch: proposal.head.clone(), link: Some(link), is_old: true });
        }
        let commit = self.commit(repo, order).await?;
        let is_new = self.branch(repo, (&proposal.head, &commit)).await?;
        let link = self.request(repo, order, proposal).await?;
        let commit = is_new.then_some(commit);
        Ok(Written { is_old: commit.is_none(), commit, branch: proposal.head.clone(), link: Some(link) })
    }

    async fn commit(&self, repo: &Repository, order: &Order) -> Result<Sha, WriteError> {
        let tree = match &order.content {
            Content::Tree(tree) => tree.clone(),
            Content::Edits { onto, edits } => {
                let entries: Vec<Value> = edits.iter().map(|(path, leaf)| entry(path, leaf.as_ref())).collect();
                let body = json!({ "base_tree": onto, "tree": entries });
                let reply = self.ask(repo, ("POST", "/git/trees".to_owned()), Some(body)).await?;
                made(&reply, "a tree")?
            }
        };
        let body = json!({ "message": order.message, "tree": tree, "parents": [order.parent] });
        made(&self.ask(repo, ("POST", "/git/commits".to_owned()), Some(body)).await?, "a commit")
    }

    async fn forward(&self, repo: &Repository, (branch, commit): (&BranchName, &Sha)) -> Result<(), WriteError> {
        let path = format!("/git/refs/heads/{}", path(branch.as_str()));
        let body = json!({ "sha": commit, "force": false });
        let reply = self.ask(repo, ("PATCH", path), Some(body)).await?;
        let words = reply.words();
        let lower = words.to_ascii_lowercase();
        match reply.status {
            200..300 => Ok(()),
            422 if lower.contains("fast forward") || lower.contains("fast-forward") => Err(WriteError::Moved),
            403 | 409 | 422 if lower.contains("protected") || lower.contains("rule") => {
                let message = format!("`{branch}` takes no direct commits: {words}");
                Err(WriteError::Protected(Reason::new(ReasonCode::GithubUnavailable, message)))
            }
            _ => Err(refused(&reply, "`Contents: write`", "moving the branch")),
        }
    }

    /// Makes the proposal's branch; says whether it is new.
    async fn branch(&self, repo: &Repository, (head, commit): (&str, &Sha)) -> Result<bool, WriteError> {
        let body = json!({ "ref": format!("refs/heads/{head}"), "sha": commit });
        let reply = self.ask(repo, ("POST", "/git/refs".to_owned()), Some(body)).await?;
        match reply.status {
            200..300 => Ok(true),
            422 if reply.words().contains("already exists") => Ok(false),
            _ => Err(refused(&reply, "`Contents: write`", "making the branch")),
        }
    }

    /// The page of a pull request from this branch, open or not: one that a person closed is not made again.
    async fn open_request(&self, repo: &Repository, proposal: &Proposal) -> Result<Option<String>, WriteError> {
        let owner = match repo {
            Repository::GitHub { owner, .. } => owner.as_str(),
            Repository::Url(_) => "",
        };
        let head = wire::encode(&format!("{owner}:{}", proposal.head));
        let reply = self.ask(repo, ("GET", format!("/pulls?state=all&head={head}")), None).await?;
        let Some(list) = reply.body.as_array().filter(|_| reply.is_good()) else {
            return Err(refused(&reply, "`Pull requests: write`", "listing pull requests"));
        };
        Ok(list.first().map(link))
    }

    async fn request(&self, repo: &Repository, order: &Order, proposal: &Proposal) -> Result<String, WriteError> {
        let body = json!({
            "title": proposal.title,
            "head": proposal.head,
            "base": order.branch.as_str(),
            "body": proposal.body,
            "maintainer_can_modify": true,
        });
        let reply = self.ask(repo, ("POST", "/pulls".to_owned()), Some(body)).await?;
        match reply.status {
            200..300 => Ok(link(&reply.body)),
            422 if reply.words().contains("already exists") => {
                Ok(self.open_request(repo, proposal).await?.unwrap_or_default())
            }
            _ => Err(refused(&reply, "`Pull requests: write`", "opening the pull request")),
        }
    }
}

/// A branch's name with its slashes, each part encoded.
fn path(branch: &str) -> String {
    branch.split('/').map(wire::encode).collect::<Vec<_>>().join("/")
}

fn link(request: &Value) -> String {
    request.get("html_url").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn entry(path: &str, leaf: Option<&Leaf>) -> Value {
    match leaf {
        Some(leaf) => {
            let kind = if leaf.mode == "160000" { "commit" } else { "blob" };
            json!({ "path": path, "mode": leaf.mode, "type": kind, "sha": leaf.id })
        }
        None => json!({ "path": path, "mode": "100644", "type": "blob", "sha": null }),
    }
}

fn made(reply: &Reply, what: &str) -> Result<Sha, WriteError> {
    let sha = reply.body.get("sha").and_then(Value::as_str).and_then(|sha| sha.parse().ok());
    sha.filter(|_| reply.is_good()).ok_or_else(|| refused(reply, "`Contents: write`", &format!("making {what}")))
}

fn refused(reply: &Reply, right: &str, what: &str) -> WriteError {
    match reply.status {
        403 | 404 => {
            let message = format!(
                "GitHub refuses {what}: {} ({}); give the token the repository permission {right}",
                reply.status,
                reply.words()
            );
            WriteError::NoRight(Reason::new(ReasonCode::GithubUnavailable, message))
        }
        _ => WriteError::Failed(odd(&format!("GitHub refuses {what}"), reply)),
    }
}

fn odd(what: &str, reply: &Reply) -> SourceError {
    failure(Class::Transient, format!("{what}: {} ({})", reply.status, reply.words())).into()
}

//! Commit statuses and deployments on GitHub.
//!
//! A deployment is made with `auto_merge = false` (GitHub would merge the default branch otherwise) and no
//! required contexts (the gate has asked already).
//!
//! Source: GitHub facts, section 6.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Progress, Report, ReportError, Status};
use crate::model::Sha;
use crate::model::policy::Repository;
use crate::source::{Call, Forge, Purpose, Reply};

/// [`Report`] by GitHub's REST API.
#[derive(Clone)]
pub struct GithubReport {
    forge: Arc<dyn Forge>,
}

impl std::fmt::Debug for GithubReport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GithubReport").finish_non_exhaustive()
    }
}

impl GithubReport {
    /// Makes the adapter; it asks nothing yet.
    #[must_use]
    pub fn new(forge: Arc<dyn Forge>) -> Self {
        Self { forge }
    }

    async fn post(
        &self,
        repo: &Repository,
        (path, body): (String, Value),
        right: &'static str,
    ) -> Result<Reply, ReportError> {
        let call = Call { method: "POST", path, body: Some(body), purpose: Purpose::Report };
        let reply = self
            .forge
            .call(repo, call)
            .await
            .map_err(|error| ReportError::Later { why: error.reason.message, until: error.until })?;
        match reply.status {
            200..300 => Ok(reply),
            403 | 404 => Err(ReportError::NoRight { right, said: format!("{} {}", reply.status, reply.words()) }),
            422 => Err(ReportError::Full(reply.words())),
            status => {
                Err(ReportError::Later { why: format!("GitHub answered {status} {}", reply.words()), until: None })
            }
        }
    }
}

#[async_trait]
impl Report for GithubReport {
    async fn status(&self, repo: &Repository, sha: &Sha, status: &Status) -> Result<(), ReportError> {
        let body = json!({
            "state": status.state.as_str(),
            "description": status.description,
            "context": status.context,
        });
        self.post(repo, (format!("/statuses/{sha}"), body), "`Commit statuses: write`").await.map(|_| ())
    }

    async fn deployment(&self, repo: &Repository, sha: &Sha, environment: &str) -> Result<u64, ReportError> {
        let body = json!({
            "ref": sha,
            "auto_merge": false,
            "required_contexts": [],
            "environment": environment,
            "description": "trueup",
        });
        let reply = self.post(repo, ("/deployments".to_owned(), body), "`Deployments: write`").await?;
        reply
            .body
            .get("id")
            .and_then(Value::as_u64)
            .ok_or_else(|| ReportError::Later { why: "GitHub gave the deployment no number".to_owned(), until: None })
    }

    async fn progress(&self, repo: &Repository, deployment: u64, progress: &Progress) -> Result<(), ReportError> {
        let mut body = json!({ "state": progress.state, "description": progress.description });
        if let (Some(url), Some(fields)) = (&progress.url, body.as_object_mut()) {
            fields.insert("environment_url".to_owned(), json!(url));
        }
        let path = format!("/deployments/{deployment}/statuses");
        self.post(repo, (path, body), "`Deployments: write`").await.map(|_| ())
    }
}

//! Calls that are no lists of runs, through the same queue, limits and credentials.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::StatusCode;
use tokio::sync::SemaphorePermit;

use super::credential::Credential;
use super::pages::Answer;
use super::{GithubChecks, QUEUE_DEADLINE, failure, limits, lock, wire};
use crate::model::Class;
use crate::model::policy::Repository;
use crate::source::{Call, ChecksError, Forge, Purpose, Reply};

impl GithubChecks {
    /// Waits for the calls before this one.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, ChecksError> {
        let permit = tokio::time::timeout(QUEUE_DEADLINE, self.queue.acquire()).await;
        let Ok(Ok(permit)) = permit else {
            let message = format!("calls to GitHub are queueing for more than {} s", QUEUE_DEADLINE.as_secs());
            return Err(failure(Class::Transient, message));
        };
        Ok(permit)
    }

    /// One call's answer, or an error once its deadline is over.
    pub(super) async fn within_deadline(
        &self,
        call: impl Future<Output = Result<Answer, ChecksError>>,
    ) -> Result<Answer, ChecksError> {
        let deadline = self.settings.call_deadline;
        let answer = tokio::time::timeout(deadline, call).await;
        answer.unwrap_or_else(|_| {
            let seconds = deadline.as_secs_f32();
            Err(failure(Class::Transient, format!("GitHub did not answer within {seconds} s")))
        })
    }

    /// The credential for a repository: the one token's, or that of the token which is fresh now.
    pub(super) async fn credential_for(
        &self,
        repo: &Repository,
        purpose: Purpose,
    ) -> Result<Arc<Credential>, ChecksError> {
        let Some(tokens) = &self.tokens else { return Ok(self.credential()) };
        let token = tokens.token(repo, purpose).await?;
        let place = (repo.clone(), purpose);
        let known = lock(&self.minted).get(&place).cloned();
        if let Some(known) = known {
            if known.key == Credential::key_of(token.as_ref()) {
                return Ok(known);
            }
            lock(&self.pages).forget(&known.key);
            lock(&self.limits).forget(&known.key);
        }
        let fresh = Arc::new(Credential::new((&self.settings.api_url, &self.client), token)?);
        lock(&self.minted).insert(place, Arc::clone(&fresh));
        Ok(fresh)
    }
}

#[async_trait]
impl Forge for GithubChecks {
    async fn call(&self, repo: &Repository, call: Call) -> Result<Reply, ChecksError> {
        let Repository::GitHub { owner, name } = repo else {
            return Err(failure(Class::Bug, format!("{repo} is a plain remote: GitHub knows nothing of it")));
        };
        let credential = self.credential_for(repo, call.purpose).await?;
        let url = format!("/repos/{}/{}{}", wire::encode(owner), wire::encode(name), call.path);
        let _permit = self.turn().await?;
        let now = (self.settings.now)();
        match call.purpose {
            Purpose::Revert => lock(&self.limits).admit_revert(&credential.key, now)?,
            Purpose::Read | Purpose::Report => lock(&self.limits).admit(&credential.key, now)?,
        }
        let sent = credential.send((call.method, &url), None, call.body.as_ref());
        let answer = self.within_deadline(sent).await?;
        let now = (self.settings.now)();
        lock(&self.limits).note(&credential.key, &answer, now);
        let is_wait = limits::wait_until(&answer, now).is_some();
        if is_wait || answer.status == StatusCode::UNAUTHORIZED || answer.status.is_server_error() {
            return Err(credential.redact(limits::refusal(&answer, now)));
        }
        let body = serde_json::from_slice(&answer.body).unwrap_or_default();
        Ok(Reply { status: answer.status.as_u16(), body })
    }
}

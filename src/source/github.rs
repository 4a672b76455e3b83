//! GitHub's Actions runs, through octocrab: asked, never judged.
//!
//! Every list is asked for conditionally, so that an answer that has not changed costs nothing of
//! the rate limit. Calls of one credential go one after the other; when GitHub says "wait", nothing
//! is sent before that time, and a share of the limit is left alone for reverts. Answers are kept by
//! credential and URL, so that none can ever stand for another sha or another credential.
//!
//! Source: GitHub facts, sections 3, 5 and 7; field reports 11, 12, 18, 68 and 69.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use hyper::{StatusCode, Uri};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::http::Roots;
use super::{Checks, ChecksError, CiFacts, Purpose, Tokens};
use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, ReasonCode, Secret, Sha};

mod app;
mod credential;
mod forge;
mod limits;
mod pages;
#[cfg(test)]
mod tests;
mod wire;
mod write;

pub use app::{AppSettings, AppTokens};
use credential::Credential;
pub use limits::Budget;
use limits::Limits;
use pages::{Page, Pages};
pub use write::GithubReverts;

/// The longest that one call may take, the body included.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The longest that a call waits for the calls before it.
pub const QUEUE_DEADLINE: Duration = Duration::from_secs(60);

/// The version of the REST API whose fields are read here; sent with each call.
pub const API_VERSION: &str = "2022-11-28";

/// Pages followed for one list: a filtered search ends at 1,000 results, 100 a page.
const MAX_PAGES: usize = 10;

/// Gives the time, so that "wait 60 seconds" can become an instant.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Where GitHub is.
#[derive(Clone)]
pub struct GithubSettings {
    /// `https://api.github.com`, or `https://HOST/api/v3` for an Enterprise Server.
    pub api_url: String,
    /// At most [`CALL_DEADLINE`] in earnest.
    pub call_deadline: Duration,
    /// The clock.
    pub now: Now,
}

/// [`Checks`] by GitHub's REST API.
pub struct GithubChecks {
    settings: GithubSettings,
    /// Scheme and authority of `api_url`: pages are followed nowhere else.
    origin: String,
    client: reqwest::Client,
    /// Of the one token, while there is no [`Tokens`].
    credential: RwLock<Arc<Credential>>,
    tokens: Option<Arc<dyn Tokens>>,
    /// One for each repository and purpose, where [`Tokens`] gives them.
    minted: Mutex<BTreeMap<(Repository, Purpose), Arc<Credential>>>,
    pages: Mutex<Pages>,
    limits: Mutex<Limits>,
    queue: Semaphore,
}

impl fmt::Debug for GithubChecks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GithubChecks").field("api_url", &self.settings.api_url).finish_non_exhaustive()
    }
}

impl GithubChecks {
    /// Makes the adapter; it asks nothing yet. Must be called inside a tokio runtime. Without a
    /// token, GitHub allows 60 calls an hour and public repositories only.
    ///
    /// # Errors
    /// [`ChecksError`] when the URL is none, or no client can be made (no root certificates).
    pub fn new(settings: GithubSettings, token: Option<Secret>) -> Result<Self, ChecksError> {
        let (is_direct, agent) = (is_loopback(&settings.api_url), "octocrab");
        let client = super::http::client(is_direct, &Roots::default(), agent)
            .map_err(|why| failure(Class::Stalled, format!("no client for {} can be made: {why}", settings.api_url)))?;
        Self::with_client(settings, client, token)
    }

    /// As [`GithubChecks::new`], over a client that is shared with others.
    ///
    /// # Errors
    /// As [`GithubChecks::new`].
    pub fn with_client(
        settings: GithubSettings,
        client: reqwest::Client,
        token: Option<Secret>,
    ) -> Result<Self, ChecksError> {
        let origin = settings.api_url.parse().ok().and_then(|url: Uri| origin(&url));
        let origin = origin.ok_or_else(|| {
            failure(Class::Stalled, format!("`api_url` is `{}`, which is no URL with a host", settings.api_url))
        })?;
        let credential = Credential::new((&settings.api_url, &client), token)?;
        Ok(Self {
            settings,
            origin,
            client,
            tokens: None,
            minted: Mutex::default(),
            credential: RwLock::new(Arc::new(credential)),
            pages: Mutex::default(),
            limits: Mutex::default(),
            queue: Semaphore::new(1),
        })
    }

    /// The same, asking for a fresh token for each repository and purpose.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Puts another token in place of the present one; calls under way end with the old one. What
    /// was remembered for the old one is forgotten.
    ///
    /// # Errors
    /// As [`GithubChecks::new`]; the old token stays then.
    pub fn replace_token(&self, token: Option<Secret>) -> Result<(), ChecksError> {
        let credential = Arc::new(Credential::new((&self.settings.api_url, &self.client), token)?);
        lock(&self.pages).keep_only(&credential.key);
        lock(&self.limits).keep_only(&credential.key);
        *self.credential.write().unwrap_or_else(PoisonError::into_inner) = credential;
        Ok(())
    }

    /// What is left of the present credential's rate limit, as GitHub last said; absent before the
    /// first answer, and for an Enterprise Server without limits.
    #[must_use]
    pub fn budget(&self) -> Option<Budget> {
        lock(&self.limits).budget(&self.credential().key)
    }

    fn credential(&self) -> Arc<Credential> {
        Arc::clone(&self.credential.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All pages of a list. One with more than [`MAX_PAGES`] is an error: what is missing in a part
    /// of a list must not count as absent (promise P7).
    async fn list(&self, credential: &Credential, first: String) -> Result<Vec<Arc<Page>>, ChecksError> {
        let mut pages = Vec::new();
        let mut next = Some(first);
        while let Some(url) = next.take() {
            if pages.len() == MAX_PAGES {
                let message = format!("GitHub's list has more than {MAX_PAGES} pages");
                return Err(failure(Class::Transient, message));
            }
            let page = self.page(credential, &url).await?;
            next = page.next.as_deref().map(|link| self.leads_on(link)).transpose()?;
            pages.push(page);
        }
        Ok(pages)
    }

    /// A link to the next page, if it stays where the token may be sent.
    fn leads_on(&self, link: &str) -> Result<String, ChecksError> {
        let leads = link.parse().ok().and_then(|url: Uri| origin(&url));
        if leads.as_deref() == Some(self.origin.as_str()) {
            return Ok(link.to_owned());
        }
        let message = format!("GitHub's next page lies outside {}: it is not followed", self.origin);
        Err(failure(Class::Transient, message))
    }

    /// One page, from GitHub or, if it says that nothing changed, from memory.
    async fn page(&self, credential: &Credential, url: &str) -> Result<Arc<Page>, ChecksError> {
        let _permit = self.turn().await?;
        lock(&self.limits).admit(&credential.key, (self.settings.now)())?;
        let known = lock(&self.pages).get(&credential.key, url);
        let etag = known.as_ref().and_then(|page| page.etag.as_deref());
        let answer = self.within_deadline(credential.get(url, etag)).await?;
        let now = (self.settings.now)();
        lock(&self.limits).note(&credential.key, &answer, now);
        match (answer.status, known) {
            (StatusCode::NOT_MODIFIED, Some(page)) => Ok(page),
            (StatusCode::OK, _) => {
                let page = Arc::new(answer.into_page()?);
                lock(&self.pages).put(&credential.key, url, &page);
                Ok(page)
            }
            _ => Err(credential.redact(limits::refusal(&answer, now))),
        }
    }
}

#[async_trait]
impl Checks for GithubChecks {
    async fn runs(
        &self,
        repo: &Repository,
        workflow: &str,
        (branch, sha): (&BranchName, &Sha),
    ) -> Result<CiFacts, ChecksError> {
        let Repository::GitHub { owner, name } = repo else {
            let message = format!("{repo} is a plain remote: GitHub knows no CI run of it");
            let reason = Reason::new(ReasonCode::CiMissing, message);
            return Err(ChecksError { reason, class: Class::Stalled, until: None });
        };
        let credential = self.credential_for(repo, Purpose::Read).await.map_err(about(repo))?;
        let actions = format!("/repos/{}/{}/actions/workflows", wire::encode(owner), wire::encode(name));
        let pages = self.list(&credential, format!("{actions}?per_page=100")).await.map_err(about(repo))?;
        let (workflow_id, is_disabled) = match wire::resolve(&pages, workflow) {
            wire::Resolved::One { id, is_disabled } => (id, is_disabled),
            wire::Resolved::Other(facts) => return Ok(facts),
        };
        let branch = wire::encode(branch.as_str());
        let runs = format!("{actions}/{workflow_id}/runs?head_sha={sha}&event=push&branch={branch}&per_page=100");
        let pages = self.list(&credential, runs).await.map_err(about(repo))?;
        Ok(wire::facts(&pages, &repo.to_string(), (workflow_id, is_disabled)))
    }
}

fn failure(class: Class, message: String) -> ChecksError {
    ChecksError { reason: Reason::new(ReasonCode::GithubUnavailable, message), class, until: None }
}

/// Names the repository in front of an error.
fn about(repo: &Repository) -> impl Fn(ChecksError) -> ChecksError + '_ {
    move |mut error| {
        error.reason.message = format!("CI of {repo}: {}", error.reason.message);
        error
    }
}

/// An error with what is behind it, on one line.
fn chain(error: &octocrab::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Whether an address is this machine: then no proxy is asked.
pub fn is_loopback(url: &str) -> bool {
    let host = url.parse().ok().and_then(|url: Uri| url.host().map(str::to_owned)).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn origin(url: &Uri) -> Option<String> {
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

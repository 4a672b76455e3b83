//! A GitHub App's tokens: one for each repository and purpose, with no more rights than that needs, and
//! asked for again before it ends.
//!
//! The App proves itself with a JWT that is dated 60 s back, since GitHub refuses one from its future, and
//! that ends within GitHub's 10 minutes.
//!
//! Source: GitHub facts, section 7.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use hyper::StatusCode;
use hyper::header::DATE;
use jiff::{SignedDuration, Timestamp};
use octocrab::auth::{AppAuth, create_jwt};
use octocrab::models::AppId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::credential::Credential;
use super::pages::Answer;
use super::{GithubSettings, failure, limits, lock};
use crate::model::policy::Repository;
use crate::model::{Class, Secret};
use crate::source::{ChecksError, Purpose, Tokens};

/// A token that ends sooner than this is replaced first: a fetch under way must not outlive it.
const FRESH_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Clocks that differ by more than this are named in an error.
const SKEW_NAMED: SignedDuration = SignedDuration::from_secs(30);

/// Who the App is.
pub struct AppSettings {
    /// The App's number.
    pub app_id: u64,
    /// The number of its installation.
    pub installation_id: u64,
    /// Its private key, in PEM form.
    pub private_key: Secret,
}

/// A GitHub App's [`Tokens`].
pub struct AppTokens {
    github: GithubSettings,
    client: reqwest::Client,
    auth: AppAuth,
    installation_id: u64,
    minted: Mutex<BTreeMap<(Repository, Purpose), Minted>>,
    turn: tokio::sync::Mutex<()>,
    refused: Mutex<BTreeSet<Purpose>>,
}

#[derive(Clone)]
struct Minted {
    token: Secret,
    ends: Timestamp,
}

#[derive(Deserialize)]
struct Granted {
    token: String,
    expires_at: Timestamp,
}

impl fmt::Debug for AppTokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AppTokens").field("app_id", &self.auth.app_id.0).finish_non_exhaustive()
    }
}

impl AppTokens {
    /// Reads the key; asks nothing yet.
    ///
    /// # Errors
    /// [`ChecksError`] when the key is no RSA key in PEM form. It never repeats the key.
    pub fn new(app: &AppSettings, github: GithubSettings, client: reqwest::Client) -> Result<Self, ChecksError> {
        let key = octocrab::auth::EncodingKey::from_rsa_pem(app.private_key.expose().as_bytes()).map_err(|_| {
            let message =
                "`private_key_file` holds no RSA key in PEM form; put the file there that GitHub gave for the App";
            failure(Class::Stalled, message.to_owned())
        })?;
        Ok(Self {
            github,
            client,
            auth: AppAuth { app_id: AppId(app.app_id), key },
            installation_id: app.installation_id,
            minted: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// The token for reading a repository, if one is known that has not ended: what Git sends.
    #[must_use]
    pub fn peek(&self, repo: &Repository) -> Option<Secret> {
        self.known(&(repo.clone(), Purpose::Read), SignedDuration::ZERO).map(|minted| minted.token)
    }

    /// The purposes for which the App lacks a right, as GitHub said last.
    #[must_use]
    pub fn refused(&self) -> BTreeSet<Purpose> {
        lock(&self.refused).clone()
    }

    fn known(&self, place: &(Repository, Purpose), fresh_for: SignedDuration) -> Option<Minted> {
        let least = (self.github.now)().checked_add(fresh_for).ok()?;
        lock(&self.minted).get(place).filter(|minted| minted.ends > least).cloned()
    }

    async fn mint(&self, name: &str, purpose: Purpose) -> Result<Minted, ChecksError> {
        let jwt = create_jwt(self.auth.app_id, &self.auth.key)
            .map_err(|error| failure(Class::Stalled, format!("the App's key cannot sign: {error}")))?;
        let credential = Credential::new((&self.github.api_url, &self.client), Some(Secret::new(jwt)))?;
        let url = format!("/app/installations/{}/access_tokens", self.installation_id);
        let body = json!({ "repositories": [name], "permissions": permissions(purpose) });
        let deadline = self.github.call_deadline;
        let answer = tokio::time::timeout(deadline, credential.send(("POST", &url), None, Some(&body)));
        let answer = answer.await.map_err(|_| late(deadline))??;
        if answer.status != StatusCode::CREATED {
            return Err(credential.redact(self.refusal(&answer, purpose)));
        }
        let granted: Granted = serde_json::from_slice(&answer.body).map_err(|error| {
            failure(Class::Transient, format!("GitHub's token does not read as one: {}", error.classify_word()))
        })?;
        lock(&self.refused).remove(&purpose);
        Ok(Minted { token: Secret::new(granted.token), ends: granted.expires_at })
    }

    fn refusal(&self, answer: &Answer, purpose: Purpose) -> ChecksError {
        let now = (self.github.now)();
        let general = limits::refusal(answer, now);
        if general.until.is_some() {
            return general;
        }
        match answer.status {
            StatusCode::UNAUTHORIZED => {
                let skew = self.skew(answer, now).map_or_else(String::new, |skew| {
                    format!(
                        "; this machine's clock is {} s {} GitHub's: set it right",
                        skew.as_secs().abs(),
                        ahead(skew)
                    )
                });
                let id = self.auth.app_id.0;
                failure(
                    Class::Stalled,
                    format!("GitHub does not accept App {id}: {}{skew}; check `app_id` and its key", answer.status),
                )
            }
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::FORBIDDEN => {
                lock(&self.refused).insert(purpose);
                let rights = permissions(purpose).to_string().replace(['{', '}', '"'], "").replace(':', ": ");
                failure(
                    Class::Stalled,
                    format!(
                        "the App lacks a right ({}): give it {rights} and accept that in the installation",
                        answer.status
                    ),
                )
            }
            StatusCode::NOT_FOUND => failure(
                Class::Stalled,
                format!("GitHub knows no installation {}: correct `installation_id`", self.installation_id),
            ),
            _ => general,
        }
    }

    /// How far this machine's clock is ahead of GitHub's, if that is worth a word.
    fn skew(&self, answer: &Answer, now: Timestamp) -> Option<SignedDuration> {
        let date = answer.headers.get(DATE)?.to_str().ok()?;
        let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
        let skew = now.duration_since(theirs);
        (skew.abs() > SKEW_NAMED).then_some(skew)
    }
}

fn ahead(skew: SignedDuration) -> &'static str {
    if skew.is_negative() { "behind" } else { "ahead of" }
}

fn late(deadline: Duration) -> ChecksError {
    failure(Class::Transient, format!("GitHub did not answer within {} s", deadline.as_secs_f32()))
}

/// The word of a JSON error: its text could repeat what was read.
trait ClassifyWord {
    fn classify_word(&self) -> &'static str;
}

impl ClassifyWord for serde_json::Error {
    fn classify_word(&self) -> &'static str {
        match self.classify() {
            serde_json::error::Category::Io => "unreadable",
            serde_json::error::Category::Syntax | serde_json::error::Category::Eof => "not JSON",
            serde_json::error::Category::Data => "fields are missing",
        }
    }
}

/// The rights that a purpose needs.
fn permissions(purpose: Purpose) -> Value {
    match purpose {
        Purpose::Read => json!({ "contents": "read", "actions": "read" }),
        Purpose::Revert => json!({ "contents": "write", "pull_requests": "write" }),
        Purpose::Report => json!({ "statuses": "write", "deployments": "write" }),
    }
}

#[async_trait]
impl Tokens for AppTokens {
    async fn token(&self, repo: &Repository, purpose: Purpose) -> Result<Option<Secret>, ChecksError> {
        let Repository::GitHub { name, .. } = repo else { return Ok(None) };
        let place = (repo.clone(), purpose);
        if let Some(known) = self.known(&place, FRESH_FOR) {
            return Ok(Some(known.token));
        }
        let _turn = self.turn.lock().await;
        if let Some(known) = self.known(&place, FRESH_FOR) {
            return Ok(Some(known.token));
        }
        match self.mint(name, purpose).await {
            Ok(minted) => {
                let token = minted.token.clone();
                lock(&self.minted).insert(place, minted);
                Ok(Some(token))
            }
            // One that has not ended yet still serves while GitHub is away.
            Err(error) => match self.known(&place, SignedDuration::ZERO) {
                Some(known) => Ok(Some(known.token)),
                None => Err(error),
            },
        }
    }
}

//! Rate limits: what is left, when to wait, and what a refusal means.
//!
//! Pure over headers. Source: GitHub facts, section 5.

use std::collections::BTreeMap;

use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::pages::Answer;
use super::{ChecksError, failure};
use crate::model::{Class, Digest};

/// The wait when GitHub says "too many" and not how long.
const DEFAULT_WAIT: SignedDuration = SignedDuration::from_mins(1);

/// No wait is longer: the limit is by the hour, whatever a header or a clock says.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// One call in so many stays unspent, for reverts (field report 12): 100 of 5,000.
const RESERVE_SHARE: u64 = 50;

/// Characters of GitHub's own words that are shown.
const SHOWN_CHARACTERS: usize = 200;

/// What is left of a credential's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Calls an hour.
    pub limit: u64,
    /// Calls left.
    pub remaining: u64,
    /// When the hour is over.
    pub reset: Timestamp,
}

impl Budget {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
        let reset = i64::try_from(number("x-ratelimit-reset")?).ok()?;
        Some(Self {
            limit: number("x-ratelimit-limit")?,
            remaining: number("x-ratelimit-remaining")?,
            reset: Timestamp::from_second(reset).ok()?,
        })
    }

    /// The calls that are left alone.
    #[must_use]
    pub fn reserve(&self) -> u64 {
        self.limit / RESERVE_SHARE
    }
}

/// What is remembered of each credential.
#[derive(Debug, Default)]
pub(super) struct Limits {
    by_credential: BTreeMap<Digest, Known>,
}

#[derive(Debug, Default)]
struct Known {
    budget: Option<Budget>,
    wait_until: Option<Timestamp>,
}

impl Limits {
    pub(super) fn budget(&self, credential: &Digest) -> Option<Budget> {
        self.by_credential.get(credential)?.budget
    }

    pub(super) fn keep_only(&mut self, credential: &Digest) {
        self.by_credential.retain(|key, _| key == credential);
    }

    /// Forgets a credential that was replaced.
    pub(super) fn forget(&mut self, credential: &Digest) {
        self.by_credential.remove(credential);
    }

    /// Says whether a call that may use the reserve can be sent: only a wait holds it up.
    pub(super) fn admit_revert(&self, credential: &Digest, now: Timestamp) -> Result<(), ChecksError> {
        let until = self.by_credential.get(credential).and_then(|known| known.wait_until).filter(|until| *until > now);
        until.map_or(Ok(()), |until| Err(wait(format!("GitHub asked for no calls before {until}"), until)))
    }

    /// Says whether a call may be sent at all.
    pub(super) fn admit(&self, credential: &Digest, now: Timestamp) -> Result<(), ChecksError> {
        let Some(known) = self.by_credential.get(credential) else {
            return Ok(());
        };
        if let Some(until) = known.wait_until.filter(|until| *until > now) {
            return Err(wait(format!("GitHub asked for no calls before {until}"), until));
        }
        match known.budget.filter(|budget| budget.reset > now && budget.remaining <= budget.reserve()) {
            Some(budget) => {
                let until = bounded(budget.reset, now);
                let message = format!(
                    "{} of {} calls to GitHub are left until {until}, and they are kept for reverts",
                    budget.remaining, budget.limit
                );
                Err(wait(message, until))
            }
            None => Ok(()),
        }
    }

    /// Remembers what an answer says.
    pub(super) fn note(&mut self, credential: &Digest, answer: &Answer, now: Timestamp) {
        let known = self.by_credential.entry(credential.clone()).or_default();
        if let Some(budget) = Budget::read(&answer.headers) {
            known.budget = Some(budget);
        }
        known.wait_until = wait_until(answer, now);
    }
}

/// Until when an answer asks for silence.
pub(super) fn wait_until(answer: &Answer, now: Timestamp) -> Option<Timestamp> {
    if answer.status != StatusCode::FORBIDDEN && answer.status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    if let Some(value) = answer.headers.get(RETRY_AFTER) {
        let seconds = value.to_str().ok().and_then(|text| text.trim().parse::<i64>().ok());
        let wait = seconds.map_or(DEFAULT_WAIT, SignedDuration::from_secs);
        return Some(bounded(now.checked_add(wait).unwrap_or(Timestamp::MAX), now));
    }
    if let Some(budget) = Budget::read(&answer.headers).filter(|budget| budget.remaining == 0) {
        return Some(bounded(budget.reset, now));
    }
    let is_limit = answer.status == StatusCode::TOO_MANY_REQUESTS || words(answer).contains("rate limit");
    is_limit.then(|| now.checked_add(DEFAULT_WAIT).unwrap_or(now))
}

/// What an answer that is neither 200 nor 304 means.
pub(super) fn refusal(answer: &Answer, now: Timestamp) -> ChecksError {
    let status = answer.status;
    let words = words(answer);
    let said = if words.is_empty() { String::new() } else { format!(" (\"{words}\")") };
    if let Some(until) = wait_until(answer, now) {
        return wait(format!("GitHub's rate limit is reached: {status}{said}; asked again at {until}"), until);
    }
    let (class, message) = match status {
        StatusCode::UNAUTHORIZED => (
            Class::Stalled,
            format!("GitHub does not accept the token: {status}{said}; put a valid one into `token_file`"),
        ),
        StatusCode::FORBIDDEN => (
            Class::Stalled,
            format!("the token lacks a right: {status}{said}; give it the repository permission `Actions: read`"),
        ),
        StatusCode::NOT_FOUND => (
            Class::Stalled,
            format!(
                "GitHub knows no such repository, or the token has no access to it: {status}{said}; correct `repo`, or give the token the repository with `Actions: read`"
            ),
        ),
        _ => (Class::Transient, format!("GitHub answered {status}{said}")),
    };
    failure(class, message)
}

fn wait(message: String, until: Timestamp) -> ChecksError {
    ChecksError { until: Some(until), ..failure(Class::Transient, message) }
}

/// Never in the past, never longer than [`LONGEST_WAIT`].
fn bounded(until: Timestamp, now: Timestamp) -> Timestamp {
    until.clamp(now, now.checked_add(LONGEST_WAIT).unwrap_or(Timestamp::MAX))
}

/// GitHub's own words, shortened; nothing of a page that is not its JSON.
fn words(answer: &Answer) -> String {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    let message = serde_json::from_slice::<Message>(&answer.body).map(|body| body.message).unwrap_or_default();
    message.chars().filter(|character| !character.is_control()).take(SHOWN_CHARACTERS).collect()
}

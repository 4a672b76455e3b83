//! The candidate's health: the contract's 30 s rule.

use serde_json::Value;

use super::evidence::{printable, seen};
use super::{Expectation, Healthy, Verdict, next_look};
use crate::model::live::RunState;
use crate::model::sample::{Answer, Sample};
use crate::model::{Reason, ReasonCode, Sha};

/// Largest health body, in bytes. Source: app.toml contract, '/healthz'.
pub const HEALTH_BODY_LIMIT: usize = 64 * 1024;

/// Judges one look at a starting candidate.
///
/// - Healthy: status 2xx, at most 64 KiB of JSON, `ok` is `true`, `sha` is the full sha.
/// - The container ended: `CrashedAtStart` at once, since nothing restarts it.
/// - It says `ok` and another full commit sha: `WrongSha` at once. The slot's port was free before the
///   start and belongs to this container alone, and a container does not become another commit.
/// - Anything else may still be starting, so it waits; at the bound it is `NeverHealthy`, or `WrongSha` when
///   the last answer named something else (`dev`, an abbreviation). Starting and unhealthy stay apart: nothing is
///   called unhealthy before the bound.
#[must_use]
pub fn health(sample: &Sample, expectation: &Expectation, container: Option<&RunState>) -> Verdict<Healthy> {
    if let Some(RunState::Exited { code, is_out_of_memory }) = container {
        return Verdict::Failed(crashed(*code, *is_out_of_memory, expectation));
    }
    let claim = claim(sample, &expectation.revision);
    match claim {
        Claim::Healthy if expectation.elapsed <= expectation.within => {
            Verdict::Passed(Healthy { revision: expectation.revision.clone() })
        }
        Claim::OtherCommit(sha) => Verdict::Failed(wrong_sha(&sha, expectation)),
        Claim::Healthy | Claim::OtherText(_) | Claim::Nothing if expectation.elapsed < expectation.within => {
            Verdict::Waiting { after: next_look(expectation), why: claim.why(sample) }
        }
        Claim::OtherText(text) => Verdict::Failed(wrong_sha(&text, expectation)),
        Claim::Healthy | Claim::Nothing => {
            let message = format!(
                "never reported {} within {} s: the last look saw {}",
                expectation.revision.short(),
                expectation.within.as_secs(),
                seen(sample)
            );
            Verdict::Failed(Reason::new(ReasonCode::NeverHealthy, message))
        }
    }
}

/// What an answer claims about the commit behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// Healthy, and the commit that was asked for.
    Healthy,
    /// Healthy, and the full sha of another commit.
    OtherCommit(String),
    /// Healthy, and something that is no full sha.
    OtherText(String),
    /// Not healthy, or no answer.
    Nothing,
}

impl Claim {
    fn why(&self, sample: &Sample) -> String {
        match self {
            Self::OtherText(text) => format!("it says `{text}`, which is not the full sha"),
            Self::Healthy | Self::OtherCommit(_) | Self::Nothing => seen(sample),
        }
    }
}

/// Reads the claim out of a sample.
pub(super) fn claim(sample: &Sample, revision: &Sha) -> Claim {
    let Sample::Answer(answer) = sample else {
        return Claim::Nothing;
    };
    let Some(sha) = healthy_sha(answer) else {
        return Claim::Nothing;
    };
    if sha == revision.as_str() {
        Claim::Healthy
    } else if sha.parse::<Sha>().is_ok() {
        Claim::OtherCommit(sha)
    } else {
        Claim::OtherText(printable(sha.as_bytes()))
    }
}

/// The `sha` of a healthy answer.
fn healthy_sha(answer: &Answer) -> Option<String> {
    let is_acceptable =
        (200..300).contains(&answer.status) && !answer.is_truncated && answer.body.len() <= HEALTH_BODY_LIMIT;
    if !is_acceptable {
        return None;
    }
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let is_ok = body.get("ok").and_then(Value::as_bool) == Some(true);
    if is_ok { body.get("sha").and_then(Value::as_str).map(str::to_owned) } else { None }
}

fn wrong_sha(said: &str, expectation: &Expectation) -> Reason {
    let message = format!(
        "never reported {}: it says that it is `{said}`. Rebuild the image from this commit, or read RELEASE_SHA",
        expectation.revision.short()
    );
    Reason::new(ReasonCode::WrongSha, message)
}

fn crashed(code: i64, is_out_of_memory: bool, expectation: &Expectation) -> Reason {
    let why = if is_out_of_memory {
        "the kernel ended it for memory; it needs less memory, or the operator a larger `limits.memory`".to_owned()
    } else {
        format!("it ended with code {code}; its log says why")
    };
    Reason::new(ReasonCode::CrashedAtStart, format!("never reported {}: {why}", expectation.revision.short()))
}

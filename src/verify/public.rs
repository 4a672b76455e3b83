//! After the switch: the same questions through the edge, and the way the public comes.

use super::evidence::{printable, seen, seen_answer};
use super::health::{Claim, claim};
use super::smoke::complaint;
use super::{Expectation, Verdict, next_look};
use crate::model::desired::NOT_RELEASED_YET;
use crate::model::desired::SmokeCheck;
use crate::model::sample::{Answer, Sample};
use crate::model::{Reason, ReasonCode};

/// Judges one look through the edge on this machine, right after the switch.
///
/// The slot itself was already proved, so what is missing here is the edge's: everything waits until the
/// bound, also the old commit (a request that began before the switch may end after it). At the bound an answer that
/// Caddy made, silence, or another commit is `EdgeUnavailable`; an answer that the application made
/// (it refuses the public `Host`, for example) is `PublicProofFailed`.
#[must_use]
pub fn edge_health(sample: &Sample, expectation: &Expectation) -> Verdict<()> {
    let claim = claim(sample, &expectation.revision);
    if claim == Claim::Healthy {
        return Verdict::Passed(());
    }
    if expectation.elapsed < expectation.within {
        return Verdict::Waiting { after: next_look(expectation), why: seen(sample) };
    }
    let sha = expectation.revision.short();
    Verdict::Failed(match (claim, sample) {
        (Claim::OtherCommit(other) | Claim::OtherText(other), _) => Reason::new(
            ReasonCode::EdgeUnavailable,
            format!("through the edge `{other}` still answers instead of {sha}: does Caddy serve this vhost?"),
        ),
        (_, Sample::Answer(answer)) if is_not_released(answer) => Reason::new(
            ReasonCode::EdgeUnavailable,
            format!(
                "the edge says `{NOT_RELEASED_YET}` after the switch to {sha}: can Caddy's user read the marker's directory?"
            ),
        ),
        (_, Sample::Answer(answer)) if !is_from_caddy(answer) => Reason::new(
            ReasonCode::PublicProofFailed,
            format!("through the edge the application does not report {sha}: {}", seen_answer(answer)),
        ),
        (_, Sample::Answer(_) | Sample::Silence { .. }) => Reason::new(
            ReasonCode::EdgeUnavailable,
            format!("{sha} does not answer through the edge: {}", seen(sample)),
        ),
    })
}

/// Judges one look at the public health URL (ruling 36).
///
/// Silence, answers that Cloudflare made and answers out of a cache wait until the bound; then the first two are
/// `PublicUnproven`, the last `PublicProofFailed`, since the contract asks for `no-store`. A wrong answer
/// from the application is `PublicProofFailed` at once.
#[must_use]
pub fn public_health(sample: &Sample, expectation: &Expectation) -> Verdict<()> {
    let sha = expectation.revision.short();
    match origin(sample) {
        Origin::Nobody(why) => {
            retry(ReasonCode::PublicUnproven, &format!("{sha} is not proved in public: {why}"), expectation)
        }
        Origin::Cache(how) => {
            let message = format!(
                "the public answer came from a cache ({how}) and proves nothing about {sha}: send `Cache-Control: no-store` with the health answer"
            );
            retry(ReasonCode::PublicProofFailed, &message, expectation)
        }
        Origin::Application => match claim(sample, &expectation.revision) {
            Claim::Healthy => Verdict::Passed(()),
            Claim::OtherCommit(other) | Claim::OtherText(other) => {
                failed(&format!("in public `{other}` answers instead of {sha}"), sample)
            }
            Claim::Nothing => {
                failed(&format!("in public the application does not report {sha}: {}", seen(sample)), sample)
            }
        },
    }
}

/// Judges one public smoke check (ruling 36).
///
/// As [`public_health`], but a cached answer that passes is good: static pages may be cached. A cached answer
/// that fails may be the old release's, so it waits.
#[must_use]
pub fn public_smoke(check: &SmokeCheck, sample: &Sample, expectation: &Expectation) -> Verdict<()> {
    let path = &check.path;
    match (origin(sample), complaint(check, sample)) {
        // A check may expect a status that Cloudflare makes too.
        (Origin::Nobody(_) | Origin::Cache(_) | Origin::Application, None) => Verdict::Passed(()),
        (Origin::Nobody(why), Some(_)) => retry(
            ReasonCode::PublicUnproven,
            &format!("smoke check `{path}` is not proved in public: {why}"),
            expectation,
        ),
        (Origin::Cache(how), Some(complaint)) => {
            let message = format!(
                "smoke check `{path}` in public: {complaint}; the answer came from a cache ({how}): send `Cache-Control: no-store`, or purge the cache"
            );
            retry(ReasonCode::PublicProofFailed, &message, expectation)
        }
        (Origin::Application, Some(complaint)) => {
            failed(&format!("smoke check `{path}` in public: {complaint}"), sample)
        }
    }
}

fn failed(message: &str, sample: &Sample) -> Verdict<()> {
    Verdict::Failed(Reason::new(ReasonCode::PublicProofFailed, message).with_evidence(seen(sample)))
}

fn retry(code: ReasonCode, message: &str, expectation: &Expectation) -> Verdict<()> {
    if expectation.elapsed < expectation.within {
        Verdict::Waiting { after: next_look(expectation), why: message.to_owned() }
    } else {
        Verdict::Failed(Reason::new(code, message))
    }
}

/// Who made a public answer.
enum Origin {
    /// Nobody, or Cloudflare itself; why.
    Nobody(String),
    /// A cache; how it shows.
    Cache(String),
    /// The application, as far as one can see.
    Application,
}

fn origin(sample: &Sample) -> Origin {
    let Sample::Answer(answer) = sample else {
        return Origin::Nobody(seen(sample));
    };
    if is_from_cloudflare(answer) {
        return Origin::Nobody(format!("Cloudflare itself answered: {}", seen_answer(answer)));
    }
    if let Some(age) = answer.header("age").next() {
        return Origin::Cache(format!("age {}", printable(age.as_bytes())));
    }
    let is_stored =
        |state: &&str| ["HIT", "STALE", "UPDATING", "REVALIDATED"].iter().any(|word| state.eq_ignore_ascii_case(word));
    match answer.header("cf-cache-status").find(is_stored) {
        Some(state) => Origin::Cache(format!("cf-cache-status {state}")),
        None => Origin::Application,
    }
}

/// Whether Cloudflare made this answer instead of passing one on.
///
/// 520 to 527 and 530 exist nowhere else. 502, 503 and 504 are Cloudflare's own only without
/// `cf-cache-status`, which it adds to every answer that came from behind it. A challenge or block page names itself in
/// `cf-mitigated`. Source: Cloudflare's documentation of its 5xx errors and of challenge detection.
fn is_from_cloudflare(answer: &Answer) -> bool {
    let is_edge = answer.header("server").any(|server| server.eq_ignore_ascii_case("cloudflare"));
    let is_passed_on = answer.header("cf-cache-status").next().is_some();
    match answer.status {
        520..=527 | 530 => true,
        502..=504 => is_edge && !is_passed_on,
        _ => answer.header("cf-mitigated").next().is_some(),
    }
}

/// Whether Caddy made this answer: it says that it cannot reach the slot with a gateway status and no body.
fn is_from_caddy(answer: &Answer) -> bool {
    matches!(answer.status, 502..=504) && answer.body.is_empty()
}

fn is_not_released(answer: &Answer) -> bool {
    answer.status == 503 && answer.body == NOT_RELEASED_YET.as_bytes()
}

//! `why`: every non-action has a reason that a person can ask for (promise P11).

use serde::{Deserialize, Serialize};

use super::delivery::{Delivered, delivery};
use super::{HeldView, ReleaseView, TargetStatus, status};
use crate::model::{Fault, Reason, ReasonCode, Sha, TargetName};
use crate::release::Phase;
use crate::store::deliveries::DeliveryRecord;
use crate::store::record::{AuditEvent, CiRecord, QuarantineEntry, ReleaseRecord};
use crate::store::{Store, StoreError};

/// Releases that are looked through.
const RECENT_RELEASES: u32 = 20;

/// Audit events that `why` looks through.
const RECENT_EVENTS: u32 = 500;

/// An answer to `why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// The target.
    pub target: TargetName,
    /// The commit it is about.
    pub sha: Option<Sha>,
    /// The answer, in one or two sentences.
    pub answer: String,
    /// The reason's word, where there is one.
    pub reason: Option<ReasonCode>,
    /// What to do, in one sentence; empty when nothing is to be done.
    pub advice: String,
    /// Evidence, for example the answer that a smoke check got.
    pub evidence: Option<String>,
    /// Releases of that commit, newest first.
    pub releases: Vec<ReleaseView>,
    /// Its quarantine.
    pub quarantine: Option<QuarantineEntry>,
    /// Its CI.
    pub ci: Option<CiRecord>,
    /// What happened, newest first.
    pub events: Vec<AuditEvent>,
    /// The webhook delivery that was asked about.
    #[serde(default)]
    pub delivery: Option<Delivered>,
}

/// Answers `why`: for a commit by a prefix of its sha (at least 7 digits), for a webhook delivery by its id,
/// or for what is wanted now.
///
/// # Errors
/// When the store cannot be read.
pub async fn why(store: &dyn Store, target: &TargetName, asked: Option<&str>) -> Result<Why, StoreError> {
    let status = status(store, target, false).await?;
    let all = store.releases(target, RECENT_RELEASES).await?;
    let events = store.audit_events(Some(target), RECENT_EVENTS).await?;
    let sha = match asked {
        Some(prefix) => find_sha(prefix, &status, &all, &events),
        None => status.wanted.clone(),
    };
    let known = (status, all, events);
    match (sha, asked) {
        (Some(sha), _) => about_sha(store, target, known, sha).await,
        (None, Some(id)) => match delivery(store, id).await? {
            Some(delivered) => about_delivery(store, target, known, delivered).await,
            None => Ok(unknown(target, asked)),
        },
        (None, None) => Ok(known.0.held.as_ref().map_or_else(|| unknown(target, None), |held| held_back(target, held))),
    }
}

/// What `why` looks through.
type Looked = (TargetStatus, Vec<ReleaseRecord>, Vec<AuditEvent>);

/// What a delivery did here, and what became of the commit that it named.
async fn about_delivery(
    store: &dyn Store,
    target: &TargetName,
    known: Looked,
    delivered: Delivered,
) -> Result<Why, StoreError> {
    let is_ours = |record: &DeliveryRecord| record.woken.contains(target);
    let is_woken = delivered.records.iter().any(is_ours);
    let named = delivered.records.iter().filter(|record| is_ours(record)).find_map(|record| record.sha.clone());
    let is_known = named.as_ref().filter(|sha| find_sha(sha.as_str(), &known.0, &known.1, &known.2).is_some());
    let mut why = match is_known.cloned() {
        Some(sha) => about_sha(store, target, known, sha).await?,
        None => Why { answer: String::new(), advice: String::new(), ..unknown(target, None) },
    };
    let here = if is_woken { "" } else { " It did not wake this target." };
    why.answer = format!("{}{here} {}", delivered.answer, why.answer).trim_end().to_owned();
    if why.advice.is_empty() {
        why.advice = delivered.advice.clone();
    }
    why.delivery = Some(delivered);
    Ok(why)
}

async fn about_sha(
    store: &dyn Store,
    target: &TargetName,
    (status, all, events): Looked,
    sha: Sha,
) -> Result<Why, StoreError> {
    let of_sha: Vec<&ReleaseRecord> = all.iter().filter(|record| record.new.revision == sha).collect();
    let quarantine = store.quarantine(target, &sha).await?;
    let ci = store.ci(target, &sha).await?;
    let verdict = verdict(&status, &sha, &of_sha, (quarantine.as_ref(), ci.as_ref()));
    Ok(Why {
        target: target.clone(),
        answer: verdict.answer,
        reason: verdict.reason.as_ref().map(|reason| reason.code),
        advice: verdict.reason.as_ref().map(|reason| advice(reason.code, target)).unwrap_or_default(),
        evidence: verdict.reason.and_then(|reason| reason.evidence),
        releases: of_sha.into_iter().map(ReleaseView::from).collect(),
        quarantine,
        ci,
        events: events.into_iter().filter(|event| event.sha.as_ref() == Some(&sha)).take(20).collect(),
        sha: Some(sha),
        delivery: None,
    })
}

fn find_sha(prefix: &str, status: &TargetStatus, all: &[ReleaseRecord], events: &[AuditEvent]) -> Option<Sha> {
    let releases = all.iter().map(|record| &record.new.revision);
    let known = status.tip.iter().chain(status.wanted.iter()).chain(releases);
    let audited = events.iter().filter_map(|event| event.sha.as_ref());
    (prefix.len() >= 7).then(|| known.chain(audited).find(|sha| sha.as_str().starts_with(prefix)).cloned()).flatten()
}

/// No revision is wanted, and there is a reason: the branch is gone, or was never read.
fn held_back(target: &TargetName, held: &HeldView) -> Why {
    let reason = code(&held.reason);
    Why {
        answer: format!("{target} is held since {}: {}: {}", held.since, held.reason, held.message),
        reason,
        advice: reason.map(|reason| advice(reason, target)).unwrap_or_default(),
        ..unknown(target, None)
    }
}

fn unknown(target: &TargetName, asked: Option<&str>) -> Why {
    let answer = match asked {
        Some(asked) => format!(
            "nothing is known of {asked}: it was never the tip of {target}'s branch while trueup looked, and never asked for"
        ),
        None => format!("no revision of {target} was seen yet: the branch was never read with success"),
    };
    Why {
        target: target.clone(),
        sha: None,
        answer,
        reason: None,
        advice: format!("`trueup status {} {}` says what the source answers", target.project, target.target),
        evidence: None,
        releases: Vec::new(),
        quarantine: None,
        ci: None,
        events: Vec::new(),
        delivery: None,
    }
}

struct Verdict {
    answer: String,
    reason: Option<Reason>,
}

fn verdict(
    status: &TargetStatus,
    sha: &Sha,
    releases: &[&ReleaseRecord],
    (quarantine, ci): (Option<&QuarantineEntry>, Option<&CiRecord>),
) -> Verdict {
    let short = sha.short();
    if let Some(live) = status.live.as_ref().filter(|live| live.revision == *sha) {
        let since = live.since.map(|since| format!(" since {since}")).unwrap_or_default();
        return Verdict { answer: format!("{short} is live as release {}{since}", live.release), reason: None };
    }
    if let Some(entry) = quarantine {
        return Verdict {
            answer: format!(
                "{short} is quarantined since {}: release {} ended because of {}: {}",
                entry.at, entry.release, entry.reason.code, entry.reason.message
            ),
            reason: Some(entry.reason.clone()),
        };
    }
    let newest = releases.first();
    if let Some((record, reason)) = newest.and_then(|record| record.phase.reason().map(|reason| (record, reason))) {
        return Verdict {
            answer: format!("release {} of {short} ended {}: {}", record.number, record.phase, reason.message),
            reason: Some(reason.clone()),
        };
    }
    if let Some(record) = newest {
        return Verdict { answer: was(status, record, short), reason: None };
    }
    let is_wanted = status.wanted.as_ref() == Some(sha);
    match &status.held {
        Some(held) if is_wanted => Verdict {
            answer: format!("{short} is held since {}: {}: {}", held.since, held.reason, held.message),
            reason: code(&held.reason).map(|code| Reason::new(code, held.message.clone())),
        },
        _ if is_wanted => Verdict { answer: ready_message(status, short), reason: None },
        _ => superseded(status, short, ci),
    }
}

fn was(status: &TargetStatus, record: &ReleaseRecord, short: &str) -> String {
    match (&record.phase, &status.live) {
        (Phase::Live, Some(live)) => format!(
            "{short} was live as release {} and was replaced by {} (release {})",
            record.number,
            live.revision.short(),
            live.release
        ),
        (phase, _) => format!("release {} of {short} is {phase}", record.number),
    }
}

fn ready_message(status: &TargetStatus, short: &str) -> String {
    let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
    match ready {
        Some(ready) => format!("{short}: {}", ready.message),
        None => format!("{short} is wanted, and the next pass takes it up"),
    }
}

fn superseded(status: &TargetStatus, short: &str, ci: Option<&CiRecord>) -> Verdict {
    let tip = status.tip.as_ref().map_or("another commit", |tip| tip.short());
    let ci = ci.map(|ci| format!("; its CI: {}", ci.message)).unwrap_or_default();
    let message = format!("{short} is not wanted: only the tip is, and that is {tip}{ci}");
    Verdict { answer: message.clone(), reason: Some(Reason::new(ReasonCode::Superseded, message)) }
}

fn code(word: &str) -> Option<ReasonCode> {
    ReasonCode::ALL.iter().copied().find(|code| code.as_str() == word)
}

/// What a person can do about a reason.
#[must_use]
pub fn advice(code: ReasonCode, target: &TargetName) -> String {
    let (project, name) = (&target.project, &target.target);
    let lift = format!("`trueup resume {project} {name}` lifts it");
    let wait = format!("`trueup status {project} {name}` says what it waits for");
    let special = [
        (ReasonCode::Paused, lift.as_str()),
        (ReasonCode::Pinned, lift.as_str()),
        (ReasonCode::NeedsApproval, "`trueup approve PLAN` or `trueup deny PLAN` decides"),
        (ReasonCode::CiPending, CI_ADVICE),
        (ReasonCode::CiMissing, CI_ADVICE),
        (ReasonCode::CiCancelled, CI_ADVICE),
        (ReasonCode::CiRed, CI_ADVICE),
        (ReasonCode::Superseded, "nothing: the newer commit is taken care of"),
        (ReasonCode::NotBuilt, "take the key out, or wait for a version that does it"),
    ];
    if let Some((_, advice)) = special.iter().find(|(known, _)| *known == code) {
        return (*advice).to_owned();
    }
    match code.fault() {
        Fault::Commit => format!(
            "push a fix or `git revert` the commit; `trueup retry {project} {name}` tries the same commit again"
        ),
        Fault::Surroundings => {
            format!("repair it; trueup tries again by itself, and `trueup retry {project} {name}` at once")
        }
        Fault::Decision => wait,
    }
}

const CI_ADVICE: &str = "look at the run; a re-run that turns green is taken up by itself";

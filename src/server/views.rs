//! What people are shown, made from the store alone: the same for a living daemon and for
//! `--offline` (ruling 27).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Fault, Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};
use crate::release::Phase;
use crate::store::record::{AuditEvent, CiRecord, Condition, JournalEntry, Pause, Pin, QuarantineEntry, ReleaseRecord};
use crate::store::{Store, StoreError};

/// Releases that a status looks back over.
const RECENT_RELEASES: u32 = 20;

/// Audit events that `why` looks through.
const RECENT_EVENTS: u32 = 500;

/// A target's state, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateWord {
    /// The wanted revision is live.
    Live,
    /// A release is under way.
    Releasing,
    /// Not now, with a reason.
    Held,
    /// A person must look.
    Stuck,
    /// Nothing was ever released.
    Empty,
    /// The registry no longer names it.
    Orphaned,
}

impl StateWord {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Releasing => "releasing",
            Self::Held => "held",
            Self::Stuck => "stuck",
            Self::Empty => "empty",
            Self::Orphaned => "orphaned",
        }
    }
}

/// One target's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetStatus {
    /// The target.
    pub target: TargetName,
    /// In one word.
    pub state: StateWord,
    /// What serves.
    pub live: Option<LiveView>,
    /// The branch's tip as last seen.
    pub tip: Option<Sha>,
    /// The tracked branch.
    pub branch: Option<String>,
    /// When the remote was last looked at with success.
    pub looked_at: Option<Timestamp>,
    /// What is wanted: the pin, or the tip.
    pub wanted: Option<Sha>,
    /// Why the wanted revision is not live.
    pub held: Option<HeldView>,
    /// A person's pause.
    pub paused: Option<Pause>,
    /// A person's pin.
    pub pin: Option<Pin>,
    /// Drift.
    pub drift: Option<DriftView>,
    /// The newest release, whatever became of it.
    pub last_release: Option<ReleaseView>,
    /// All conditions.
    pub conditions: Vec<Condition>,
}

/// What serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// Its release.
    pub release: ReleaseNumber,
    /// Its commit.
    pub revision: Sha,
    /// Its slot.
    pub slot: Option<Slot>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Its image.
    pub image_id: Option<String>,
}

/// Why not now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// The reason's word.
    pub reason: String,
    /// The reason's sentence.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// The plan that waits for a decision.
    pub plan: Option<String>,
}

/// Drift, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftView {
    /// Since when.
    pub since: Timestamp,
    /// When it was last looked at.
    pub looked_at: Timestamp,
    /// A line for each document that differs.
    pub summary: Vec<String>,
    /// The unified difference: `a` is what was released, `b` what runs.
    pub difference: String,
}

/// A release, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseView {
    /// Its number.
    pub release: ReleaseNumber,
    /// Its commit.
    pub revision: Sha,
    /// The outcome's word, or the phase's while it has none.
    pub state: String,
    /// Its slot.
    pub slot: Option<Slot>,
    /// What made it begin.
    pub trigger: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When traffic was moved.
    pub switched_at: Option<Timestamp>,
    /// When it got its outcome.
    pub ended_at: Option<Timestamp>,
    /// Why, unless it is live.
    pub reason: Option<Reason>,
}

impl From<&ReleaseRecord> for ReleaseView {
    fn from(record: &ReleaseRecord) -> Self {
        Self {
            release: record.number,
            revision: record.new.revision.clone(),
            state: record.phase.to_string(),
            slot: record.new.slot,
            trigger: record.new.trigger.clone(),
            started_at: record.new.at,
            switched_at: record.switched_at,
            ended_at: record.ended_at,
            reason: record.phase.reason().cloned(),
        }
    }
}

/// One release with its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLog {
    /// The release.
    pub release: ReleaseView,
    /// Its journal, in order.
    pub journal: Vec<JournalEntry>,
}

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
}

/// Reads one target's status.
///
/// # Errors
/// When the store cannot be read.
pub async fn status(store: &dyn Store, target: &TargetName, is_orphaned: bool) -> Result<TargetStatus, StoreError> {
    let seen = store.observed_ref(target).await?;
    let pin = store.pin(target).await?;
    let live = store.live_release(target).await?;
    let last = store.releases(target, 1).await?.into_iter().next();
    let conditions = store.conditions(target).await?;
    let tip = seen.as_ref().and_then(|seen| seen.tip.clone());
    let held = held_view(store, target, &conditions).await?;
    let drift = store.drift(target).await?.map(|found| DriftView {
        since: found.since,
        looked_at: found.looked_at,
        summary: found.summary,
        difference: found.difference,
    });
    Ok(TargetStatus {
        target: target.clone(),
        state: state_word(is_orphaned, live.as_ref(), last.as_ref(), held.is_some()),
        live: live.as_ref().map(live_view),
        wanted: pin.as_ref().map(|pin| pin.sha.clone()).or_else(|| tip.clone()),
        tip,
        branch: seen.as_ref().map(|seen| seen.branch.to_string()),
        looked_at: seen.map(|seen| seen.looked_at),
        held,
        paused: store.pause(target).await?,
        pin,
        drift,
        last_release: last.as_ref().map(ReleaseView::from),
        conditions,
    })
}

fn live_view(record: &ReleaseRecord) -> LiveView {
    LiveView {
        release: record.number,
        revision: record.new.revision.clone(),
        slot: record.new.slot,
        since: record.switched_at,
        image_id: record.image_id.clone(),
    }
}

async fn held_view(
    store: &dyn Store,
    target: &TargetName,
    conditions: &[Condition],
) -> Result<Option<HeldView>, StoreError> {
    let Some(held) = conditions.iter().find(|condition| condition.kind == "Held" && condition.is_true) else {
        return Ok(None);
    };
    let plan = if held.reason == ReasonCode::NeedsApproval.as_str() {
        store.latest_plan(target).await?.map(|plan| plan.id)
    } else {
        None
    };
    Ok(Some(HeldView { reason: held.reason.clone(), message: held.message.clone(), since: held.since, plan }))
}

fn state_word(
    is_orphaned: bool,
    live: Option<&ReleaseRecord>,
    last: Option<&ReleaseRecord>,
    is_held: bool,
) -> StateWord {
    let phase = last.map(|record| &record.phase);
    match phase {
        _ if is_orphaned => StateWord::Orphaned,
        Some(Phase::Stuck(_)) => StateWord::Stuck,
        Some(phase) if phase.outcome().is_none() => StateWord::Releasing,
        _ if is_held => StateWord::Held,
        _ if live.is_some() => StateWord::Live,
        _ => StateWord::Empty,
    }
}

/// Reads the releases of a target, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn releases(store: &dyn Store, target: &TargetName, limit: u32) -> Result<Vec<ReleaseView>, StoreError> {
    Ok(store.releases(target, limit).await?.iter().map(ReleaseView::from).collect())
}

/// Reads one release with its journal; the newest when no number is given.
///
/// # Errors
/// When the store cannot be read.
pub async fn log(
    store: &dyn Store,
    target: &TargetName,
    number: Option<ReleaseNumber>,
) -> Result<Option<ReleaseLog>, StoreError> {
    let record = match number {
        Some(number) => store.release(target, number).await?,
        None => store.releases(target, 1).await?.into_iter().next(),
    };
    let Some(record) = record else { return Ok(None) };
    let journal = store.journal_of(target, record.number).await?;
    Ok(Some(ReleaseLog { release: ReleaseView::from(&record), journal }))
}

/// Answers `why`: for a commit by a prefix of its sha (at least 7 digits), or for what is wanted now.
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
    let Some(sha) = sha else { return Ok(unknown(target, asked)) };
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
    })
}

fn find_sha(prefix: &str, status: &TargetStatus, all: &[ReleaseRecord], events: &[AuditEvent]) -> Option<Sha> {
    let releases = all.iter().map(|record| &record.new.revision);
    let known = status.tip.iter().chain(status.wanted.iter()).chain(releases);
    let audited = events.iter().filter_map(|event| event.sha.as_ref());
    (prefix.len() >= 7).then(|| known.chain(audited).find(|sha| sha.as_str().starts_with(prefix)).cloned()).flatten()
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

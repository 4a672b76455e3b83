//! Acts: each writes a person's wish, with who they are, and wakes the target's worker.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, State};
use axum::response::{Json, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

use crate::model::{Sha, TargetName};
use crate::reconcile::preview::{self, Preview};
use crate::reconcile::progress::{Progress, Told};
use crate::reconcile::queue::Wake;
use crate::server::socket::Peer;
use crate::source::{Ancestry, Look};
use crate::store::record::{Approval, AuditEvent, Pause, Pin};

use super::{Api, ApiError, known};

/// Characters of a person's note.
const NOTE_LIMIT: usize = 200;

/// The longest silence on a stream of progress before an empty line keeps it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The body of `plan`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// A commit of the tracked branch; the wanted one when absent.
    #[serde(default)]
    pub sha: Option<Sha>,
}

/// The body of `sync`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    /// A commit of the tracked branch: wanted until the branch moves on.
    #[serde(default)]
    pub sha: Option<Sha>,
}

/// The body of `pause`, `resume` and `retry`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Why, in a person's words; at most 200 characters.
    #[serde(default)]
    pub note: String,
}

/// The body of a decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Approve, or deny.
    pub is_approved: bool,
}

/// What an act answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// In one sentence.
    pub message: String,
}

type Named = Path<(String, String)>;
type From = ConnectInfo<Peer>;

pub(super) async fn plan(
    State(api): State<Api>,
    Path((project, target)): Named,
    Json(PlanRequest { sha }): Json<PlanRequest>,
) -> Result<Json<Preview>, ApiError> {
    let name = known(&api, &project, &target).await?;
    if let Some(sha) = &sha {
        on_branch(&api, &name, sha).await?;
    }
    Ok(Json(preview::preview(api.workers.ports(), &name, sha.as_ref()).await?))
}

/// Wants a release now, and streams what the pass does, a JSON object a line.
pub(super) async fn sync(
    State(api): State<Api>,
    ConnectInfo(peer): From,
    Path((project, target)): Named,
    Json(SyncRequest { sha }): Json<SyncRequest>,
) -> Result<Response, ApiError> {
    let name = known(&api, &project, &target).await?;
    if let Some(sha) = sha {
        let tip = on_branch(&api, &name, &sha).await?;
        pin(&api, &name, (sha, tip), &peer).await?;
    }
    audit(&api, &name, (&peer, "sync"), "a sync was asked for").await?;
    let watcher = api.workers.ports().teller.watch();
    let pass = api.workers.wake(&name, Wake::PERSON);
    let stream = futures_util::stream::unfold(Some(watcher), move |watcher| {
        let name = name.clone();
        async move { next_line(watcher?, &name, pass).await }
    });
    Ok(Response::new(Body::from_stream(stream)))
}

type Watcher = tokio::sync::broadcast::Receiver<Told>;
type Chunk = Result<Bytes, std::convert::Infallible>;

/// The next line for one watcher; no watcher is left after the last.
async fn next_line(mut watcher: Watcher, name: &TargetName, pass: u64) -> Option<(Chunk, Option<Watcher>)> {
    loop {
        let told = match tokio::time::timeout(KEEP_ALIVE, watcher.recv()).await {
            Err(_) => return Some((Ok(Bytes::from_static(b"\n")), Some(watcher))),
            Ok(Err(RecvError::Closed)) => return None,
            Ok(Err(RecvError::Lagged(_))) => continue,
            Ok(Ok(told)) => told,
        };
        let is_ours = told.progress.target() == name && told.pass >= pass;
        let is_news = told.progress.target() == name && !told.progress.is_last();
        if is_ours || is_news {
            let is_last = is_ours && told.progress.is_last();
            return Some((Ok(line(&told.progress)), (!is_last).then_some(watcher)));
        }
    }
}

fn line(progress: &Progress) -> Bytes {
    let mut text = serde_json::to_vec(progress).unwrap_or_default();
    text.push(b'\n');
    Bytes::from(text)
}

async fn pin(api: &Api, name: &TargetName, (sha, tip): (Sha, Sha), peer: &Peer) -> Result<(), ApiError> {
    let ports = api.workers.ports();
    if sha == tip {
        ports.store.put_pin(name, None).await?;
        return Ok(());
    }
    let pin =
        Pin { sha: sha.clone(), tip: Some(tip), by: peer.name(), at: ports.clock.now(), note: "sync --sha".to_owned() };
    ports.store.put_pin(name, Some(&pin)).await?;
    audit(api, name, (peer, "pinned"), &format!("{} is wanted until the branch moves on", sha.short())).await
}

/// Says whether `sha` is a commit of the tracked branch; gives the tip.
pub(super) async fn on_branch(api: &Api, name: &TargetName, sha: &Sha) -> Result<Sha, ApiError> {
    let ports = api.workers.ports();
    let catalog = ports.catalog.borrow().clone();
    let Some((project, policy)) = catalog.find(name) else {
        return Err(ApiError::refused(format!("{name} is no longer in the registry"), "put it back first"));
    };
    let branch = policy.branch.as_ref().unwrap_or(&project.branch);
    let unread = |error: crate::source::SourceError| {
        ApiError::unavailable(format!("{name}: {}", error.reason), "repair it and ask again")
    };
    let tip = match ports.source.look(&project.repo, branch).await.map_err(unread)? {
        Look::At(tip) => tip,
        Look::Gone => {
            let error = format!("`{branch}` does not exist in {}", project.repo);
            return Err(ApiError::refused(error, "push the branch, or change `branch` in the registry"));
        }
    };
    let foreign = || {
        ApiError::refused(
            format!("{} is not a commit of `{branch}`", sha.short()),
            "only commits that the tracked branch contains can go live",
        )
    };
    ports.source.fetch(&project.repo, branch, sha).await.map_err(|_| foreign())?;
    match ports.source.ancestry(&project.repo, branch, (sha, &tip)).await.map_err(unread)? {
        Ancestry::Ancestor => Ok(tip),
        Ancestry::Unrelated => Err(foreign()),
    }
}

pub(super) async fn pause(
    State(api): State<Api>,
    ConnectInfo(peer): From,
    Path((project, target)): Named,
    Json(Note { note }): Json<Note>,
) -> Result<Json<Done>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let ports = api.workers.ports();
    let note: String = note.chars().filter(|c| !c.is_control()).take(NOTE_LIMIT).collect();
    let pause = Pause { by: peer.name(), at: ports.clock.now(), note };
    ports.store.put_pause(&name, Some(&pause)).await?;
    audit(&api, &name, (&peer, "paused"), "releases are paused").await?;
    api.workers.wake(&name, Wake::PERSON);
    Ok(done(format!("{name} is paused: what runs keeps running, a release under way ends, no new one begins")))
}

/// Lifts a pause and a pin.
pub(super) async fn resume(
    State(api): State<Api>,
    ConnectInfo(peer): From,
    Path((project, target)): Named,
    Json(_): Json<Note>,
) -> Result<Json<Done>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let store = &api.workers.ports().store;
    let had_pause = store.pause(&name).await?.is_some();
    let had_pin = store.pin(&name).await?.is_some();
    store.put_pause(&name, None).await?;
    store.put_pin(&name, None).await?;
    let message = match (had_pause, had_pin) {
        (false, false) => format!("{name} was neither paused nor pinned"),
        (true, false) => format!("the pause of {name} is lifted"),
        (false, true) => format!("the pin of {name} is lifted: the branch's tip is wanted again"),
        (true, true) => format!("the pause and the pin of {name} are lifted"),
    };
    audit(&api, &name, (&peer, "resumed"), &message).await?;
    api.workers.wake(&name, Wake::PERSON);
    Ok(done(message))
}

/// Lets the wanted commit be tried again: lifts its quarantine, a back-off, a `stuck` (field report 56).
pub(super) async fn retry(
    State(api): State<Api>,
    ConnectInfo(peer): From,
    Path((project, target)): Named,
    Json(_): Json<Note>,
) -> Result<Json<Done>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let ports = api.workers.ports();
    let now = ports.clock.now();
    let pin = ports.store.pin(&name).await?.map(|pin| pin.sha);
    let wanted = match pin {
        Some(sha) => Some(sha),
        None => ports.store.observed_ref(&name).await?.and_then(|seen| seen.tip),
    };
    let mut lifted = Vec::new();
    if let Some(sha) = &wanted
        && ports.store.lift_quarantine(&name, sha, (&peer.name(), now)).await?
    {
        lifted.push(format!("the quarantine of {} is lifted", sha.short()));
    }
    let newest = ports.store.releases(&name, 1).await?.into_iter().next();
    if let Some(newest) = newest.filter(|newest| matches!(newest.phase, crate::release::Phase::Stuck(_))) {
        ports.store.put_retired(&name, newest.number, now).await?;
        lifted.push(format!("release {} counts as looked at", newest.number));
    }
    let message = if lifted.is_empty() {
        format!("{name} is looked at now; nothing was quarantined")
    } else {
        format!("{name}: {}", lifted.join("; "))
    };
    audit(&api, &name, (&peer, "retry"), &message).await?;
    api.workers.wake(&name, Wake::PERSON);
    Ok(done(message))
}

pub(super) async fn decide(
    State(api): State<Api>,
    ConnectInfo(peer): From,
    Path(id): Path<String>,
    Json(Decision { is_approved }): Json<Decision>,
) -> Result<Json<Done>, ApiError> {
    let ports = api.workers.ports();
    let Some(plan) = ports.store.plan(&id).await? else {
        return Err(ApiError::not_found(format!("no plan `{id}`"), "`trueup status` names the plans that wait"));
    };
    let newest = ports.store.latest_plan(&plan.target).await?;
    if is_approved && newest.as_ref().is_some_and(|newest| newest.id != plan.id) {
        let newer = newest.map(|newest| newest.id.chars().take(12).collect::<String>()).unwrap_or_default();
        return Err(ApiError::refused(
            format!("plan {} of {} is no longer what would be done", id, plan.target),
            format!("look at `trueup plan {} {}` and decide on {newer}", plan.target.project, plan.target.target),
        ));
    }
    let approval = Approval {
        target: plan.target.clone(),
        plan_hash: plan.id.clone(),
        is_approved,
        by: peer.name(),
        at: ports.clock.now(),
    };
    ports.store.put_approval(&approval).await?;
    let word = if is_approved { "approved" } else { "denied" };
    let short: String = plan.id.chars().take(12).collect();
    let message = format!("plan {short} for {} of {} is {word}", plan.revision.short(), plan.target);
    audit(&api, &plan.target, (&peer, word), &message).await?;
    api.workers.wake(&plan.target, Wake::PERSON);
    Ok(done(message))
}

fn done(message: String) -> Json<Done> {
    Json(Done { message })
}

pub(super) async fn audit(
    api: &Api,
    name: &TargetName,
    (peer, kind): (&Peer, &str),
    message: &str,
) -> Result<(), ApiError> {
    let ports = api.workers.ports();
    let event = AuditEvent {
        at: ports.clock.now(),
        target: Some(name.clone()),
        by: peer.name(),
        kind: kind.to_owned(),
        message: message.to_owned(),
        sha: None,
        release: None,
    };
    Ok(ports.store.audit(&event).await?)
}

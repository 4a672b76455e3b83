//! The route: cap → HMAC → durable row → 202, in that order.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::{any, get};
use serde::Serialize;

use super::body::{Received, Refused, drain, receive};
use super::envelope::{Envelope, Wrapping};
use super::index::Followers;
use super::judge::{Judged, Known, judge};
use super::memory::{HooksChanged, is_tracked};
use super::payload::{Payload, commit};
use super::refusals::Refusal;
use super::rules::Rules;
use super::verify::Signature;
use super::writer::{Entry, NotStored, Stored};
use super::{Webhooks, form};
use crate::model::TargetName;
use crate::store::deliveries::{DeliveryRecord, RepositoryName, TARGETS_KEPT};
use crate::store::record::Condition;

/// How long a body may take, and a refused one may go on: GitHub itself gives up after 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// Characters kept of each text of a payload.
const TEXT_KEPT: usize = 300;

/// Who cannot be served now may come again after so many seconds.
const AGAIN_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Where deliveries come in.
pub const PATH: &str = "/webhooks/github";

/// What is served without a token: deliveries, and whether we live. Nothing else.
pub fn router(webhooks: Arc<Webhooks>) -> Router {
    Router::new().route(PATH, any(deliver)).route("/healthz", get(async || "ok")).with_state(webhooks)
}

/// What the sender is told. It sees no name of ours: who may edit a hook need not know what runs here.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    ask: String,
}

/// A delivery that is turned away.
struct No {
    status: StatusCode,
    reason: &'static str,
    message: String,
}

impl No {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }
}

async fn deliver(State(webhooks): State<Arc<Webhooks>>, request: Request) -> Response {
    let rules = webhooks.rules();
    let (head, mut body) = request.into_parts();
    if rules.keys.is_empty() {
        return told(StatusCode::NOT_FOUND, "NotEnabled", "");
    }
    if head.method != Method::POST {
        let mut response = told(StatusCode::METHOD_NOT_ALLOWED, "PostOnly", "");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let envelope = Envelope::of(&head.headers);
    match take(&webhooks, (&rules, &envelope), &mut body).await {
        Ok(reason) => told(StatusCode::ACCEPTED, reason, &envelope.delivery),
        Err(no) => {
            // So that the sender reads the answer instead of a broken connection.
            let patience = webhooks.clock.sleep(PATIENCE);
            tokio::select! {
                () = drain(&mut body) => {}
                () = patience => {}
            }
            refuse(&webhooks, &envelope, no)
        }
    }
}

fn told(status: StatusCode, reason: &str, delivery: &str) -> Response {
    let ask = if delivery.is_empty() { String::new() } else { format!("trueup why {delivery}") };
    let mut response = (status, Json(Answer { reason, ask })).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, AGAIN_SECONDS);
    }
    response
}

fn refuse(webhooks: &Webhooks, envelope: &Envelope, no: No) -> Response {
    let response = told(no.status, no.reason, "");
    webhooks.refusals.note(Refusal {
        id: envelope.delivery.clone(),
        hook: envelope.hook.clone(),
        event: envelope.event.clone(),
        at: webhooks.clock.now(),
        status: no.status.as_u16(),
        message: no.message,
    });
    response
}

/// Everything up to the durable row; gives the reason's word.
async fn take(
    webhooks: &Webhooks,
    (rules, envelope): (&Rules, &Envelope),
    body: &mut Body,
) -> Result<&'static str, No> {
    if envelope.length.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > rules.cap)) {
        return Err(too_large(rules));
    }
    let Some(signature) = envelope.signature else {
        let message = "no `X-Hub-Signature-256` of the form sha256=<64 hex digits>: the hook has no secret";
        return Err(No::new(StatusCode::UNAUTHORIZED, "NotSigned", message));
    };
    let (received, slot) = verified(webhooks, (rules, &signature), body).await?;
    if envelope.delivery.is_empty() || envelope.event.is_empty() {
        let message = "signed, but without `X-GitHub-Delivery` or `X-GitHub-Event`: a proxy on the way drops headers";
        return Err(No::new(StatusCode::BAD_REQUEST, "NoHeaders", message));
    }
    let entry = decided(webhooks, envelope, (received, slot));
    let reason = judged_word(&entry.record.reason);
    match webhooks.writer.put(entry).await {
        Ok(Stored::First) => Ok(reason),
        Ok(Stored::Copy) => Ok("Copy"),
        Err(NotStored::QueueFull) => {
            Err(No::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", "too many deliveries wait for the disk"))
        }
        Err(NotStored::StoreFailed) => {
            Err(No::new(StatusCode::SERVICE_UNAVAILABLE, "NotStored", "the store could not take the delivery"))
        }
    }
}

/// What the sender learns: whether somebody was woken, or only that it was taken in.
fn judged_word(reason: &str) -> &'static str {
    match reason {
        "Woke" => "Woke",
        "Ping" => "Ping",
        _ => "Ignored",
    }
}

fn too_large(rules: &Rules) -> No {
    let message = format!("the body has more than {} bytes, see `[github] webhook_limit`", rules.cap);
    No::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
}

/// The whole body, if one of the secrets signed it.
async fn verified(
    webhooks: &Webhooks,
    (rules, signature): (&Rules, &Signature),
    body: &mut Body,
) -> Result<(Received, u8), No> {
    let mut checking = rules.keys.begin();
    let received = tokio::select! {
        received = receive(body, (rules.cap, &webhooks.budget), &mut checking) => received,
        () = webhooks.clock.sleep(PATIENCE) => {
            let message = format!("the body was not whole after {} s", PATIENCE.as_secs());
            return Err(No::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message));
        }
    };
    let received = received.map_err(|refused| match refused {
        Refused::TooLarge => too_large(rules),
        Refused::Busy => {
            No::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", "bodies in flight use up the 64 MiB that they share")
        }
        Refused::Broken => No::new(StatusCode::BAD_REQUEST, "Broken", "the sender broke off in the middle of the body"),
    })?;
    match checking.finish(signature) {
        Some(slot) => Ok((received, slot)),
        None => {
            let slots = if rules.keys.count() == 1 { "secret 1" } else { "secrets 1 and 2" };
            let message = format!(
                "the signature over {} bytes was made with another secret: tried was {slots} of `webhook_secret_files`",
                received.bytes.len()
            );
            Err(No::new(StatusCode::UNAUTHORIZED, "BadSignature", message))
        }
    }
}

/// Reads the verified payload and decides. The body is freed at the end.
fn decided(webhooks: &Webhooks, envelope: &Envelope, (received, slot): (Received, u8)) -> Entry {
    let payload = match envelope.wrapping {
        Wrapping::Json => Payload::read(&received.bytes),
        Wrapping::Form => match form::payload(&received.bytes) {
            Some(json) => Payload::read(&json),
            None => Err("the form has no readable field `payload`".to_owned()),
        },
        Wrapping::Other => Err("its content type is neither application/json nor a form".to_owned()),
    };
    let now = webhooks.clock.now();
    let index = webhooks.index();
    let mut memory = webhooks.memory.lock().unwrap_or_else(PoisonError::into_inner);
    let (payload, judged) = match payload {
        Ok(payload) => {
            let judged = judge(&envelope.event, &payload, Known { index: &index, names: &memory.names });
            (payload, judged)
        }
        Err(detail) => (Payload::default(), Judged::unreadable(&detail)),
    };
    let mut learned = Vec::new();
    for (id, name) in &judged.learned {
        if memory.names.learn(*id, name) {
            learned.push(RepositoryName { id: *id, name: name.clone(), seen_at: now });
        }
    }
    let repository = payload.repository.as_ref().and_then(|repo| repo.full_name.clone()).unwrap_or_default();
    let changed = is_tracked(judged.reason)
        .then(|| memory.saw_hook((&repository, &envelope.event), &envelope.hook, now))
        .flatten();
    drop(memory);
    let conditions = changed.map(|changed| hook_conditions(&judged, &changed, now)).unwrap_or_default();
    let record = record(envelope, (&payload, &judged), (now, slot, received.bytes.len()));
    Entry { record, followers: judged.followers, learned, conditions }
}

fn record(
    envelope: &Envelope,
    (payload, judged): (&Payload, &Judged),
    (now, secret_slot, bytes): (jiff::Timestamp, u8, usize),
) -> DeliveryRecord {
    let repository = payload.repository.as_ref();
    let run = payload.workflow_run.as_ref().map(|run| (&run.head_branch, &run.head_sha));
    let suite = payload.check_suite.as_ref().map(|suite| (&suite.head_branch, &suite.head_sha));
    let (branch, head) = run.or(suite).unwrap_or((&None, &None));
    let reference = payload.reference.clone().or_else(|| branch.as_ref().map(|name| format!("refs/heads/{name}")));
    DeliveryRecord {
        hook: envelope.hook.clone(),
        id: envelope.delivery.clone(),
        event: envelope.event.clone(),
        action: payload.action.as_deref().map(short),
        repository: repository.and_then(|repo| repo.full_name.as_deref()).map(short),
        repository_id: repository.and_then(|repo| repo.id),
        reference: reference.as_deref().map(short),
        sha: commit(payload.after.as_deref().or(head.as_deref())),
        received_at: now,
        last_at: now,
        copies: 1,
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        secret_slot,
        reason: judged.reason.to_owned(),
        message: short(&judged.message),
        woken: named(&judged.followers),
        woken_count: u32::try_from(judged.count()).unwrap_or(u32::MAX),
    }
}

fn named(followers: &[Followers]) -> Vec<TargetName> {
    followers.iter().flat_map(|group| group.iter()).take(TARGETS_KEPT).cloned().collect()
}

/// A payload's text as it is kept: on one line, and not for ever.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_KEPT).collect()
}

/// What the statuses of the woken targets say about hooks (field report 6).
fn hook_conditions(judged: &Judged, changed: &HooksChanged, now: jiff::Timestamp) -> Vec<(TargetName, Condition)> {
    let hooks = changed.hooks.iter().map(|hook| short(hook)).collect::<Vec<_>>().join(", ");
    let is_one = changed.hooks.len() < 2;
    if !is_one {
        tracing::warn!(%hooks, "{} hooks deliver the same repository: each event is worked on once, but one hook is enough", changed.hooks.len());
    }
    let condition = Condition {
        kind: "OneHook".to_owned(),
        is_true: is_one,
        reason: if is_one { "OneHook" } else { "SeveralHooks" }.to_owned(),
        message: if is_one {
            format!("hook {hooks} delivers")
        } else {
            format!("hooks {hooks} deliver the same repository: remove all but one at GitHub")
        },
        since: now,
    };
    named(&judged.followers).into_iter().map(|target| (target, condition.clone())).collect()
}

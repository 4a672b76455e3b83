//! Reads.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Json;
use serde::{Deserialize, Serialize};

use crate::model::ReleaseNumber;
use crate::reconcile::drift::{self, Look};
use crate::server::views::{self, Delivered, ReleaseLog, ReleaseView, TargetStatus, Why};

use super::{Api, ApiError, known};

/// Releases listed when nobody says how many.
const RELEASES: u32 = 20;

/// Looks in a row that may be missed before the daemon calls itself not ready (field report 36).
const MISSED_LOOKS: u64 = 3;

/// What `drift` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftAnswer {
    /// `compared`, `nothing-released` or `busy`.
    pub state: String,
    /// A line for each document that differs.
    pub summary: Vec<String>,
    /// The unified difference: `a` is what was released, `b` what runs.
    pub difference: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WhichRelease {
    release: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct About {
    about: Option<String>,
}

type Named = Path<(String, String)>;

pub(super) async fn healthz() -> &'static str {
    "ok"
}

/// Ready: every source was seen lately.
pub(super) async fn readyz(State(api): State<Api>) -> Result<(StatusCode, String), ApiError> {
    let ports = api.workers.ports();
    let now = ports.clock.now();
    let bound = ports.settings.poll_every.as_millis() * u128::from(MISSED_LOOKS);
    let names: Vec<_> = ports.catalog.borrow().targets().collect();
    let mut late = Vec::new();
    for name in names {
        let seen = ports.store.observed_ref(&name).await?;
        let is_late = seen
            .is_none_or(|seen| u128::from(crate::reconcile::millis_between(seen.looked_at, now)) > bound.max(10_000));
        if is_late {
            late.push(name.to_string());
        }
    }
    if late.is_empty() {
        return Ok((StatusCode::OK, "ready\n".to_owned()));
    }
    let text = format!("not ready: no successful look in {MISSED_LOOKS} intervals: {}\n", late.join(", "));
    Ok((StatusCode::SERVICE_UNAVAILABLE, text))
}

pub(super) async fn targets(State(api): State<Api>) -> Result<Json<Vec<TargetStatus>>, ApiError> {
    let ports = api.workers.ports();
    let mut all = Vec::new();
    for (target, is_orphaned) in ports.store.known_targets().await? {
        all.push(views::status(ports.store.as_ref(), &target, is_orphaned).await?);
    }
    Ok(Json(all))
}

pub(super) async fn target(
    State(api): State<Api>,
    Path((project, target)): Named,
) -> Result<Json<TargetStatus>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let ports = api.workers.ports();
    let is_orphaned = ports.store.known_targets().await?.contains(&(name.clone(), true));
    Ok(Json(views::status(ports.store.as_ref(), &name, is_orphaned).await?))
}

pub(super) async fn releases(
    State(api): State<Api>,
    Path((project, target)): Named,
    Query(Limit { limit }): Query<Limit>,
) -> Result<Json<Vec<ReleaseView>>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let limit = limit.unwrap_or(RELEASES).clamp(1, 1000);
    Ok(Json(views::releases(api.workers.ports().store.as_ref(), &name, limit).await?))
}

pub(super) async fn log(
    State(api): State<Api>,
    Path((project, target)): Named,
    Query(WhichRelease { release }): Query<WhichRelease>,
) -> Result<Json<ReleaseLog>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let number = release.map(ReleaseNumber);
    let found = views::log(api.workers.ports().store.as_ref(), &name, number).await?;
    found.map(Json).ok_or_else(|| match number {
        Some(number) => ApiError::not_found(
            format!("{name} has no release {number}"),
            format!("`trueup releases {} {}` lists them", name.project, name.target),
        ),
        None => ApiError::not_found(format!("{name} has no release yet"), "push a commit, or `trueup sync`"),
    })
}

pub(super) async fn why(
    State(api): State<Api>,
    Path((project, target)): Named,
    Query(About { about }): Query<About>,
) -> Result<Json<Why>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let mut why = views::why(api.workers.ports().store.as_ref(), &name, about.as_deref()).await?;
    if why.sha.is_none() && why.delivery.is_none() {
        why.delivery = about.and_then(|id| api.refusals.find(&id)).map(|refusal| views::refused(&refusal));
    }
    Ok(Json(why))
}

/// What became of a webhook delivery.
pub(super) async fn delivery(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Delivered>, ApiError> {
    let stored = views::delivery(api.workers.ports().store.as_ref(), &id).await?;
    let found = stored.or_else(|| api.refusals.find(&id).map(|refusal| views::refused(&refusal)));
    found.map(Json).ok_or_else(|| {
        ApiError::not_found(
            format!("no delivery `{id}` came in: neither taken nor refused, as far as is remembered"),
            "look at the hook's page at GitHub (Recent Deliveries): it says whether the address was reached",
        )
    })
}

/// Looks now.
pub(super) async fn drift(
    State(api): State<Api>,
    Path((project, target)): Named,
) -> Result<Json<DriftAnswer>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let look = drift::look(api.workers.ports(), &name).await?;
    let look = look.map_err(|error| {
        ApiError::unavailable(
            format!("drift of {name} cannot be looked for: {}", error.reason),
            "repair it and ask again",
        )
    })?;
    Ok(Json(match look {
        Look::NothingReleased => answer("nothing-released"),
        Look::Busy => answer("busy"),
        Look::Compared(found) => {
            DriftAnswer { summary: found.summary, difference: found.difference, ..answer("compared") }
        }
    }))
}

fn answer(state: &str) -> DriftAnswer {
    DriftAnswer { state: state.to_owned(), summary: Vec::new(), difference: String::new() }
}

//! The JSON interface over the socket: reads go to the store, acts write a wish and wake a worker.

mod acts;
mod reads;
mod rollback;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use crate::model::{ProjectName, TargetLabel, TargetName};
use crate::reconcile::ports::Halt;
use crate::reconcile::worker::{Workers, chain};
use crate::server::webhook::refusals::Refusals;
use crate::store::StoreError;

pub use acts::{Decision, Note, PlanRequest, SyncRequest};
pub use reads::DriftAnswer;
pub use rollback::{RollbackAnswer, RollbackRequest};

/// What the handlers reach.
#[derive(Clone)]
pub struct Api {
    /// The workers, and through them the effects.
    pub workers: Arc<Workers>,
    /// Webhook deliveries that were turned away.
    pub refusals: Arc<Refusals>,
}

/// All routes.
pub fn router(api: Api) -> Router {
    let target = "/api/v1/targets/{project}/{target}";
    let at = |rest: &str| format!("{target}{rest}");
    Router::new()
        .route("/healthz", get(reads::healthz))
        .route("/readyz", get(reads::readyz))
        .route("/api/v1/targets", get(reads::targets))
        .route(target, get(reads::target))
        .route(&at("/releases"), get(reads::releases))
        .route(&at("/log"), get(reads::log))
        .route(&at("/why"), get(reads::why))
        .route(&at("/drift"), get(reads::drift))
        .route(&at("/plan"), post(acts::plan))
        .route(&at("/sync"), post(acts::sync))
        .route(&at("/rollback"), post(rollback::rollback))
        .route(&at("/pause"), post(acts::pause))
        .route(&at("/resume"), post(acts::resume))
        .route(&at("/retry"), post(acts::retry))
        .route("/api/v1/deliveries/{id}", get(reads::delivery))
        .route("/api/v1/plans/{id}/decision", post(acts::decide))
        .with_state(api)
}

/// What is answered when something cannot be done: the four answers where they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What is wrong.
    pub error: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// A refusal and its status.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    refusal: Refusal,
}

impl ApiError {
    fn not_found(error: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, refusal: Refusal { error: error.into(), fix: fix.into() } }
    }

    fn refused(error: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::CONFLICT, refusal: Refusal { error: error.into(), fix: fix.into() } }
    }

    fn unavailable(error: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, refusal: Refusal { error: error.into(), fix: fix.into() } }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = %chain(&error), "the store failed");
        Self::unavailable(chain(&error), "look at the daemon's log and at the disk of the state directory")
    }
}

impl From<Halt> for ApiError {
    fn from(halt: Halt) -> Self {
        Self::unavailable(chain(&halt), "look at the daemon's log")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.refusal)).into_response()
    }
}

/// The target of a path, if the registry or the store knows it.
async fn known(api: &Api, project: &str, target: &str) -> Result<TargetName, ApiError> {
    let parsed = project.parse::<ProjectName>().ok().zip(target.parse::<TargetLabel>().ok());
    let name = parsed.map(|(project, target)| TargetName::new(project, target));
    let ports = api.workers.ports();
    if let Some(name) = &name {
        let is_registered = ports.catalog.borrow().find(name).is_some();
        if is_registered || ports.store.known_targets().await?.iter().any(|(known, _)| known == name) {
            return Ok(name.clone());
        }
    }
    let names: Vec<String> = ports.catalog.borrow().targets().map(|name| name.to_string()).collect();
    let fix = if names.is_empty() {
        "the registry is empty: put a file into projects.d".to_owned()
    } else {
        format!("the registry has {}", names.join(", "))
    };
    Err(ApiError::not_found(format!("no target `{project}/{target}`"), fix))
}

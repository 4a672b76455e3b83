//! The Deployment of a service.
//!
//! Source: `spec/hakopod-kubernetes`, section 4.

use serde_json::{Value, json};

use super::context::View;
use super::{pod, probe};
use crate::model::hakopod::Service;

/// The least time after which a rollout counts as stuck.
const LEAST_DEADLINE_SECONDS: u32 = 30;

/// How many replicas are applied: none while suspended, the running count while an autoscaler rules.
fn replicas(view: &View<'_>, name: &str, service: &Service) -> u32 {
    let running = view.context.running_replicas.get(name).copied().filter(|count| *count > 0);
    match (service.suspended, service.autoscaling, running) {
        (true, _, _) => 0,
        (false, Some(_), Some(running)) => running,
        (false, Some(_), None) | (false, None, _) => service.replicas,
    }
}

/// A recreated service starts after the old pods have ended, so their grace counts.
fn deadline_seconds(view: &View<'_>, service: &Service) -> u32 {
    let budget = probe::budget_seconds(view, service).max(LEAST_DEADLINE_SECONDS);
    if service.is_recreated() { budget.saturating_add(service.termination_grace_seconds) } else { budget }
}

pub(super) fn deployment(view: &View<'_>, name: &str, service: &Service) -> Value {
    let strategy = if service.is_recreated() {
        json!({ "type": "Recreate" })
    } else {
        json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": view.released(name, Some(name)),
        "spec": {
            "replicas": replicas(view, name, service),
            "revisionHistoryLimit": 2,
            "minReadySeconds": 2,
            "progressDeadlineSeconds": deadline_seconds(view, service),
            "strategy": strategy,
            "selector": { "matchLabels": view.names.selector(Some(name)) },
            "template": pod::template(view, name, service),
        },
    })
}

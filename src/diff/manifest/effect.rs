//! What a change of one field does to what runs.

use super::Effect;
use crate::model::hakopod::{Application, Service};

/// The effect, and the way out of a refusal.
pub(super) type Answer = (Effect, Option<&'static str>);

const NEW_VOLUME: &str = "declare a second volume with the new values, copy the data in a job, then mount that one";
const NEW_APPLICATION: &str =
    "the name is the application's identity: release the other name beside it, then remove this one";
const NEW_KIND: &str = "remove the workload in one release, and add it as the other kind in the next";

/// Fields of a service that no container sees: routes, policies, counts and order.
const OUTSIDE: [&str; 17] = [
    "public",
    "http",
    "tls",
    "backend_http2",
    "ingress_timeout_seconds",
    "custom_hostnames",
    "public_tcp",
    "replicas",
    "autoscaling",
    "update_strategy",
    "depends_on",
    "network_access",
    "private_egress",
    "registry_credential",
    "kubernetes",
    "suspended",
    "database_client_profiles",
];

/// The effect of a change at `path` of a Hakopod application.
pub(super) fn hakopod(path: &[&str], old: &Application, new: &Application) -> Answer {
    match path {
        ["name"] => (Effect::Refused, Some(NEW_APPLICATION)),
        ["volumes", _, "size_gib" | "storage_class" | "access_mode"] => (Effect::Refused, Some(NEW_VOLUME)),
        ["env" | "secrets" | "inject_env", ..] => (shared(path, old, new), None),
        ["services", _] => (Effect::Rollout, None),
        ["services", name, field, rest @ ..] => match (old.services.get(*name), new.services.get(*name)) {
            (Some(before), Some(after)) => service(field, rest, before, after),
            (None, _) | (_, None) => (Effect::Rollout, None),
        },
        _ => (Effect::None, None),
    }
}

/// Shared variables and references: the strongest effect on a service whose effective values change.
fn shared(path: &[&str], old: &Application, new: &Application) -> Effect {
    let is_secret = path.first() == Some(&"secrets");
    let touched = new.services.iter().filter_map(|(name, after)| {
        let before = old.services.get(name)?;
        let is_changed = if is_secret {
            old.effective_secrets(before) != new.effective_secrets(after)
        } else {
            old.effective_env(before) != new.effective_env(after)
        };
        is_changed.then(|| replaced(before, after))
    });
    touched.max().unwrap_or(Effect::None)
}

/// How containers of a service are replaced.
fn replaced(before: &Service, after: &Service) -> Effect {
    let is_recreated = before.is_recreated() || after.is_recreated() || after.job.is_some() || after.session.is_some();
    if is_recreated { Effect::Recreate } else { Effect::Rollout }
}

fn service(field: &str, rest: &[&str], before: &Service, after: &Service) -> Answer {
    let kind = |service: &Service| {
        let job = service.job.as_ref().map(|job| (job.schedule.is_some(), job.invocation.is_some()));
        (job, service.session.is_some())
    };
    match (field, rest) {
        ("job" | "session", _) if kind(before) != kind(after) => (Effect::Refused, Some(NEW_KIND)),
        ("volume", ["size_gib" | "storage_class"]) if before.volume.is_some() && after.volume.is_some() => {
            (Effect::Refused, Some(NEW_VOLUME))
        }
        ("restart_nonce", _) => (Effect::Restart, None),
        ("job", ["schedule", ..]) => (Effect::None, None),
        _ if OUTSIDE.contains(&field) => (Effect::None, None),
        _ => (replaced(before, after), None),
    }
}

/// The effect of a change at `path` of an `app.toml`.
pub(super) fn app(path: &[&str]) -> Answer {
    match path {
        ["project"] => (
            Effect::Refused,
            Some("the project's name is its registry file's name; register the new name and remove the old one"),
        ),
        ["smoke" | "jobs" | "preflight" | "external" | "schema", ..] => (Effect::None, None),
        ["components", _, "data" | "concurrent_safe"] | ["state", ..] => (Effect::Recreate, None),
        _ => (Effect::Rollout, None),
    }
}

//! A Hakopod application as Kubernetes objects. Pure: equal inputs give equal objects in equal order.
//!
//! Objects are dynamic values, shaped for what the server serves (ruling 50). Nothing here resolves
//! an image, reads a secret, or asks a cluster; what a cluster's settings do not offer is refused
//! here, when planned, naming the setting. Secret values never pass through: workloads name Secrets,
//! and [`Rendered::secrets`] says which keys those must hold.
//!
//! | file | what it makes |
//! |---|---|
//! | `context` | what is around an application: scope, settings, server, release |
//! | `names` | every name and label |
//! | `refuse` | what the settings or the server do not offer |
//! | `namespace`, `quota` | Namespace, ResourceQuota |
//! | `policy` | NetworkPolicies |
//! | `pod`, `container`, `probe`, `volumes`, `placement` | the pod of a workload |
//! | `deployment`, `job` | Deployment, Job, CronJob |
//! | `service`, `ingress`, `autoscaler` | Service, Ingress, HorizontalPodAutoscaler |
//! | `claim`, `files`, `secrets` | PersistentVolumeClaim, ConfigMap, the shape of Secrets |
//! | `patch` | strategic-merge patches and what they may not touch |
//! | `yaml` | the text |
//!
//! Source: `spec/hakopod-kubernetes`; rulings 1–3 and 47–54.

mod autoscaler;
mod claim;
mod container;
mod context;
mod deployment;
mod files;
mod ingress;
mod job;
mod names;
mod namespace;
mod patch;
mod placement;
mod pod;
mod policy;
mod probe;
mod quota;
mod refuse;
mod secrets;
mod service;
#[cfg(test)]
mod tests;
mod volumes;
pub mod yaml;

use serde_json::{Map, Value};

use crate::model::Problems;
use crate::model::hakopod::Application;

pub use context::{Context, NEWEST_MINOR, OLDEST_MINOR, Release, Server};
pub use names::{ANNOTATION_APPLICATION, LABEL_OWNER, LABEL_SERVICE, MANAGED_BY, namespace as namespace_name, owner};
pub use secrets::{SecretShape, SecretSource, binding_url};

use context::View;

/// The field manager of every server-side apply (ruling 49).
pub const FIELD_MANAGER: &str = "trueup";

/// One object as the API server takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The service that it belongs to; absent for what belongs to the whole application.
    pub service: Option<String>,
    /// The whole object.
    pub value: Value,
}

impl Object {
    fn text<'a>(&'a self, pointer: &str) -> &'a str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// `group/version`, or `v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// Such as `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`; empty for the Namespace itself.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }
}

/// Everything that an application needs in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The objects in the order in which they are made: what belongs to the application, then
    /// workloads in dependency order, each with its autoscaler and ingress after it.
    pub objects: Vec<Object>,
    /// The Secrets that the objects name, which are made from values at the last moment.
    pub secrets: Vec<SecretShape>,
}

/// Renders one application.
///
/// # Errors
/// Everything that the cluster's settings or its server do not offer, each naming the setting.
pub fn render(application: &Application, context: &Context<'_>) -> Result<Rendered, Problems> {
    let view = View::new(application, context);
    let mut list = refuse::problems(&view);
    let mut objects = vec![view.object(None, namespace::namespace(&view))];
    objects.extend(policy::policies(&view));
    objects.push(view.object(None, quota::quota(&view)));
    objects.extend(claim::named(&view));
    for name in application.services.keys() {
        objects.extend(around(&view, name, &mut list));
    }
    for name in application.deployment_order() {
        objects.extend(workload(&view, name, &mut list));
    }
    if list.is_empty() {
        let secrets = application.services.keys().flat_map(|name| secrets::shapes(&view, name)).collect();
        Ok(Rendered { objects, secrets })
    } else {
        Err(Problems { file: context.file.to_owned(), list })
    }
}

/// What a workload needs before it starts: its files, its own claim, its Service.
fn around(view: &View<'_>, name: &str, list: &mut Vec<crate::model::Problem>) -> Vec<Object> {
    let Some(service) = view.application.services.get(name) else { return Vec::new() };
    let patches = service.kubernetes.as_ref();
    let made = service::service(view, name, service).map(|made| {
        let text = patches.and_then(|patches| patches.service.as_deref());
        patch::apply(made, text, &view.patch_place(name, patch::Kind::Service), list)
    });
    let parts = [files::config_map(view, name, service), claim::own(view, name, service), made];
    parts.into_iter().flatten().map(|value| view.object(Some(name), value)).collect()
}

/// The workload itself, and what follows once it is ready.
fn workload(view: &View<'_>, name: &str, list: &mut Vec<crate::model::Problem>) -> Vec<Object> {
    let Some(service) = view.application.services.get(name) else { return Vec::new() };
    let patches = service.kubernetes.as_ref();
    let main = match &service.job {
        Some(job) => job::job(view, (name, service), job),
        None => {
            let made = deployment::deployment(view, name, service);
            let text = patches.and_then(|patches| patches.deployment.as_deref());
            patch::apply(made, text, &view.patch_place(name, patch::Kind::Deployment), list)
        }
    };
    let ingress = ingress::ingress(view, name, service).map(|made| {
        let text = patches.and_then(|patches| patches.ingress.as_deref());
        patch::apply(made, text, &view.patch_place(name, patch::Kind::Ingress), list)
    });
    let parts = [Some(main), autoscaler::autoscaler(view, name, service), ingress];
    parts.into_iter().flatten().map(|value| view.object(Some(name), value)).collect()
}

/// Without the members that are null: what is absent is left out, never written as `null`.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// A list, or nothing when it is empty.
fn some_of(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { Value::Array(items) }
}

/// A list of texts, or nothing when it is empty.
fn texts(items: &[String]) -> Value {
    some_of(items.iter().map(|item| Value::String(item.clone())).collect())
}

//! The containers of a pod: `app`, its sidecars, and the helper's init container.
//!
//! Source: `spec/hakopod-kubernetes`, section 4; ruling 54 for sidecars.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::View;
use super::{probe, secrets, service as ports, some_of, texts, volumes};
use crate::model::hakopod::{Profile, Service, Sidecar};

/// Ephemeral storage that every container asks for and may use.
pub(super) const EPHEMERAL_REQUEST_MIB: u32 = 16;
pub(super) const EPHEMERAL_LIMIT_MIB: u32 = 128;
/// Room for the probe helper.
pub(super) const HELPER_MIB: u32 = 40;

/// What every container is held to.
fn security(read_only_root: bool) -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "readOnlyRootFilesystem": read_only_root,
    })
}

/// Disk-backed scratch directories, in MiB, as far as they exceed what every container has anyway.
pub(super) fn scratch_mib(service: &Service) -> u32 {
    let disk = service.temporary_mounts.iter().filter(|mount| !mount.memory);
    let total = disk.fold(0_u32, |sum, mount| sum.saturating_add(mount.size_mib));
    if total > EPHEMERAL_LIMIT_MIB { total } else { 0 }
}

fn resources(profile: Profile, scratch_mib: u32, gpus: Option<u32>) -> Value {
    let gpus = gpus.map(|count| count.to_string());
    json!({
        "requests": {
            "cpu": profile.cpu_request.to_string(),
            "memory": profile.memory_request.to_string(),
            "ephemeral-storage": format!("{}Mi", EPHEMERAL_REQUEST_MIB.saturating_add(scratch_mib)),
            "nvidia.com/gpu": gpus,
        },
        "limits": {
            "cpu": profile.cpu_limit.to_string(),
            "memory": profile.memory_limit.to_string(),
            "ephemeral-storage": format!("{}Mi", EPHEMERAL_LIMIT_MIB.saturating_add(scratch_mib)),
            "nvidia.com/gpu": gpus,
        },
    })
}

/// The service's own container.
pub(super) fn app(view: &View<'_>, name: &str, service: &Service) -> Value {
    let listeners = ports::targets(service).into_iter().map(|listener| {
        json!({
            "name": listener.name,
            "containerPort": listener.target,
            "protocol": listener.protocol.as_str(),
        })
    });
    let is_job = service.job.is_some();
    json!({
        "name": "app",
        "image": view.image(&service.image),
        "imagePullPolicy": "Always",
        "command": texts(&service.command),
        "args": texts(&service.args),
        "workingDir": service.working_dir,
        "env": env(view, name, service),
        "ports": some_of(listeners.collect()),
        "resources": resources(service.profile(), scratch_mib(service), service.gpu.map(|gpu| gpu.count)),
        "startupProbe": if is_job { Value::Null } else { probe::startup(view, service) },
        "readinessProbe": if is_job { Value::Null } else { probe::readiness(service) },
        "securityContext": security(service.read_only_root_filesystem),
        "volumeMounts": some_of(volumes::mounts(view, service)),
    })
}

/// Plain variables by name, then references and bindings by name.
fn env(view: &View<'_>, name: &str, service: &Service) -> Value {
    let plain = view.application.effective_env(service);
    let secret = secrets::environment_name(view, name);
    let mut keys: Vec<String> = view.application.effective_secrets(service).into_keys().collect();
    keys.extend(service.bindings.keys().cloned());
    keys.sort();
    some_of(variables(&plain).chain(keys.iter().map(|key| reference(key, &secret, key))).collect())
}

fn variables(plain: &BTreeMap<String, String>) -> impl Iterator<Item = Value> {
    plain.iter().map(|(name, value)| json!({ "name": name, "value": value }))
}

fn reference(name: &str, secret: &str, key: &str) -> Value {
    json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } })
}

/// A further container.
pub(super) fn sidecar(view: &View<'_>, owner: (&str, &Service), sidecar: &Sidecar) -> Value {
    let (name, service) = owner;
    let secret = secrets::environment_name(view, name);
    let keys = sidecar.secrets.keys().map(|key| reference(key, &secret, &secrets::sidecar_key(&sidecar.name, key)));
    json!({
        "name": sidecar.name,
        "image": view.image(&sidecar.image),
        "imagePullPolicy": "Always",
        "command": texts(&sidecar.command),
        "args": texts(&sidecar.args),
        "workingDir": sidecar.working_dir,
        "env": some_of(variables(&sidecar.env).chain(keys).collect()),
        "resources": resources(sidecar.size.profile().with(sidecar.resources.as_ref()), 0, None),
        "securityContext": security(sidecar.read_only_root_filesystem),
        "volumeMounts": some_of(volumes::sidecar_mounts(service, sidecar)),
    })
}

/// The init container that copies the probe helper from the operator's image.
pub(super) fn helper(image: &str) -> Value {
    json!({
        "name": "install-readiness-probe",
        "image": image,
        "imagePullPolicy": "Always",
        "args": ["install", probe::HELPER_DIR],
        "resources": {
            "requests": { "cpu": "10m", "memory": "16Mi", "ephemeral-storage": format!("{HELPER_MIB}Mi") },
            "limits": { "cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi" },
        },
        "securityContext": security(true),
        "volumeMounts": [{ "name": volumes::HELPER, "mountPath": probe::HELPER_DIR }],
    })
}

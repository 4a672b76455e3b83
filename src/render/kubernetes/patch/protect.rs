//! What a patch may not touch: what the platform must be able to trust.
//!
//! Checked twice: no protected field may stand in the patch, whatever its value, and after the merge
//! everything that was generated must still be there.
//!
//! Source: rule book, section 24, the safe set; stricter where noted.

use serde_json::{Map, Value};

use super::Kind;

/// Protected in every object.
const EVERYWHERE: [&str; 3] = ["apiVersion", "kind", "status"];
/// All that may be changed of `metadata`.
const METADATA: [&str; 2] = ["labels", "annotations"];
/// Fields of a Deployment, lists without their indices. `paused`, `runtimeClassName`, `shareProcessNamespace`
/// and `volumeDevices` are our additions: they would stop a release or open the pod.
const DEPLOYMENT: [&str; 24] = [
    "spec.replicas",
    "spec.selector",
    "spec.strategy",
    "spec.paused",
    "spec.template.spec.serviceAccountName",
    "spec.template.spec.serviceAccount",
    "spec.template.spec.automountServiceAccountToken",
    "spec.template.spec.hostNetwork",
    "spec.template.spec.hostPID",
    "spec.template.spec.hostIPC",
    "spec.template.spec.hostUsers",
    "spec.template.spec.nodeName",
    "spec.template.spec.securityContext",
    "spec.template.spec.restartPolicy",
    "spec.template.spec.runtimeClassName",
    "spec.template.spec.shareProcessNamespace",
    "spec.template.spec.initContainers",
    "spec.template.spec.ephemeralContainers",
    "spec.template.spec.containers.image",
    "spec.template.spec.containers.imagePullPolicy",
    "spec.template.spec.containers.securityContext",
    "spec.template.spec.containers.ports",
    "spec.template.spec.containers.resources",
    "spec.template.spec.containers.volumeDevices",
];
const SERVICE: [&str; 10] = [
    "spec.type",
    "spec.selector",
    "spec.ports",
    "spec.externalIPs",
    "spec.externalName",
    "spec.loadBalancerIP",
    "spec.loadBalancerClass",
    "spec.loadBalancerSourceRanges",
    "spec.allocateLoadBalancerNodePorts",
    "spec.healthCheckNodePort",
];
const INGRESS: [&str; 4] = ["spec.rules", "spec.tls", "spec.ingressClassName", "spec.defaultBackend"];
/// Tables in which a directive could reach a protected field.
const NO_DIRECTIVES: [&str; 10] = [
    "",
    "metadata",
    "metadata.labels",
    "metadata.annotations",
    "spec",
    "spec.template",
    "spec.template.metadata",
    "spec.template.spec",
    "spec.template.spec.containers",
    "spec.template.spec.volumes",
];
/// Where labels and annotations are.
const KEYED: [&str; 4] =
    ["metadata.labels", "metadata.annotations", "spec.template.metadata.labels", "spec.template.metadata.annotations"];
/// What a volume may come from. Stricter than the safe set, which only names `hostPath`: the others
/// reach other machines, other claims, or a token of the API server.
const VOLUME_SOURCES: [&str; 4] = ["configMap", "downwardAPI", "emptyDir", "secret"];

/// The protected fields that a patch touches, each once.
pub(super) fn touched(kind: Kind, from: (&Value, &Value), merged: &Value) -> Vec<String> {
    let (object, patch) = from;
    let mut fields = Vec::new();
    walk(kind, patch, "", &mut fields);
    if kind == Kind::Deployment {
        fields.extend(pod_changes(object, merged));
    }
    fields.sort();
    fields.dedup();
    fields
}

fn walk(kind: Kind, value: &Value, path: &str, fields: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if is_protected(kind, path, (key, &full)) {
                    fields.push(full);
                } else {
                    walk(kind, inner, &full, fields);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(kind, item, path, fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            // Removing a whole table that holds protected fields.
            if NO_DIRECTIVES.contains(&path) || KEYED.contains(&path) {
                fields.push(path.to_owned());
            }
        }
    }
}

fn is_protected(kind: Kind, path: &str, field: (&str, &str)) -> bool {
    let (key, full) = field;
    let list: &[&str] = match kind {
        Kind::Deployment => &DEPLOYMENT,
        Kind::Service => &SERVICE,
        Kind::Ingress => &INGRESS,
    };
    let is_directive = key.starts_with('$') && (NO_DIRECTIVES.contains(&path) || KEYED.contains(&path));
    let is_metadata = path == "metadata" && !METADATA.contains(&key);
    let is_key = KEYED.contains(&path) && (is_own_key(key) || (kind == Kind::Ingress && is_edge_key(key)));
    is_directive || is_metadata || is_key || (path.is_empty() && EVERYWHERE.contains(&key)) || list.contains(&full)
}

/// Labels and annotations by which objects are known to be ours.
fn is_own_key(key: &str) -> bool {
    key == "app.kubernetes.io/managed-by"
        || key.starts_with("run.trueup.")
        || key.starts_with("hakopod.io/")
        || key == "deployment.kubernetes.io/revision"
}

/// Annotations that choose an issuer, add configuration of the controller's own, or add hosts.
fn is_edge_key(key: &str) -> bool {
    key.starts_with("cert-manager.io/")
        || key.starts_with("acme.cert-manager.io/")
        || key.contains("snippet")
        || key.contains("server-alias")
}

/// What was generated in the pod and is no longer there as it was, and what may not be added.
fn pod_changes(object: &Value, merged: &Value) -> Vec<String> {
    let pod = "/spec/template/spec";
    let list = |value: &Value, field: &str| {
        let items = value.pointer(&format!("{pod}/{field}")).and_then(Value::as_array);
        items.cloned().unwrap_or_default()
    };
    let mut fields = Vec::new();
    let (before, after) = (list(object, "containers"), list(merged, "containers"));
    if names(&before) != names(&after) {
        fields.push("spec.template.spec.containers".to_owned());
    }
    for (old, new) in before.iter().zip(&after) {
        for (field, key) in [("env", "name"), ("volumeMounts", "mountPath")] {
            if !keeps(old.get(field), new.get(field), key) {
                fields.push(format!("spec.template.spec.containers.{field}"));
            }
        }
    }
    let (before, after) = (list(object, "volumes"), list(merged, "volumes"));
    let is_added = |volume: &&Value| !before.contains(volume);
    let is_safe = |volume: &Value| {
        let sources = volume.as_object().into_iter().flat_map(Map::keys).filter(|key| *key != "name");
        sources.into_iter().all(|source| VOLUME_SOURCES.contains(&source.as_str()))
    };
    let keeps_all = before.iter().all(|volume| after.contains(volume));
    if !keeps_all || !after.iter().filter(is_added).all(is_safe) {
        fields.push("spec.template.spec.volumes".to_owned());
    }
    for rule in ["nodeAffinity", "podAffinity"] {
        let rule = format!("affinity/{rule}/requiredDuringSchedulingIgnoredDuringExecution");
        let pointer = format!("{pod}/{rule}");
        if object.pointer(&pointer).is_some_and(|set| merged.pointer(&pointer) != Some(set)) {
            fields.push(format!("spec.template.spec.{}", rule.replace('/', ".")));
        }
    }
    fields
}

fn names(containers: &[Value]) -> Vec<&Value> {
    containers.iter().filter_map(|container| container.get("name")).collect()
}

/// Whether every entry of the old list is in the new one, unchanged, and no other entry has its key.
fn keeps(old: Option<&Value>, new: Option<&Value>, key: &str) -> bool {
    let items = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let (old, new) = (items(old), items(new));
    old.iter().all(|item| {
        let same: Vec<&Value> = new.iter().filter(|other| other.get(key) == item.get(key)).collect();
        same == [item]
    })
}

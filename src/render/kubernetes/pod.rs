//! The pod of a workload.
//!
//! Source: `spec/hakopod-kubernetes`, section 4.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::View;
use super::names::{ANNOTATION_NONCE, LABEL_APPLICATION, LABEL_NETWORK};
use super::{container, names, placement, probe, some_of, volumes};
use crate::model::hakopod::Service;

/// The pod template. A new revision with an equal template restarts nothing, so nothing of a release
/// is in it.
pub(super) fn template(view: &View<'_>, name: &str, service: &Service) -> Value {
    let annotations = service.restart_nonce.as_ref().map(|nonce| json!({ ANNOTATION_NONCE: nonce }));
    json!({
        "metadata": { "labels": labels(view, name, service), "annotations": annotations },
        "spec": spec(view, name, service),
    })
}

/// Base labels, the application's name, and one label for each network and shared segment.
fn labels(view: &View<'_>, name: &str, service: &Service) -> BTreeMap<String, String> {
    let mut labels = view.names.labels(Some(name));
    let yes = || "true".to_owned();
    labels.insert(LABEL_APPLICATION.to_owned(), view.application.name.clone());
    labels.extend(service.networks.iter().map(|network| (format!("{LABEL_NETWORK}{network}"), yes())));
    labels.extend(shared_labels(view, service).into_iter().map(|label| (label, yes())));
    labels
}

/// The label of each shared segment that the service is part of.
pub(super) fn shared_labels(view: &View<'_>, service: &Service) -> Vec<String> {
    let networks = service.networks.iter().filter_map(|name| view.application.networks.get(name));
    let pairs = networks.filter_map(|network| Some((network.virtual_network.as_ref()?, network.segment.as_ref()?)));
    let mut labels: Vec<String> = pairs.map(|(network, segment)| view.names.shared_label(network, segment)).collect();
    labels.sort();
    labels.dedup();
    labels
}

fn spec(view: &View<'_>, name: &str, service: &Service) -> Value {
    let mut containers = vec![container::app(view, name, service)];
    containers.extend(service.sidecars.iter().map(|one| container::sidecar(view, (name, service), one)));
    let helper = view.context.settings.grants.probe_image.as_deref().filter(|_| probe::needs_helper(service));
    let credential = service.registry_credential.as_ref();
    json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": service.termination_grace_seconds,
        "restartPolicy": if service.job.is_some() { "Never" } else { "Always" },
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": service.run_as_user,
            "runAsGroup": service.run_as_group,
            "fsGroup": service.fs_group,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "imagePullSecrets": credential.map(|name| json!([{ "name": names::registry_credential(name) }])),
        "initContainers": helper.map(|image| json!([container::helper(image)])),
        "containers": containers,
        "volumes": some_of(volumes::volumes(view, name, service)),
        "nodeSelector": placement::node_selector(service),
        "affinity": placement::affinity(view, name, service),
        "tolerations": placement::tolerations(service),
    })
}

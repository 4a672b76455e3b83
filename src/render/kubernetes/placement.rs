//! Where pods may run.
//!
//! Source: `spec/hakopod-kubernetes`, section 4, scheduling; Hakopod TOML schema v1, placement.

use serde_json::{Value, json};

use super::context::View;
use super::names::LABEL_SERVICE;
use crate::model::hakopod::{Architecture, Service};

pub(super) fn node_selector(service: &Service) -> Value {
    service.architecture.map_or(Value::Null, |architecture| {
        let word = match architecture {
            Architecture::Amd64 => "amd64",
            Architecture::Arm64 => "arm64",
        };
        json!({ "kubernetes.io/arch": word })
    })
}

/// The named node, and the node of those that share a `ReadWriteOnce` volume.
///
/// A node is named through the scheduler, so that taints, resources and volumes still count.
pub(super) fn affinity(view: &View<'_>, name: &str, service: &Service) -> Value {
    let node = service.node_name.as_ref().map(|node| {
        let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        json!({ "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchFields": [field] }],
        }})
    });
    let groups = view.application.placement_groups();
    let group = groups.iter().find(|group| group.contains(&name));
    let together = group.map(|group| {
        json!({ "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {
                "matchLabels": view.names.selector(None),
                "matchExpressions": [{ "key": LABEL_SERVICE, "operator": "In", "values": group }],
            },
        }]})
    });
    if node.is_none() && together.is_none() {
        Value::Null
    } else {
        json!({ "nodeAffinity": node, "podAffinity": together })
    }
}

/// Nodes with GPUs keep everything else away.
pub(super) fn tolerations(service: &Service) -> Value {
    service
        .gpu
        .map_or(Value::Null, |_| json!([{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }]))
}

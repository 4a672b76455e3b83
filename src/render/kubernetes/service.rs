//! The Service of a workload that listens.
//!
//! Source: `spec/hakopod-kubernetes`, section 7. Siblings cannot reach a workload without ports by name.

use serde_json::{Value, json};

use super::context::View;
use super::ingress;
use crate::model::hakopod::{PRIMARY_PORT_NAME, PortProtocol, Service};

/// One declared port: its name, the Service's port, the container's port, the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listener<'a> {
    pub(super) name: &'a str,
    pub(super) port: u16,
    pub(super) target: u16,
    pub(super) protocol: PortProtocol,
}

/// The primary port, then the extra ones by name.
pub(super) fn listeners(service: &Service) -> Vec<Listener<'_>> {
    let primary =
        service.port.map(|port| Listener { name: PRIMARY_PORT_NAME, port, target: port, protocol: PortProtocol::Tcp });
    let extra = service.ports.iter().map(|extra| Listener {
        name: &extra.name,
        port: extra.port,
        target: extra.target_port,
        protocol: extra.protocol,
    });
    primary.into_iter().chain(extra).collect()
}

/// The listeners without those that repeat an earlier container port and transport: the server counts
/// the two as one (ruling 49).
pub(super) fn targets(service: &Service) -> Vec<Listener<'_>> {
    let mut distinct: Vec<Listener<'_>> = Vec::new();
    for listener in listeners(service) {
        let repeats = |seen: &Listener<'_>| (seen.target, seen.protocol) == (listener.target, listener.protocol);
        if !distinct.iter().any(repeats) {
            distinct.push(listener);
        }
    }
    distinct
}

/// Nothing for a workload without ports.
pub(super) fn service(view: &View<'_>, name: &str, service: &Service) -> Option<Value> {
    let ports: Vec<Value> = listeners(service)
        .into_iter()
        .map(|listener| {
            json!({
                "name": listener.name,
                "port": listener.port,
                "targetPort": listener.target,
                "protocol": listener.protocol.as_str(),
            })
        })
        .collect();
    if ports.is_empty() {
        return None;
    }
    let mut metadata = view.metadata(name, Some(name));
    let annotations = ingress::service_annotations(view, service);
    if let Some(metadata) = metadata.as_object_mut().filter(|_| !annotations.is_empty()) {
        metadata.insert("annotations".to_owned(), json!(annotations));
    }
    Some(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": { "type": "ClusterIP", "selector": view.names.selector(Some(name)), "ports": ports },
    }))
}

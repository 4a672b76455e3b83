//! Who may talk to whom: everything is denied, then each workload gets exactly what it declares.
//!
//! Lists are in the order of names, so that equal applications give equal policies.
//!
//! Source: `spec/hakopod-kubernetes`, section 10; rulings 49 and 50.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::context::View;
use super::names::{LABEL_APPLICATION, LABEL_OWNER, LABEL_SCOPE, LABEL_SERVICE};
use super::service::{Listener, targets};
use super::{Object, ingress, pod, some_of};
use crate::model::cluster::{DnsPeer, IngressDialect};
use crate::model::hakopod::{PortProtocol, Service};

/// Set by the server on every namespace since 1.21.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// What egress to the outside never reaches: private, local, metadata, multicast and reserved networks.
const NOT_OUTSIDE: [&str; 11] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
];
/// Where cert-manager's solver listens.
const SOLVER_PORT: u16 = 8089;
const DNS_PORT: u16 = 53;

/// The policies of the application: the denial first, then each workload's by name.
pub(super) fn policies(view: &View<'_>) -> Vec<Object> {
    let both = json!(["Ingress", "Egress"]);
    let deny = json!({ "podSelector": {}, "policyTypes": both });
    let mut policies = vec![view.object(None, policy(view, ("trueup-default-deny", None), deny))];
    for (name, service) in &view.application.services {
        let spec = json!({
            "podSelector": { "matchLabels": view.names.selector(Some(name)) },
            "policyTypes": both,
            "ingress": some_of(incoming(view, name, service)),
            "egress": outgoing(view, name, service),
        });
        let label = format!("trueup-service-{name}");
        policies.push(view.object(Some(name), policy(view, (&label, Some(name)), spec)));
    }
    if view.application.services.values().any(|service| ingress::issuer(view, service).is_some()) {
        let spec = json!({
            "podSelector": { "matchLabels": { "acme.cert-manager.io/http01-solver": "true" } },
            "policyTypes": ["Ingress"],
            "ingress": [{ "from": [controller(view)], "ports": [port(SOLVER_PORT, PortProtocol::Tcp)] }],
        });
        policies.push(view.object(None, policy(view, ("trueup-acme-http01", None), spec)));
    }
    policies
}

fn policy(view: &View<'_>, name: (&str, Option<&str>), spec: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": view.metadata(name.0, name.1),
        "spec": spec,
    })
}

fn port(number: u16, protocol: PortProtocol) -> Value {
    json!({ "port": number, "protocol": protocol.as_str() })
}

fn ports(listeners: &[Listener<'_>]) -> Value {
    listeners.iter().map(|listener| port(listener.target, listener.protocol)).collect()
}

/// Pods of a service of this application.
fn sibling(view: &View<'_>, name: &str) -> Value {
    json!({ "podSelector": { "matchLabels": view.names.selector(Some(name)) } })
}

/// The namespace and labels of the ingress controller's pods.
pub(super) fn controller_namespace<'a>(view: &'a View<'_>) -> &'a str {
    let settings = view.context.settings;
    settings.ingress_namespace.as_deref().unwrap_or(match settings.ingress_dialect {
        IngressDialect::Haproxy => "haproxy-controller",
        IngressDialect::Nginx => "ingress-nginx",
        IngressDialect::Traefik => "traefik",
    })
}

fn controller(view: &View<'_>) -> Value {
    let settings = view.context.settings;
    let usual = match settings.ingress_dialect {
        IngressDialect::Haproxy => "kubernetes-ingress",
        IngressDialect::Nginx => "ingress-nginx",
        IngressDialect::Traefik => "traefik",
    };
    let labels = if settings.ingress_pod_labels.is_empty() {
        json!({ "app.kubernetes.io/name": usual })
    } else {
        json!(settings.ingress_pod_labels)
    };
    json!({
        "namespaceSelector": { "matchLabels": { NAMESPACE_NAME: controller_namespace(view) } },
        "podSelector": { "matchLabels": labels },
    })
}

/// Rules for what may come in.
fn incoming(view: &View<'_>, name: &str, service: &Service) -> Vec<Value> {
    let listeners = targets(service);
    if listeners.is_empty() {
        return Vec::new();
    }
    let peers = view.application.services.keys().filter(|peer| view.application.is_peer(peer, name));
    let mut from: Vec<Value> = peers.map(|peer| sibling(view, peer)).collect();
    from.extend(remote_sources(view, service));
    let mut rules = Vec::new();
    if !from.is_empty() {
        rules.push(json!({ "from": from, "ports": ports(&listeners) }));
    }
    let public = public_targets(service);
    if !public.is_empty() {
        let ports: Vec<Value> = public.into_iter().map(|target| port(target, PortProtocol::Tcp)).collect();
        rules.push(json!({ "from": [controller(view)], "ports": ports }));
    }
    rules
}

/// Container ports that the ingress controller may reach.
fn public_targets(service: &Service) -> BTreeSet<u16> {
    let primary = service.port.filter(|_| service.public);
    let listeners = targets_by_port(service);
    let endpoints = service
        .http
        .values()
        .filter_map(|endpoint| listeners.iter().find(|(port, _)| *port == endpoint.port).map(|(_, target)| *target));
    primary.into_iter().chain(endpoints).chain(service.public_tcp.iter().map(|listener| listener.target_port)).collect()
}

/// Service port → container port of the TCP listeners.
fn targets_by_port(service: &Service) -> Vec<(u16, u16)> {
    let all = super::service::listeners(service).into_iter();
    all.filter(|listener| listener.protocol == PortProtocol::Tcp).map(|one| (one.port, one.target)).collect()
}

/// Namespaces of other applications of the same project and environment.
fn elsewhere(view: &View<'_>) -> Value {
    json!({
        "matchLabels": { LABEL_SCOPE: view.names.scope },
        "matchExpressions": [{ "key": LABEL_OWNER, "operator": "NotIn", "values": [view.names.owner] }],
    })
}

/// Peers of other applications on shared segments, narrowed where `network_access` names them.
fn remote_sources(view: &View<'_>, service: &Service) -> Vec<Value> {
    let source =
        |labels: Value| json!({ "namespaceSelector": elsewhere(view), "podSelector": { "matchLabels": labels } });
    let mut sources = Vec::new();
    for label in pod::shared_labels(view, service) {
        match &service.network_access {
            None => sources.push(source(json!({ label: "true" }))),
            Some(access) => sources.extend(access.from_applications.iter().filter_map(|peer| {
                let (application, service) = peer.split_once('/')?;
                Some(source(json!({ label.clone(): "true", LABEL_APPLICATION: application, LABEL_SERVICE: service })))
            })),
        }
    }
    sources
}

/// Rules for what may go out.
fn outgoing(view: &View<'_>, name: &str, service: &Service) -> Vec<Value> {
    let mut rules = vec![dns(view)];
    for (peer, other) in &view.application.services {
        let listeners = targets(other);
        if !listeners.is_empty() && view.application.is_peer(name, peer) {
            rules.push(json!({ "to": [sibling(view, peer)], "ports": ports(&listeners) }));
        }
    }
    rules.extend(pod::shared_labels(view, service).into_iter().map(|label| {
        let pods = json!({ "matchLabels": { label: "true" } });
        json!({ "to": [{ "namespaceSelector": elsewhere(view), "podSelector": pods }] })
    }));
    if view.application.has_external_egress(service) {
        rules.push(json!({ "to": [{ "ipBlock": { "cidr": "0.0.0.0/0", "except": NOT_OUTSIDE } }] }));
    }
    let granted =
        service.private_egress.iter().filter_map(|name| view.context.settings.grants.private_egress.get(name));
    rules.extend(granted.map(|grant| {
        let blocks: Vec<Value> = grant.cidrs.iter().map(|cidr| json!({ "ipBlock": { "cidr": cidr } })).collect();
        let ports: Vec<Value> = grant.ports.iter().map(|number| port(*number, PortProtocol::Tcp)).collect();
        json!({ "to": blocks, "ports": ports })
    }));
    rules
}

/// Who answers names.
pub(super) fn dns_peers(view: &View<'_>) -> Vec<DnsPeer> {
    let usual = || DnsPeer::Pods {
        namespace: "kube-system".to_owned(),
        labels: [("k8s-app".to_owned(), "kube-dns".to_owned())].into(),
    };
    let peers = &view.context.settings.dns_peers;
    if peers.is_empty() { vec![usual()] } else { peers.clone() }
}

fn dns(view: &View<'_>) -> Value {
    let peers = dns_peers(view).into_iter().map(|peer| match peer {
        DnsPeer::Pods { namespace, labels } => json!({
            "namespaceSelector": { "matchLabels": { NAMESPACE_NAME: namespace } },
            "podSelector": if labels.is_empty() { json!({}) } else { json!({ "matchLabels": labels }) },
        }),
        DnsPeer::Network(cidr) => json!({ "ipBlock": { "cidr": cidr } }),
    });
    let ports = [port(DNS_PORT, PortProtocol::Udp), port(DNS_PORT, PortProtocol::Tcp)];
    json!({ "to": peers.collect::<Vec<_>>(), "ports": ports })
}

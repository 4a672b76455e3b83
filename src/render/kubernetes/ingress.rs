//! The Ingress of a public service, and the one that only carries a certificate.
//!
//! Source: `spec/hakopod-kubernetes`, section 8; ruling 50 for the dialects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::View;
use super::names;
use crate::model::cluster::IngressDialect;
use crate::model::hakopod::{IssuerKind, Service};

/// The kind and name of the issuer that makes a service's certificate; none where it is uploaded or absent.
pub(super) fn issuer<'v>(view: &'v View<'_>, service: &'v Service) -> Option<(IssuerKind, &'v str)> {
    if !service.public && !is_certificate_only(service) {
        return None;
    }
    match &service.tls {
        Some(tls) => Some((tls.issuer_kind.unwrap_or(IssuerKind::ClusterIssuer), tls.issuer.as_deref()?)),
        None => Some((IssuerKind::ClusterIssuer, view.context.settings.issuer.as_deref()?)),
    }
}

/// The uploaded certificate of a service's ingress.
pub(super) fn uploaded(service: &Service) -> Option<&String> {
    service.tls.as_ref()?.certificate.as_ref()
}

/// The Secret with the certificate of a service's ingress.
pub(super) fn tls_secret(name: &str, service: &Service) -> String {
    match uploaded(service) {
        Some(certificate) => names::certificate(name, certificate),
        None => names::of_service(name, "tls", None),
    }
}

/// Whether the ingress only names a host and its certificate: the service is reached by TCP alone.
pub(super) fn is_certificate_only(service: &Service) -> bool {
    !service.public && service.certificate_mounts.iter().any(|mount| mount.source.is_some())
}

/// Every host with the service port behind it: the generated name, custom ones, then endpoints by name.
pub(super) fn hosts(view: &View<'_>, name: &str, service: &Service) -> Vec<(String, u16)> {
    let (Some(domain), Some(port)) = (view.context.settings.app_domain.as_deref(), service.port) else {
        return Vec::new();
    };
    let claimed = |host: &str| service.http.values().any(|endpoint| endpoint.domain.as_deref() == Some(host));
    let own = view.application.domains.iter().filter(|(host, to)| to.as_str() == name && !claimed(host));
    let mut hosts = vec![(view.names.host(name, None, domain), port)];
    hosts.extend(own.map(|(host, _)| (host.clone(), port)));
    for (endpoint, target) in &service.http {
        hosts.push((view.names.host(name, Some(endpoint), domain), target.port));
        hosts.extend(target.domain.iter().map(|host| (host.clone(), target.port)));
    }
    hosts
}

fn class<'a>(view: &'a View<'_>) -> &'a str {
    let settings = view.context.settings;
    settings.ingress_class.as_deref().unwrap_or(match settings.ingress_dialect {
        IngressDialect::Haproxy => "haproxy",
        IngressDialect::Nginx => "nginx",
        IngressDialect::Traefik => "traefik",
    })
}

/// Nothing for a service that is not reached from outside, or has no name there.
pub(super) fn ingress(view: &View<'_>, name: &str, service: &Service) -> Option<Value> {
    let only_certificate = is_certificate_only(service);
    if !service.public && !only_certificate {
        return None;
    }
    let mut hosts = hosts(view, name, service);
    if only_certificate {
        hosts.truncate(1);
    }
    let rules: Vec<Value> = hosts.iter().map(|host| rule(name, host, only_certificate)).collect();
    let names: Vec<&str> = hosts.iter().map(|(host, _)| host.as_str()).collect();
    let has_tls = uploaded(service).is_some() || issuer(view, service).is_some();
    let annotations = annotations(view, service, has_tls);
    let mut metadata = view.metadata(name, Some(name));
    if let Some(metadata) = metadata.as_object_mut().filter(|_| !annotations.is_empty()) {
        metadata.insert("annotations".to_owned(), json!(annotations));
    }
    (!rules.is_empty()).then(|| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": metadata,
            "spec": {
                "ingressClassName": class(view),
                "rules": rules,
                "tls": has_tls.then(|| json!([{ "hosts": names, "secretName": tls_secret(name, service) }])),
            },
        })
    })
}

fn rule(service: &str, host: &(String, u16), only_certificate: bool) -> Value {
    let (host, port) = host;
    if only_certificate {
        return json!({ "host": host });
    }
    let backend = json!({ "service": { "name": service, "port": { "number": port } } });
    json!({ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } })
}

fn annotations(view: &View<'_>, service: &Service, has_tls: bool) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        annotations.insert(key.to_owned(), value);
    };
    match issuer(view, service) {
        Some((IssuerKind::ClusterIssuer, issuer)) => set("cert-manager.io/cluster-issuer", issuer.to_owned()),
        Some((IssuerKind::Issuer, issuer)) => set("cert-manager.io/issuer", issuer.to_owned()),
        None => {}
    }
    let timeout = service.ingress_timeout_seconds;
    match view.context.settings.ingress_dialect {
        IngressDialect::Haproxy => {
            if let Some(seconds) = timeout {
                set("haproxy.org/timeout-server", format!("{seconds}s"));
            }
            if service.backend_http2 {
                set("haproxy.org/server-proto", "h2".to_owned());
            }
            if has_tls {
                set("haproxy.org/ssl-redirect", "true".to_owned());
            }
        }
        IngressDialect::Nginx => {
            if let Some(seconds) = timeout {
                set("nginx.ingress.kubernetes.io/proxy-read-timeout", seconds.to_string());
                set("nginx.ingress.kubernetes.io/proxy-send-timeout", seconds.to_string());
            }
            if service.backend_http2 {
                set("nginx.ingress.kubernetes.io/backend-protocol", "GRPC".to_owned());
            }
            if has_tls {
                set("nginx.ingress.kubernetes.io/ssl-redirect", "true".to_owned());
            }
        }
        IngressDialect::Traefik => {
            if has_tls {
                set("traefik.ingress.kubernetes.io/router.entrypoints", "websecure".to_owned());
                set("traefik.ingress.kubernetes.io/router.tls", "true".to_owned());
            }
        }
    }
    annotations
}

/// What the dialect wants on the Service: Traefik reads there how it is spoken to.
pub(super) fn service_annotations(view: &View<'_>, service: &Service) -> BTreeMap<String, String> {
    match view.context.settings.ingress_dialect {
        IngressDialect::Traefik if service.backend_http2 => {
            [("traefik.ingress.kubernetes.io/service.serversscheme".to_owned(), "h2c".to_owned())].into()
        }
        IngressDialect::Haproxy | IngressDialect::Nginx | IngressDialect::Traefik => BTreeMap::new(),
    }
}

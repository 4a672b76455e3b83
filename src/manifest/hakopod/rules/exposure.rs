//! Sections 5 and 24: domains, HTTP endpoints, certificates, tenant host names, patches.

use std::collections::BTreeMap;

use super::super::form::{is_hostname, is_name, is_resource_name};
use super::super::raw::RawKubernetes;
use super::counts::too_many;
use super::{App, One};

/// What is said of every text that is not a host name.
pub(super) const HOSTNAME: &str = "host names are lower-case DNS names of at most 244 bytes with a dot, without \
                                   wildcard, scheme, port, path or underscore, and no IP address";
/// What to do about it.
pub(super) const HOSTNAME_FIX: &str = "write for example \"shop.example.com\"";
const RESOURCE_NAME: &str = "such names match ^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$";
const RESOURCE_NAME_FIX: &str = "use 1 to 63 lower-case letters, digits or hyphens, no hyphen at the ends";
/// The longest patch, in bytes.
const MAX_PATCH: usize = 16384;

pub(super) fn domains(app: &App<'_>) {
    let path = app.at("domains");
    too_many(app, &path, app.raw.domains.len(), 20);
    for (host, service) in &app.raw.domains {
        let path = path.key(host);
        if !is_hostname(host) {
            app.refuse_key(path.clone(), "is not a host name", HOSTNAME, HOSTNAME_FIX);
        }
        let is_reachable = app.one(service).is_some_and(|one| one.is_public() && one.has_port());
        if !is_reachable {
            app.refuse(
                path,
                "must name a public service with a port",
                "the host name is routed to that service's HTTP port",
                "name a declared service that has `public = true` and a `port`",
            );
        }
    }
}

/// Whether the service is public with a port, as several fields need.
fn needs_public(one: &One<'_>, field: &str) {
    if !one.is_public() || !one.has_port() {
        one.refuse(
            field,
            "needs `public = true` and a `port`",
            "it is about the service's HTTP ingress",
            "make the service public, or remove it",
        );
    }
}

pub(super) fn tls(one: &One<'_>) {
    let Some(tls) = &one.raw.tls else { return };
    let path = one.at("tls");
    if !one.is_public() {
        one.refuse("tls", "needs `public = true`", "only an ingress has a certificate", "remove it");
    }
    if tls.certificate.is_empty() == tls.issuer.is_empty() {
        one.refuse(
            "tls",
            "must have exactly one of `certificate` and `issuer`",
            "a certificate is either uploaded or issued",
            "name one of the two",
        );
    }
    for (field, text) in [("certificate", &tls.certificate), ("issuer", &tls.issuer)] {
        if !text.is_empty() && !is_resource_name(text) {
            one.app.refuse(path.key(field), "is not the name of an object", RESOURCE_NAME, RESOURCE_NAME_FIX);
        }
    }
    if !matches!(tls.issuer_kind.as_str(), "" | "ClusterIssuer" | "Issuer") {
        one.app.refuse(
            path.key("issuer_kind"),
            "must be \"ClusterIssuer\" or \"Issuer\"",
            "these are cert-manager's two kinds, in this letter case",
            "write one of the two, or leave it out for \"ClusterIssuer\"",
        );
    } else if !tls.issuer_kind.is_empty() && tls.issuer.is_empty() {
        one.app.refuse(
            path.key("issuer_kind"),
            "is only for `issuer`",
            "an uploaded certificate has no issuer",
            "remove it",
        );
    }
}

pub(super) fn backend_http2(one: &One<'_>) {
    if !one.raw.backend_http2 {
        return;
    }
    needs_public(one, "backend_http2");
    if one.raw.serverless.is_some() || !one.raw.http.is_empty() {
        one.refuse(
            "backend_http2",
            "is refused with `serverless` and with `http` endpoints",
            "their ways in speak HTTP/1.1 to the service",
            "remove one of the two",
        );
    }
}

pub(super) fn ingress_timeout(one: &One<'_>) {
    let value = one.raw.ingress_timeout_seconds;
    if value == 0 {
        return;
    }
    one.range(one.at("ingress_timeout_seconds"), value, 5..=3600);
    needs_public(one, "ingress_timeout_seconds");
    if one.raw.serverless.is_some() {
        one.refuse(
            "ingress_timeout_seconds",
            "is refused with `serverless`",
            "there the time of a request is bounded by the activation gateway",
            "use `serverless.request_timeout_seconds`",
        );
    }
}

pub(super) fn custom_hostnames(one: &One<'_>) {
    let Some(table) = &one.raw.custom_hostnames else { return };
    let path = one.at("custom_hostnames");
    one.range(path.key("max"), table.max, 1..=50_000);
    if !table.target.is_empty() && !is_hostname(&table.target) {
        one.app.refuse(path.key("target"), "is not a host name", HOSTNAME, HOSTNAME_FIX);
    }
    if !one.raw.is_job() && one.raw.session.is_none() {
        needs_public(one, "custom_hostnames");
    }
}

pub(super) fn kubernetes(one: &One<'_>) {
    let RawKubernetes { deployment, service, ingress } = &one.raw.kubernetes;
    let path = one.at("kubernetes");
    for (field, patch) in [("deployment", deployment), ("service", service), ("ingress", ingress)] {
        if patch.len() > MAX_PATCH {
            one.app.refuse(
                path.key(field),
                format!("must be at most {MAX_PATCH} bytes"),
                "a patch changes single fields",
                "shorten it",
            );
        }
    }
    if !service.is_empty() && !one.has_port() && one.raw.ports.is_empty() {
        one.app.refuse(path.key("service"), "needs a port", "without ports there is no Service to patch", "remove it");
    }
    if !ingress.is_empty() && (!one.is_public() || !one.has_port()) {
        one.app.refuse(
            path.key("ingress"),
            "needs `public = true` and a `port`",
            "without them there is no Ingress to patch",
            "remove it",
        );
    }
}

pub(super) fn http(one: &One<'_>) {
    if one.raw.http.is_empty() {
        return;
    }
    let table = one.at("http");
    too_many(one.app, &table, one.raw.http.len(), 4);
    if !one.is_public() {
        one.refuse("http", "needs `public = true`", "endpoints add to the service's ingress", "remove the table");
    }
    let mut domains: Vec<&str> = Vec::new();
    for (key, endpoint) in &one.raw.http {
        let path = table.key(key);
        if !is_name(key) || key.len() > 8 {
            one.app.refuse_key(
                path.clone(),
                "is not an endpoint's name",
                "endpoint names are names of at most 8 bytes, since they become part of a host name",
                "choose a short lower-case name",
            );
        }
        if !one.tcp_service_ports().contains(&endpoint.port) {
            one.app.refuse(
                path.key("port"),
                "must be the port of a declared TCP port",
                "it is the service's port, not the target port, that the ingress connects to",
                "write `port` or one of `ports[].port` with protocol TCP",
            );
        }
        if endpoint.domain.is_empty() {
            continue;
        }
        let domain = endpoint.domain.as_str();
        if !is_hostname(domain) {
            one.app.refuse(path.key("domain"), "is not a host name", HOSTNAME, HOSTNAME_FIX);
        } else if one.app.raw.domains.get(domain).is_none_or(|service| service != one.name) {
            one.app.refuse(
                path.key("domain"),
                "must be mapped to this service in `domains`",
                "the domain is the application's before it is an endpoint's",
                "add it to [domains] with this service's name",
            );
        }
        if domains.contains(&domain) {
            one.app.refuse(
                path.key("domain"),
                "is the domain of another endpoint too",
                "one host name leads to one endpoint",
                "use another domain, or leave it out",
            );
        }
        domains.push(domain);
    }
}

pub(super) fn http_names(app: &App<'_>) {
    let mut generated: BTreeMap<String, usize> = BTreeMap::new();
    app.each(|one| {
        for key in one.raw.http.keys() {
            *generated.entry(format!("{}-{key}", one.name)).or_default() += 1;
        }
    });
    app.each(|one| {
        for key in one.raw.http.keys() {
            let name = format!("{}-{key}", one.name);
            if app.services.contains_key(&name) || generated.get(&name).is_some_and(|count| *count > 1) {
                app.refuse_key(
                    one.at("http").key(key),
                    "makes a name that is already taken",
                    "`<service>-<endpoint>` becomes a host name, and services have such names too",
                    "rename the endpoint",
                );
            }
        }
    });
}

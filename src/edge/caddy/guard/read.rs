//! Looks into Caddy's JSON.

use serde_json::Value;

use super::Hosts;
use super::canonical::canonical_route;

/// Every host that a configuration serves.
pub(in crate::edge::caddy) fn hosts(config: &Value) -> Hosts {
    servers(config).flat_map(|(_, server)| routes(server)).filter_map(route_hosts).flatten().collect()
}

/// The routes of some hosts, for asking whether one vhost's text is what runs.
pub(in crate::edge::caddy) fn routes_of(config: &Value, ours: &Hosts) -> Vec<Value> {
    let mine = |route: &&Value| route_hosts(route).is_some_and(|hosts| !hosts.is_disjoint(ours));
    let mut found: Vec<Value> =
        servers(config).flat_map(|(_, server)| routes(server)).filter(mine).map(canonical_route).collect();
    found.sort_by_key(Value::to_string);
    found
}

/// The servers of the `http` app, by Caddy's own name.
pub(in crate::edge::caddy) fn servers(config: &Value) -> impl Iterator<Item = (&String, &Value)> {
    config.pointer("/apps/http/servers").and_then(Value::as_object).into_iter().flatten()
}

/// A server's listeners as Caddy writes them.
pub(in crate::edge::caddy) fn listeners(server: &Value) -> impl Iterator<Item = &str> {
    strings(server.get("listen"))
}

/// A server's top-level routes.
pub(in crate::edge::caddy) fn routes(server: &Value) -> impl Iterator<Item = &Value> {
    server.get("routes").and_then(Value::as_array).into_iter().flatten()
}

/// The hosts that a route asks for; none when it takes any host.
pub(in crate::edge::caddy) fn route_hosts(route: &Value) -> Option<Hosts> {
    let sets = route.get("match").and_then(Value::as_array)?;
    let mut hosts = Hosts::new();
    for set in sets {
        hosts.extend(strings(Some(set.get("host")?)).map(str::to_ascii_lowercase));
    }
    if hosts.is_empty() { None } else { Some(hosts) }
}

/// The strings of an array.
pub(in crate::edge::caddy) fn strings(array: Option<&Value>) -> impl Iterator<Item = &str> {
    array.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The file of one loaded certificate.
pub(super) fn certificate_of(file: &Value) -> Option<&str> {
    file.get("certificate").and_then(Value::as_str)
}

/// The file of a certificate that carries this tag.
pub(in crate::edge::caddy) fn certificate_file<'config>(config: &'config Value, tag: &str) -> Option<&'config str> {
    let files = config.pointer("/apps/tls/certificates/load_files").and_then(Value::as_array)?;
    files.iter().find(|file| strings(file.get("tags")).any(|known| known == tag)).and_then(certificate_of)
}

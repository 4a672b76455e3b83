//! How to reach a host through this Caddy, read out of the running configuration. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde_json::Value;

use super::guard::{certificate_file, listeners, route_hosts, routes, servers, strings};

/// Where and how a host is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    /// Where Caddy listens.
    pub(super) socket: SocketAddr,
    /// Whether with TLS, and with which certificate.
    pub(super) tls: ServedTls,
}

/// The certificate of a served host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServedTls {
    /// Plain HTTP.
    Off,
    /// From one of Caddy's own authorities, by id.
    Internal(String),
    /// From this PEM file.
    File(String),
    /// From a public authority.
    Public,
}

/// Finds the listener of a host, TLS first; none when nobody serves it.
pub(super) fn served(config: &Value, host: &str) -> Option<Served> {
    let host = host.to_ascii_lowercase();
    let mut found: Vec<Served> = servers(config)
        .filter(|(_, server)| routes(server).any(|route| takes(route, &host)))
        .filter_map(|(_, server)| {
            let socket = listeners(server).find_map(socket)?;
            Some(Served { socket, tls: tls(config, server, socket.port(), &host) })
        })
        .collect();
    found.sort_by_key(|served| served.tls == ServedTls::Off);
    found.into_iter().next()
}

fn takes(route: &Value, host: &str) -> bool {
    route_hosts(route).is_some_and(|hosts| hosts.iter().any(|name| matches(name, host)))
}

/// Exactly, or one label for a leading `*`.
fn matches(name: &str, host: &str) -> bool {
    let wild = name
        .strip_prefix('*')
        .is_some_and(|ending| host.split_once('.').is_some_and(|(_, rest)| ending.strip_prefix('.') == Some(rest)));
    name == host || wild
}

/// `:443`, `0.0.0.0:443` and `[::]:443` are asked on loopback; of a range the first port.
fn socket(listener: &str) -> Option<SocketAddr> {
    let address = match listener.split_once('/') {
        Some(("tcp" | "tcp4" | "tcp6", rest)) => rest,
        Some(_) => return None,
        None => listener,
    };
    let (host, ports) = address.rsplit_once(':')?;
    let port = ports.split('-').next()?.parse().ok()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = match host {
        "" | "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.parse().ok()?,
    };
    let ip = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(_) | IpAddr::V6(_) => ip,
    };
    Some(SocketAddr::new(ip, port))
}

fn tls(config: &Value, server: &Value, port: u16, host: &str) -> ServedTls {
    let http_port = config.pointer("/apps/http/http_port").and_then(Value::as_u64).unwrap_or(80);
    let policies = || server.get("tls_connection_policies").and_then(Value::as_array).into_iter().flatten();
    let is_off = server.pointer("/automatic_https/disable").and_then(Value::as_bool) == Some(true);
    let is_skipped = strings(server.pointer("/automatic_https/skip")).any(|name| name == host);
    let is_plain = u64::from(port) == http_port || is_off || is_skipped;
    if is_plain && policies().next().is_none() {
        return ServedTls::Off;
    }
    let by_tag = policies()
        .filter(|policy| strings(policy.pointer("/match/sni")).any(|name| matches(name, host)))
        .flat_map(|policy| strings(policy.pointer("/certificate_selection/any_tag")))
        .find_map(|tag| certificate_file(config, tag));
    if let Some(file) = by_tag {
        return ServedTls::File(file.to_owned());
    }
    match issuer(config, host) {
        Some(issuer) if issuer.get("module").and_then(Value::as_str) == Some("internal") => {
            ServedTls::Internal(issuer.get("ca").and_then(Value::as_str).unwrap_or("local").to_owned())
        }
        None if is_private(host) => ServedTls::Internal("local".to_owned()),
        Some(_) | None => ServedTls::Public,
    }
}

/// The first issuer of the policy for this host; its own policy goes before the one for every host.
fn issuer<'config>(config: &'config Value, host: &str) -> Option<&'config Value> {
    let policies = || config.pointer("/apps/tls/automation/policies").and_then(Value::as_array).into_iter().flatten();
    let own = policies().find(|policy| strings(policy.get("subjects")).any(|name| matches(name, host)));
    let policy = own.or_else(|| policies().find(|policy| policy.get("subjects").is_none()))?;
    policy.get("issuers").and_then(Value::as_array).and_then(|issuers| issuers.first())
}

/// Names for which no public authority signs; Caddy uses its own for them.
fn is_private(host: &str) -> bool {
    let is_below = |zone: &str| host == zone || host.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'));
    ["localhost", "local", "internal", "home.arpa"].into_iter().any(is_below) || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn listeners_are_asked_on_this_machine() {
        for (listener, asked) in [
            (":443", Some("127.0.0.1:443")),
            ("0.0.0.0:80", Some("127.0.0.1:80")),
            ("[::]:443", Some("[::1]:443")),
            ("192.0.2.7:8443", Some("192.0.2.7:8443")),
            ("tcp/127.0.0.1:8000-8010", Some("127.0.0.1:8000")),
            ("udp/:443", None),
            ("unix//run/x.sock", None),
        ] {
            assert_eq!(socket(listener), asked.map(|text| text.parse().unwrap()), "{listener}");
        }
    }

    #[test]
    fn a_wildcard_takes_one_label() {
        assert!(matches("*.example.org", "a.example.org"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", "example.org"));
    }

    #[test]
    fn a_host_with_both_listeners_is_asked_with_tls() {
        let route = json!([{ "match": [{ "host": ["a.example.org"] }] }]);
        let config = json!({ "apps": { "http": { "servers": {
            "srv0": { "listen": [":80"], "routes": route },
            "srv1": { "listen": ["192.0.2.7:443"], "routes": route },
        } } } });
        let found = served(&config, "A.example.org").unwrap();
        assert_eq!(found, Served { socket: "192.0.2.7:443".parse().unwrap(), tls: ServedTls::Public });
        assert_eq!(served(&config, "b.example.org"), None);
    }
}

//! Sections 4, 5.7 and the listener part of 12: ports, public TCP, readiness.

use std::collections::BTreeSet;

use super::super::form::{is_clean_absolute, is_hostname, is_port_name, masked_cidr};
use super::super::raw::RawPort;
use super::counts::too_many;
use super::exposure::{HOSTNAME, HOSTNAME_FIX};
use super::{App, One};
use crate::model::document::KeyPath;
use crate::model::hakopod::PRIMARY_PORT_NAME;

/// Outside ports that belong to the platform.
const PLATFORM_PORTS: [i32; 13] = [22, 53, 80, 443, 1024, 1042, 2379, 2380, 6060, 6443, 8080, 8443, 10250];
const PORTS: std::ops::RangeInclusive<i64> = 1..=65535;
const MAX_LISTENERS: usize = 64;

impl RawPort {
    /// Upper case, `TCP` when empty.
    pub(in super::super) fn transport(&self) -> String {
        if self.protocol.is_empty() { "TCP".to_owned() } else { self.protocol.to_ascii_uppercase() }
    }

    fn target(&self) -> i32 {
        if self.target_port == 0 { self.port } else { self.target_port }
    }
}

impl One<'_> {
    /// Service ports with TCP, the primary one included.
    pub(super) fn tcp_service_ports(&self) -> Vec<i32> {
        let extra = self.raw.ports.iter().filter(|port| port.transport() == "TCP").map(|port| port.port);
        extra.chain((self.raw.port != 0).then_some(self.raw.port)).collect()
    }

    /// Target ports with TCP, the primary one included.
    fn tcp_target_ports(&self) -> Vec<i32> {
        let extra = self.raw.ports.iter().filter(|port| port.transport() == "TCP").map(RawPort::target);
        extra.chain((self.raw.port != 0).then_some(self.raw.port)).collect()
    }
}

pub(super) fn primary(one: &One<'_>) {
    one.range(one.at("port"), i64::from(one.raw.port), PORTS);
}

pub(super) fn public(one: &One<'_>) {
    if one.raw.public && !one.has_port() {
        one.refuse("public", "needs a `port`", "the ingress connects to it", "add `port`, or remove `public`");
    }
}

pub(super) fn extra(one: &One<'_>) {
    let table = one.at("ports");
    too_many(one.app, &table, one.raw.ports.len(), 15);
    let has_primary = one.raw.port != 0;
    let mut names: BTreeSet<&str> = has_primary.then_some(PRIMARY_PORT_NAME).into_iter().collect();
    let mut taken: BTreeSet<(String, i32)> =
        has_primary.then(|| ("TCP".to_owned(), one.raw.port)).into_iter().collect();
    for (index, port) in one.raw.ports.iter().enumerate() {
        let path = table.index(index);
        let transport = port.transport();
        if !matches!(transport.as_str(), "TCP" | "UDP") {
            one.app.refuse(
                path.key("protocol"),
                "must be TCP or UDP",
                "no other transport is routed",
                "write one of the two",
            );
        }
        one.needed(path.key("port"), i64::from(port.port), PORTS);
        one.range(path.key("target_port"), i64::from(port.target_port), PORTS);
        if !is_port_name(&port.name) {
            one.app.refuse(
                path.key("name"),
                "is not a port's name",
                "port names have 1 to 15 bytes of [a-z0-9-] with a letter, no hyphen at the ends and no `--`",
                "write for example \"metrics\"",
            );
        } else if !names.insert(&port.name) {
            one.app.refuse(
                path.key("name"),
                "is the name of another port too",
                "port names are unique in a service, and `service` is the name of the primary port",
                "choose another name",
            );
        }
        if port.port != 0 && !taken.insert((transport, port.port)) {
            one.app.refuse(
                path.key("port"),
                "is taken by another port with this protocol",
                "a service answers once on each number and protocol, the primary TCP port included",
                "choose another number",
            );
        }
    }
}

pub(super) fn public_tcp(one: &One<'_>) {
    let listeners = &one.raw.public_tcp;
    if listeners.is_empty() {
        return;
    }
    let table = one.at("public_tcp");
    too_many(one.app, &table, listeners.len(), 16);
    if !one.has_port() {
        one.refuse("public_tcp", "needs a primary `port`", "the service needs an address inside first", "add `port`");
    }
    let targets = one.tcp_target_ports();
    for (index, listener) in listeners.iter().enumerate() {
        let path = table.index(index);
        one.needed(path.key("port"), i64::from(listener.port), PORTS);
        if PLATFORM_PORTS.contains(&listener.port) {
            one.app.refuse(
                path.key("port"),
                "is one of the platform's ports",
                "the platform itself, its ingress or its nodes listen there",
                "choose another outside port",
            );
        }
        if targets.iter().filter(|target| **target == listener.target_port).count() != 1 {
            one.app.refuse(
                path.key("target_port"),
                "must be the target port of exactly one declared TCP port",
                "the listener leads to one listener in the container, and there is no default",
                "write the container port of `port` or of one entry of `ports`",
            );
        } else if one.raw.public && listener.target_port == one.raw.port {
            one.app.refuse(
                path.key("target_port"),
                "is the port that `public` gives to HTTP",
                "one listener has one way in",
                "use another port, or remove `public`",
            );
        }
        cidrs(one, &path.key("source_cidrs"), &listener.source_cidrs);
    }
}

fn cidrs(one: &One<'_>, path: &KeyPath, cidrs: &[String]) {
    if cidrs.is_empty() || cidrs.len() > 16 {
        one.app.refuse(
            path.clone(),
            "must have 1 to 16 entries",
            "a public listener says who may connect",
            "list networks, or [\"0.0.0.0/0\"] for everybody",
        );
    }
    let mut seen = BTreeSet::new();
    for (index, cidr) in cidrs.iter().enumerate() {
        match masked_cidr(cidr) {
            None => one.app.refuse(
                path.index(index),
                "is not an IPv4 network",
                "networks are written as four plain numbers, `/` and a prefix length of 0 to 32",
                "write for example \"192.0.2.0/24\"",
            ),
            Some(masked) if !seen.insert(masked.clone()) => {
                one.app.refuse(
                    path.index(index),
                    "is repeated",
                    "it is the same network as an earlier one",
                    "remove it",
                );
            }
            Some(_) => {}
        }
    }
}

pub(super) fn public_tcp_unique(app: &App<'_>) {
    let mut seen: BTreeSet<i32> = BTreeSet::new();
    let mut count = 0_usize;
    app.each(|one| {
        for (index, listener) in one.raw.public_tcp.iter().enumerate() {
            count = count.saturating_add(1);
            if listener.port != 0 && !seen.insert(listener.port) {
                app.refuse(
                    one.at("public_tcp").index(index).key("port"),
                    "is the outside port of another listener too",
                    "an outside port leads to one service",
                    "choose another port",
                );
            }
        }
    });
    too_many(app, &app.at("services"), count.saturating_sub(MAX_LISTENERS).min(1).saturating_mul(count), MAX_LISTENERS);
}

pub(super) fn readiness(one: &One<'_>) {
    let Some(check) = &one.raw.readiness else { return };
    let path = one.at("readiness");
    let protocol = check.protocol.as_str();
    if !matches!(protocol, "tcp" | "smtp" | "smtp_starttls") {
        one.app.refuse(
            path.key("protocol"),
            "must be \"tcp\", \"smtp\" or \"smtp_starttls\"",
            "these are the checks that exist",
            "write one of them",
        );
    }
    if !one.tcp_target_ports().contains(&check.port) {
        one.app.refuse(
            path.key("port"),
            "must be the target port of a declared TCP port",
            "the check connects to the container",
            "write the container port of `port` or of one entry of `ports`",
        );
    }
    one.range(path.key("period_seconds"), i64::from(check.period_seconds), 3..=60);
    one.range(path.key("timeout_seconds"), i64::from(check.timeout_seconds), 1..=10);
    one.range(path.key("failure_threshold"), i64::from(check.failure_threshold), 1..=10);
    let period = if check.period_seconds == 0 { 5 } else { check.period_seconds };
    let timeout = if check.timeout_seconds == 0 { 3 } else { check.timeout_seconds };
    if timeout >= period && (3..=60).contains(&period) && (1..=10).contains(&timeout) {
        one.app.refuse(
            path.key("timeout_seconds"),
            "must be less than `period_seconds`",
            "a check ends before the next one begins; the defaults are 3 of 5 seconds",
            "choose a shorter timeout or a longer period",
        );
    }
    tls_of_readiness(one, &path);
}

fn tls_of_readiness(one: &One<'_>, path: &KeyPath) {
    let Some(check) = &one.raw.readiness else { return };
    if check.protocol == "smtp_starttls" {
        if !is_hostname(&check.tls_server_name) {
            one.app.refuse(path.key("tls_server_name"), "must be a host name", HOSTNAME, HOSTNAME_FIX);
        }
        if !check.tls_ca_file.is_empty() && !is_clean_absolute(&check.tls_ca_file, 256) {
            one.app.refuse(
                path.key("tls_ca_file"),
                "is not a clean absolute path",
                "it is a file in the container, at most 256 bytes, without `.`, `..` or empty parts",
                "write for example \"/etc/ssl/ca.pem\"",
            );
        }
        return;
    }
    for (field, text) in [("tls_server_name", &check.tls_server_name), ("tls_ca_file", &check.tls_ca_file)] {
        if !text.is_empty() {
            one.app.refuse(
                path.key(field),
                "is only for `smtp_starttls`",
                "the other checks have no TLS",
                "remove it, or write `protocol = \"smtp_starttls\"`",
            );
        }
    }
}

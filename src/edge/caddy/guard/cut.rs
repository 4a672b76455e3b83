//! Cuts a configuration into pieces, ours and foreign.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::canonical::{
    canonical_log, canonical_names, canonical_route, is_empty, is_numbered, log_names, logs_of, remove, tags_as_files,
    without_hosts,
};
use super::read::{certificate_of, hosts, listeners, route_hosts, routes, servers, strings};
use super::{Hosts, Pieces};

/// The cutting of one configuration.
struct Cut<'cut> {
    config: &'cut Value,
    ours: &'cut Hosts,
    pieces: Pieces,
}

/// Cuts a configuration into pieces.
///
/// # Errors
/// A sentence, when one route serves hosts of ours together with others.
pub(in crate::edge::caddy) fn pieces(config: &Value, ours: &Hosts) -> Result<Pieces, String> {
    let pieces = Pieces { hosts: hosts(config), ..Pieces::default() };
    let mut cut = Cut { config, ours, pieces };
    for (name, value) in config.as_object().into_iter().flatten() {
        match name.as_str() {
            "apps" => {}
            "logging" => cut.logging(value),
            _ => cut.foreign(format!("`{name}`"), value.clone()),
        }
    }
    for (name, value) in config.get("apps").and_then(Value::as_object).into_iter().flatten() {
        match name.as_str() {
            "http" => cut.http(value)?,
            "tls" => cut.tls(value),
            _ => cut.foreign(format!("app `{name}`"), value.clone()),
        }
    }
    Ok(cut.pieces)
}

impl Cut<'_> {
    fn foreign(&mut self, place: String, value: Value) {
        self.pieces.put(false, place, value);
    }

    /// A piece of one host.
    fn of_host(&mut self, host: &str, place: String, value: Value) {
        self.pieces.put(self.ours.contains(host), place, value);
    }

    fn http(&mut self, http: &Value) -> Result<(), String> {
        for (key, value) in http.as_object().into_iter().flatten().filter(|(key, _)| *key != "servers") {
            self.foreign(format!("app `http`, `{key}`"), value.clone());
        }
        for (_, server) in servers(self.config) {
            let mut listen: Vec<&str> = listeners(server).collect();
            listen.sort_unstable();
            self.server(&format!("listener {}", listen.join(" ")), server)?;
        }
        Ok(())
    }

    fn server(&mut self, place: &str, server: &Value) -> Result<(), String> {
        let mut has_foreign = false;
        for route in routes(server) {
            let hosts = route_hosts(route);
            let is_ours = hosts.as_ref().is_some_and(|hosts| hosts.is_subset(self.ours));
            let is_mixed = !is_ours && hosts.as_ref().is_some_and(|hosts| !hosts.is_disjoint(self.ours));
            let name =
                hosts.map_or_else(|| "any host".to_owned(), |hosts| hosts.into_iter().collect::<Vec<_>>().join(" "));
            if is_mixed {
                return Err(format!(
                    "one site serves hosts of this target together with others ({name}): split it first"
                ));
            }
            has_foreign |= !is_ours;
            self.pieces.put(is_ours, format!("site {name} on {place}"), canonical_route(route));
            if !is_ours {
                // The order of foreign routes matters among themselves.
                self.foreign(format!("order of sites on {place}"), json!(name));
            }
        }
        self.connection_policies(place, server);
        self.server_logs(place, server);
        let rest = server.as_object().into_iter().flatten();
        for (key, value) in
            rest.filter(|(key, _)| !matches!(key.as_str(), "routes" | "listen" | "tls_connection_policies" | "logs"))
        {
            let value = without_hosts(value, self.ours);
            if !is_empty(&value) {
                self.pieces.put(!has_foreign, format!("`{key}` of {place}"), value);
            }
        }
        Ok(())
    }

    /// Connection policies, host by host, certificates named by their files.
    fn connection_policies(&mut self, place: &str, server: &Value) {
        for policy in server.get("tls_connection_policies").and_then(Value::as_array).into_iter().flatten() {
            let names: Vec<&str> = strings(policy.pointer("/match/sni")).collect();
            let mut rest = policy.clone();
            remove(&mut rest, "match", "sni");
            if let Some(tags) = rest.pointer_mut("/certificate_selection/any_tag") {
                *tags = tags_as_files(tags, self.config);
            }
            if names.is_empty() && is_empty(&rest) {
                continue; // the default, which Caddy writes down once any site has a policy of its own
            }
            if names.is_empty() {
                self.foreign(format!("TLS policy for every host on {place}"), rest);
                continue;
            }
            for name in names {
                self.of_host(name, format!("TLS policy for {name} on {place}"), rest.clone());
            }
        }
    }

    /// Which log each host writes to. `skip_hosts` is left out: it only lists the hosts without a log of their own, and
    /// Caddy writes it down once any site has one.
    fn server_logs(&mut self, place: &str, server: &Value) {
        let Some(logs) = server.get("logs").and_then(Value::as_object) else {
            return;
        };
        for (key, value) in logs {
            match key.as_str() {
                "skip_hosts" => {}
                "logger_names" => {
                    for (host, names) in value.as_object().into_iter().flatten() {
                        let name = log_names(names).map(|name| canonical_log(name, self.config)).collect();
                        self.of_host(host, format!("access log of {host} on {place}"), Value::Array(name));
                    }
                }
                _ => self.foreign(format!("`logs.{key}` of {place}"), value.clone()),
            }
        }
    }

    /// The `logging` part without the logs that Caddy numbers: those are compared where they are used.
    fn logging(&mut self, logging: &Value) {
        let mine = logs_of(self.config, self.ours);
        for (key, value) in logging.as_object().into_iter().flatten() {
            if key != "logs" {
                self.foreign(format!("`logging.{key}`"), value.clone());
                continue;
            }
            for (name, log) in value.as_object().into_iter().flatten().filter(|(name, _)| !is_numbered(name)) {
                let mut log = log.clone();
                for list in ["exclude", "include"] {
                    let kept = canonical_names(log.get(list), self.config, &mine);
                    if let Some(object) = log.as_object_mut() {
                        object.remove(list);
                        if !kept.is_empty() {
                            object.insert(list.to_owned(), Value::Array(kept));
                        }
                    }
                }
                if !is_empty(&log) {
                    self.foreign(format!("log `{name}`"), log);
                }
            }
        }
    }

    fn tls(&mut self, tls: &Value) {
        for (key, value) in tls.as_object().into_iter().flatten() {
            match key.as_str() {
                "automation" => self.automation(value),
                "certificates" => self.certificates(value),
                _ => self.foreign(format!("app `tls`, `{key}`"), value.clone()),
            }
        }
    }

    fn automation(&mut self, automation: &Value) {
        for (key, value) in automation.as_object().into_iter().flatten().filter(|(key, _)| *key != "policies") {
            self.foreign(format!("TLS automation, `{key}`"), value.clone());
        }
        let policies: Vec<(Vec<&str>, Value)> = automation
            .get("policies")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|policy| {
                let mut rest = policy.clone();
                if let Some(object) = rest.as_object_mut() {
                    object.remove("subjects");
                }
                (strings(policy.get("subjects")).collect(), rest)
            })
            .collect();
        let has_default = policies.iter().any(|(subjects, rest)| subjects.is_empty() && !is_empty(rest));
        for (subjects, rest) in policies {
            if is_empty(&rest) && !has_default {
                continue; // says only what holds anyway; Caddy writes it down once another site differs
            }
            if subjects.is_empty() {
                self.foreign("TLS automation for every host".to_owned(), rest);
                continue;
            }
            for subject in subjects {
                self.of_host(subject, format!("TLS automation for {subject}"), rest.clone());
            }
        }
    }

    /// Loaded certificates, by file. One that only our hosts select is ours.
    fn certificates(&mut self, certificates: &Value) {
        let (mut mine, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (_, server) in servers(self.config) {
            for policy in server.get("tls_connection_policies").and_then(Value::as_array).into_iter().flatten() {
                let names: Hosts = strings(policy.pointer("/match/sni")).map(str::to_owned).collect();
                let tags = strings(policy.pointer("/certificate_selection/any_tag"));
                let has_ours = !names.is_disjoint(self.ours);
                let has_others = names.is_empty() || !names.is_subset(self.ours);
                for tag in tags {
                    if has_ours {
                        mine.insert(tag);
                    }
                    if has_others {
                        others.insert(tag);
                    }
                }
            }
        }
        for (key, value) in certificates.as_object().into_iter().flatten() {
            if key != "load_files" {
                self.foreign(format!("certificates, `{key}`"), value.clone());
                continue;
            }
            for file in value.as_array().into_iter().flatten() {
                let is_ours = strings(file.get("tags")).any(|tag| mine.contains(tag) && !others.contains(tag));
                let mut named = file.clone();
                if let Some(object) = named.as_object_mut() {
                    object.remove("tags");
                }
                self.pieces.put(
                    is_ours,
                    format!("certificate {}", certificate_of(file).unwrap_or("without a file")),
                    named,
                );
            }
        }
    }
}

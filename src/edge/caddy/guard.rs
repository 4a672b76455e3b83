//! The guard before a load: what belongs to one target's hosts, and that nothing else would change (ruling 31).
//!
//! Pure. A configuration is cut into named pieces, each either ours (of the target's hosts) or foreign. Names that Caddy
//! counts through (`srv0`, `log1`, `group4`, `cert0`) shift when a site is added, so pieces are named by what they
//! mean: a server by its listeners, a log by where it writes, a certificate by its file. Caddy also joins the policies of
//! sites that ask for the same, so policies are compared host by host.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Differences that are listed before the rest is only counted.
const LISTED: usize = 5;

/// Host names, in lower case.
pub(super) type Hosts = BTreeSet<String>;

/// A configuration in comparable pieces: a place for people → what is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pieces {
    pub(super) ours: BTreeMap<String, Value>,
    pub(super) foreign: BTreeMap<String, Value>,
    /// Every host that is served, ours included.
    pub(super) hosts: Hosts,
}

impl Pieces {
    fn put(&mut self, is_ours: bool, place: String, value: Value) {
        let pieces = if is_ours {
            &mut self.ours
        } else {
            &mut self.foreign
        };
        match pieces.entry(place).or_insert_with(|| json!([])) {
            Value::Array(all) => all.push(value),
            // Every piece is an array: it was made one line above.
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => {}
        }
    }
}

/// The cutting of one configuration.
struct Cut<'cut> {
    config: &'cut Value,
    ours: &'cut Hosts,
    pieces: Pieces,
}

/// Says why a load must not happen; none when nothing but `ours` would change.
pub(super) fn objection(loaded: &Value, adapted: &Value, ours: &Hosts) -> Option<String> {
    let (before, after) = match (pieces(loaded, ours), pieces(adapted, ours)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(mixed), _) | (_, Err(mixed)) => return Some(mixed),
    };
    let gone: Vec<&str> = before
        .hosts
        .difference(&after.hosts)
        .filter(|host| !ours.contains(*host))
        .map(String::as_str)
        .collect();
    if !gone.is_empty() {
        return Some(format!("the load would stop serving {}", gone.join(", ")));
    }
    let places: BTreeSet<&String> = before.foreign.keys().chain(after.foreign.keys()).collect();
    let changed: Vec<&str> = places
        .into_iter()
        .filter(|place| before.foreign.get(*place) != after.foreign.get(*place))
        .map(String::as_str)
        .collect();
    if changed.is_empty() {
        return None;
    }
    let more = changed.len().saturating_sub(LISTED);
    let listed = changed.get(..LISTED).unwrap_or(&changed).join("; ");
    let more = if more == 0 {
        String::new()
    } else {
        format!("; and {more} more")
    };
    Some(format!(
        "the load would also change what is not ours: {listed}{more}"
    ))
}

/// Every host that a configuration serves.
pub(super) fn hosts(config: &Value) -> Hosts {
    servers(config)
        .flat_map(|(_, server)| routes(server))
        .filter_map(route_hosts)
        .flatten()
        .collect()
}

/// The routes of some hosts, for asking whether one vhost's text is what runs.
pub(super) fn routes_of(config: &Value, ours: &Hosts) -> Vec<Value> {
    let mine = |route: &&Value| route_hosts(route).is_some_and(|hosts| !hosts.is_disjoint(ours));
    let mut found: Vec<Value> = servers(config)
        .flat_map(|(_, server)| routes(server))
        .filter(mine)
        .map(canonical_route)
        .collect();
    found.sort_by_key(Value::to_string);
    found
}

/// The servers of the `http` app, by Caddy's own name.
pub(super) fn servers(config: &Value) -> impl Iterator<Item = (&String, &Value)> {
    config
        .pointer("/apps/http/servers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// A server's listeners as Caddy writes them.
pub(super) fn listeners(server: &Value) -> impl Iterator<Item = &str> {
    strings(server.get("listen"))
}

/// A server's top-level routes.
pub(super) fn routes(server: &Value) -> impl Iterator<Item = &Value> {
    server
        .get("routes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The hosts that a route asks for; none when it takes any host.
pub(super) fn route_hosts(route: &Value) -> Option<Hosts> {
    let sets = route.get("match").and_then(Value::as_array)?;
    let mut hosts = Hosts::new();
    for set in sets {
        hosts.extend(strings(Some(set.get("host")?)).map(str::to_ascii_lowercase));
    }
    if hosts.is_empty() { None } else { Some(hosts) }
}

/// The strings of an array.
pub(super) fn strings(array: Option<&Value>) -> impl Iterator<Item = &str> {
    array
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Cuts a configuration into pieces.
///
/// # Errors
/// A sentence, when one route serves hosts of ours together with others.
pub(super) fn pieces(config: &Value, ours: &Hosts) -> Result<Pieces, String> {
    let pieces = Pieces {
        hosts: hosts(config),
        ..Pieces::default()
    };
    let mut cut = Cut {
        config,
        ours,
        pieces,
    };
    for (name, value) in config.as_object().into_iter().flatten() {
        match name.as_str() {
            "apps" => {}
            "logging" => cut.logging(value),
            _ => cut.foreign(format!("`{name}`"), value.clone()),
        }
    }
    for (name, value) in config
        .get("apps")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
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
        for (key, value) in http
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != "servers")
        {
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
            let is_ours = hosts
                .as_ref()
                .is_some_and(|hosts| hosts.is_subset(self.ours));
            let is_mixed = !is_ours
                && hosts
                    .as_ref()
                    .is_some_and(|hosts| !hosts.is_disjoint(self.ours));
            let name = hosts.map_or_else(
                || "any host".to_owned(),
                |hosts| hosts.into_iter().collect::<Vec<_>>().join(" "),
            );
            if is_mixed {
                return Err(format!(
                    "one site serves hosts of this target together with others ({name}): split it first"
                ));
            }
            has_foreign |= !is_ours;
            self.pieces.put(
                is_ours,
                format!("site {name} on {place}"),
                canonical_route(route),
            );
            if !is_ours {
                // The order of foreign routes matters among themselves.
                self.foreign(format!("order of sites on {place}"), json!(name));
            }
        }
        self.connection_policies(place, server);
        self.server_logs(place, server);
        let rest = server.as_object().into_iter().flatten();
        for (key, value) in rest.filter(|(key, _)| {
            !matches!(
                key.as_str(),
                "routes" | "listen" | "tls_connection_policies" | "logs"
            )
        }) {
            let value = without_hosts(value, self.ours);
            if !is_empty(&value) {
                self.pieces
                    .put(!has_foreign, format!("`{key}` of {place}"), value);
            }
        }
        Ok(())
    }

    /// Connection policies, host by host, certificates named by their files.
    fn connection_policies(&mut self, place: &str, server: &Value) {
        for policy in server
            .get("tls_connection_policies")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
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
                self.of_host(
                    name,
                    format!("TLS policy for {name} on {place}"),
                    rest.clone(),
                );
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
                        let name = log_names(names)
                            .map(|name| canonical_log(name, self.config))
                            .collect();
                        self.of_host(
                            host,
                            format!("access log of {host} on {place}"),
                            Value::Array(name),
                        );
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
            for (name, log) in value
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| !is_numbered(name))
            {
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
        for (key, value) in automation
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != "policies")
        {
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
        let has_default = policies
            .iter()
            .any(|(subjects, rest)| subjects.is_empty() && !is_empty(rest));
        for (subjects, rest) in policies {
            if is_empty(&rest) && !has_default {
                continue; // says only what holds anyway; Caddy writes it down once another site differs
            }
            if subjects.is_empty() {
                self.foreign("TLS automation for every host".to_owned(), rest);
                continue;
            }
            for subject in subjects {
                self.of_host(
                    subject,
                    format!("TLS automation for {subject}"),
                    rest.clone(),
                );
            }
        }
    }

    /// Loaded certificates, by file. One that only our hosts select is ours.
    fn certificates(&mut self, certificates: &Value) {
        let (mut mine, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (_, server) in servers(self.config) {
            for policy in server
                .get("tls_connection_policies")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let names: Hosts = strings(policy.pointer("/match/sni"))
                    .map(str::to_owned)
                    .collect();
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
                let is_ours = strings(file.get("tags"))
                    .any(|tag| mine.contains(tag) && !others.contains(tag));
                let mut named = file.clone();
                if let Some(object) = named.as_object_mut() {
                    object.remove("tags");
                }
                self.pieces.put(
                    is_ours,
                    format!(
                        "certificate {}",
                        certificate_of(file).unwrap_or("without a file")
                    ),
                    named,
                );
            }
        }
    }
}

/// One name (before 2.8) or several.
fn log_names(names: &Value) -> impl Iterator<Item = &str> {
    names.as_str().into_iter().chain(strings(Some(names)))
}

/// The list of log names, sorted, numbered ones by their meaning, without those that only our hosts use.
fn canonical_names(list: Option<&Value>, config: &Value, mine: &BTreeSet<&str>) -> Vec<Value> {
    let mut kept: Vec<Value> = strings(list)
        .filter_map(|full| {
            let short = full.strip_prefix("http.log.access.").unwrap_or(full);
            if !is_numbered(short) {
                return Some(json!(full));
            }
            if mine.contains(short) {
                None
            } else {
                Some(canonical_log(short, config))
            }
        })
        .collect();
    kept.sort_by_key(Value::to_string);
    kept
}

/// The numbered logs that no host but ours uses.
fn logs_of<'config>(config: &'config Value, ours: &Hosts) -> BTreeSet<&'config str> {
    let (mut mine, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (_, server) in servers(config) {
        for (host, names) in server
            .pointer("/logs/logger_names")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if ours.contains(host) {
                mine.extend(log_names(names))
            } else {
                others.extend(log_names(names))
            }
        }
    }
    mine.difference(&others).copied().collect()
}

fn is_numbered(name: &str) -> bool {
    name.strip_prefix("log").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A numbered log by what it does; any other by its name.
fn canonical_log(name: &str, config: &Value) -> Value {
    let known = config
        .pointer("/logging/logs")
        .and_then(|logs| logs.get(name));
    match known {
        Some(log) if is_numbered(name) => {
            let mut log = log.clone();
            if let Some(object) = log.as_object_mut() {
                object.remove("include");
            }
            log
        }
        Some(_) | None => json!(name),
    }
}

fn certificate_of(file: &Value) -> Option<&str> {
    file.get("certificate").and_then(Value::as_str)
}

/// The file of a certificate that carries this tag.
pub(super) fn certificate_file<'config>(config: &'config Value, tag: &str) -> Option<&'config str> {
    let files = config
        .pointer("/apps/tls/certificates/load_files")
        .and_then(Value::as_array)?;
    files
        .iter()
        .find(|file| strings(file.get("tags")).any(|known| known == tag))
        .and_then(certificate_of)
}

fn tags_as_files(tags: &Value, config: &Value) -> Value {
    let mut named: Vec<Value> = strings(Some(tags))
        .map(|tag| json!(certificate_file(config, tag).unwrap_or(tag)))
        .collect();
    named.sort_by_key(Value::to_string);
    Value::Array(named)
}

/// A route with its groups counted from the route's own start.
fn canonical_route(route: &Value) -> Value {
    let mut route = route.clone();
    let mut seen = BTreeMap::new();
    renumber(&mut route, &mut seen);
    route
}

fn renumber(value: &mut Value, seen: &mut BTreeMap<String, usize>) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|inner| renumber(inner, seen)),
        Value::Object(object) => {
            // In the order of names, whatever order the map keeps.
            let mut names: Vec<String> = object.keys().cloned().collect();
            names.sort();
            for name in names {
                let Some(inner) = object.get_mut(&name) else {
                    continue;
                };
                match inner {
                    Value::String(group) if name == "group" && group.starts_with("group") => {
                        let next = seen.len();
                        *group = format!("group{}", seen.entry(group.clone()).or_insert(next));
                    }
                    Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
                    Value::Array(_) | Value::Object(_) => renumber(inner, seen),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same without our hosts in any list of strings, as in `automatic_https.skip`.
fn without_hosts(value: &Value, ours: &Hosts) -> Value {
    match value {
        Value::Array(all) => {
            let is_other = |inner: &&Value| !inner.as_str().is_some_and(|host| ours.contains(host));
            Value::Array(
                all.iter()
                    .filter(is_other)
                    .map(|inner| without_hosts(inner, ours))
                    .collect(),
            )
        }
        Value::Object(object) => {
            let kept: Map<String, Value> = object
                .iter()
                .map(|(name, inner)| (name.clone(), without_hosts(inner, ours)))
                .filter(|(_, inner)| !is_empty(inner))
                .collect();
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn remove(value: &mut Value, outer: &str, inner: &str) {
    let Some(object) = value.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(nested)) = object.get_mut(outer) {
        nested.remove(inner);
        if nested.is_empty() {
            object.remove(outer);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

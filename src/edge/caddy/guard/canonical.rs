//! Parts of Caddy's JSON without the names that Caddy counts through.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Hosts;
use super::read::{certificate_file, servers, strings};

/// One name (before 2.8) or several.
pub(super) fn log_names(names: &Value) -> impl Iterator<Item = &str> {
    names.as_str().into_iter().chain(strings(Some(names)))
}

/// The list of log names, sorted, numbered ones by their meaning, without those that only our hosts use.
pub(super) fn canonical_names(list: Option<&Value>, config: &Value, mine: &BTreeSet<&str>) -> Vec<Value> {
    let mut kept: Vec<Value> = strings(list)
        .filter_map(|full| {
            let short = full.strip_prefix("http.log.access.").unwrap_or(full);
            if !is_numbered(short) {
                return Some(json!(full));
            }
            if mine.contains(short) { None } else { Some(canonical_log(short, config)) }
        })
        .collect();
    kept.sort_by_key(Value::to_string);
    kept
}

/// The numbered logs that no host but ours uses.
pub(super) fn logs_of<'config>(config: &'config Value, ours: &Hosts) -> BTreeSet<&'config str> {
    let (mut mine, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (_, server) in servers(config) {
        for (host, names) in server.pointer("/logs/logger_names").and_then(Value::as_object).into_iter().flatten() {
            if ours.contains(host) { mine.extend(log_names(names)) } else { others.extend(log_names(names)) }
        }
    }
    mine.difference(&others).copied().collect()
}

pub(super) fn is_numbered(name: &str) -> bool {
    name.strip_prefix("log")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A numbered log by what it does; any other by its name.
pub(super) fn canonical_log(name: &str, config: &Value) -> Value {
    let known = config.pointer("/logging/logs").and_then(|logs| logs.get(name));
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

pub(super) fn tags_as_files(tags: &Value, config: &Value) -> Value {
    let mut named: Vec<Value> =
        strings(Some(tags)).map(|tag| json!(certificate_file(config, tag).unwrap_or(tag))).collect();
    named.sort_by_key(Value::to_string);
    Value::Array(named)
}

/// A route with its groups counted from the route's own start.
pub(super) fn canonical_route(route: &Value) -> Value {
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
pub(super) fn without_hosts(value: &Value, ours: &Hosts) -> Value {
    match value {
        Value::Array(all) => {
            let is_other = |inner: &&Value| !inner.as_str().is_some_and(|host| ours.contains(host));
            Value::Array(all.iter().filter(is_other).map(|inner| without_hosts(inner, ours)).collect())
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

pub(super) fn remove(value: &mut Value, outer: &str, inner: &str) {
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

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

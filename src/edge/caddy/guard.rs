//! The guard before a load: what belongs to one target's hosts, and that nothing else would change (ruling 31).
//!
//! Pure. A configuration is cut into named pieces, each either ours (of the target's hosts) or foreign. Names that Caddy
//! counts through (`srv0`, `log1`, `group4`, `cert0`) shift when a site is added, so pieces are named by what they
//! mean: a server by its listeners, a log by where it writes, a certificate by its file. Caddy also joins the policies of
//! sites that ask for the same, so policies are compared host by host.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

mod canonical;
mod cut;
mod read;

#[cfg(test)]
mod tests;

pub(super) use cut::pieces;
pub(super) use read::{certificate_file, hosts, listeners, route_hosts, routes, routes_of, servers, strings};

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
        let pieces = if is_ours { &mut self.ours } else { &mut self.foreign };
        match pieces.entry(place).or_insert_with(|| json!([])) {
            Value::Array(all) => all.push(value),
            // Every piece is an array: it was made one line above.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
        }
    }
}

/// Says why a load must not happen; none when nothing but `ours` would change.
pub(super) fn objection(loaded: &Value, adapted: &Value, ours: &Hosts) -> Option<String> {
    let (before, after) = match (pieces(loaded, ours), pieces(adapted, ours)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(mixed), _) | (_, Err(mixed)) => return Some(mixed),
    };
    let gone: Vec<&str> =
        before.hosts.difference(&after.hosts).filter(|host| !ours.contains(*host)).map(String::as_str).collect();
    if !gone.is_empty() {
        return Some(format!("the load would stop serving {}", gone.join(", ")));
    }
    let places: BTreeSet<&String> = before.foreign.keys().chain(after.foreign.keys()).collect();
    // Global options (`http_port`, grace periods) appear with the first site and go with the last.
    let is_first = servers(loaded).next().is_none();
    let is_last = servers(adapted).next().is_none();
    let is_global = |place: &str| {
        let (had, has) = (before.foreign.contains_key(place), after.foreign.contains_key(place));
        place.starts_with("app `") && ((is_first && !had) || (is_last && !has))
    };
    let changed: Vec<&str> = places
        .into_iter()
        .filter(|place| before.foreign.get(*place) != after.foreign.get(*place) && !is_global(place))
        .map(String::as_str)
        .collect();
    if changed.is_empty() {
        return None;
    }
    let more = changed.len().saturating_sub(LISTED);
    let listed = changed.get(..LISTED).unwrap_or(&changed).join("; ");
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Some(format!("the load would also change what is not ours: {listed}{more}"))
}

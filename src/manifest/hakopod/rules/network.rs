//! Sections 8 and 9: networks, who may connect, and what comes first.

use std::collections::{BTreeMap, BTreeSet};

use super::super::form::is_name;
use super::counts::{names, repeated, too_many};
use super::document::{NAME, NAME_FIX};
use super::{App, One};
use crate::model::document::shown_key;
use crate::model::hakopod::DEFAULT_NETWORK;

/// The most networks, the implicit `default` counted.
const MAX_NETWORKS: usize = 16;

pub(super) fn networks(app: &App<'_>) {
    let table = app.at("networks");
    let implicit = usize::from(!app.raw.networks.contains_key(DEFAULT_NETWORK));
    too_many(app, &table, app.raw.networks.len().saturating_add(implicit), MAX_NETWORKS);
    for (name, network) in &app.raw.networks {
        let path = table.key(name);
        if !is_name(name) {
            app.refuse_key(path.clone(), "is not a name", NAME, NAME_FIX);
        }
        if network.virtual_network.is_empty() != network.segment.is_empty() {
            app.refuse(
                path.clone(),
                "must have `virtual_network` and `segment` together",
                "a segment is a part of a virtual network",
                "write both or neither",
            );
        }
        for (field, text) in [("virtual_network", &network.virtual_network), ("segment", &network.segment)] {
            if !text.is_empty() && !is_name(text) {
                app.refuse(path.key(field), "is not a name", NAME, NAME_FIX);
            }
        }
    }
}

impl App<'_> {
    fn has_network(&self, name: &str) -> bool {
        name == DEFAULT_NETWORK || self.raw.networks.contains_key(name)
    }
}

pub(super) fn memberships(one: &One<'_>) {
    let Some(members) = &one.raw.networks else { return };
    let path = one.at("networks");
    if members.is_empty() {
        one.refuse(
            "networks",
            "must not be an empty list",
            "a service that belongs to no network could reach and be reached by nothing",
            "leave it out for [\"default\"], or name networks",
        );
    }
    for (index, _) in members.iter().enumerate().filter(|(_, name)| !one.app.has_network(name)) {
        one.app.refuse(
            path.index(index),
            "names no declared network",
            "only `default` exists without being declared",
            "add `[networks.<name>]`",
        );
    }
    repeated(one.app, &path, members);
}

impl One<'_> {
    /// Whether both belong to one network.
    pub(super) fn shares_network(&self, other: &Self) -> bool {
        let own = self.networks();
        other.networks().iter().any(|network| own.contains(network))
    }

    /// Whether one of its networks leads outside.
    pub(super) fn has_egress(&self) -> bool {
        self.networks().iter().any(|name| self.app.raw.networks.get(*name).is_none_or(|network| !network.internal))
    }
}

pub(super) fn access(one: &One<'_>) {
    let Some(access) = &one.raw.network_access else { return };
    let path = one.at("network_access");
    let from = path.key("from");
    too_many(one.app, &from, access.from.len(), 20);
    repeated(one.app, &from, &access.from);
    for (index, name) in access.from.iter().enumerate() {
        match one.app.one(name) {
            None => one.app.refuse(
                from.index(index),
                "names no declared service",
                "peers are services of this application",
                "correct the name, or use `from_applications`",
            ),
            Some(peer) if !one.shares_network(&peer) => one.app.refuse(
                from.index(index),
                "shares no network with this service",
                "services connect through a network that both belong to",
                "give both a network in common",
            ),
            Some(_) => {}
        }
    }
    remote_peers(one, &access.from_applications);
}

fn remote_peers(one: &One<'_>, peers: &[String]) {
    if peers.is_empty() {
        return;
    }
    let path = one.at("network_access").key("from_applications");
    too_many(one.app, &path, peers.len(), 32);
    repeated(one.app, &path, peers);
    let is_shared = |name: &&str| one.app.raw.networks.get(*name).is_some_and(|net| !net.virtual_network.is_empty());
    if !one.networks().iter().any(is_shared) {
        one.app.refuse(
            path.clone(),
            "needs a network with a `virtual_network`",
            "other applications are reached through a granted segment only",
            "join a network that has `virtual_network` and `segment`",
        );
    }
    for (index, peer) in peers.iter().enumerate() {
        let parts = peer.split_once('/').filter(|(application, service)| is_name(application) && is_name(service));
        match parts {
            None => one.app.refuse(
                path.index(index),
                "is not `application/service`",
                "both halves are names, and there are no wildcards",
                "write for example \"orders/api\"",
            ),
            Some((application, _)) if application == one.app.raw.name => one.app.refuse(
                path.index(index),
                "names this application",
                "services of this application stand in `from`",
                "move it to `from`",
            ),
            Some(_) => {}
        }
    }
}

pub(super) fn private_egress(one: &One<'_>) {
    let path = one.at("private_egress");
    too_many(one.app, &path, one.raw.private_egress.len(), 16);
    names(one.app, &path, &one.raw.private_egress);
    repeated(one.app, &path, &one.raw.private_egress);
}

pub(super) fn depends_on(one: &One<'_>) {
    let path = one.at("depends_on");
    repeated(one.app, &path, &one.raw.depends_on);
    for (index, name) in one.raw.depends_on.iter().enumerate() {
        let path = path.index(index);
        let Some(first) = one.app.services.get(name) else {
            one.app.refuse(
                path,
                "names no declared service",
                "a dependency is a service or a job of this application",
                "correct the name",
            );
            continue;
        };
        if name == one.name {
            one.app.refuse(path, "names the service itself", "it would wait for itself", "remove it");
        } else if first.session.is_some() || first.is_started_elsewhere() {
            one.app.refuse(
                path,
                "names a session, a scheduled job or an invocation job",
                "these never become ready or complete as a part of a release",
                "depend on a service or on a deployment job",
            );
        }
    }
}

/// Each service that can be reached from itself is told of once, with the way round.
pub(super) fn cycle(app: &App<'_>) {
    let edges: BTreeMap<&str, Vec<&str>> = app
        .services
        .iter()
        .map(|(name, service)| {
            let mut next: Vec<&str> = service
                .depends_on
                .iter()
                .map(String::as_str)
                .filter(|next| next != name && app.services.contains_key(*next))
                .collect();
            next.sort_unstable();
            (name.as_str(), next)
        })
        .collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for start in edges.keys() {
        let Some(way) = way_back(start, &edges).filter(|way| way.iter().all(|name| !told.contains(name))) else {
            continue;
        };
        told.extend(&way);
        let names: Vec<_> = way.iter().chain([start]).map(|name| shown_key(name)).collect();
        app.refuse(
            app.at("services").key(start).key("depends_on"),
            format!("is a cycle: {}", names.join(" → ")),
            "each of these would wait for the next one for ever",
            "remove one of these dependencies",
        );
    }
}

/// The shortest way from `start` to itself.
fn way_back<'a>(start: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> Option<Vec<&'a str>> {
    let mut ways: Vec<Vec<&str>> = vec![vec![start]];
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut at = 0;
    while let Some(way) = ways.get(at).cloned() {
        at = at.saturating_add(1);
        for next in way.last().and_then(|last| edges.get(last)).into_iter().flatten() {
            if *next == start {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push(way.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}

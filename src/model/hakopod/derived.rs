//! What follows from an application's values, without any choice.

use std::collections::{BTreeMap, BTreeSet};

use super::{AccessMode, Application, SecretRef, Service};

impl Application {
    /// The variables that a service runs with: shared ones where `inject_env` is set, under its own,
    /// without those that it sets as a secret or a binding.
    ///
    /// Source: rule book, section 6.1.
    #[must_use]
    pub fn effective_env(&self, service: &Service) -> BTreeMap<String, String> {
        let shared = self.inject_env.then_some(&self.env).into_iter().flatten();
        let mut env: BTreeMap<String, String> = shared.map(|(key, value)| (key.clone(), value.clone())).collect();
        env.extend(service.env.iter().map(|(key, value)| (key.clone(), value.clone())));
        env.retain(|key, _| !service.secrets.contains_key(key) && !service.bindings.contains_key(key));
        env
    }

    /// The references that a service runs with: shared ones without those that it sets as a variable
    /// or a binding, under its own.
    ///
    /// Source: rule book, section 6.2.
    #[must_use]
    pub fn effective_secrets(&self, service: &Service) -> BTreeMap<String, SecretRef> {
        let mut secrets = self.secrets.clone();
        secrets.retain(|key, _| !service.env.contains_key(key) && !service.bindings.contains_key(key));
        secrets.extend(service.secrets.iter().map(|(key, value)| (key.clone(), value.clone())));
        secrets
    }

    /// Services in the order in which they are deployed: dependencies first, otherwise by name.
    ///
    /// Source: rule book, section 9.
    #[must_use]
    pub fn deployment_order(&self) -> Vec<&str> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in self.services.keys() {
            self.visit(name, &mut seen, &mut order);
        }
        order
    }

    /// Depth is bounded by the number of services: each is entered once.
    fn visit<'a>(&'a self, name: &'a str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a str>) {
        let Some(service) = self.services.get(name) else { return };
        if seen.insert(name) {
            for dependency in &service.depends_on {
                self.visit(dependency, seen, order);
            }
            order.push(name);
        }
    }

    /// Whether `to` lets `from` connect: a shared network, and `network_access` if there is any.
    ///
    /// Source: rule book, section 8.
    #[must_use]
    pub fn is_peer(&self, from: &str, to: &str) -> bool {
        let (Some(source), Some(destination)) = (self.services.get(from), self.services.get(to)) else {
            return false;
        };
        let is_shared = source.networks.iter().any(|network| destination.networks.contains(network));
        is_shared
            && destination
                .network_access
                .as_ref()
                .is_none_or(|access| access.from.iter().any(|peer| peer.as_str() == from))
    }

    /// Whether a service may reach the outside: one of its networks is not internal.
    #[must_use]
    pub fn has_external_egress(&self, service: &Service) -> bool {
        service.networks.iter().any(|name| self.networks.get(name).is_some_and(|network| !network.internal))
    }

    /// Services that share `ReadWriteOnce` volumes, transitively: each group of at least two runs on
    /// one node. Groups and their members by name.
    ///
    /// Source: rule book, section 15.
    #[must_use]
    pub fn placement_groups(&self) -> Vec<Vec<&str>> {
        let links = self.services.iter().map(|(name, service)| {
            let once = service.mounts.iter().map(|mount| mount.volume.as_str()).filter(|volume| {
                self.volumes.get(*volume).is_some_and(|volume| volume.access_mode == AccessMode::ReadWriteOnce)
            });
            (name.as_str(), once.collect::<BTreeSet<_>>())
        });
        connected(links)
    }
}

/// Groups of at least two names that are connected through what they hold.
#[must_use]
pub fn connected<'a>(links: impl Iterator<Item = (&'a str, BTreeSet<&'a str>)>) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<(BTreeSet<&str>, BTreeSet<&str>)> = Vec::new();
    for (name, held) in links.filter(|(_, held)| !held.is_empty()) {
        let (touched, apart): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(_, volumes)| !volumes.is_disjoint(&held));
        let mut group = (BTreeSet::from([name]), held);
        for (names, volumes) in touched {
            group.0.extend(names);
            group.1.extend(volumes);
        }
        groups = apart;
        groups.push(group);
    }
    let mut groups: Vec<Vec<&str>> =
        groups.into_iter().map(|(names, _)| names.into_iter().collect::<Vec<_>>()).filter(|g| g.len() > 1).collect();
    groups.sort();
    groups
}

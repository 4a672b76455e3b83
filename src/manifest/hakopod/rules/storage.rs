//! Section 15: volumes of services and of the application.

use std::collections::{BTreeMap, BTreeSet};

use super::super::form::{is_clean_absolute, is_name, is_subdomain};
use super::counts::too_many;
use super::document::{NAME, NAME_FIX};
use super::{App, One};
use crate::model::document::KeyPath;
use crate::model::hakopod::{DEFAULT_USER, connected};

const MAX_NAMED: usize = 16;
const MAX_CLAIMS: usize = 20;
const MAX_GIB: i64 = 200;

pub(super) fn volume(one: &One<'_>) {
    let Some(volume) = &one.raw.volume else { return };
    let path = one.at("volume");
    if !is_clean_absolute(&volume.mount_path, 200) {
        bad_directory(one, path.key("mount_path"));
    }
    one.needed(path.key("size_gib"), volume.size_gib, 1..=MAX_GIB);
    storage_class(one.app, &path, &volume.storage_class);
}

pub(super) fn bad_directory(one: &One<'_>, path: KeyPath) {
    one.app.refuse(
        path,
        "is not a clean absolute path",
        "it starts with `/`, is not `/` itself, has at most 200 bytes and no `.`, `..`, empty parts or slash at the end",
        "write for example \"/data\"",
    );
}

fn storage_class(app: &App<'_>, path: &KeyPath, class: &str) {
    if !class.is_empty() && !is_subdomain(class) {
        app.refuse(
            path.key("storage_class"),
            "is not the name of a storage class",
            "class names are DNS subdomains in lower case",
            "write the class as the cluster lists it",
        );
    }
}

pub(super) fn named(app: &App<'_>) {
    let table = app.at("volumes");
    too_many(app, &table, app.raw.volumes.len(), MAX_NAMED);
    for (name, volume) in &app.raw.volumes {
        let path = table.key(name);
        if !is_name(name) {
            app.refuse_key(path.clone(), "is not a name", NAME, NAME_FIX);
        }
        if !(1..=MAX_GIB).contains(&volume.size_gib) {
            app.refuse(
                path.key("size_gib"),
                format!("must be between 1 and {MAX_GIB}"),
                "it is required and has no default",
                "write the size in GiB",
            );
        }
        storage_class(app, &path, &volume.storage_class);
        match volume.access_mode.as_str() {
            "" | "ReadWriteOnce" => {}
            "ReadWriteMany" if volume.storage_class.is_empty() => app.refuse(
                path.key("storage_class"),
                "is required with \"ReadWriteMany\"",
                "the default class is for one node at a time",
                "name a class whose provisioner supports it",
            ),
            "ReadWriteMany" => {}
            _ => app.refuse(
                path.key("access_mode"),
                "must be \"ReadWriteOnce\" or \"ReadWriteMany\"",
                "these are the two modes, in this letter case",
                "write one of the two",
            ),
        }
    }
}

pub(super) fn totals(app: &App<'_>) {
    let own = app.services.values().filter_map(|service| service.volume.as_ref()).map(|volume| volume.size_gib);
    let sizes: Vec<i64> = app.raw.volumes.values().map(|volume| volume.size_gib).chain(own).collect();
    let path = if app.raw.volumes.is_empty() { app.at("services") } else { app.at("volumes") };
    if sizes.len() > MAX_CLAIMS {
        app.refuse(
            path.clone(),
            format!("has {} volumes, those of services counted, more than {MAX_CLAIMS}", sizes.len()),
            "each is a claim, used or not",
            "remove some",
        );
    }
    let total = sizes.iter().filter(|size| (1..=MAX_GIB).contains(*size)).sum::<i64>();
    if total > MAX_GIB {
        app.refuse(
            path,
            format!("has volumes of {total} GiB, those of services counted, more than {MAX_GIB}"),
            "an application has 200 GiB of storage",
            "make some smaller",
        );
    }
}

pub(super) fn claim_names(app: &App<'_>) {
    app.each(|one| {
        let Some(rest) = one.name.strip_prefix("hakopod-volume-").filter(|_| one.raw.volume.is_some()) else { return };
        if app.raw.volumes.contains_key(&format!("{rest}-data")) {
            one.refuse(
                "volume",
                "has the claim name of a named volume",
                "`<service>-data` and `hakopod-volume-<name>` would be one claim",
                "rename the service or the volume",
            );
        }
    });
}

/// The group that owns what a service writes.
fn group(one: &One<'_>) -> i64 {
    let first = |values: [i64; 2]| values.into_iter().find(|value| *value != 0);
    first([one.raw.fs_group, one.raw.run_as_user]).unwrap_or_else(|| i64::from(DEFAULT_USER))
}

pub(super) fn shared_groups(app: &App<'_>) {
    let mut groups: BTreeMap<&str, i64> = BTreeMap::new();
    app.each(|one| {
        let volumes: BTreeSet<&str> = one.raw.mounts.iter().map(|mount| mount.volume.as_str()).collect();
        for volume in volumes.into_iter().filter(|volume| app.raw.volumes.contains_key(*volume)) {
            if *groups.entry(volume).or_insert_with(|| group(one)) != group(one) {
                one.refuse(
                    "fs_group",
                    "differs from that of another service with the same volume",
                    "files of a shared volume belong to one group; without `fs_group` it is `run_as_user`, or 10001",
                    "give all of them the same `fs_group`",
                );
            }
        }
    });
}

/// Services of each group that runs on one node.
pub(in super::super) fn groups<'a>(
    application: &'a super::super::raw::RawApplication,
    services: &'a super::super::raw::Map<super::super::raw::RawService>,
) -> Vec<Vec<&'a str>> {
    let is_once =
        |volume: &&str| application.volumes.get(*volume).is_some_and(|volume| volume.access_mode != "ReadWriteMany");
    connected(services.iter().map(|(name, service)| {
        let volumes = service.mounts.iter().map(|mount| mount.volume.as_str()).filter(is_once);
        (name.as_str(), volumes.collect())
    }))
}

pub(super) fn placement(app: &App<'_>) {
    for members in groups(app.raw, app.services) {
        let members: Vec<One<'_>> = members.iter().filter_map(|name| app.one(name)).collect();
        let (mut node, mut architecture) = ("", "");
        for one in &members {
            if one.raw.is_job() {
                one.refuse(
                    "mounts",
                    "shares a ReadWriteOnce volume, which a job cannot",
                    "services that share such a volume stay together on one node, and a job comes and goes",
                    "give the job a volume of its own, or use ReadWriteMany",
                );
            }
            for (field, own, agreed) in [
                ("node_name", one.raw.node_name.as_str(), &mut node),
                ("architecture", one.raw.architecture.as_str(), &mut architecture),
            ] {
                if agreed.is_empty() {
                    *agreed = own;
                } else if !own.is_empty() && *agreed != own {
                    one.refuse(
                        field,
                        "differs from that of a service that shares a ReadWriteOnce volume",
                        "these services run on one node",
                        "make them agree, or set it once",
                    );
                }
            }
        }
    }
}

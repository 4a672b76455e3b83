//! The top level of a registry file.

use std::collections::BTreeMap;

use super::super::host::HostConfig;
use super::{Entry, cross, image, repository, target};
use crate::model::document::{Refusal, Table, Value, form, schema};
use crate::model::policy::{Project, Repository, TargetKind, TargetPolicy};
use crate::model::{Place, ProjectName, RepoPath, TargetLabel};

/// The keys of the top level: the contract's, then our own.
pub(super) const TOP_LEVEL: [&str; 11] = [
    "schema",
    "project",
    "repo",
    "app_toml",
    "boxes",
    "uid",
    "targets",
    "branch",
    "hakopod_toml",
    "image",
    "credential",
];

/// Reads a whole file.
pub(super) fn read(root: &Table<'_>, stem: &str, host: Option<&HostConfig>) -> Option<Entry> {
    schema(root, "write `schema = 1` at the top".to_owned())?;
    root.only(&TOP_LEVEL, &[]);
    let name = name(root, stem);
    let repo = root.need("repo", "add `repo = \"owner/name\"`").and_then(|value| value.read(repository::read));
    let kinds = Kinds::of(root);
    let (app_toml, hakopod_toml) = (app_toml(root, kinds), hakopod_toml(root, kinds));
    let uid = uid(root, kinds);
    let boxes = boxes(root);
    let branch = root.get("branch").map_or_else(|| form::branch("main").ok(), |value| value.read(form::branch));
    let credential = image::credential(root);
    let image = image::read(root);
    let is_github = repo.as_ref().is_none_or(|repo| matches!(repo, Repository::GitHub { .. }));
    let targets = targets(root, &target::Around { host, is_github });
    let places = places(root);
    let project = Project {
        name: name?,
        repo: repo?,
        app_toml: app_toml?,
        hakopod_toml: hakopod_toml?,
        boxes: boxes?,
        uid: uid?,
        branch: branch?,
        credential: credential?,
        image: image?,
        targets: targets?,
    };
    Some(Entry { project, places })
}

fn name(root: &Table<'_>, stem: &str) -> Option<ProjectName> {
    let expected: Option<ProjectName> = stem.parse().ok();
    let value = root.get("project");
    let name: Option<ProjectName> = value.as_ref().and_then(Value::as_text).and_then(|text| text.parse().ok());
    if name.is_some() && name == expected {
        return name;
    }
    let refusal = match &expected {
        Some(stem) => Refusal::new(
            format!("must be '{stem}'"),
            "a project is found by its file's name, so both must be the same",
            format!("write `project = \"{stem}\"`, or rename the file"),
        ),
        None => Refusal::new(
            "cannot be right: the file's own name is not a project name",
            "the file is called `<project>.toml`, and project names match ^[a-z][a-z0-9-]{0,30}$",
            "rename the file",
        ),
    };
    match value {
        Some(value) => value.refuse(refusal),
        None => root.refuse("project", refusal),
    }
    None
}

/// Which kinds of target a file has; a file that says nothing has host targets.
#[derive(Clone, Copy)]
struct Kinds {
    has_host: bool,
    has_cluster: bool,
}

impl Kinds {
    fn of(root: &Table<'_>) -> Self {
        let targets = root.get("targets").and_then(|value| value.as_table());
        let targets = targets.map(|table| table.entries()).unwrap_or_default();
        let is_cluster = |value: &Value<'_>| value.as_table().is_some_and(|table| table.get("cluster").is_some());
        let has_cluster = targets.iter().any(|(_, value)| is_cluster(value));
        Self { has_host: !has_cluster || targets.iter().any(|(_, value)| !is_cluster(value)), has_cluster }
    }
}

fn app_toml(root: &Table<'_>, kinds: Kinds) -> Option<RepoPath> {
    match root.get("app_toml") {
        Some(value) => value.read(form::repo_file),
        None if kinds.has_host => {
            root.need("app_toml", "add `app_toml = \"deploy/app.toml\"`, the manifest's path in the repository")?;
            None
        }
        None => form::repo_file("deploy/app.toml").ok(),
    }
}

fn hakopod_toml(root: &Table<'_>, kinds: Kinds) -> Option<Option<RepoPath>> {
    match root.get("hakopod_toml") {
        Some(value) => value.read(form::repo_file).map(Some),
        None if kinds.has_cluster => form::repo_file("hakopod.toml").ok().map(Some),
        None => Some(None),
    }
}

fn uid(root: &Table<'_>, kinds: Kinds) -> Option<Option<u32>> {
    const WHY: &str = "the range is kept for projects, apart from people and system services";
    match root.get("uid") {
        Some(value) => value.integer(20000..=29999, WHY).map(Some),
        None if kinds.has_host => {
            root.need("uid", "add a number between 20000 and 29999 that no other project has")?;
            None
        }
        None => Some(None),
    }
}

fn boxes(root: &Table<'_>) -> Option<Vec<String>> {
    let Some(value) = root.get("boxes") else {
        return Some(Vec::new());
    };
    value.each(|item| item.read(box_name))
}

/// A container's name, or the name a box was enrolled under.
///
/// Source: Docker's form of container names, `[a-zA-Z0-9][a-zA-Z0-9_.-]*`.
fn box_name(text: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && text.len() <= 128 && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a box's name",
            "it is a container's name or the name a box was enrolled under",
            "write that name: letters, digits, `_`, `.` and `-`",
        ))
    }
}

fn targets(root: &Table<'_>, around: &target::Around<'_>) -> Option<BTreeMap<TargetLabel, TargetPolicy>> {
    let fix = "add a table `[targets.<name>]`, for example `[targets.prod]`";
    let value = root.need("targets", fix)?;
    let table = value.table()?;
    if table.is_empty() {
        value.refuse(Refusal::new("is empty", "a project without a target would never be released", fix));
        return None;
    }
    let mut targets = BTreeMap::new();
    let mut is_good = true;
    for (name, value) in table.entries() {
        let label: Option<TargetLabel> = name.parse().ok();
        if label.is_none() {
            table.refuse_key(name, form::label_refusal());
        }
        let policy = value.table().and_then(|table| target::read(&table, around));
        match (label, policy) {
            (Some(label), Some(policy)) => {
                targets.insert(label, policy);
            }
            (None, _) | (_, None) => is_good = false,
        }
    }
    shared_in_file(root, &targets);
    is_good.then_some(targets)
}

/// Hosts and slots that two targets of this file share.
fn shared_in_file(root: &Table<'_>, targets: &BTreeMap<TargetLabel, TargetPolicy>) {
    let mut hosts: BTreeMap<&str, String> = BTreeMap::new();
    let mut slots: BTreeMap<u16, String> = BTreeMap::new();
    for (label, target) in targets {
        let TargetKind::Host(policy) = &target.kind else {
            continue;
        };
        for (index, host) in policy.hosts.iter().enumerate() {
            let path = format!("targets.{label}.hosts[{index}]");
            if let Some(other) = hosts.get(host.as_str()) {
                refuse_at(root, (label, "hosts", index), cross::host_refusal(other));
            }
            hosts.entry(host).or_insert(path);
        }
        for (index, slot) in policy.slots.iter().enumerate() {
            let path = format!("targets.{label}.slots[{index}]");
            if let Some(other) = slots.get(slot) {
                refuse_at(root, (label, "slots", index), cross::slot_refusal(other));
            }
            slots.entry(*slot).or_insert(path);
        }
    }
}

/// A member of a target's array, found again for a message.
fn member<'d>(root: &Table<'d>, label: &TargetLabel, key: &str, index: usize) -> Option<Value<'d>> {
    let target = root.get("targets")?.as_table()?.get(label.as_str())?.as_table()?;
    target.get(key)?.as_items()?.into_iter().nth(index)
}

fn refuse_at(root: &Table<'_>, (label, key, index): (&TargetLabel, &str, usize), refusal: Refusal) {
    if let Some(value) = member(root, label, key, index) {
        value.refuse(refusal);
    }
}

/// The places of what must be unique across files.
fn places(root: &Table<'_>) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    if let Some(uid) = root.get("uid") {
        places.insert("uid".to_owned(), uid.place());
    }
    let targets = root.get("targets").and_then(|value| value.as_table());
    for (_, target) in targets.map(|table| table.entries()).unwrap_or_default() {
        let Some(table) = target.as_table() else {
            continue;
        };
        let arrays = ["hosts", "slots"].into_iter().filter_map(|key| table.get(key)?.as_items());
        places.extend(arrays.flatten().map(|item| (item.path().to_owned(), item.place())));
    }
    places
}

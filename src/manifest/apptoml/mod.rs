//! `deploy/app.toml`, the host manifest: data only, and strict.
//!
//! It refuses everything that it does not know, and reports all problems of a file at once.
//!
//! Source: app.toml contract, '`deploy/app.toml`'.

mod component;
mod jobs;
#[cfg(test)]
pub(crate) mod tests;

use crate::model::desired::{DataRequest, JobRequest, SmokeCheck};
use crate::model::document::{self, FileName, Refusal, Table, Value, form, shown_key, smoke};
use crate::model::name::is_label;
use crate::model::{Digest, Problems, ProjectName, RepoPath};

/// The keys of the top level.
pub(super) const TOP_LEVEL: [&str; 11] =
    ["schema", "project", "order", "images", "components", "state", "build", "smoke", "jobs", "preflight", "external"];

/// What every message begins with, whatever the file is called.
pub(super) const LABEL: &str = "app.toml";

/// A validated `app.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppManifest {
    /// `project`.
    pub project: ProjectName,
    /// Digest of the file's bytes.
    pub digest: Digest,
    /// The one component's name.
    pub component: String,
    /// The one image's name.
    pub image: String,
    /// `dockerfile`, relative to the repository's root.
    pub dockerfile: RepoPath,
    /// `context`, default `.`.
    pub context: RepoPath,
    /// `port` inside the container, 1..=65535, default 8080.
    pub port: u16,
    /// `health`, default `/healthz`.
    pub health: String,
    /// The data mount, when `state.kind = "data"`.
    pub data: Option<DataRequest>,
    /// `[[smoke]]`, at most 20, in order.
    pub smoke: Vec<SmokeCheck>,
    /// `[[jobs]]`, at most 20, in order, names unique.
    pub jobs: Vec<JobRequest>,
}

/// Parses and validates one `app.toml`.
///
/// `file` is its name for the reader; `project` is the name that the registry gives it, unknown
/// when a file is checked by itself.
///
/// # Errors
/// All problems of the file. `schema` and `project` come first, as in the contract.
pub fn parse(bytes: &[u8], file: &str, project: Option<&ProjectName>) -> Result<AppManifest, Problems> {
    document::read(bytes, FileName { file, label: LABEL }, |root| manifest(root, project, bytes))
}

fn manifest(root: &Table<'_>, expected: Option<&ProjectName>, bytes: &[u8]) -> Option<AppManifest> {
    document::schema(root, top_fix(root, "schema", "schema = 1"))?;
    let project = project(root, expected);
    root.only(&TOP_LEVEL, &[]);
    let images = images(root);
    let kind = state(root);
    let component = component::read(root, images.as_ref().map(|image| image.name.as_str()), kind);
    order(root);
    build(root);
    planned(root);
    let smoke = smoke::read(root.get("smoke"), &TOP_LEVEL);
    let jobs = jobs::read(root.get("jobs"));
    let (image, component) = (images?, component?);
    Some(AppManifest {
        project: project?,
        digest: Digest::of(bytes),
        component: component.name,
        image: image.name,
        dockerfile: image.dockerfile,
        context: image.context,
        port: component.port,
        health: component.health,
        data: component.data,
        smoke: smoke?,
        jobs: jobs?,
    })
}

/// What to do about a missing top-level key: move it up when it stands inside a table.
fn top_fix(root: &Table<'_>, key: &str, example: &str) -> String {
    match root.place_inside(key) {
        Some(place) => format!(
            "the `{key}` in line {} belongs to the table above it; move it to the top, before any line in brackets",
            place.line
        ),
        None => format!("write `{example}` at the top of the file"),
    }
}

fn project(root: &Table<'_>, expected: Option<&ProjectName>) -> Option<ProjectName> {
    let refusal = |fix: String| match expected {
        Some(name) => Refusal::new(
            format!("must be '{name}'"),
            "the name ties this file to its entry in the host's registry",
            fix,
        ),
        None => {
            Refusal::new("must be the project's name in the host's registry", "names match ^[a-z][a-z0-9-]{0,30}$", fix)
        }
    };
    let example = format!("project = \"{}\"", expected.map_or("myapp", ProjectName::as_str));
    let Some(value) = root.get("project") else {
        root.refuse("project", refusal(top_fix(root, "project", &example)));
        return None;
    };
    let name: Option<ProjectName> = value.as_text().and_then(|text| text.parse().ok());
    let name = name.filter(|name| expected.is_none_or(|expected| expected == name));
    if name.is_none() {
        value.refuse(refusal(format!("write `{example}`")));
    }
    name
}

/// The one image.
struct Image {
    name: String,
    dockerfile: RepoPath,
    context: RepoPath,
}

/// The single entry of a table of tables, with a valid name.
pub(super) fn single<'d>(root: &Table<'d>, key: &str, fix: &'static str) -> Option<(String, Table<'d>)> {
    let table = root.need(key, fix)?.table()?;
    let entries = table.entries();
    for (name, _) in entries.iter().filter(|(name, _)| !is_label(name)) {
        table.refuse_key(name, form::label_refusal());
    }
    let [(name, value)] = entries.as_slice() else {
        root.get(key)?.refuse(Refusal::new(
            format!("must have exactly one entry, not {}", entries.len()),
            "a release is one container from one image, which a switch replaces as a whole",
            fix,
        ));
        return None;
    };
    let table = value.table()?;
    is_label(name).then(|| ((*name).to_owned(), table))
}

fn images(root: &Table<'_>) -> Option<Image> {
    let (name, table) = single(root, "images", "write one table `[images.<name>]` with its `dockerfile`")?;
    table.only(&["dockerfile", "context"], &TOP_LEVEL);
    let dockerfile = table.need("dockerfile", "add `dockerfile = \"Dockerfile\"`");
    let dockerfile = dockerfile.and_then(|value| value.read(form::repo_file));
    let context = match table.get("context") {
        Some(value) => value.read(form::repo_path),
        None => form::repo_path(".").ok(),
    };
    Some(Image { name, dockerfile: dockerfile?, context: context? })
}

/// Whether `state.kind` is `data`; nothing when it is neither word.
fn state(root: &Table<'_>) -> Option<bool> {
    let Some(value) = root.get("state") else {
        return Some(false);
    };
    let table = value.table()?;
    table.only(&["kind"], &TOP_LEVEL);
    match table.get("kind") {
        Some(kind) => kind.one_of(
            &[("none", false), ("data", true)],
            "a database with its migrations is planned; a file on the data volume works today",
        ),
        None => Some(false),
    }
}

/// `order` names every component exactly once.
fn order(root: &Table<'_>) {
    const FIX: &str = "list every component once, for example `order = [\"web\"]`, above the first [table]";
    let components = root.get("components").and_then(|value| value.as_table());
    let entries = components.map(|table| table.entries()).unwrap_or_default();
    let names: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
    let is_inside = |(_, value): &(&str, Value<'_>)| value.as_table().is_some_and(|table| table.get("order").is_some());
    if root.get("order").is_none() && entries.iter().any(is_inside) {
        // Noted as an unknown key of the component, with the reason.
        return;
    }
    let Some(value) = root.need("order", FIX) else {
        return;
    };
    let Some(items) = value.items() else { return };
    let mut seen: Vec<&str> = Vec::new();
    for item in &items {
        let Some(name) = item.text() else { continue };
        let what = if seen.contains(&name) {
            "is there twice"
        } else if !names.contains(&name) {
            "names no component"
        } else {
            seen.push(name);
            continue;
        };
        item.refuse(Refusal::new(
            what,
            "the order has the name of every table [components.<name>] exactly once",
            "write each component's name once",
        ));
    }
    let lacking = names.iter().find(|name| !seen.contains(name));
    if lacking.is_some() || items.is_empty() {
        let lacking =
            lacking.map_or("is empty".to_owned(), |name| format!("lacks the component '{}'", shown_key(name)));
        value.refuse(Refusal::new(lacking, "every component is in the order exactly once", FIX));
    }
}

/// `build` takes `test` alone, whose form the contract leaves open: it is not run yet.
fn build(root: &Table<'_>) {
    if let Some(table) = root.get("build").and_then(|value| value.table()) {
        table.only(&["test"], &TOP_LEVEL);
    }
}

/// `preflight` and `external` are known, and empty until they are built.
fn planned(root: &Table<'_>) {
    let refuse = |value: &Value<'_>| {
        value.refuse(Refusal::new(
            "must be absent or empty",
            "it is planned and does nothing yet; accepting it would promise what is not done",
            "remove it",
        ));
    };
    if let Some(value) = root.get("preflight")
        && value.items().is_some_and(|items| !items.is_empty())
    {
        refuse(&value);
    }
    if let Some(value) = root.get("external")
        && value.table().is_some_and(|table| !table.is_empty())
    {
        refuse(&value);
    }
}

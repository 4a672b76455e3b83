//! `[image]` **(own)**: where a project's images come from, and the bounds of building them.

use super::project::TOP_LEVEL;
use super::{repository, target};
use crate::model::document::{Refusal, Table, form};
use crate::model::policy::{BuildPolicy, ImageFrom, ImagePolicy};

const IMAGE_KEYS: [&str; 8] = [
    "from",
    "repository",
    "credential",
    "build_network",
    "build_cpus",
    "build_memory",
    "build_timeout",
    "build_context_limit",
];

/// The name of a credential, at the top level or in `[image]`.
pub(super) fn credential(table: &Table<'_>) -> Option<Option<String>> {
    let Some(value) = table.get("credential") else {
        return Some(None);
    };
    value.read(form::label).map(|name| Some(name.to_owned()))
}

/// Reads `[image]`.
pub(super) fn read(root: &Table<'_>) -> Option<ImagePolicy> {
    let table = match root.get("image") {
        Some(value) => Some(value.table()?),
        None => None,
    };
    let Some(table) = table else {
        return Some(ImagePolicy {
            from: ImageFrom::Local,
            repository: None,
            credential: None,
            build: build_defaults(),
        });
    };
    table.only(&IMAGE_KEYS, &TOP_LEVEL);
    let from = match table.get("from") {
        Some(value) => value.one_of(
            &[("local", ImageFrom::Local), ("build", ImageFrom::Build), ("registry", ImageFrom::Registry)],
            "an image is already here, is built here, or is pulled",
        ),
        None => Some(ImageFrom::Local),
    };
    let repository = match table.get("repository") {
        Some(value) => value.read(repository::image_name).map(Some),
        None => Some(None),
    };
    let credential = credential(&table);
    let build = build(&table);
    let image = ImagePolicy { from: from?, repository: repository?, credential: credential?, build: build? };
    if image.from == ImageFrom::Registry && image.repository.is_none() {
        table.refuse(
            "repository",
            Refusal::new(
                "is missing",
                "`from = \"registry\"` needs the name of the image to pull",
                "add for example `repository = \"registry.example.org/shop\"`",
            ),
        );
        return None;
    }
    Some(image)
}

fn build_defaults() -> BuildPolicy {
    BuildPolicy {
        network: "none".to_owned(),
        cpus_milli: 1000,
        memory_bytes: form::GIB,
        timeout_seconds: 900,
        context_limit_bytes: form::GIB,
    }
}

/// The bounds of a build (ruling 43).
fn build(table: &Table<'_>) -> Option<BuildPolicy> {
    let defaults = build_defaults();
    let network = match table.get("build_network") {
        Some(value) => value.one_of(
            &[("none", "none"), ("default", "default")],
            "a build runs the repository's code; `default` lets that code reach the network",
        ),
        None => Some("none"),
    };
    let cpus_milli = match table.get("build_cpus") {
        Some(value) => target::cpus(&value),
        None => Some(defaults.cpus_milli),
    };
    let memory_bytes = match table.get("build_memory") {
        Some(value) => value.read(|text| form::size(text, "64m", "1t")),
        None => Some(defaults.memory_bytes),
    };
    let timeout_seconds = match table.get("build_timeout") {
        Some(value) => value.read(|text| form::seconds(text, (10, 6 * 3600), "smh")),
        None => Some(defaults.timeout_seconds),
    };
    let context_limit_bytes = match table.get("build_context_limit") {
        Some(value) => value.read(|text| form::size(text, "1m", "64g")),
        None => Some(defaults.context_limit_bytes),
    };
    Some(BuildPolicy {
        network: network?.to_owned(),
        cpus_milli: cpus_milli?,
        memory_bytes: memory_bytes?,
        timeout_seconds: timeout_seconds?,
        context_limit_bytes: context_limit_bytes?,
    })
}

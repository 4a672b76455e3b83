//! `[components.<name>]`: the one container.

use super::{TOP_LEVEL, single};
use crate::model::desired::DataRequest;
use crate::model::document::{Refusal, Table, Value};

const KEYS: [&str; 7] = ["image", "kind", "port", "health", "data", "concurrent_safe", "upstream_api"];

/// Directories that belong to the image's system or to the kernel.
///
/// A data volume there would hide the programs, libraries, users and devices that the image brings,
/// or be hidden itself by what the engine mounts (`/proc`, `/sys`, `/dev`, `/run`, the tmpfs on
/// `/tmp`); and what a program expects to find there would come from data that survives the release.
/// Everything below them is refused too. `/home`, `/opt`, `/srv`, `/mnt`, `/media` and any directory
/// of the application's own are free.
///
/// Source: the contract's `/etc`, `/tmp`, `/usr`, …; completed from the Filesystem Hierarchy
/// Standard 3.0, chapters 3 and 6.
const SYSTEM_DIRECTORIES: [&str; 18] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/lost+found",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/selinux",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
];

/// The one component.
pub(super) struct Component {
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) health: String,
    pub(super) data: Option<DataRequest>,
}

/// Reads the component; `image` is the name of the one image and `has_data` what `state.kind` says,
/// each absent when it could not be read.
pub(super) fn read(root: &Table<'_>, image: Option<&str>, has_data: Option<bool>) -> Option<Component> {
    let (name, table) = single(root, "components", "write one table `[components.<name>]` with its `image`")?;
    table.only(&KEYS, &TOP_LEVEL);
    image_reference(&table, image);
    kind(&table);
    let port = match table.get("port") {
        Some(value) => value.integer(1..=65535, "it is the TCP port that the server listens on inside the container"),
        None => Some(8080),
    };
    let health = match table.get("health") {
        Some(value) => value.read(health),
        None => Some("/healthz".to_owned()),
    };
    let concurrent_safe = match table.get("concurrent_safe") {
        Some(value) => value.boolean(),
        None => Some(false),
    };
    upstream_api(&table);
    let mount = mount(&table, has_data);
    let (port, health, concurrent_safe) = (port?, health?, concurrent_safe?);
    let data = mount?.map(|mount| DataRequest { mount, concurrent_safe });
    Some(Component { name, port, health, data })
}

fn image_reference(table: &Table<'_>, image: Option<&str>) {
    let Some(value) = table.need("image", "add `image = \"<name>\"`, the name of the [images.<name>] table") else {
        return;
    };
    let Some(text) = value.text() else { return };
    if image.is_some_and(|image| image != text) {
        value.refuse(Refusal::new(
            "names no image",
            "it must be the name of the one table [images.<name>]",
            "write that table's name",
        ));
    }
}

fn kind(table: &Table<'_>) {
    if let Some(value) = table.get("kind")
        && value.text().is_some_and(|text| text != "http")
    {
        value.refuse(Refusal::new(
            "must be \"http\"",
            "a release is proven by HTTP checks and switched by an HTTP proxy",
            "write `kind = \"http\"` or leave it out",
        ));
    }
}

/// Source: app.toml contract, `health`: `^/[A-Za-z0-9/_.-]*$`.
fn health(text: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
    if text.len() <= 1024 && text.starts_with('/') && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "must match ^/[A-Za-z0-9/_.-]*$",
            "it is the bare path of the health check, without a query",
            "write for example `health = \"/healthz\"`",
        ))
    }
}

fn upstream_api(table: &Table<'_>) {
    if let Some(value) = table.get("upstream_api")
        && value.text().is_some_and(|text| !text.is_empty())
    {
        value.refuse(Refusal::new(
            "must be absent or empty",
            "it is planned and does nothing yet; accepting it would promise what is not done",
            "remove it",
        ));
    }
}

/// The mount path, with `state.kind = "data"`; nothing when it is missing, wrong or out of place.
fn mount(table: &Table<'_>, has_data: Option<bool>) -> Option<Option<String>> {
    match (table.get("data"), has_data) {
        (None, Some(true)) => {
            table.refuse(
                "data",
                Refusal::new(
                    "is missing",
                    "`state.kind = \"data\"` needs the path where the volume is mounted",
                    "add for example `data = \"/data\"`",
                ),
            );
            None
        }
        (None, Some(false) | None) => Some(None),
        (Some(value), Some(false)) => {
            without_state(&value);
            None
        }
        (Some(value), Some(true) | None) => value.read(mount_path).map(Some),
    }
}

fn without_state(value: &Value<'_>) {
    value.refuse(Refusal::new(
        "is only for `state.kind = \"data\"`",
        "without it the target has no volume to mount there",
        "add `[state]` with `kind = \"data\"`, or remove `data`",
    ));
}

/// Source: app.toml contract, `data`: `^/[a-z0-9][a-z0-9/_.-]*$` and no system directory.
fn mount_path(text: &str) -> Result<String, Refusal> {
    let refuse = |what: &'static str, why: &'static str| {
        Err(Refusal::new(what, why, "choose a directory of your own, for example `data = \"/data\"`"))
    };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/_.-".contains(&byte);
    let first = text.as_bytes().get(1).is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if text.len() > 255 || !text.starts_with('/') || !first || !text.bytes().all(plain) {
        return refuse("must match ^/[a-z0-9][a-z0-9/_.-]*$", "it is an absolute path in plain lower-case characters");
    }
    if text.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
        return refuse(
            "must not have `.`, `..`, empty parts or a slash at its end",
            "a path that can be written in two ways hides where the volume really goes",
        );
    }
    let is_system =
        |directory: &&str| text.strip_prefix(*directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if SYSTEM_DIRECTORIES.iter().any(is_system) {
        return refuse(
            "is a system directory or lies below one",
            "a volume there would hide what the image brings, or be hidden by what the engine mounts",
        );
    }
    Ok(text.to_owned())
}

//! The file as a whole.

use super::{HostConfig, named, sections};
use crate::model::Problems;
use crate::model::document::{self, FileName, Table};

/// The sections, which are the only keys of the top level besides `schema`.
pub(in crate::config) const TOP_LEVEL: [&str; 17] = [
    "schema",
    "platform",
    "server",
    "store",
    "github",
    "poll",
    "drift",
    "docker",
    "edge",
    "cloudflare",
    "upstreams",
    "backup",
    "boxes",
    "tokens",
    "clusters",
    "notify",
    "credentials",
];

/// Parses and validates `huta.toml`; `file` is its name for the reader.
///
/// # Errors
/// All problems of the file.
pub fn parse(bytes: &[u8], file: &str) -> Result<HostConfig, Problems> {
    document::read(bytes, FileName { file, label: "huta.toml" }, config)
}

fn config(root: &Table<'_>) -> Option<HostConfig> {
    document::schema(root, "write `schema = 1` at the top".to_owned())?;
    root.only(&TOP_LEVEL, &[]);
    let platform = section(root, "platform", sections::platform);
    let server = section(root, "server", sections::server);
    let store = section(root, "store", sections::store);
    let github = section(root, "github", sections::github);
    let poll = section(root, "poll", sections::poll);
    let drift = section(root, "drift", sections::drift);
    let docker = section(root, "docker", sections::docker);
    let edge = section(root, "edge", sections::edge);
    let cloudflare = section(root, "cloudflare", sections::cloudflare);
    let backup = section(root, "backup", |table| sections::backup(table).map(Some));
    let upstreams = named::read(root, "upstreams", named::upstream);
    let boxes = named::read(root, "boxes", named::dev_box);
    let tokens = named::read(root, "tokens", named::token);
    let clusters = named::read(root, "clusters", named::cluster);
    let notify = named::read(root, "notify", named::notify);
    let credentials = named::read(root, "credentials", named::credential);
    Some(HostConfig {
        platform: platform?,
        server: server?,
        store: store?,
        github: github?,
        poll: poll?,
        drift: drift?,
        docker: docker?,
        edge: edge?,
        cloudflare: cloudflare?,
        upstreams: upstreams?,
        backup: backup?,
        boxes: boxes?,
        tokens: tokens?,
        clusters: clusters?,
        notify: notify?,
        credentials: credentials?,
    })
}

/// A section's value, or its default when the section is absent.
fn section<'d, T: Default>(root: &Table<'d>, key: &str, read: impl FnOnce(&Table<'d>) -> Option<T>) -> Option<T> {
    match root.get(key) {
        Some(value) => read(&value.table()?),
        None => Some(T::default()),
    }
}

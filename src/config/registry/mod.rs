//! `projects.d/<project>.toml`: one project and its targets.
//!
//! | file | what it reads |
//! |---|---|
//! | `project` | the top level |
//! | `image` | `[image]` |
//! | `target` | what every target has, `windows`, cluster targets |
//! | `seat` | what a host target has: hosts, slots, limits, data |
//! | `environment` | `env`, `secrets`, `job_secrets` |
//! | `repository` | the forms of `repo` |
//! | `cross` | what must be unique across all files |

mod cross;
mod environment;
mod image;
mod project;
mod repository;
mod seat;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::host::HostConfig;
use crate::model::document::{self, FileName};
use crate::model::policy::{Project, TargetKind};
use crate::model::{Place, Problems};

pub use cross::cross_check;

/// A validated registry file, with the places that a check across files points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it says.
    pub project: Project,
    /// Dotted path → place, for `uid` and each member of `hosts` and `slots`.
    pub places: BTreeMap<String, Place>,
}

/// Parses and validates one registry file, and keeps places for [`cross_check`].
///
/// `file` is its name for the reader, `stem` its name without `.toml`, which `project` must equal.
/// With `host`, what a target names must exist there; without it those rules pass and
/// [`unchecked`] lists them (ruling 46).
///
/// # Errors
/// All problems of the file.
pub fn read(bytes: &[u8], file: &str, stem: &str, host: Option<&HostConfig>) -> Result<Entry, Problems> {
    let label = format!("{}.toml", document::shown_key(stem));
    document::read(bytes, FileName { file, label: &label }, |root| project::read(root, stem, host))
}

/// Parses and validates one registry file; see [`read`].
///
/// # Errors
/// All problems of the file.
pub fn parse_project(bytes: &[u8], stem: &str, host: Option<&HostConfig>) -> Result<Project, Problems> {
    read(bytes, &format!("{stem}.toml"), stem, host).map(|entry| entry.project)
}

/// The rules of a project that need `huta.toml`, as lines for people; for a check without one.
#[must_use]
pub fn unchecked(project: &Project) -> Vec<String> {
    let mut lines = Vec::new();
    for (label, target) in &project.targets {
        match &target.kind {
            TargetKind::Host(policy) => {
                lines.push(format!("targets.{label}.hosts: that each lies in a zone of [cloudflare] zones"));
                if !policy.upstreams.is_empty() {
                    lines.push(format!("targets.{label}.upstreams: that each is defined in [upstreams.<name>]"));
                }
                if policy.data.is_some() {
                    lines.push(format!("targets.{label}.data: that [backup] is there"));
                }
            }
            TargetKind::Cluster(_) => {
                lines.push(format!("targets.{label}.cluster: that it is defined in [clusters.<name>]"));
            }
        }
    }
    lines
}

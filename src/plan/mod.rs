//! From a difference to steps, the undo included.
//!
//! Refuses to plan over what is not ours, and says so; never looks at an engine.

pub mod replace;
pub mod step;
pub mod support;
#[cfg(test)]
mod tests;
mod text;

use serde::{Deserialize, Serialize};

use crate::model::{Digest, ReleaseNumber, Sha, Slot};

pub use replace::{Observed, Serving, plan, plan_for};
pub use step::Step;

/// Everything a release will do, decided in calm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The commit it makes live.
    pub revision: Sha,
    /// Why there is anything to do.
    pub cause: Cause,
    /// The seat that the candidate takes.
    pub slot: Slot,
    /// The seat that serves now.
    pub serving: Option<Slot>,
    /// On the idle slot; the serving one is left alone (unless the plan states an outage).
    pub converge: Vec<Step>,
    /// The switch and its proof.
    pub commit: Vec<Step>,
    /// After the proof.
    pub retire: Vec<Step>,
    /// The way back from anywhere in `converge`.
    pub undo_before: Vec<Step>,
    /// The way back from anywhere in `commit`.
    pub undo_after: Vec<Step>,
    /// What was chosen not to be done, and what a reader should know: an outage above all.
    pub held: Vec<String>,
}

impl Plan {
    /// Keeps more image tags than the target's own: `keep_releases` is the union over a project's targets,
    /// which share one image repository (ruling 40).
    pub fn keep_images(&mut self, tags: &[String]) {
        for step in &mut self.retire {
            if let Step::PruneImages { keep, .. } = step {
                for tag in tags {
                    if !keep.contains(tag) {
                        keep.push(tag.clone());
                    }
                }
            }
        }
    }
}

/// Why a plan has steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Nothing was ever released here.
    FirstRelease,
    /// Another commit is wanted.
    NewRevision,
    /// The operator's side changed: a new generation of the live sha (ruling 12).
    RegistryChanged,
    /// What runs is not what was released, and the target heals.
    Drift,
}

impl Cause {
    /// As a clause.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstRelease => "first release",
            Self::NewRevision => "new revision",
            Self::RegistryChanged => "the registry changed",
            Self::Drift => "drift",
        }
    }
}

/// What consent to a plan is bound to (ruling 6): no ids, no times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding<'a> {
    /// The commit.
    pub revision: &'a Sha,
    /// Digest of the manifest.
    pub manifest: &'a Digest,
    /// Digest of the registry's part.
    pub registry: &'a Digest,
    /// The image's id when it is already here, else the tree that it will be built from.
    pub image: &'a str,
    /// The release that serves now.
    pub live_release: Option<ReleaseNumber>,
    /// The steps.
    pub plan: &'a Plan,
}

impl Binding<'_> {
    /// The plan's hash, 64 hex digits; its first 12 are what people type.
    ///
    /// # Errors
    /// When the plan cannot be written as JSON: a bug of ours.
    pub fn hash(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of(&serde_json::to_vec(self)?))
    }
}

//! Everything the loop can reach, by trait, and what it was told once at the start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::edge::Edge;
use crate::image::Images;
use crate::model::policy::{Project, Repository, TargetPolicy};
use crate::model::{Class, ProjectName, Reason, ReasonCode, Sha, TargetName};
use crate::probe::Probe;
use crate::source::{Checks, Source};
use crate::store::{Store, StoreError};
use crate::target::Target;

use super::progress::Teller;

/// The effects, handed in by `app`.
#[derive(Clone)]
pub struct Ports {
    /// Git.
    pub source: Arc<dyn Source>,
    /// CI.
    pub checks: Arc<dyn Checks>,
    /// Images.
    pub images: Arc<dyn Images>,
    /// The engine.
    pub target: Arc<dyn Target>,
    /// The edge.
    pub edge: Arc<dyn Edge>,
    /// Samples.
    pub probe: Arc<dyn Probe>,
    /// Records.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who watches.
    pub teller: Teller,
    /// What holds for all targets.
    pub settings: Arc<Settings>,
    /// The registry as last read with success.
    pub catalog: watch::Receiver<Arc<Catalog>>,
}

impl Ports {
    /// The same effects, telling in the name of one pass.
    #[must_use]
    pub fn for_pass(&self, pass: u64) -> Self {
        Self { teller: self.teller.for_pass(pass), ..self.clone() }
    }

    /// Where a target's commits come from; none when the registry no longer names it.
    #[must_use]
    pub fn repository(&self, target: &TargetName) -> Option<Repository> {
        self.catalog.borrow().projects.get(&target.project).map(|project| project.repo.clone())
    }
}

/// The registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// By name.
    pub projects: BTreeMap<ProjectName, Project>,
}

impl Catalog {
    /// A project and one of its targets.
    #[must_use]
    pub fn find(&self, target: &TargetName) -> Option<(&Project, &TargetPolicy)> {
        let project = self.projects.get(&target.project)?;
        Some((project, project.targets.get(&target.target)?))
    }

    /// Every target's name.
    pub fn targets(&self) -> impl Iterator<Item = TargetName> {
        self.projects.values().flat_map(|project| {
            project.targets.keys().map(|label| TargetName::new(project.name.clone(), label.clone()))
        })
    }
}

/// What holds for all targets of this daemon.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names this installation in labels.
    pub instance: String,
    /// Private files of the loop (build contexts) live below it.
    pub state_dir: PathBuf,
    /// Where Caddy writes access logs; it must be able to.
    pub access_log_dir: PathBuf,
    /// How vhosts get their certificates.
    pub tls: EdgeTls,
    /// Where the public proof is taken.
    pub public_checks: PublicChecks,
    /// The interval of looks at a remote.
    pub poll_every: Duration,
    /// The interval of looks for drift.
    pub drift_every: Duration,
}

/// `[edge] tls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeTls {
    /// A Cloudflare Origin CA certificate.
    OriginCa,
    /// Caddy's own authority.
    Internal,
    /// Plain HTTP.
    Off,
}

/// `[edge] public_checks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicChecks {
    /// By the name, through DNS and whatever stands in front.
    Public,
    /// At the edge on this machine.
    Direct,
}

/// What may cut a release short at its next safe point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Interrupt {
    /// Nothing.
    #[default]
    None,
    /// Another commit is wanted: before the switch, the release is undone.
    Superseded(Sha),
    /// The daemon stops: everything stays as it is, and the next start goes on from the journal.
    Shutdown,
}

/// How a running release learns of an interrupt.
pub type Interrupts = watch::Receiver<Interrupt>;

/// Why a step was not done.
#[derive(Debug, Clone)]
pub struct StepError {
    /// What the release records.
    pub reason: Reason,
    /// Whether to try again.
    pub class: Class,
}

impl StepError {
    /// A final failure.
    pub fn stalled(reason: Reason) -> Self {
        Self { reason, class: Class::Stalled }
    }

    /// A broken promise of our own.
    pub fn bug(message: impl Into<String>) -> Self {
        Self { reason: Reason::new(ReasonCode::Bug, message), class: Class::Bug }
    }
}

macro_rules! step_error_from {
    ($($error:ty),*) => {
        $(impl From<$error> for StepError {
            fn from(error: $error) -> Self {
                Self { reason: error.reason, class: error.class }
            }
        })*
    };
}
step_error_from!(
    crate::source::SourceError,
    crate::image::ImageError,
    crate::target::TargetError,
    crate::edge::EdgeError
);

/// Why a release stopped in the middle; its journal tells the next start where to go on.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The daemon stops.
    #[error("the daemon stops; the release goes on at the next start")]
    Shutdown,
    /// Intent could not be written, so nothing was done (promise P6).
    #[error("the record of a release could not be written, so nothing more was done")]
    Store(#[from] StoreError),
    /// A transition that cannot be.
    #[error("a release was led into a state that does not exist")]
    Bug(#[from] crate::release::IllegalTransition),
    /// A stored plan does not read as one.
    #[error("the stored plan {id} cannot be read: {detail}")]
    Plan {
        /// The plan's id.
        id: String,
        /// How it fails to read.
        detail: String,
    },
}

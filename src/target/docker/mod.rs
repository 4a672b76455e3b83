//! Docker through its engine API: two seats behind one bridge, closed to the outside.
//!
//! What it refuses to do: touch a container or network that does not carry our labels, start a
//! container while the isolation rules are not in place, read an engine that does not answer as
//! an empty one (promise P7), and any step that is not about an engine.

mod body;
mod engine;
pub mod events;
mod isolation;
mod logs;
mod network;
mod observe;
mod ports;
mod preflight;
mod slots;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use async_trait::async_trait;

use self::engine::{Engine, failure};
use self::isolation::Firewall;
pub use self::isolation::NFT_RULES;
use crate::model::live::LiveState;
use crate::model::{Class, ReasonCode, Slot, TargetName};
use crate::plan::Step;
use crate::target::{Target, TargetError};

/// What the adapter is told once, at the start.
#[derive(Debug, Clone)]
pub struct DockerConfig {
    /// The engine's Unix socket, usually `/var/run/docker.sock`.
    pub socket: PathBuf,
    /// The state directory, for the free-space check.
    pub state_dir: PathBuf,
    /// The name of this installation, a label of everything it makes. It has to outlive the
    /// store: containers made under another one count as foreign.
    pub instance: String,
}

/// Runs releases on this host's engine.
#[derive(Debug)]
pub struct DockerTarget {
    engine: Engine,
    firewall: Firewall,
    state_dir: PathBuf,
    instance: String,
}

impl DockerTarget {
    /// Makes the adapter. Connects to nothing yet.
    #[must_use]
    pub fn new(config: DockerConfig) -> Self {
        Self {
            engine: Engine::new(config.socket),
            firewall: Firewall::of_this_host(),
            state_dir: config.state_dir,
            instance: config.instance,
        }
    }

    /// Removes the target's bridge, if it is ours; does nothing when there is none.
    ///
    /// # Errors
    /// [`TargetError`] `NameTaken` when the network is not ours, `EngineUnavailable` when the
    /// engine does not answer or containers still use it.
    pub async fn remove_network(&self, target: &TargetName) -> Result<(), TargetError> {
        network::remove(self, target).await
    }
}

#[async_trait]
impl Target for DockerTarget {
    async fn observe(&self, target: &TargetName) -> Result<LiveState, TargetError> {
        observe::target(self, target).await
    }

    async fn apply(&self, target: &TargetName, step: &Step) -> Result<(), TargetError> {
        match step {
            Step::Preflight { slot, port, free_bytes, free_inodes } => {
                let need = preflight::Room { bytes: *free_bytes, inodes: *free_inodes };
                preflight::check(self, target, (*slot, *port), need).await
            }
            Step::EnsureNetwork { network } => network::ensure(self, target, network).await,
            Step::EnsureIsolation { network } => network::isolate(self, target, network).await,
            Step::RemoveSlot { slot, grace_seconds } => slots::remove(self, target, *slot, *grace_seconds).await,
            Step::StartSlot { container } => slots::start(self, target, container).await,
            Step::ResumeSlot { slot } => slots::resume(self, target, *slot).await,
            Step::KeepSlot { slot, is_kept } => slots::keep(self, target, *slot, *is_kept).await,
            // The caller has waited for the drain: both kinds stop now.
            Step::DrainSlot { slot, grace_seconds, .. } | Step::StopSlot { slot, grace_seconds } => {
                slots::stop(self, target, *slot, *grace_seconds).await
            }
            Step::EnsureVhost { .. }
            | Step::PrepareImage { .. }
            | Step::AwaitHealth { .. }
            | Step::SmokeSlot { .. }
            | Step::Route { .. }
            | Step::Unroute
            | Step::ConfirmEdge { .. }
            | Step::ProvePublic { .. }
            | Step::PruneImages { .. } => Err(failure(
                ReasonCode::Bug,
                Class::Bug,
                format!("{target}: the Docker engine was handed a step that is not its own; please report this"),
            )),
        }
    }

    async fn log_tail(&self, target: &TargetName, slot: Slot, lines: u32) -> Result<Vec<String>, TargetError> {
        logs::tail(self, target, slot, lines).await
    }
}

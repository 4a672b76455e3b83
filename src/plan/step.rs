//! The steps of a plan: everything that could be chosen is already chosen in them.
//!
//! Each step may run twice and then changes nothing more (invariant I4).

use serde::{Deserialize, Serialize};

use crate::model::desired::{ContainerSpec, ImageRequest, NetworkSpec, SmokeCheck, Vhost};
use crate::model::{Sha, Slot};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// Checks that there is room and that the slot's port is free.
    Preflight {
        /// The idle slot.
        slot: Slot,
        /// Its port.
        port: u16,
        /// Bytes that must be free where the engine and the state directory keep their data.
        free_bytes: u64,
        /// Inodes that must be free there.
        free_inodes: u64,
    },
    /// Makes the bridge, or finds ours.
    EnsureNetwork {
        /// The bridge.
        network: NetworkSpec,
    },
    /// Closes every way out of the bridge.
    EnsureIsolation {
        /// The bridge.
        network: NetworkSpec,
    },
    /// Writes the vhost and loads it if its text changed.
    EnsureVhost {
        /// The vhost.
        vhost: Vhost,
    },
    /// Builds, finds or pulls the image, checks the contract's rules, pins its id.
    PrepareImage {
        /// Which.
        image: Box<ImageRequest>,
    },
    /// Stops (SIGTERM, then SIGKILL) and removes what is ours in a slot.
    RemoveSlot {
        /// The slot.
        slot: Slot,
        /// Seconds between SIGTERM and SIGKILL.
        grace_seconds: u32,
    },
    /// Starts a slot's container, without a restart policy.
    StartSlot {
        /// The container; its `image_id` is filled in from `PrepareImage` when that ran in this plan.
        container: Box<ContainerSpec>,
    },
    /// Starts again what is stopped in a slot (undo of an exclusive replacement).
    ResumeSlot {
        /// The slot.
        slot: Slot,
    },
    /// Waits until the slot says that it is healthy and this commit.
    AwaitHealth {
        /// The slot.
        slot: Slot,
        /// Its loopback port.
        port: u16,
        /// Path of the check.
        path: String,
        /// The commit it must name.
        revision: Sha,
        /// Seconds from the start of the step.
        within_seconds: u32,
    },
    /// Runs the smoke checks on the slot over loopback.
    SmokeSlot {
        /// The slot.
        slot: Slot,
        /// Its loopback port.
        port: u16,
        /// The `Host` header.
        host: String,
        /// The checks.
        checks: Vec<SmokeCheck>,
    },
    /// Moves the traffic to a slot.
    Route {
        /// The slot.
        slot: Slot,
    },
    /// Takes the traffic away: the vhost answers 503 `not released yet`.
    Unroute,
    /// Asks through the edge, on loopback, until the commit answers on every host.
    ConfirmEdge {
        /// Host names.
        hosts: Vec<String>,
        /// Path of the health check.
        path: String,
        /// The commit that must answer.
        revision: Sha,
        /// Seconds from the start of the step.
        within_seconds: u32,
    },
    /// Health on every host and smoke on the first, the way the public comes.
    ProvePublic {
        /// Host names.
        hosts: Vec<String>,
        /// Path of the health check.
        path: String,
        /// The commit that must answer.
        revision: Sha,
        /// The checks.
        checks: Vec<SmokeCheck>,
        /// Seconds for which transport errors are tried again.
        within_seconds: u32,
    },
    /// Lets the engine start a slot's container again after a reboot, or not.
    KeepSlot {
        /// The slot.
        slot: Slot,
        /// Whether.
        is_kept: bool,
    },
    /// Stops a slot's container once the drain is over, and keeps it.
    DrainSlot {
        /// The slot.
        slot: Slot,
        /// Seconds after the switch.
        drain_seconds: u32,
        /// Seconds between SIGTERM and SIGKILL.
        grace_seconds: u32,
    },
    /// Stops a slot's container now and keeps it startable (exclusive replacement).
    StopSlot {
        /// The slot.
        slot: Slot,
        /// Seconds between SIGTERM and SIGKILL.
        grace_seconds: u32,
    },
    /// Untags the project's images beyond what is kept; never one that a container uses.
    PruneImages {
        /// `huta-build/<project>`.
        repository: String,
        /// Tags (12 hex) that stay.
        keep: Vec<String>,
    },
}

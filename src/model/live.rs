//! The live state of a host target: what runs now, as it was read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::desired::{ContainerSpec, NetworkSpec};
use super::name::Slot;
use super::revision::{Digest, ReleaseNumber, Sha};

/// What the engine says of one target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LiveState {
    /// Slots a and b.
    pub slots: [SlotState; 2],
    /// The bridge, as read; none when it does not exist.
    pub network: Option<NetworkSpec>,
    /// What the isolation rules are missing; empty when complete.
    pub isolation_missing: Vec<String>,
}

/// What sits in one seat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotState {
    /// Nothing.
    #[default]
    Empty,
    /// A container of ours.
    Ours(Box<LiveContainer>),
    /// A container of that name which we did not make: never touched.
    Foreign {
        /// The engine's id.
        id: String,
    },
}

impl SlotState {
    /// Our container, if there is one.
    #[must_use]
    pub fn ours(&self) -> Option<&LiveContainer> {
        match self {
            Self::Ours(container) => Some(container),
            Self::Empty | Self::Foreign { .. } => None,
        }
    }
}

/// One of our containers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveContainer {
    /// The engine's id.
    pub id: String,
    /// Its settings, in the words of a specification.
    pub spec: ContainerSpec,
    /// From the label `run.trueup.release`.
    pub release: Option<ReleaseNumber>,
    /// From the label `run.trueup.revision`.
    pub revision: Option<Sha>,
    /// From the label `run.trueup.manifest`.
    pub manifest: Option<Digest>,
    /// What it is doing.
    pub run: RunState,
    /// Whether the engine starts it again after a reboot.
    pub is_kept: bool,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Runs.
    Running {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// Made and not started.
    Created,
    /// Ended.
    Exited {
        /// Exit code; 137 after SIGKILL.
        code: i64,
        /// Whether the kernel ended it for memory.
        is_out_of_memory: bool,
    },
}

impl RunState {
    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

/// What the edge says of one target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LiveEdge {
    /// Which slot the marker names; none = 503 `not released yet`.
    pub serving: Option<Slot>,
    /// The vhost file's text; none when there is no file.
    pub vhost: Option<String>,
    /// Whether Caddy serves the hosts of that file now.
    pub is_loaded: bool,
}

impl LiveState {
    /// The state of one slot.
    #[must_use]
    pub fn slot(&self, slot: Slot) -> &SlotState {
        slot.of(&self.slots)
    }
}

//! The edge routes traffic: the trait, and its adapters beside it.

use std::net::SocketAddr;

use async_trait::async_trait;

use crate::model::desired::Vhost;
use crate::model::live::LiveEdge;
use crate::model::{Class, Reason, ReasonCode, Slot, TargetName};
use crate::probe::Trust;
use crate::verify::Verified;

pub mod caddy;

/// How to reach a host through the edge on this machine, past DNS and Cloudflare.
#[derive(Debug, Clone)]
pub struct EdgePath {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Where the edge listens.
    pub socket: SocketAddr,
    /// Which certificate it shows.
    pub trust: Trust,
}

/// Which slot gets the traffic. Every call may be repeated after a crash, and then changes nothing more.
#[async_trait]
pub trait Edge: Send + Sync {
    /// Reads marker and vhost. Never writes. Unreadable is an error, not absence (promise P7).
    ///
    /// # Errors
    /// [`EdgeError`] when the edge or its files cannot be read.
    async fn observe(&self, target: &TargetName, vhost_file: &str) -> Result<LiveEdge, EdgeError>;

    /// Writes the vhost atomically and loads it if its text changed; a load that fails, or would
    /// change anything but this vhost, leaves file and configuration as they were (ruling 31).
    ///
    /// # Errors
    /// [`EdgeError`] with the reason that the release gets.
    async fn ensure_vhost(&self, target: &TargetName, vhost: &Vhost) -> Result<(), EdgeError>;

    /// Moves the traffic to a slot, durably and at once, without a reload (ruling 33).
    ///
    /// `proof` is the permission: only [`crate::verify::verified`] makes one, from a health check
    /// and every smoke check of this release (invariant I3).
    ///
    /// # Errors
    /// [`EdgeError`] when the marker cannot be moved.
    async fn route(&self, target: &TargetName, slot: Slot, proof: &Verified) -> Result<(), EdgeError>;

    /// Moves the traffic back to the slot that served before, or to none: an undo or a revert.
    ///
    /// Needs no new proof: what served before this release is the safest thing known.
    ///
    /// # Errors
    /// [`EdgeError`] when the marker cannot be moved.
    async fn route_back(&self, target: &TargetName, slot: Option<Slot>) -> Result<(), EdgeError>;

    /// How to ask for `host` through the edge.
    ///
    /// # Errors
    /// [`EdgeError`] when no listener serves this host.
    async fn path(&self, host: &str) -> Result<EdgePath, EdgeError>;
}

/// Why the edge did not do it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct EdgeError {
    /// What the release records.
    pub reason: Reason,
    /// What the loop does next.
    pub class: Class,
}

impl EdgeError {
    /// The edge did not answer or not as expected: goes away by itself, or with Caddy's restart.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { reason: Reason::new(ReasonCode::EdgeUnavailable, message), class: Class::Transient }
    }

    /// A person has to change Caddy's configuration first.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { reason: Reason::new(ReasonCode::EdgeRefused, message), class: Class::Stalled }
    }
}

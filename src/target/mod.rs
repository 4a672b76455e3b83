//! Targets run releases: the trait, and its adapters beside it.

use async_trait::async_trait;

use crate::model::live::LiveState;
use crate::model::{Class, Reason, Slot, TargetName};
use crate::plan::Step;

pub mod docker;

/// Where releases land. Every call may be repeated after a crash, and then changes nothing more.
#[async_trait]
pub trait Target: Send + Sync {
    /// Reads what runs now. Never writes.
    ///
    /// # Errors
    /// [`TargetError`] when the engine does not answer; never an empty state instead (promise P7).
    async fn observe(&self, target: &TargetName) -> Result<LiveState, TargetError>;

    /// Carries out one step of the kinds that an engine can: preflight, network, isolation, slots.
    /// Chooses nothing: every choice is already in `step`.
    ///
    /// # Errors
    /// [`TargetError`] with the reason that the release gets.
    async fn apply(&self, target: &TargetName, step: &Step) -> Result<(), TargetError>;

    /// The last `lines` lines that the slot's container wrote, oldest first; empty when there is none.
    ///
    /// # Errors
    /// [`TargetError`] when the engine does not answer.
    async fn log_tail(&self, target: &TargetName, slot: Slot, lines: u32) -> Result<Vec<String>, TargetError>;
}

/// Why an engine did not do a step.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct TargetError {
    /// What the release records; its code says whose fault it is.
    pub reason: Reason,
    /// What the loop does next.
    pub class: Class,
}

//! Webhook deliveries: what was taken in, what became of it, and which names a repository had.
//!
//! A part of the store with a trait of its own: whoever takes deliveries in needs nothing else of it.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::model::{Sha, TargetName};

/// Targets named in one record; `woken_count` has them all.
pub const TARGETS_KEPT: usize = 100;

/// A delivery whose signature was right.
///
/// Nothing in it is believed: it says what a sender claimed, and whom we asked to look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The hook's id, as the sender names it; empty when it does not.
    pub hook: String,
    /// The delivery's id: one for each event, the same when it is delivered again.
    pub id: String,
    /// The event.
    pub event: String,
    /// Its kind, where the event has kinds.
    pub action: Option<String>,
    /// `owner/name`, as the payload has it.
    pub repository: Option<String>,
    /// The repository's number, which a rename does not change.
    pub repository_id: Option<i64>,
    /// The full ref.
    pub reference: Option<String>,
    /// The commit that the payload names.
    pub sha: Option<Sha>,
    /// When its first copy came.
    pub received_at: Timestamp,
    /// When its last copy came.
    pub last_at: Timestamp,
    /// How often it came.
    pub copies: u32,
    /// The body's size in bytes.
    pub bytes: u64,
    /// Which secret fitted: 1, or 2 during a rotation.
    pub secret_slot: u8,
    /// `Woke`, or one word for why nobody was.
    pub reason: String,
    /// The same in one sentence.
    pub message: String,
    /// Who was asked to look, at most [`TARGETS_KEPT`].
    pub woken: Vec<TargetName>,
    /// How many were.
    pub woken_count: u32,
}

/// A name that a repository had when it delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryName {
    /// The repository's number.
    pub id: i64,
    /// `owner/name` in lower case.
    pub name: String,
    /// When it was first seen under this name.
    pub seen_at: Timestamp,
}

/// Where deliveries survive a crash. Every write is durable when it returns.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Stores deliveries, all of them or none; says of each whether it is the first copy with its hook and
    /// id. Another copy only raises `copies` and sets `last_at`.
    async fn put_deliveries(&self, deliveries: &[DeliveryRecord]) -> Result<Vec<bool>, StoreError>;
    /// What every hook delivered under an id, or under a prefix of at least 8 characters; newest first, at
    /// most 20.
    async fn deliveries_by_id(&self, id: &str) -> Result<Vec<DeliveryRecord>, StoreError>;
    /// Newest first, at most `limit`.
    async fn recent_deliveries(&self, limit: u32) -> Result<Vec<DeliveryRecord>, StoreError>;
    /// Forgets all but the newest `keep`; says how many went.
    async fn prune_deliveries(&self, keep: u32) -> Result<u64, StoreError>;
    /// All names, oldest first.
    async fn repository_names(&self) -> Result<Vec<RepositoryName>, StoreError>;
    /// Remembers a name; one that is known keeps its time.
    async fn put_repository_name(&self, name: &RepositoryName) -> Result<(), StoreError>;
}

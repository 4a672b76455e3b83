//! Durable before it is answered: one task writes what has gathered as one batch, then wakes, then lets the
//! handlers answer (ruling 26). While one batch is flushed, the next gathers.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::index::Followers;
use super::pace::Pace;
use crate::model::TargetName;
use crate::reconcile::worker::chain;
use crate::store::deliveries::{Deliveries, DeliveryRecord, RepositoryName};
use crate::store::record::Condition;
use crate::store::{Store, StoreError};

/// Deliveries that wait for the disk; more are answered 503.
pub const QUEUE: usize = 4096;

/// Deliveries in one flush.
const BATCH: usize = 512;

/// Deliveries that are remembered. GitHub itself forgets after three days.
pub const KEPT: u32 = 100_000;

/// New deliveries between two looks for what can be forgotten.
const PRUNE_EVERY: usize = 1000;

/// A delivery on its way to the disk.
pub struct Entry {
    /// What is stored.
    pub record: DeliveryRecord,
    /// Who is woken once it is.
    pub followers: Vec<Followers>,
    /// Names to remember with it.
    pub learned: Vec<RepositoryName>,
    /// What its targets' statuses say from now on.
    pub conditions: Vec<(TargetName, Condition)>,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is on the disk, and its targets are awake.
    First,
    /// A copy of it was on the disk before.
    Copy,
}

/// Why an entry was not stored; the sender may try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStored {
    /// Too many wait.
    QueueFull,
    /// The store failed, or the daemon stops.
    StoreFailed,
}

type Waiting = (Entry, oneshot::Sender<Result<Stored, NotStored>>);

/// The way to the disk.
#[derive(Debug, Clone)]
pub struct Writer {
    queue: mpsc::Sender<Waiting>,
}

impl Writer {
    /// Starts the task that writes. It ends when the last writer is dropped.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, pace: Pace, queue: usize) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(queue);
        (Self { queue: sender }, tokio::spawn(run(store, pace, receiver)))
    }

    /// Stores an entry; returns when it is durable. It is stored and its targets are woken even if nobody
    /// waits for the answer any more.
    ///
    /// # Errors
    /// [`NotStored`].
    pub async fn put(&self, entry: Entry) -> Result<Stored, NotStored> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send((entry, reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotStored::QueueFull,
            mpsc::error::TrySendError::Closed(_) => NotStored::StoreFailed,
        })?;
        answer.await.unwrap_or(Err(NotStored::StoreFailed))
    }
}

async fn run(store: Arc<dyn Store>, mut pace: Pace, mut queue: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut since_prune = 0_usize;
    loop {
        tokio::select! {
            count = queue.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
                write(store.as_ref(), &mut pace, std::mem::take(&mut batch)).await;
                since_prune = since_prune.saturating_add(count);
            }
            () = pace.rested(), if !pace.is_idle() => {}
        }
        if since_prune >= PRUNE_EVERY {
            since_prune = 0;
            prune(store.as_ref()).await;
        }
    }
}

async fn write(store: &dyn Store, pace: &mut Pace, batch: Vec<Waiting>) {
    let (entries, replies): (Vec<Entry>, Vec<_>) = batch.into_iter().unzip();
    let mut records = Vec::with_capacity(entries.len());
    let mut rest = Vec::with_capacity(entries.len());
    for Entry { record, followers, learned, conditions } in entries {
        records.push(record);
        rest.push((followers, learned, conditions));
    }
    let Some(deliveries) = store.deliveries() else { return };
    let firsts = match deliveries.put_deliveries(&records).await {
        Ok(firsts) => firsts,
        Err(error) => {
            tracing::error!(error = %chain(&error), count = records.len(), "webhook deliveries could not be stored");
            refuse(replies);
            return;
        }
    };
    for ((is_first, reply), (followers, learned, conditions)) in firsts.into_iter().zip(replies).zip(rest) {
        if is_first {
            for group in &followers {
                pace.wake(group);
            }
        }
        // Whoever asked may have gone.
        let _ = reply.send(Ok(if is_first { Stored::First } else { Stored::Copy }));
        if let Err(error) = remember(store, deliveries, (&learned, &conditions)).await {
            tracing::error!(error = %chain(&error), "what a delivery tells of its repository could not be stored");
        }
    }
}

fn refuse(replies: Vec<oneshot::Sender<Result<Stored, NotStored>>>) {
    for reply in replies {
        // Whoever asked may have gone.
        let _ = reply.send(Err(NotStored::StoreFailed));
    }
}

async fn remember(
    store: &dyn Store,
    deliveries: &dyn Deliveries,
    (learned, conditions): (&[RepositoryName], &[(TargetName, Condition)]),
) -> Result<(), StoreError> {
    for name in learned {
        deliveries.put_repository_name(name).await?;
    }
    for (target, condition) in conditions {
        store.put_condition(target, condition).await?;
    }
    Ok(())
}

async fn prune(store: &dyn Store) {
    let Some(deliveries) = store.deliveries() else { return };
    if let Err(error) = deliveries.prune_deliveries(KEPT).await {
        tracing::warn!(error = %chain(&error), "old webhook deliveries could not be forgotten");
    }
}

//! Deliveries in the embedded engine: a batch is one statement, so that it costs one flush and is whole.

use async_trait::async_trait;
use serde::Serialize;
use sqlx::query;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::db::{Db, Fields, json, micros};
use crate::model::{Sha, TargetName};
use crate::store::StoreError;
use crate::store::deliveries::{Deliveries, DeliveryRecord, RepositoryName};

/// Characters of an id's shortest prefix.
const SHORTEST_PREFIX: usize = 8;

/// A delivery as the statement takes it apart.
#[derive(Serialize)]
struct Row<'a> {
    hook: &'a str,
    id: &'a str,
    event: &'a str,
    action: Option<&'a str>,
    repository: Option<&'a str>,
    repository_id: Option<i64>,
    reference: Option<&'a str>,
    sha: Option<&'a str>,
    received_at: i64,
    last_at: i64,
    copies: u32,
    bytes: u64,
    secret_slot: u8,
    reason: &'a str,
    message: &'a str,
    woken: &'a [TargetName],
    woken_count: u32,
}

impl<'a> From<&'a DeliveryRecord> for Row<'a> {
    fn from(record: &'a DeliveryRecord) -> Self {
        Self {
            hook: &record.hook,
            id: &record.id,
            event: &record.event,
            action: record.action.as_deref(),
            repository: record.repository.as_deref(),
            repository_id: record.repository_id,
            reference: record.reference.as_deref(),
            sha: record.sha.as_ref().map(Sha::as_str),
            received_at: micros(record.received_at),
            last_at: micros(record.last_at),
            copies: record.copies,
            bytes: record.bytes,
            secret_slot: record.secret_slot,
            reason: &record.reason,
            message: &record.message,
            woken: &record.woken,
            woken_count: record.woken_count,
        }
    }
}

fn read(row: &SqliteRow) -> Result<DeliveryRecord, StoreError> {
    let row = Fields::of(row, "delivery");
    Ok(DeliveryRecord {
        hook: row.text("hook")?,
        id: row.text("id")?,
        event: row.text("event")?,
        action: row.maybe_text("action")?,
        repository: row.maybe_text("repository")?,
        repository_id: row.maybe_integer("repository_id")?,
        reference: row.maybe_text("reference")?,
        sha: row.maybe_parsed("sha")?,
        received_at: row.time("received_at")?,
        last_at: row.time("last_at")?,
        copies: row.count("copies")?,
        bytes: row.count("bytes")?,
        secret_slot: row.count("secret_slot")?,
        reason: row.text("reason")?,
        message: row.text("message")?,
        woken: row.json("woken")?,
        woken_count: row.count("woken_count")?,
    })
}

/// Puts a batch; gives hook, id and the number of copies of each row that was touched.
async fn put(db: &Db, batch: &str) -> Result<Vec<(String, String, u32)>, StoreError> {
    let statement = query(
        "INSERT INTO deliveries (hook, id, event, action, repository, repository_id, reference, sha, received_at,
             last_at, copies, bytes, secret_slot, reason, message, woken, woken_count)
         SELECT value ->> 'hook', value ->> 'id', value ->> 'event', value ->> 'action', value ->> 'repository',
             value ->> 'repository_id', value ->> 'reference', value ->> 'sha', value ->> 'received_at',
             value ->> 'last_at', value ->> 'copies', value ->> 'bytes', value ->> 'secret_slot',
             value ->> 'reason', value ->> 'message', value -> 'woken', value ->> 'woken_count'
         FROM json_each(?1) WHERE true
         ON CONFLICT (id, hook) DO UPDATE SET copies = copies + 1, last_at = excluded.last_at
         RETURNING hook, id, copies",
    )
    .bind(batch);
    db.all("store webhook deliveries", statement, |row| {
        let row = Fields::of(row, "delivery");
        Ok((row.text("hook")?, row.text("id")?, row.count("copies")?))
    })
    .await
}

/// The first of a batch with a key is new if the engine inserted one with it.
fn firsts(deliveries: &[DeliveryRecord], touched: Vec<(String, String, u32)>) -> Vec<bool> {
    let mut inserted: std::collections::HashSet<(String, String)> =
        touched.into_iter().filter(|(_, _, copies)| *copies == 1).map(|(hook, id, _)| (hook, id)).collect();
    deliveries.iter().map(|record| inserted.remove(&(record.hook.clone(), record.id.clone()))).collect()
}

#[async_trait]
impl Deliveries for SqliteStore {
    async fn put_deliveries(&self, deliveries: &[DeliveryRecord]) -> Result<Vec<bool>, StoreError> {
        let rows: Vec<Row<'_>> = deliveries.iter().map(Row::from).collect();
        let batch = json("store webhook deliveries", &rows)?;
        let batch = batch.as_str();
        let touched = self.durably(|db| put(db, batch)).await?;
        Ok(firsts(deliveries, touched))
    }

    async fn deliveries_by_id(&self, id: &str) -> Result<Vec<DeliveryRecord>, StoreError> {
        if id.len() < SHORTEST_PREFIX {
            return Ok(Vec::new());
        }
        let after = format!("{id}\u{10ffff}");
        let question = query("SELECT * FROM deliveries WHERE id >= ?1 AND id < ?2 ORDER BY seq DESC LIMIT 20");
        self.readers.all("read a delivery", question.bind(id).bind(after), read).await
    }

    async fn recent_deliveries(&self, limit: u32) -> Result<Vec<DeliveryRecord>, StoreError> {
        let question = query("SELECT * FROM deliveries ORDER BY seq DESC LIMIT ?1").bind(i64::from(limit));
        self.readers.all("read the deliveries", question, read).await
    }

    async fn prune_deliveries(&self, keep: u32) -> Result<u64, StoreError> {
        self.durably(|db| async move {
            let statement = query("DELETE FROM deliveries WHERE seq <= (SELECT max(seq) FROM deliveries) - ?1");
            db.run("forget old deliveries", statement.bind(i64::from(keep))).await
        })
        .await
    }

    async fn repository_names(&self) -> Result<Vec<RepositoryName>, StoreError> {
        let question = query("SELECT * FROM repository_names ORDER BY seen_at, id, name");
        self.readers
            .all("read the repositories' names", question, |row| {
                let row = Fields::of(row, "repository name");
                Ok(RepositoryName { id: row.count("id")?, name: row.text("name")?, seen_at: row.time("seen_at")? })
            })
            .await
    }

    async fn put_repository_name(&self, name: &RepositoryName) -> Result<(), StoreError> {
        self.durably(|db| async move {
            let statement = query(
                "INSERT INTO repository_names (id, name, seen_at) VALUES (?1, ?2, ?3) ON CONFLICT (id, name) DO NOTHING",
            );
            let statement = statement.bind(name.id).bind(&name.name).bind(micros(name.seen_at));
            db.run("remember a repository's name", statement).await.map(|_| ())
        })
        .await
    }
}

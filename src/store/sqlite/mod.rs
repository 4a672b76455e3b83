//! The embedded engine: one SQLite file in the state directory, in WAL mode, flushed at every
//! commit (ruling 26).
//!
//! One process owns a state directory, by a lock that ends with the process. Reading works without
//! owning it, whether the owner lives or not (ruling 27). It refuses to open what is damaged,
//! another program's or of a newer schema, and never makes a new file in the place of one that
//! lost its content.

mod adapter;
mod controls;
mod db;
mod deliveries;
mod facts;
mod files;
mod looks;
mod open;
mod releases;
mod told;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use jiff::Timestamp;

use db::Db;
use files::Files;

pub use files::RESERVE_BYTES;
pub use looks::LOOK_HELD;

use super::StoreError;
use crate::model::TargetName;

/// The store in a state directory.
#[derive(Debug)]
pub struct SqliteStore {
    readers: Db,
    writer: Option<Db>,
    files: Files,
    looks: looks::Looks,
    /// Held as long as the store is; closing it gives the state directory back.
    _lock: Option<File>,
}

impl SqliteStore {
    /// Opens the store in `state_dir` and takes the directory for this process.
    ///
    /// Makes the directory (0711), the database (0600) and the reserve when they are not there; a
    /// disk too full for the reserve does not stop a start.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another process has it; [`StoreError::NewerSchema`],
    /// [`StoreError::Damaged`] for a database that is not taken; [`StoreError::File`],
    /// [`StoreError::Full`] or [`StoreError::Engine`] when the system fails.
    pub async fn open(state_dir: &Path) -> Result<Self, StoreError> {
        let files = Files::new(state_dir);
        files.prepare()?;
        let lock = files.lock()?;
        let (writer, readers) = open::for_writing(&files).await?;
        match files.make_reserve() {
            Err(error) if !files::is_full(&error) => {
                return Err(files.reserve_error("make", error));
            }
            Ok(()) | Err(_) => {}
        }
        Ok(Self { readers, writer: Some(writer), files, looks: looks::Looks::default(), _lock: Some(lock) })
    }

    /// Opens the store in `state_dir` for reading: without the lock, without changing a file.
    ///
    /// # Errors
    /// [`StoreError::File`] when there is no store; [`StoreError::OlderSchema`] when the daemon of
    /// this version never ran; otherwise as [`SqliteStore::open`].
    pub async fn open_read_only(state_dir: &Path) -> Result<Self, StoreError> {
        let files = Files::new(state_dir);
        let readers = open::for_reading(&files).await?;
        Ok(Self { readers, writer: None, files, looks: looks::Looks::default(), _lock: None })
    }

    /// Waits for what is running, writes the times of looks that still wait, moves the log into the
    /// database file, and gives the state directory back. Without it, the next start does the same, and
    /// times of looks may be [`LOOK_HELD`] older.
    pub async fn close(self) {
        let looks = self.looks.waiting();
        if let Err(error) = self.write_looks(&looks).await {
            tracing::warn!(%error, "the times of the last looks are lost");
        }
        self.readers.pool.close().await;
        if let Some(writer) = &self.writer {
            writer.pool.close().await;
        }
    }

    /// Gives the reserve's space to whoever needs it; says whether there was a reserve.
    ///
    /// Every write that finds the disk full does this by itself, once.
    ///
    /// # Errors
    /// [`StoreError::File`] when it cannot be removed.
    pub fn release_reserve(&self) -> Result<bool, StoreError> {
        self.files.free_reserve().map_err(|error| self.files.reserve_error("remove", error))
    }

    /// Makes the reserve again, unless it is there.
    ///
    /// # Errors
    /// [`StoreError::File`] when there is still no space for it.
    pub fn restore_reserve(&self) -> Result<(), StoreError> {
        self.files.make_reserve().map_err(|error| self.files.reserve_error("make", error))
    }

    /// Whether the reserve is there.
    #[must_use]
    pub fn has_reserve(&self) -> bool {
        self.files.has_reserve()
    }

    fn writer(&self) -> Result<&Db, StoreError> {
        self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly { path: self.readers.path.clone() })
    }

    async fn write_looks(&self, looks: &BTreeMap<TargetName, Timestamp>) -> Result<(), StoreError> {
        if looks.is_empty() {
            return Ok(());
        }
        self.durably(|db| looks::write(db, looks)).await?;
        self.looks.written(looks);
        Ok(())
    }

    /// Writes; when the disk is full, frees the reserve and writes again, once (ruling 26).
    async fn durably<'s, T, W, F>(&'s self, write: W) -> Result<T, StoreError>
    where
        W: Fn(&'s Db) -> F + Send + Sync,
        F: Future<Output = Result<T, StoreError>> + Send,
        T: Send,
    {
        let writer = self.writer()?;
        match write(writer).await {
            Err(full @ StoreError::Full { .. }) => match self.release_reserve() {
                Ok(true) => write(writer).await,
                Ok(false) | Err(_) => Err(full),
            },
            done => done,
        }
    }
}

#[cfg(test)]
mod tests;

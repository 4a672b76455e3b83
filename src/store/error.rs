//! Why the store did not do it: the disk, the file, another process, or our own schema.

use crate::model::Class;

/// Why the store did not do it.
///
/// `Display` says what and where; [`StoreError::why`] and [`StoreError::fix`] say the rest.
/// No variant carries a record's values.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine failed.
    #[error("the store could not {what}")]
    Engine {
        /// What was tried.
        what: &'static str,
        /// The engine's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There was no space for a write, not even with the reserve (ruling 26).
    #[error("the store could not {what}: no space is left for `{path}`")]
    Full {
        /// What was tried.
        what: &'static str,
        /// The database file.
        path: String,
    },
    /// The state directory or a file of it could not be made, read or written.
    #[error("could not {what} `{path}`")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The database file is not what we wrote: cut short, overwritten, or another program's.
    #[error("the store `{path}` is damaged: {detail}")]
    Damaged {
        /// The database file.
        path: String,
        /// What was found.
        detail: String,
    },
    /// The database was written by a newer trueup.
    #[error("the store `{path}` has schema {found}, and this trueup knows schemas up to {known}")]
    NewerSchema {
        /// The database file.
        path: String,
        /// Its schema.
        found: u32,
        /// The newest one that this program knows.
        known: u32,
    },
    /// The database waits for a migration, which a reader may not make.
    #[error("the store `{path}` has schema {found}, and this trueup reads schema {known}")]
    OlderSchema {
        /// The database file.
        path: String,
        /// Its schema.
        found: u32,
        /// The one that this program reads.
        known: u32,
    },
    /// A row does not read as what we wrote.
    #[error("the store holds a {what} that cannot be read: {detail}")]
    Corrupt {
        /// Which record.
        what: &'static str,
        /// How it fails to read.
        detail: String,
    },
    /// A write names a record that does not exist: a bug of ours.
    #[error("the store has no {what} {key}")]
    Unknown {
        /// Which record.
        what: &'static str,
        /// Its key.
        key: String,
    },
    /// Something was written to a store that was opened for reading.
    #[error("the store `{path}` was opened for reading only")]
    ReadOnly {
        /// The database file.
        path: String,
    },
    /// Another process holds the state directory.
    #[error("`{path}` is in use by process {pid}: only one daemon may own a state directory")]
    Locked {
        /// The lock file.
        path: String,
        /// The owner's pid, as it wrote it; `unknown` when unreadable.
        pid: String,
    },
}

impl StoreError {
    /// What the loop does next.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Engine { .. } | Self::Full { .. } | Self::File { .. } => Class::Transient,
            Self::Damaged { .. }
            | Self::NewerSchema { .. }
            | Self::OlderSchema { .. }
            | Self::Corrupt { .. }
            | Self::Locked { .. } => Class::Stalled,
            Self::Unknown { .. } | Self::ReadOnly { .. } => Class::Bug,
        }
    }

    /// The rule behind it, as a sentence for people.
    #[must_use]
    pub fn why(&self) -> &'static str {
        match self {
            Self::Engine { .. } | Self::File { .. } => {
                "nothing is changed on a host before the store holds what is about to be done"
            }
            Self::Full { .. } => {
                "every write must reach the disk before anything depends on it, and the disk (or a quota) is full"
            }
            Self::Damaged { .. } => {
                "a store that lost records is never replaced by an empty one: what runs would look unknown"
            }
            Self::NewerSchema { .. } => "an older trueup would not understand what the newer one recorded",
            Self::OlderSchema { .. } => "only the daemon brings the schema forward; a reader never writes",
            Self::Corrupt { .. } => "a record that reads wrongly is never replaced by a guess",
            Self::Unknown { .. } | Self::ReadOnly { .. } => "this is a bug in trueup",
            Self::Locked { .. } => "two daemons on one store would undo each other's releases",
        }
    }

    /// What a person does about it.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Engine { .. } | Self::File { .. } => {
                "look at the cause above; check the disk and the rights on the state directory"
            }
            Self::Full { .. } => "free some space on that file system; the daemon goes on by itself",
            Self::Damaged { .. } => {
                "stop the daemon, move the file and its `-wal` and `-shm` aside, put a backup back or start without one: what runs is then read again from its labels"
            }
            Self::NewerSchema { .. } => "install the newer trueup again, or put an older backup of the store back",
            Self::OlderSchema { .. } => "start the daemon of this version once",
            Self::Corrupt { .. } => "put a backup of the store back, and report it with this message",
            Self::Unknown { .. } | Self::ReadOnly { .. } => "report it with this message",
            Self::Locked { .. } => "stop the other process, or give this one another `state_dir`",
        }
    }
}

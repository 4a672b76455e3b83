//! The state directory: its rights, the lock that says who owns it, and the reserve that a full
//! disk is fought with.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation};

use crate::store::StoreError;

/// The reserve's size in bytes: some 250 pages of the write-ahead log, more than any undo writes.
pub const RESERVE_BYTES: u64 = 1024 * 1024;

/// The state directory's rights: others may pass through to the edge's marker (ruling 33).
const DIRECTORY_MODE: u32 = 0o711;
/// The rights of our files in it.
const FILE_MODE: u32 = 0o600;
/// Each line of the lock file is padded to this many bytes, so that rewriting it needs no space.
const LOCK_LINE_BYTES: usize = 48;

/// Where everything is in a state directory.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The database file.
    pub(super) fn database(&self) -> PathBuf {
        self.directory.join("trueup.db")
    }

    /// A database in the making.
    pub(super) fn unfinished_database(&self) -> PathBuf {
        self.directory.join("trueup.db.new")
    }

    /// A file that the engine keeps beside a database, for example its `-wal`.
    pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }

    fn lock_file(&self) -> PathBuf {
        self.directory.join("lock")
    }

    fn reserve(&self) -> PathBuf {
        self.directory.join("reserve")
    }

    /// Makes the state directory, or sets its rights to what the edge needs.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        let fail = |source| file_error("prepare the state directory", &self.directory, source);
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&self.directory).map_err(fail)?;
        set_mode(&self.directory, DIRECTORY_MODE).map_err(fail)
    }

    /// Takes the state directory for this process, until the returned lock is dropped.
    pub(super) fn lock(&self) -> Result<Lock, StoreError> {
        let path = self.lock_file();
        let fail = |source| file_error("lock", &path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(fail)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked { path: path.display().to_string(), pid: owner(&mut file) });
            }
            Err(error) => return Err(fail(error.into())),
        }
        match sign(&mut file) {
            // The lock holds without its signature, and a full disk must not stop a start.
            Err(error) if !is_full(&error) => Err(fail(error)),
            Ok(()) | Err(_) => Ok(Lock { file }),
        }
    }

    /// Makes an empty file that only we can read, in the place of an unfinished one.
    pub(super) fn make_unfinished_database(&self) -> Result<PathBuf, StoreError> {
        let path = self.unfinished_database();
        for stale in ["", "-journal", "-wal", "-shm"] {
            remove(&Self::beside(&path, stale)).map_err(|source| file_error("remove", &path, source))?;
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path)
            .and_then(|_file| set_mode(&path, FILE_MODE))
            .map_err(|source| file_error("make", &path, source))?;
        Ok(path)
    }

    /// Puts a finished database in its place, durably.
    pub(super) fn finish_database(&self) -> Result<(), StoreError> {
        let path = self.database();
        std::fs::rename(self.unfinished_database(), &path)
            .and_then(|()| self.sync_directory())
            .map_err(|source| file_error("put in place", &path, source))
    }

    /// Makes the reserve unless it is there. Its blocks are allocated, not promised.
    pub(super) fn make_reserve(&self) -> io::Result<()> {
        let path = self.reserve();
        if std::fs::metadata(&path).is_ok_and(|found| found.len() == RESERVE_BYTES) {
            return Ok(());
        }
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE)
            .open(&path)
            .and_then(|file| allocate(&file));
        if made.is_err() {
            // Half a reserve holds space and helps nobody; the first error is the one to tell.
            remove(&path).ok();
        }
        made
    }

    /// Gives the reserve's space back; says whether there was one.
    pub(super) fn free_reserve(&self) -> io::Result<bool> {
        let was_there = remove(&self.reserve())?;
        // A journalling file system hands the blocks out again once the removal is committed.
        self.sync_directory()?;
        Ok(was_there)
    }

    /// Whether the reserve is there.
    pub(super) fn has_reserve(&self) -> bool {
        self.reserve().exists()
    }

    /// The error for the reserve.
    pub(super) fn reserve_error(&self, what: &'static str, source: io::Error) -> StoreError {
        file_error(what, &self.reserve(), source)
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

/// The error for one file.
pub(super) fn file_error(what: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::File { what, path: path.display().to_string(), source }
}

/// Whether an error says that there is no space: the disk's, or a quota's.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    if std::fs::metadata(path)?.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Removes a file; says whether there was one.
fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn allocate(mut file: &File) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
        Ok(()) => {}
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            io::copy(&mut io::repeat(0).take(RESERVE_BYTES), &mut file)?;
        }
        Err(error) => return Err(error.into()),
    }
    file.sync_all()
}

/// Which boot of the machine this is; a pid means nothing in another one.
///
/// Source: random(4), `/proc/sys/kernel/random/boot_id`.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The hold on a state directory. It is given back by name, and not by closing the file: a child process
/// that is just being started has the file too, for a moment.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock on the state directory goes with the process");
        }
    }
}

/// Writes who holds the lock, in place: two lines, `pid N` and `boot ID`, padded with blanks.
fn sign(file: &mut File) -> io::Result<()> {
    let width = LOCK_LINE_BYTES - 1;
    let pid = format!("pid {}", std::process::id());
    let boot = format!("boot {}", boot_id());
    file.rewind()?;
    file.write_all(format!("{pid:<width$}\n{boot:<width$}\n").as_bytes())
}

/// The pid in a lock file; `unknown` when there is none of this boot.
fn owner(file: &mut File) -> String {
    let mut text = String::new();
    let is_read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (is_read, field("pid "), field("boot ")) {
        (Ok(_), Some(pid), Some(boot)) if pid.parse::<u32>().is_ok() && boot == boot_id().as_str() => pid.to_owned(),
        (Ok(_) | Err(_), Some(_) | None, Some(_) | None) => "unknown".to_owned(),
    }
}

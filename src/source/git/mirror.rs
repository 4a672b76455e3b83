//! Mirrors on disk: bare repositories below one locked root, thrown away and made again rather than mended by hand.
//!
//! `<root>/lock` is held for the life of the process. `<root>/<hash>/` is one repository's mirror, and in it
//! `refs/trueup/<sha>` says that this commit and everything below its tree were seen to be whole.
//! `<root>/tmp-*` is work that was never finished, removed at the next start.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gix::ObjectId;
use rustix::fs::{AtFlags, CWD, FlockOperation, RenameFlags, Timespec, Timestamps, UTIME_NOW};

use super::fault::Fault;

/// How often the lock of the mirrors is asked for at the start, [`LOCK_PAUSE`] apart: two seconds.
const LOCK_TRIES: usize = 100;
/// See [`LOCK_TRIES`].
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// More packs than this make every read slow: the mirror is made again (ruling 23).
pub(super) const MAX_PACKS: usize = 64;
/// More recorded commits than this, and the mirror is made again with the newest [`KEEP_RECORDS`].
pub(super) const MAX_RECORDS: usize = 512;
/// How many recorded commits move into a new mirror, most recently used first.
pub(super) const KEEP_RECORDS: usize = 256;
/// How many commits a server is told of, so that it sends only what is new.
pub(super) const MAX_HAVES: usize = 32;

/// The locked directory of all mirrors.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// Released by the system when the process ends, however it ends.
    _lock: File,
}

impl Root {
    /// Takes the root for this process alone and removes what an earlier one left unfinished.
    ///
    /// # Errors
    /// When it cannot be made, or another process has it.
    pub(super) fn take(path: PathBuf) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            // The state directory may be passed through, not listed (ruling 33).
            DirBuilder::new().recursive(true).mode(0o711).create(parent)?;
        }
        private_dir(&path)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path.join("lock"))?;
        lock_soon(&lock)?;
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("tmp-") {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(Self { path, _lock: lock })
    }

    /// Where the mirror of that name is.
    pub(super) fn mirror(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Waits a little for the lock: a process that is just ending, or a child of it before its exec, may still hold it.
fn lock_soon(lock: &File) -> io::Result<()> {
    for _ in 1..LOCK_TRIES {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            other => return other.map_err(io::Error::from),
        }
    }
    rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)
}

/// Makes a directory, and those above it, for this user alone.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens any repository for reading: no system or user configuration, no includes, no hooks, no environment.
///
/// Full trust only means that another user's repository is read at all: nothing of it is ever executed.
///
/// # Errors
/// gix's, as text.
pub(super) fn open_isolated(path: &Path) -> Result<gix::Repository, String> {
    gix::open::Options::isolated()
        .with(gix::sec::Trust::Full)
        .open_path_as_is(true)
        .open(path)
        .map(|repository| repository.to_thread_local())
        .map_err(|error| format!("{error:?}"))
}

/// Opens the mirror, or makes an empty one. The caller holds the repository's turn, so every lock file is stale.
///
/// # Errors
/// [`Fault::Mirror`].
pub(super) fn open_or_make(path: &Path) -> Result<gix::Repository, Fault> {
    if path.is_dir() {
        sweep(path).map_err(Fault::mirror)?;
        return open_isolated(path).map_err(Fault::Mirror);
    }
    make(path)
}

/// Makes an empty mirror in a new place and moves it to `path`.
fn make(path: &Path) -> Result<gix::Repository, Fault> {
    let temporary = temporary(path);
    make_at(&temporary)?;
    fs::rename(&temporary, path).map_err(Fault::mirror)?;
    open_isolated(path).map_err(Fault::Mirror)
}

/// Makes an empty mirror exactly there.
pub(super) fn make_at(path: &Path) -> Result<gix::Repository, Fault> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(Fault::mirror)?;
    }
    private_dir(path).map_err(Fault::mirror)?;
    gix::create::into(path, gix::create::Kind::Bare, gix::create::Options::default()).map_err(Fault::mirror)?;
    private_dir(&path.join("refs/trueup")).map_err(Fault::mirror)?;
    open_isolated(path).map_err(Fault::Mirror)
}

/// The place beside a mirror where its successor is made.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("tmp-{name}"))
}

/// Puts the successor in the mirror's place in one step, then removes what was there.
///
/// Source: renameat2(2), `RENAME_EXCHANGE`; file systems without it get two renames.
pub(super) fn swap(successor: &Path, path: &Path) -> Result<(), Fault> {
    if !path.exists() {
        return fs::rename(successor, path).map_err(Fault::mirror);
    }
    if rustix::fs::renameat_with(CWD, successor, CWD, path, RenameFlags::EXCHANGE).is_err() {
        let old = successor.with_extension("old");
        fs::rename(path, &old).and_then(|()| fs::rename(successor, path)).map_err(Fault::mirror)?;
        return fs::remove_dir_all(&old).map_err(Fault::mirror);
    }
    fs::remove_dir_all(successor).map_err(Fault::mirror)
}

/// Removes lock files and half-written packs of a process that is gone (field reports 26 and 27).
///
/// # Errors
/// When the mirror cannot be listed.
pub(super) fn sweep(path: &Path) -> io::Result<()> {
    for directory in ["", "refs", "refs/heads", "refs/trueup", "objects", "objects/info"] {
        each_file(
            &path.join(directory),
            |file, name| {
                if name.ends_with(".lock") { fs::remove_file(file) } else { Ok(()) }
            },
        )?;
    }
    each_file(&path.join("objects/pack"), |file, name| {
        let is_whole = name.starts_with("pack-") && (name.ends_with(".idx") || file.with_extension("idx").exists());
        if is_whole && !name.ends_with(".keep") && !name.ends_with(".lock") { Ok(()) } else { fs::remove_file(file) }
    })
}

fn each_file(directory: &Path, mut then: impl FnMut(&Path, &str) -> io::Result<()>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            then(&entry.path(), &entry.file_name().to_string_lossy())?;
        }
    }
    Ok(())
}

/// Whether the mirror has grown so much that a new one is better.
pub(super) fn is_overgrown(path: &Path) -> bool {
    let mut packs = 0_usize;
    let counted = each_file(&path.join("objects/pack"), |_, name| {
        packs += usize::from(name.ends_with(".pack"));
        Ok(())
    });
    counted.is_ok() && (packs > MAX_PACKS || records(path).len() > MAX_RECORDS)
}

/// Records that a commit is whole.
///
/// # Errors
/// [`Fault::Mirror`].
pub(super) fn record(path: &Path, id: ObjectId) -> Result<(), Fault> {
    let directory = path.join("refs/trueup");
    private_dir(&directory).map_err(Fault::mirror)?;
    let temporary = directory.join(format!("{id}.lock"));
    fs::write(&temporary, format!("{id}\n")).map_err(Fault::mirror)?;
    fs::rename(&temporary, directory.join(id.to_string())).map_err(Fault::mirror)
}

/// Notes that a recorded commit was used; a note that cannot be made costs nothing but its place in the order.
pub(super) fn touch(path: &Path, id: ObjectId) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let record = path.join("refs/trueup").join(id.to_string());
    rustix::fs::utimensat(CWD, &record, &times, AtFlags::empty()).ok();
}

/// Takes a record back.
pub(super) fn forget(path: &Path, id: ObjectId) {
    fs::remove_file(path.join("refs/trueup").join(id.to_string())).ok();
}

/// Whether a commit was recorded as whole.
pub(super) fn is_recorded(path: &Path, id: ObjectId) -> bool {
    path.join("refs/trueup").join(id.to_string()).is_file()
}

/// The recorded commits, most recently used first; none if they cannot be listed.
pub(super) fn records(path: &Path) -> Vec<ObjectId> {
    let mut found: Vec<(SystemTime, ObjectId)> = Vec::new();
    let listed = each_file(&path.join("refs/trueup"), |file, name| {
        if let Ok(id) = ObjectId::from_hex(name.as_bytes()) {
            found.push((fs::metadata(file)?.modified()?, id));
        }
        Ok(())
    });
    if listed.is_err() {
        return Vec::new();
    }
    found.sort_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, id)| id).collect()
}

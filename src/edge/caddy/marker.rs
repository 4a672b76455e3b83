//! The marker: two files whose presence decides, per request, which slot gets the traffic (ruling 33).
//!
//! `b` present: slot b. Else `released` present: slot a. Else: 503. So `b` decides alone, and no request falls
//! between two tests. Both names exist from the start, as `b.off` and `released.off`; a switch only renames, which
//! needs no space, and is durable once the directory is synced.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::model::{Slot, TargetName};

/// Caddy's user must be able to look into the marker's directory and everything above it.
const OPEN_DIRECTORY: u32 = 0o755;
/// The state directory can be passed through, not listed.
const STATE_DIRECTORY: u32 = 0o711;
/// Markers are empty; Caddy's user reads only that they exist.
const MARKER_FILE: u32 = 0o644;

/// One of the two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    B,
    Released,
}

impl Name {
    fn on(self) -> &'static str {
        match self {
            Self::B => "b",
            Self::Released => "released",
        }
    }

    fn off(self) -> &'static str {
        match self {
            Self::B => "b.off",
            Self::Released => "released.off",
        }
    }
}

/// A target's marker directory.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    state_dir: PathBuf,
    dir: PathBuf,
}

impl Marker {
    pub(super) fn new(state_dir: &Path, target: &TargetName) -> Self {
        let dir = state_dir.join("edge").join(target.project.as_str()).join(target.target.as_str());
        Self { state_dir: state_dir.to_owned(), dir }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Says whether the directory is there.
    ///
    /// # Errors
    /// When that cannot be known.
    pub(super) fn exists(&self) -> io::Result<bool> {
        fs::exists(&self.dir)
    }

    /// Makes the directories and both names, off. What is there stays as it is; permissions that are too
    /// narrow for Caddy's user are widened, since they would turn a live site into 503.
    ///
    /// # Errors
    /// Of the file system.
    pub(super) fn prepare(&self) -> io::Result<()> {
        open_directory(&self.state_dir, STATE_DIRECTORY)?;
        let edge = self.state_dir.join("edge");
        let project = self.dir.parent().unwrap_or(&edge);
        for dir in [&edge, project, &self.dir] {
            open_directory(dir, OPEN_DIRECTORY)?;
        }
        for name in [Name::B, Name::Released] {
            if !self.is_on(name)? && !is_marker(&self.dir.join(name.off()))? {
                let created = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(MARKER_FILE)
                    .open(self.dir.join(name.off()))?;
                created.sync_all()?;
            }
        }
        sync_directory(&self.dir)
    }

    /// Which slot the marker names.
    ///
    /// # Errors
    /// When the directory cannot be read, is missing, or holds something else under these names: unreadable is not
    /// absent (promise P7).
    pub(super) fn read(&self) -> io::Result<Option<Slot>> {
        if !fs::metadata(&self.dir)?.is_dir() {
            return Err(io::Error::new(ErrorKind::NotADirectory, "not a directory"));
        }
        Ok(match (self.is_on(Name::B)?, self.is_on(Name::Released)?) {
            (true, _) => Some(Slot::B),
            (false, true) => Some(Slot::A),
            (false, false) => None,
        })
    }

    /// Moves the traffic. Every state on the way serves either what served before or what is asked for:
    ///
    /// | to | first | then | between the two |
    /// |---|---|---|---|
    /// | a | `released` on | `b` off | b still serves, or a already does if `b` was off |
    /// | b | `b` on | `released` on | b serves, and a was never exposed on a first release |
    /// | none | `released` off | `b` off | b still serves, or nothing if `b` was off |
    ///
    /// Each rename is synced before the next, so a power cut leaves one of these states too.
    ///
    /// # Errors
    /// Of the file system; the marker is then in one of the states above.
    pub(super) fn write(&self, slot: Option<Slot>) -> io::Result<()> {
        let moves = match slot {
            Some(Slot::A) => [(Name::Released, true), (Name::B, false)],
            Some(Slot::B) => [(Name::B, true), (Name::Released, true)],
            None => [(Name::Released, false), (Name::B, false)],
        };
        for (name, is_on) in moves {
            self.set(name, is_on)?;
        }
        // Also when nothing was renamed: an earlier run may have ended between its rename and its sync.
        sync_directory(&self.dir)
    }

    fn set(&self, name: Name, is_on: bool) -> io::Result<()> {
        if self.is_on(name)? == is_on {
            return Ok(());
        }
        let (from, to) = if is_on { (name.off(), name.on()) } else { (name.on(), name.off()) };
        fs::rename(self.dir.join(from), self.dir.join(to))?;
        sync_directory(&self.dir)
    }

    fn is_on(&self, name: Name) -> io::Result<bool> {
        is_marker(&self.dir.join(name.on()))
    }
}

/// Whether Caddy's `file` matcher would find a file here.
fn is_marker(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(io::Error::new(ErrorKind::InvalidData, format!("{} is not a file", path.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a directory, parents included, and adds the permissions that are missing; never takes any away.
fn open_directory(dir: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(dir)?;
    let current = fs::metadata(dir)?.permissions().mode() & 0o7777;
    if current & mode != mode {
        fs::set_permissions(dir, fs::Permissions::from_mode(current | mode))?;
    }
    match dir.parent() {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

/// Makes renames and new names in a directory durable.
pub(super) fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> (tempfile::TempDir, Marker) {
        let dir = tempfile::tempdir().unwrap();
        let marker = Marker::new(&dir.path().join("state"), &"shop/prod".parse().unwrap());
        (dir, marker)
    }

    fn names(marker: &Marker) -> String {
        let mut all: Vec<String> = fs::read_dir(marker.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        all.sort();
        all.join(" ")
    }

    const STATES: [Option<Slot>; 3] = [None, Some(Slot::A), Some(Slot::B)];

    #[test]
    fn every_state_is_reached_from_every_other_and_twice_changes_nothing() {
        for from in STATES {
            for to in STATES {
                let (_dir, marker) = marker();
                marker.prepare().unwrap();
                assert_eq!(names(&marker), "b.off released.off");
                for slot in [from, to, to] {
                    marker.write(slot).unwrap();
                    assert_eq!(marker.read().unwrap(), slot, "{from:?} to {to:?}");
                }
                marker.prepare().unwrap();
                assert_eq!(marker.read().unwrap(), to, "preparing again leaves the traffic alone");
                assert_eq!(fs::read_dir(marker.dir()).unwrap().count(), 2, "{}", names(&marker));
            }
        }
    }

    /// All four combinations of the two names, since an earlier run may have been cut anywhere.
    #[test]
    fn no_state_on_the_way_serves_anything_but_the_old_slot_or_the_new_one() {
        for (b, released) in [(false, false), (false, true), (true, false), (true, true)] {
            for to in STATES {
                let (_dir, marker) = marker();
                marker.prepare().unwrap();
                marker.set(Name::B, b).unwrap();
                marker.set(Name::Released, released).unwrap();
                let before = marker.read().unwrap();
                let moves = match to {
                    Some(Slot::A) => [(Name::Released, true), (Name::B, false)],
                    Some(Slot::B) => [(Name::B, true), (Name::Released, true)],
                    None => [(Name::Released, false), (Name::B, false)],
                };
                for (name, is_on) in moves {
                    marker.set(name, is_on).unwrap();
                    let seen = marker.read().unwrap();
                    assert!(seen == before || seen == to, "{before:?} to {to:?} passed {seen:?}");
                }
                // The same run again from wherever it was cut ends where it should.
                marker.write(to).unwrap();
                assert_eq!(marker.read().unwrap(), to);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_absence() {
        let (_dir, marker) = marker();
        assert!(!marker.exists().unwrap());
        assert_eq!(marker.read().unwrap_err().kind(), ErrorKind::NotFound);
        assert!(marker.write(Some(Slot::A)).is_err(), "a switch never makes directories");
        marker.prepare().unwrap();
        fs::remove_file(marker.dir().join("b.off")).unwrap();
        assert!(marker.write(Some(Slot::B)).is_err());
        assert_eq!(marker.read().unwrap(), None);
        fs::create_dir(marker.dir().join("b")).unwrap();
        assert!(marker.read().is_err(), "a directory is not a marker");
        fs::remove_dir_all(marker.dir()).unwrap();
        fs::write(marker.dir(), "").unwrap();
        assert!(marker.read().is_err(), "a file is not a marker directory");
    }

    #[test]
    fn directories_are_open_for_caddys_user_and_the_state_directory_is_not_listed() {
        let (_dir, marker) = marker();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        marker.prepare().unwrap();
        assert_eq!(mode(&marker.state_dir), 0o711);
        for dir in [marker.state_dir.join("edge"), marker.state_dir.join("edge/shop"), marker.dir().to_owned()] {
            assert_eq!(mode(&dir), 0o755, "{}", dir.display());
        }
        fs::set_permissions(marker.dir(), fs::Permissions::from_mode(0o700)).unwrap();
        marker.prepare().unwrap();
        assert_eq!(mode(marker.dir()), 0o755, "too narrow is widened");
    }
}

//! What a place looks like, so that two looks can be compared.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::model::Digest;

use super::Place;

/// Deeper refs than this are not looked at; Git's own names end long before.
const MAX_DEPTH: usize = 32;

/// A digest of the names, numbers, sizes and times of the files of a place, links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Print(Digest);

impl Print {
    /// Looks at a place. Absent and unreadable are looks of their own, so that their end is a change.
    pub(super) fn of(place: &Place) -> Self {
        let mut lines = Vec::new();
        match place {
            Place::Config(path) => {
                line(path, &mut lines);
                for file in children(path) {
                    line(&file, &mut lines);
                }
            }
            Place::Refs(path) => {
                let path = repository(path);
                line(&path.join("packed-refs"), &mut lines);
                let refs = path.join("refs");
                line(&refs, &mut lines);
                walk(&refs, MAX_DEPTH, &mut |found| line(found, &mut lines));
            }
        }
        Self(Digest::of(lines.join("\n").as_bytes()))
    }
}

/// The directory of a repository's refs: itself, or the `.git` in it.
fn repository(path: &Path) -> PathBuf {
    let inner = path.join(".git");
    if inner.is_dir() { inner } else { path.to_owned() }
}

fn line(path: &Path, lines: &mut Vec<String>) {
    let what = match fs::metadata(path) {
        // A directory's own times move with files that do not count, such as an editor's scratch file.
        Ok(about) if about.is_dir() => format!("directory {} {}", about.dev(), about.ino()),
        Ok(about) => format!(
            "file {} {} {} {}.{} {}.{}",
            about.dev(),
            about.ino(),
            about.size(),
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec()
        ),
        Err(error) => format!("{:?}", error.kind()),
    };
    lines.push(format!("{} {what}", path.display()));
}

/// What is right in a directory, sorted, without editors' scratch files; nothing if it cannot be listed.
fn children(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| !is_scratch(path)).collect();
    found.sort();
    found
}

/// Source: the swap files of Vim, the locks of Emacs, the backups of both, and the locks of Git.
fn is_scratch(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with('~')
        || name.ends_with(".swp")
        || name.ends_with(".swx")
        || name.ends_with(".lock")
        || name.starts_with(".#")
        || name == "4913"
}

fn walk(path: &Path, depth: usize, then: &mut impl FnMut(&Path)) {
    if depth == 0 {
        return;
    }
    for found in children(path) {
        then(&found);
        // Links are looked at, not walked: a circle has no end.
        if fs::symlink_metadata(&found).is_ok_and(|about| about.is_dir()) {
            walk(&found, depth - 1, then);
        }
    }
}

/// Every directory whose events matter, all of them there now.
///
/// # Errors
/// A sentence if there are more than `most`.
pub(super) fn directories(places: &BTreeSet<Place>, most: usize) -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    for place in places {
        match place {
            Place::Config(path) => {
                found.extend(with_parent(path));
                for file in children(path) {
                    found.extend(target_directory(&file));
                }
                found.extend(target_directory(path));
            }
            Place::Refs(path) => {
                let path = repository(path);
                found.extend(with_parent(&path));
                let refs = path.join("refs");
                if refs.is_dir() {
                    found.insert(refs.clone());
                    walk(&refs, MAX_DEPTH, &mut |inner| {
                        if inner.is_dir() {
                            found.insert(inner.to_owned());
                        }
                    });
                }
            }
        }
    }
    if found.len() > most {
        return Err(format!(
            "there are {} directories to watch, more than {most}; pack the refs of large repositories",
            found.len()
        ));
    }
    Ok(found)
}

/// The directory itself and the one it is in: a swap of the directory is an event of its parent. If it is not
/// there yet, the nearest one that is.
fn with_parent(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for above in path.ancestors() {
        if above.is_dir() {
            found.push(above.to_owned());
            if above != path {
                return found;
            }
        }
    }
    found
}

/// For a link, the directory that holds what it leads to.
fn target_directory(path: &Path) -> Option<PathBuf> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if !is_link {
        return None;
    }
    let resolved: io::Result<PathBuf> = fs::canonicalize(path);
    let resolved = resolved.ok()?;
    if resolved.is_dir() { Some(resolved) } else { resolved.parent().map(Path::to_owned) }
}

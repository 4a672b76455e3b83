//! Paths inside a commit's tree: found entry by entry, never through a work tree, never through a link.

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use crate::model::{ReasonCode, RepoPath, Sha};

use super::fault::Fault;
use super::whole;

/// First line of a Git LFS pointer.
///
/// Source: the Git LFS specification, "The Pointer".
const LFS_MARK: &[u8] = b"version https://git-lfs.github.com/spec/";
/// How many near names a message lists.
const NEAR_NAMES: usize = 5;

/// One entry of a tree.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// As stored, which is not always UTF-8.
    pub(super) name: Vec<u8>,
    /// Blob, executable, link, tree or submodule.
    pub(super) kind: EntryKind,
    /// The object.
    pub(super) id: ObjectId,
}

/// The entries of a tree, whose names have passed [`is_safe`].
///
/// # Errors
/// [`Fault::Mirror`] if the tree is not here; [`ReasonCode::ManifestInvalid`] for a name that could leave a directory.
pub(super) fn entries(repository: &gix::Repository, tree: ObjectId) -> Result<Vec<Entry>, Fault> {
    let checked = whole::object(repository, tree)?;
    let parsed = gix::objs::TreeRef::from_bytes(&checked.data, tree.kind()).map_err(Fault::mirror)?;
    parsed
        .entries
        .iter()
        .map(|entry| {
            let name = entry.filename.to_vec();
            if is_safe(&name) {
                return Ok(Entry { name, kind: entry.mode.kind(), id: entry.oid.to_owned() });
            }
            Err(Fault::content(
                ReasonCode::ManifestInvalid,
                format!(
                    "the tree has an entry named `{}`, which no Git client may write to disk; remove it",
                    name.escape_ascii()
                ),
            ))
        })
        .collect()
}

/// Whether a name stays inside its directory (CVE-2022-24877 and its kind).
fn is_safe(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.eq_ignore_ascii_case(b".git")
        && !name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
}

/// The commit's root tree.
///
/// # Errors
/// [`Fault::Mirror`] if the commit is not here.
pub(super) fn root(repository: &gix::Repository, commit: &Sha) -> Result<ObjectId, Fault> {
    let id = id(commit)?;
    ObjectId::from_hex(whole::facts(repository, id)?.tree.as_str().as_bytes()).map_err(Fault::mirror)
}

/// The object id of a sha.
///
/// # Errors
/// [`Fault::Remote`] for a SHA-256 name: those repositories cannot be read yet.
pub(super) fn id(sha: &Sha) -> Result<ObjectId, Fault> {
    if sha.as_str().len() != 40 {
        return Err(Fault::refused("it names a SHA-256 object", "use a repository with SHA-1 object names"));
    }
    ObjectId::from_hex(sha.as_str().as_bytes()).map_err(Fault::mirror)
}

/// What is at a path.
///
/// # Errors
/// [`ReasonCode::ManifestMissing`] with near names if nothing is, [`ReasonCode::ManifestInvalid`] if a part above it is
/// a link, a submodule or a file.
pub(super) fn find(repository: &gix::Repository, commit: &Sha, path: &RepoPath) -> Result<Entry, Fault> {
    let mut here = Entry { name: Vec::new(), kind: EntryKind::Tree, id: root(repository, commit)? };
    if path.is_root() {
        return Ok(here);
    }
    let mut walked = String::new();
    for part in path.as_str().split('/') {
        if here.kind != EntryKind::Tree {
            return Err(invalid(commit, path, &format!("`{walked}` above it is {}", word(here.kind))));
        }
        let all = entries(repository, here.id)?;
        let Some(found) = all.iter().find(|entry| entry.name == part.as_bytes()) else {
            return Err(missing(commit, path, (&walked, part), &all));
        };
        here = found.clone();
        walked = if walked.is_empty() { part.to_owned() } else { format!("{walked}/{part}") };
    }
    Ok(here)
}

/// Reads a regular file.
///
/// # Errors
/// As [`find`]; [`ReasonCode::ManifestInvalid`] by name for a link, a submodule, a directory, an LFS pointer and a file
/// of more than `limit` bytes.
pub(super) fn read(repository: &gix::Repository, commit: &Sha, at: (&RepoPath, u64)) -> Result<Vec<u8>, Fault> {
    let (path, limit) = at;
    let entry = file(repository, commit, path)?;
    let header = repository.try_find_header(entry.id).map_err(Fault::mirror)?;
    let size = header.ok_or_else(|| Fault::Mirror(format!("object {} is missing", entry.id)))?.size();
    if size > limit {
        return Err(invalid(commit, path, &format!("it has {size} bytes and at most {limit} are read")));
    }
    let data = whole::object(repository, entry.id)?.data;
    if data.starts_with(LFS_MARK) {
        return Err(invalid(
            commit,
            path,
            "it is a Git LFS pointer; LFS is never fetched, so store the file itself in Git",
        ));
    }
    Ok(data)
}

/// Finds a regular file, executable or not.
///
/// # Errors
/// As [`read`], without the LFS pointer and the limit.
pub(super) fn file(repository: &gix::Repository, commit: &Sha, path: &RepoPath) -> Result<Entry, Fault> {
    let entry = find(repository, commit, path)?;
    match entry.kind {
        EntryKind::Blob | EntryKind::BlobExecutable => Ok(entry),
        EntryKind::Link | EntryKind::Commit | EntryKind::Tree => {
            Err(invalid(commit, path, &format!("it is {}", word(entry.kind))))
        }
    }
}

fn word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Tree => "a directory",
        EntryKind::Blob | EntryKind::BlobExecutable => "a file",
        EntryKind::Link => "a symbolic link, and links are not followed",
        EntryKind::Commit => "a submodule, and submodules are not read",
    }
}

fn invalid(commit: &Sha, path: &RepoPath, why: &str) -> Fault {
    Fault::content(
        ReasonCode::ManifestInvalid,
        format!("`{path}` at {} cannot be read: {why}; put a regular file there", commit.short()),
    )
}

fn missing(commit: &Sha, path: &RepoPath, at: (&str, &str), entries: &[Entry]) -> Fault {
    let (directory, part) = at;
    let mut names: Vec<(usize, String)> = entries
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &part.to_lowercase()), name))
        .collect();
    names.sort();
    let near: Vec<String> = names.into_iter().take(NEAR_NAMES).map(|(_, name)| format!("`{name}`")).collect();
    let place = if directory.is_empty() { "the root of the tree".to_owned() } else { format!("`{directory}`") };
    let there = if near.is_empty() { "nothing".to_owned() } else { near.join(", ") };
    Fault::content(
        ReasonCode::ManifestMissing,
        format!(
            "`{path}` is not in the commit {}: {place} has no `{part}` (it has {there}); add the file, or correct its path in the registry",
            commit.short()
        ),
    )
}

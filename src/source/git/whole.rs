//! Whether a commit is whole, and copying a whole commit from one object database to another.
//!
//! Objects are named by the hash of their content, so a commit whose tree hashes to what it names, down to
//! every blob, is that commit and no other, whoever sent it.

use std::collections::HashSet;

use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryKind;
use jiff::Timestamp;

use crate::model::Sha;
use crate::source::CommitFacts;

use super::abort::Abort;
use super::fault::Fault;
use super::{COPY_LIMIT_BYTES, OBJECT_LIMIT_BYTES};

/// Longer commit messages are cut: they are shown and stored with each release.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Deeper trees than this are refused; Linux paths end at 4096 bytes anyway.
const MAX_DEPTH: usize = 512;
/// More entries than this below one commit are refused.
const MAX_ENTRIES: usize = 4_000_000;

/// One object's content after its hash was compared with its name.
pub(super) struct Checked {
    pub(super) kind: Kind,
    pub(super) data: Vec<u8>,
}

/// Reads one object and compares its hash with its name.
///
/// # Errors
/// [`Fault::Mirror`]: absent, unreadable, too large or another content.
pub(super) fn object(repository: &gix::Repository, id: ObjectId) -> Result<Checked, Fault> {
    let header = repository.try_find_header(id).map_err(Fault::mirror)?;
    let Some(header) = header else {
        return Err(Fault::Mirror(format!("object {id} is missing")));
    };
    if usize::try_from(header.size()).map_or(true, |size| size > OBJECT_LIMIT_BYTES) {
        return Err(Fault::refused(
            format!("object {id} has {} bytes", header.size()),
            "keep files below 1 GiB in Git",
        ));
    }
    let found = repository.find_object(id).map_err(Fault::mirror)?;
    let hash = gix::objs::compute_hash(id.kind(), found.kind, &found.data).map_err(Fault::mirror)?;
    if hash != id {
        return Err(Fault::Mirror(format!("object {id} has the content of {hash}")));
    }
    let kind = found.kind;
    Ok(Checked { kind, data: found.detach().data })
}

/// What the commit says of itself.
///
/// # Errors
/// [`Fault::Mirror`] if it is not here, [`Fault::Remote`] if the sha names something that is not a commit.
pub(super) fn facts(repository: &gix::Repository, id: ObjectId) -> Result<CommitFacts, Fault> {
    let checked = object(repository, id)?;
    let odd = |what: &str| Fault::refused(format!("{id} {what}"), "push a commit made by Git");
    if checked.kind != Kind::Commit {
        return Err(odd("is not a commit"));
    }
    let commit =
        gix::objs::CommitRef::from_bytes(&checked.data, id.kind()).map_err(|_| odd("is not a well-formed commit"))?;
    let sha = |id: ObjectId| id.to_string().parse::<Sha>().map_err(|_| odd("names an odd object"));
    let author = commit.author().map_err(|_| odd("has no well-formed author"))?;
    let committer = commit.committer().map_err(|_| odd("has no well-formed committer"))?;
    let seconds = committer.time().map_err(|_| odd("has no well-formed date"))?.seconds;
    let kept = commit.message.get(..MAX_MESSAGE_BYTES).unwrap_or(commit.message);
    let message = String::from_utf8_lossy(kept).into_owned();
    Ok(CommitFacts {
        tree: sha(commit.tree())?,
        parents: commit.parents().map(sha).collect::<Result<_, _>>()?,
        author: format!("{} <{}>", author.name.trim_ascii_text(), author.email.trim_ascii_text()),
        committed_at: Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH),
        subject: message.lines().next().unwrap_or_default().trim().to_owned(),
        message,
    })
}

/// Lossy text of Git's bytes.
trait AsciiText {
    fn trim_ascii_text(&self) -> String;
}

impl AsciiText for gix::bstr::BStr {
    fn trim_ascii_text(&self) -> String {
        String::from_utf8_lossy(self).trim().to_owned()
    }
}

/// The id of the commit's tree.
fn tree_of(repository: &gix::Repository, commit: ObjectId) -> Result<ObjectId, Fault> {
    let facts = facts(repository, commit)?;
    ObjectId::from_hex(facts.tree.as_str().as_bytes()).map_err(Fault::mirror)
}

/// Checks that the commit, its trees and its blobs are all here. Blobs are hashed when they are read.
///
/// # Errors
/// [`Fault::Mirror`] naming the first object that is missing.
pub(super) fn check(repository: &gix::Repository, commit: ObjectId, abort: &Abort) -> Result<(), Fault> {
    let mut waiting = vec![(tree_of(repository, commit)?, 0_usize)];
    let mut seen = HashSet::new();
    while let Some((id, depth)) = waiting.pop() {
        abort.check()?;
        bounded(depth, seen.len())?;
        for (entry, is_tree) in children(&object(repository, id)?, id)? {
            if !seen.insert(entry) {
                continue;
            }
            if is_tree {
                waiting.push((entry, depth + 1));
            } else if !repository.has_object(entry) {
                return Err(Fault::Mirror(format!("object {entry} is missing")));
            }
        }
    }
    Ok(())
}

fn bounded(depth: usize, entries: usize) -> Result<(), Fault> {
    if depth > MAX_DEPTH || entries > MAX_ENTRIES {
        return Err(Fault::refused(
            format!("its tree is deeper than {MAX_DEPTH} directories or has more than {MAX_ENTRIES} entries"),
            "make the repository smaller",
        ));
    }
    Ok(())
}

/// The trees (`true`) and blobs of a tree. Submodules belong to other repositories and are left out.
fn children(tree: &Checked, id: ObjectId) -> Result<Vec<(ObjectId, bool)>, Fault> {
    if tree.kind != Kind::Tree {
        return Err(Fault::refused(format!("{id} is not a tree"), "push a commit made by Git"));
    }
    let entries = gix::objs::TreeRef::from_bytes(&tree.data, id.kind()).map_err(Fault::mirror)?.entries;
    Ok(entries
        .iter()
        .filter_map(|entry| match entry.mode.kind() {
            EntryKind::Tree => Some((entry.oid.to_owned(), true)),
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => Some((entry.oid.to_owned(), false)),
            EntryKind::Commit => None,
        })
        .collect())
}

/// Copies a commit with its tree as loose objects, children before parents, so that a tree that is there is whole
/// even after `kill -9`.
///
/// # Errors
/// [`Fault::Mirror`] if the destination cannot be written, [`Fault::Remote`] if the origin lacks something.
pub(super) fn copy(ends: (&gix::Repository, &gix::Repository), commit: ObjectId, abort: &Abort) -> Result<(), Fault> {
    let (from, to) = ends;
    let read = |id| object(from, id).map_err(damaged);
    let mut left = COPY_LIMIT_BYTES;
    let mut steps = vec![Step::Enter(tree_of(from, commit).map_err(damaged)?, 0)];
    while let Some(step) = steps.pop() {
        abort.check()?;
        match step {
            Step::Enter(id, depth) => {
                bounded(depth, steps.len())?;
                if to.has_object(id) {
                    continue;
                }
                let tree = read(id)?;
                let below = children(&tree, id)?;
                steps.push(Step::Write(id, tree));
                for (child, is_tree) in below {
                    if is_tree {
                        steps.push(Step::Enter(child, depth + 1));
                    } else if !to.has_object(child) {
                        write(to, child, read(child)?, &mut left)?;
                    }
                }
            }
            Step::Write(id, tree) => write(to, id, tree, &mut left)?,
        }
    }
    write(to, commit, read(commit)?, &mut left)
}

/// What the origin of a copy lacks is the origin's fault, not the mirror's.
fn damaged(fault: Fault) -> Fault {
    match fault {
        Fault::Mirror(why) => Fault::remote(format!("the remote's repository cannot be read: {why}")),
        other @ (Fault::Remote { .. } | Fault::Stopped | Fault::Final(_)) => other,
    }
}

enum Step {
    Enter(ObjectId, usize),
    Write(ObjectId, Checked),
}

fn write(to: &gix::Repository, id: ObjectId, checked: Checked, left: &mut u64) -> Result<(), Fault> {
    use gix::objs::Write as _;
    let size = u64::try_from(checked.data.len()).unwrap_or(u64::MAX);
    *left = left.checked_sub(size).ok_or_else(|| {
        Fault::refused(
            format!("its tree has more than {COPY_LIMIT_BYTES} bytes of new content"),
            "make the repository smaller",
        )
    })?;
    let written = to.objects.write_buf(checked.kind, &checked.data).map_err(Fault::mirror)?;
    if written == id { Ok(()) } else { Err(Fault::Mirror(format!("object {id} was written as {written}"))) }
}

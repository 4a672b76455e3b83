//! A subtree as a tar archive for the engine's builder: equal trees give equal bytes.
//!
//! Links stay links and must end inside the archive; submodules become empty directories; LFS pointers stay
//! pointers, since nothing is ever smudged (field report 33).

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use tar::{EntryType, Header};

use crate::model::{ReasonCode, RepoPath, Sha};

use super::abort::Abort;
use super::fault::Fault;
use super::{tree, whole};

/// More entries than this are not a build context.
const MAX_ENTRIES: usize = 500_000;
/// Deeper directories than this are refused.
const MAX_DEPTH: usize = 128;
/// Longer links than this cannot be made on Linux.
///
/// Source: `symlink(2)`, `PATH_MAX`.
const MAX_LINK_BYTES: u64 = 4096;
/// As many links as Linux follows in one path.
///
/// Source: `path_resolution(7)`.
const MAX_HOPS: usize = 40;

/// What to write.
pub(super) struct Job<'a> {
    pub(super) commit: &'a Sha,
    pub(super) context: &'a RepoPath,
    pub(super) to: &'a Path,
    pub(super) limit: u64,
}

/// One thing in the archive.
struct Item {
    kind: EntryKind,
    id: ObjectId,
    link: Vec<u8>,
}

type Items = BTreeMap<Vec<u8>, Item>;

/// Writes the archive and returns the submodules that were left empty. A failed archive is removed.
///
/// # Errors
/// [`ReasonCode::BuildFailed`] with a name for what cannot be a build context; [`Fault::Mirror`] if objects are missing.
pub(super) fn write(repository: &gix::Repository, job: &Job<'_>, abort: &Abort) -> Result<Vec<String>, Fault> {
    let top = tree::find(repository, job.commit, job.context)?;
    if top.kind != EntryKind::Tree {
        return Err(refused(job, "it is not a directory"));
    }
    let items = collect(repository, job, (top.id, abort))?;
    for (path, item) in &items {
        if item.kind == EntryKind::Link && !ends_inside(&items, path, &item.link) {
            return Err(refused(
                job,
                &format!("the link `{}` to `{}` leaves it", path.escape_ascii(), item.link.escape_ascii()),
            ));
        }
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(job.to);
    let file = file.map_err(|error| disk(job, &error))?;
    let written = archive(repository, &items, (file, job, abort));
    if written.is_err() {
        std::fs::remove_file(job.to).ok();
    }
    written?;
    let modules = items.iter().filter(|(_, item)| item.kind == EntryKind::Commit);
    Ok(modules.map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect())
}

fn refused(job: &Job<'_>, why: &str) -> Fault {
    Fault::content(
        ReasonCode::BuildFailed,
        format!(
            "`{}` at {} cannot be a build context: {why}; change it in the repository",
            job.context,
            job.commit.short()
        ),
    )
}

fn disk(job: &Job<'_>, error: &io::Error) -> Fault {
    let code = if error.kind() == io::ErrorKind::StorageFull { ReasonCode::DiskFull } else { ReasonCode::BuildFailed };
    Fault::Final(Box::new(crate::source::SourceError {
        reason: crate::model::Reason::new(
            code,
            format!(
                "the build context `{}` could not be written to {}: {error}; free space there",
                job.context,
                job.to.display()
            ),
        ),
        class: crate::model::Class::Transient,
    }))
}

/// Lists everything below the context, sorted by path, within every bound.
fn collect(repository: &gix::Repository, job: &Job<'_>, from: (ObjectId, &Abort)) -> Result<Items, Fault> {
    let (top, abort) = from;
    let mut items = Items::new();
    let mut left = job.limit;
    let mut waiting = vec![(Vec::new(), top, 0_usize)];
    while let Some((prefix, id, depth)) = waiting.pop() {
        abort.check()?;
        if depth > MAX_DEPTH || items.len() > MAX_ENTRIES {
            return Err(refused(job, &format!("it has more than {MAX_DEPTH} levels or {MAX_ENTRIES} entries")));
        }
        for entry in tree::entries(repository, id)? {
            let path = [prefix.as_slice(), entry.name.as_slice()].concat();
            let mut link = Vec::new();
            match entry.kind {
                EntryKind::Tree => waiting.push(([path.as_slice(), b"/"].concat(), entry.id, depth + 1)),
                EntryKind::Link => {
                    if size(repository, entry.id)? > MAX_LINK_BYTES {
                        return Err(refused(job, &format!("the link `{}` is too long", path.escape_ascii())));
                    }
                    link = whole::object(repository, entry.id)?.data;
                }
                EntryKind::Blob | EntryKind::BlobExecutable => {
                    left = left.checked_sub(size(repository, entry.id)?).ok_or_else(|| {
                        refused(job, &format!("it has more than `build_context_limit` = {} bytes", job.limit))
                    })?;
                }
                EntryKind::Commit => {}
            }
            let item = Item { kind: entry.kind, id: entry.id, link };
            if items.insert(path.clone(), item).is_some() {
                return Err(refused(job, &format!("`{}` is in it twice", path.escape_ascii())));
            }
        }
    }
    Ok(items)
}

fn size(repository: &gix::Repository, id: ObjectId) -> Result<u64, Fault> {
    let header = repository.try_find_header(id).map_err(Fault::mirror)?;
    Ok(header.ok_or_else(|| Fault::Mirror(format!("object {id} is missing")))?.size())
}

/// Follows a link through the other links, as a kernel would, and says whether it stays below the context.
/// A link to something absent is fine.
fn ends_inside(items: &Items, path: &[u8], link: &[u8]) -> bool {
    let mut here: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    here.pop();
    let mut ahead: VecDeque<Vec<u8>> = VecDeque::new();
    let mut hops = 0;
    let mut next = Some(link.to_vec());
    loop {
        if let Some(target) = next.take() {
            hops += 1;
            if target.is_empty() || target.starts_with(b"/") || target.contains(&0) || hops > MAX_HOPS {
                return false;
            }
            for part in target.rsplit(|byte| *byte == b'/') {
                ahead.push_front(part.to_vec());
            }
        }
        let Some(part) = ahead.pop_front() else {
            return true;
        };
        match part.as_slice() {
            b"" | b"." => {}
            b".." => {
                if here.pop().is_none() {
                    return false;
                }
            }
            _ => {
                here.push(part);
                if let Some(item) = items.get(&here.join(&b'/')).filter(|item| item.kind == EntryKind::Link) {
                    next = Some(item.link.clone());
                    here.pop();
                }
            }
        }
    }
}

fn archive(repository: &gix::Repository, items: &Items, to: (File, &Job<'_>, &Abort)) -> Result<(), Fault> {
    let (file, job, abort) = to;
    let mut builder = tar::Builder::new(BufWriter::new(file));
    for (path, item) in items {
        abort.check()?;
        let path = Path::new(OsStr::from_bytes(path));
        let put = match item.kind {
            EntryKind::Tree | EntryKind::Commit => {
                let mut header = header(EntryType::Directory, 0o755, 0);
                builder.append_data(&mut header, path.join(""), io::empty())
            }
            EntryKind::Link => {
                let mut header = header(EntryType::Symlink, 0o777, 0);
                builder.append_link(&mut header, path, Path::new(OsStr::from_bytes(&item.link)))
            }
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let data = whole::object(repository, item.id)?.data;
                let mode = if item.kind == EntryKind::BlobExecutable { 0o755 } else { 0o644 };
                let mut header = header(EntryType::Regular, mode, u64::try_from(data.len()).unwrap_or(u64::MAX));
                builder.append_data(&mut header, path, data.as_slice())
            }
        };
        put.map_err(|error| disk(job, &error))?;
    }
    let finish = || -> io::Result<()> {
        let mut writer = builder.into_inner()?;
        writer.flush()?;
        writer.get_ref().sync_all()
    };
    finish().map_err(|error| disk(job, &error))
}

/// Nothing of this host or of the moment is in a header.
fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The submodules below a directory, by path.
///
/// # Errors
/// As [`fn@write`], without a limit on bytes.
pub(super) fn submodules(
    repository: &gix::Repository,
    at: (&Sha, &RepoPath),
    abort: &Abort,
) -> Result<Vec<String>, Fault> {
    let top = tree::find(repository, at.0, at.1)?;
    if top.kind != EntryKind::Tree {
        return Ok(Vec::new());
    }
    let job = Job { commit: at.0, context: at.1, to: Path::new(""), limit: u64::MAX };
    let items = collect(repository, &job, (top.id, abort))?;
    let modules = items.into_iter().filter(|(_, item)| item.kind == EntryKind::Commit);
    Ok(modules.map(|(path, _)| String::from_utf8_lossy(&path).into_owned()).collect())
}

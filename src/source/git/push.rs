//! Reverts to plain remotes: the commit is built with gix in a place of its own, and pushed by the fixed program
//! `git`, without `+` and without force: a branch that moved refuses it.
//!
//! `git` is started without any shell, with an emptied environment, without hooks, credential helpers and
//! configuration of anybody. It is asked for lines that machines read.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use jiff::Timestamp;

use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, ReasonCode, Sha};
use crate::release::revert::{Content, Leaf, Order};
use crate::source::{Look, Source as _, SourceError, WriteError, Written};

use super::abort::Abort;
use super::fault::{Fault, short, told};
use super::place::Way;
use super::repo::Repo;
use super::{GitSource, mirror, ssh, tree};

/// Bytes of what `git` says that are read.
const SAID_BYTES: u64 = 64 << 10;

/// How our commits are signed off by name; a plain remote knows no identity of ours.
const NAME: &str = "trueup";
const EMAIL: &str = "trueup@localhost";

/// How a push ended.
#[derive(Debug, PartialEq, Eq)]
enum Pushed {
    Done,
    Moved,
    Declined(String),
    Failed(String),
}

impl GitSource {
    /// Writes an order to a plain remote. A proposal is a branch that waits for somebody to merge it.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn write(
        &self,
        repository: &Repository,
        (order, at): (&Order, Timestamp),
    ) -> Result<Written, WriteError> {
        let branch: String = order.proposal.as_ref().map_or_else(|| order.branch.to_string(), |new| new.head.clone());
        let name: BranchName =
            branch.parse().map_err(|_| WriteError::Failed(super::bug("a revert's branch has an odd name")))?;
        if order.proposal.is_some()
            && let Look::At(commit) = self.look(repository, &name).await.map_err(WriteError::Failed)?
        {
            return Ok(Written { commit: Some(commit), branch, link: None, is_old: true });
        }
        self.fetch(repository, &order.branch, &order.parent).await.map_err(WriteError::Failed)?;
        let repo = self.repo(repository).map_err(WriteError::Failed)?;
        let inner = Arc::clone(&repo);
        let (ours, full) = (order.clone(), name.full_ref());
        let what = format!("a revert could not be pushed to `{branch}`");
        let pushed = self.in_turn(&repo, move |abort| inner.push((&ours, at), &full, abort)).await;
        let (commit, pushed) = pushed.map_err(|fault| WriteError::Failed(told(&what, &repo.remote, fault)))?;
        let commit: Sha = commit
            .to_string()
            .parse()
            .map_err(|_| WriteError::Failed(super::bug("a commit of ours has an odd name")))?;
        let refused =
            |why: &str| Reason::new(ReasonCode::GitUnavailable, format!("{what} (at {}): {why}", repo.remote));
        match pushed {
            Pushed::Done => Ok(Written { commit: Some(commit), branch, link: None, is_old: false }),
            Pushed::Moved => Err(WriteError::Moved),
            Pushed::Declined(why) => Err(WriteError::Protected(refused(&why))),
            Pushed::Failed(why) if is_about_rights(&why) => Err(WriteError::NoRight(refused(&why))),
            Pushed::Failed(why) => {
                Err(WriteError::Failed(SourceError { reason: refused(&why), class: Class::Transient }))
            }
        }
    }
}

impl Repo {
    /// Builds the commit and pushes it. The caller holds the turn.
    fn push(
        &self,
        (order, at): (&Order, Timestamp),
        full_ref: &str,
        abort: &Arc<Abort>,
    ) -> Result<(ObjectId, Pushed), Fault> {
        let place = Scratch::new(&self.dir)?;
        let commit = place.build(order, at)?;
        abort.check()?;
        let arguments = [
            "-c".to_owned(),
            "core.hooksPath=/dev/null".to_owned(),
            "-c".to_owned(),
            "credential.helper=".to_owned(),
            "-c".to_owned(),
            "protocol.ext.allow=never".to_owned(),
            "push".to_owned(),
            "--porcelain".to_owned(),
            "--no-verify".to_owned(),
            "--no-follow-tags".to_owned(),
            "--end-of-options".to_owned(),
            self.remote.address(),
            format!("{commit}:{full_ref}"),
        ];
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(&place.path)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
            .env("HOME", &place.path)
            .env("GIT_DIR", &place.path)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_ALLOW_PROTOCOL", "file:http:https:ssh")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"]
        {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Way::Ssh { .. } = self.remote.way {
            command.env("GIT_SSH", place.ssh(&ssh::fixed(&self.keys))?).env("GIT_SSH_VARIANT", "ssh");
        }
        let (said, complaint) = run(&mut command, abort)?;
        abort.check()?;
        let pushed = judge(&said, &complaint);
        if let (Pushed::Failed(_), Some(fault)) = (&pushed, ssh::judge(&complaint, &self.remote.way, &self.keys)) {
            return Err(fault);
        }
        Ok((commit, pushed))
    }
}

/// Runs `git` and gives what it said and what it complained about; the abort owns the process.
fn run(command: &mut Command, abort: &Abort) -> Result<(String, String), Fault> {
    let mut child = command
        .spawn()
        .map_err(|error| Fault::refused(format!("`git` cannot be started ({error})"), "install the package git"))?;
    let pipes = (child.stdout.take(), child.stderr.take());
    abort.adopt(child);
    let (Some(stdout), Some(stderr)) = pipes else {
        return Err(Fault::remote("`git` started without its pipes"));
    };
    let complaint = std::thread::spawn(move || text(stderr));
    let said = text(stdout);
    let complaint = complaint.join().unwrap_or_default();
    abort.reap();
    Ok((said, complaint))
}

fn text(pipe: impl Read) -> String {
    let mut pipe = pipe;
    let mut kept = Vec::new();
    (&mut pipe).take(SAID_BYTES).read_to_end(&mut kept).ok();
    std::io::copy(&mut pipe, &mut std::io::sink()).ok();
    String::from_utf8_lossy(&kept).into_owned()
}

/// What the lines of `git push --porcelain` mean.
///
/// Source: git-push(1), "OUTPUT".
fn judge(said: &str, complaint: &str) -> Pushed {
    let line = said.lines().find_map(|line| {
        let mut parts = line.splitn(3, '\t');
        let (flag, _, summary) = (parts.next()?, parts.next()?, parts.next()?);
        Some((flag.to_owned(), summary.to_owned()))
    });
    match line {
        Some((flag, _)) if matches!(flag.as_str(), " " | "*" | "=") => Pushed::Done,
        Some((_, summary)) => {
            let is_moved = ["fetch first", "non-fast-forward", "stale info", "cannot lock ref", "failed to update ref"]
                .iter()
                .any(|mark| summary.contains(mark));
            if is_moved {
                return Pushed::Moved;
            }
            let told: Vec<&str> =
                complaint.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
            Pushed::Declined(short(&format!("{summary} {}", told.join(" "))))
        }
        None => Pushed::Failed(short(complaint)),
    }
}

/// Whether a complaint of `git` says that we may not write there.
fn is_about_rights(why: &str) -> bool {
    let lower = why.to_ascii_lowercase();
    [
        "authentication failed",
        "could not read username",
        "error: 401",
        "error: 403",
        "permission denied",
        "permission to",
        "dubious ownership",
        "service not enabled",
        "insufficient permission",
        "read-only",
        "unable to create temporary object directory",
    ]
    .iter()
    .any(|mark| lower.contains(mark))
}

/// A bare repository for one push, beside the mirror whose objects it borrows; removed when dropped.
struct Scratch {
    path: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

impl Scratch {
    fn new(mirror: &Path) -> Result<Self, Fault> {
        let path = mirror::temporary(mirror).with_extension("push");
        mirror::make_at(&path)?;
        let place = Self { path };
        let objects = format!("{}\n", mirror.join("objects").display());
        fs::write(place.path.join("objects/info/alternates"), objects).map_err(Fault::mirror)?;
        Ok(place)
    }

    /// Writes the tree where it is a new one, and the commit. The parent's own history is not here, and need not be.
    fn build(&self, order: &Order, at: Timestamp) -> Result<ObjectId, Fault> {
        let parent = tree::id(&order.parent)?;
        fs::write(self.path.join("shallow"), format!("{parent}\n")).map_err(Fault::mirror)?;
        let repository = mirror::open_isolated(&self.path).map_err(Fault::Mirror)?;
        let tree = match &order.content {
            Content::Tree(tree) => tree::id(tree)?,
            Content::Edits { onto, edits } => edited(&repository, tree::id(onto)?, edits)?,
        };
        let signature = gix::actor::Signature {
            name: NAME.into(),
            email: EMAIL.into(),
            time: gix::date::Time::new(at.as_second(), 0),
        };
        let commit = gix::objs::Commit {
            tree,
            parents: std::iter::once(parent).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: order.message.as_str().into(),
            extra_headers: Vec::new(),
        };
        Ok(repository.write_object(commit).map_err(Fault::mirror)?.detach())
    }

    /// The program that `git` starts for `ssh`: our fixed options, then what `git` adds.
    fn ssh(&self, options: &[String]) -> Result<PathBuf, Fault> {
        let path = self.path.join("ssh");
        let quoted: Vec<String> = options.iter().map(|option| format!("'{}'", option.replace('\'', "'\\''"))).collect();
        let text = format!("#!/bin/sh\nexec ssh {} \"$@\"\n", quoted.join(" "));
        let mut file = fs::OpenOptions::new();
        let mut file = file.create_new(true).write(true).mode(0o700).open(&path).map_err(Fault::mirror)?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(Fault::mirror)?;
        Ok(path)
    }
}

fn edited(repository: &gix::Repository, onto: ObjectId, edits: &[(String, Option<Leaf>)]) -> Result<ObjectId, Fault> {
    let mut editor = repository.edit_tree(onto).map_err(Fault::mirror)?;
    for (path, leaf) in edits {
        match leaf {
            Some(leaf) => {
                let kind = kind(&leaf.mode)?;
                editor.upsert(path.as_str(), kind, tree::id(&leaf.id)?).map_err(Fault::mirror)?;
            }
            None => {
                editor.remove(path.as_str()).map_err(Fault::mirror)?;
            }
        }
    }
    Ok(editor.write().map_err(Fault::mirror)?.detach())
}

fn kind(mode: &str) -> Result<EntryKind, Fault> {
    match mode {
        "100644" => Ok(EntryKind::Blob),
        "100755" => Ok(EntryKind::BlobExecutable),
        "120000" => Ok(EntryKind::Link),
        "160000" => Ok(EntryKind::Commit),
        other => Err(Fault::mirror(format!("a file of mode {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_push_are_told_apart() {
        let line = |flag: &str, summary: &str| format!("To x\n{flag}\tabc:refs/heads/main\t{summary}\nDone\n");
        assert_eq!(judge(&line(" ", "1..2"), ""), Pushed::Done);
        assert_eq!(judge(&line("*", "[new branch]"), ""), Pushed::Done);
        for moved in
            ["[rejected] (fetch first)", "[rejected] (non-fast-forward)", "[remote rejected] (cannot lock ref)"]
        {
            assert_eq!(judge(&line("!", moved), ""), Pushed::Moved);
        }
        let declined =
            judge(&line("!", "[remote rejected] (pre-receive hook declined)"), "remote: no pushes on Friday\n");
        assert!(matches!(declined, Pushed::Declined(why) if why.contains("no pushes on Friday")));
        assert_eq!(
            judge("", "fatal: Authentication failed"),
            Pushed::Failed("fatal: Authentication failed".to_owned())
        );
        assert!(is_about_rights("fatal: Authentication failed for 'https://x/'"));
    }
}

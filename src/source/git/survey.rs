//! What lies between a good revision, a bad one and the tip: commits, and the files that they changed.

use std::collections::{BinaryHeap, HashMap};

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use crate::model::policy::Repository;
use crate::model::{BranchName, Sha};
use crate::release::revert::{Between, Change, Leaf, Survey, is_ours};
use crate::source::{Look, Source as _, SourceError};

use super::abort::Abort;
use super::fault::{Fault, told};
use super::history::{DEPTHS, depth};
use super::place::Way;
use super::repo::{Repo, open_remote};
use super::settings::{FETCH_LIMIT_BYTES, READ_BOUND};
use super::talk::Want;
use super::{GitSource, mirror, tree};

/// More commits between two revisions than this are for a person to undo.
const MAX_COMMITS: usize = 2_000;
/// More changed files than this are for a person to undo.
const MAX_CHANGES: usize = 50_000;

/// The commits of one revision that another one does not have.
#[derive(Debug)]
struct Range {
    commits: Vec<Between>,
    /// Whether the older one is an ancestor of the newer one.
    is_met: bool,
    /// Whether commits were missing that could change the answer.
    is_cut: bool,
}

/// Reached from the newer one.
const NEW: u8 = 1;
/// Reached from the older one.
const OLD: u8 = 2;

/// `git rev-list old..new`: both sides are painted downwards, newest first, until only common ground is left.
fn range(repository: &gix::Repository, pair: (ObjectId, ObjectId), abort: &Abort) -> Result<Range, Fault> {
    let (old, new) = pair;
    let mut paint = HashMap::from([(new, NEW)]);
    *paint.entry(old).or_default() |= OLD;
    let mut known: HashMap<ObjectId, (i64, Vec<ObjectId>, Between)> = HashMap::new();
    let mut waiting = BinaryHeap::new();
    let mut is_cut = false;
    let mut order = Vec::new();
    for id in [new, old] {
        match commit(repository, id)? {
            Some(found) => {
                waiting.push((found.0, id));
                known.insert(id, found);
            }
            None => is_cut = true,
        }
    }
    while waiting.iter().any(|(_, id)| paint.get(id) == Some(&NEW)) {
        abort.check()?;
        let Some((_, id)) = waiting.pop() else { break };
        let colour = paint.get(&id).copied().unwrap_or_default();
        order.push(id);
        let parents = known.get(&id).map(|found| found.1.clone()).unwrap_or_default();
        for parent in parents {
            let before = paint.get(&parent).copied().unwrap_or_default();
            if before | colour == before {
                continue;
            }
            paint.insert(parent, before | colour);
            if !known.contains_key(&parent) {
                match commit(repository, parent)? {
                    Some(found) => {
                        known.insert(parent, found);
                    }
                    None => {
                        is_cut |= colour & NEW != 0;
                        continue;
                    }
                }
            }
            let at = known.get(&parent).map_or(0, |found| found.0);
            waiting.push((at, parent));
        }
        if known.len() > MAX_COMMITS.saturating_mul(50) {
            return Err(too_many("commits"));
        }
    }
    let mut commits = Vec::new();
    for id in order {
        if paint.get(&id) == Some(&NEW)
            && let Some((_, _, between)) = known.remove(&id)
        {
            commits.push(between);
        }
    }
    if commits.len() > MAX_COMMITS {
        return Err(too_many("commits"));
    }
    let is_met = paint.get(&old).is_some_and(|colour| colour & NEW != 0);
    Ok(Range { commits, is_met, is_cut })
}

fn too_many(what: &str) -> Fault {
    Fault::refused(format!("there are too many {what} between the two revisions"), "undo them by hand")
}

fn commit(repository: &gix::Repository, id: ObjectId) -> Result<Option<(i64, Vec<ObjectId>, Between)>, Fault> {
    let Some(object) = repository.try_find_object(id).map_err(Fault::mirror)? else { return Ok(None) };
    let commit = gix::objs::CommitRef::from_bytes(&object.data, id.kind()).map_err(Fault::mirror)?;
    let seconds = commit.committer().map_err(Fault::mirror)?.time().map_err(Fault::mirror)?.seconds;
    let message = String::from_utf8_lossy(commit.message).into_owned();
    let between = Between {
        sha: sha(id)?,
        subject: message.lines().next().unwrap_or_default().trim().to_owned(),
        is_ours: is_ours(&message),
    };
    Ok(Some((seconds, commit.parents().collect(), between)))
}

fn sha(id: ObjectId) -> Result<Sha, Fault> {
    id.to_string().parse().map_err(|_| Fault::refused("it names an odd object", "push a commit made by Git"))
}

impl Repo {
    /// Both ranges over as little history as it takes. The caller holds the turn.
    fn ranges(&self, revisions: [ObjectId; 3], abort: &std::sync::Arc<Abort>) -> Result<[Range; 2], Fault> {
        let [good, bad, tip] = revisions;
        let both = |repository: &gix::Repository| -> Result<[Range; 2], Fault> {
            Ok([range(repository, (good, bad), abort)?, range(repository, (bad, tip), abort)?])
        };
        if let Way::File(path) = &self.remote.way {
            return both(&open_remote(path)?);
        }
        let dir = self.history_dir();
        let mut found = both(&mirror::open_or_make(&dir)?)?;
        for commits in DEPTHS {
            if found.iter().all(|range| range.is_met && !range.is_cut) {
                break;
            }
            let repository = mirror::open_or_make(&dir)?;
            let want = Want { id: tip, haves: &[], depth: depth(commits), is_history: true };
            self.converse((FETCH_LIMIT_BYTES, abort), |talk| talk.receive(&repository, &want, abort))?;
            found = both(&mirror::open_isolated(&dir).map_err(Fault::Mirror)?)?;
        }
        Ok(found)
    }
}

impl GitSource {
    /// What lies between a good and a bad revision, and between that and the tip now.
    ///
    /// # Errors
    /// [`SourceError`] when the remote did not answer, or has no such branch.
    pub async fn survey(
        &self,
        repository: &Repository,
        branch: &BranchName,
        (good, bad): (&Sha, &Sha),
    ) -> Result<Survey, SourceError> {
        let repo = self.repo(repository)?;
        let what = format!("what lies between {} and `{branch}` could not be found out", good.short());
        let Look::At(tip) = self.look(repository, branch).await? else {
            return Err(told(&what, &repo.remote, Fault::refused("it has no such branch", "push it")));
        };
        let mut trees = Vec::new();
        for revision in [good, bad, &tip] {
            trees.push(self.fetch(repository, branch, revision).await?.tree);
        }
        let ids = [good, bad, &tip].map(tree::id);
        let asked = async {
            let [good, bad, tip] = ids;
            let ids = [good?, bad?, tip?];
            let inner = std::sync::Arc::clone(&repo);
            self.in_turn(&repo, move |abort| inner.ranges(ids, abort)).await
        };
        let [undone, newer] = asked.await.map_err(|fault| told(&what, &repo.remote, fault))?;
        let about = (good.clone(), bad.clone());
        let tip_then = tip.clone();
        let changes = self
            .use_commit(repository, (&tip, READ_BOUND, what), move |repository, abort| {
                changes(repository, [&about.0, &about.1, &tip_then], abort)
            })
            .await?;
        let mut trees = trees.into_iter();
        let (good_tree, tip_tree) = (trees.next(), trees.nth(1));
        let (Some(good_tree), Some(tip_tree)) = (good_tree, tip_tree) else {
            return Err(super::bug("three revisions have three trees"));
        };
        Ok(Survey {
            tip,
            tip_tree,
            good_tree,
            is_one_line: undone.is_met && newer.is_met,
            undone: undone.commits,
            newer: newer.commits,
            changes,
        })
    }
}

/// The files that differ between good and bad, with what the tip has in their place.
fn changes(repository: &gix::Repository, revisions: [&Sha; 3], abort: &Abort) -> Result<Vec<Change>, Fault> {
    let [good, bad, tip] = revisions.map(|revision| tree::root(repository, revision));
    let (good, bad, tip) = (good?, bad?, tip?);
    let mut leaves = Vec::new();
    compare(repository, (Some(good), Some(bad)), &mut (String::new(), &mut leaves), abort)?;
    for change in &mut leaves {
        abort.check()?;
        change.tip = leaf_at(repository, tip, &change.path)?;
    }
    Ok(leaves)
}

/// Walks two trees side by side; equal ones are not entered.
fn compare(
    repository: &gix::Repository,
    pair: (Option<ObjectId>, Option<ObjectId>),
    (prefix, found): &mut (String, &mut Vec<Change>),
    abort: &Abort,
) -> Result<(), Fault> {
    abort.check()?;
    let list = |id: Option<ObjectId>| id.map_or(Ok(Vec::new()), |id| tree::entries(repository, id));
    let (left, right) = (list(pair.0)?, list(pair.1)?);
    let mut names: Vec<&Vec<u8>> = left.iter().chain(&right).map(|entry| &entry.name).collect();
    names.sort();
    names.dedup();
    for name in names {
        let of = |list: &[tree::Entry]| list.iter().find(|entry| entry.name == *name).cloned();
        let (good, bad) = (of(&left), of(&right));
        let is_same = match (&good, &bad) {
            (Some(good), Some(bad)) => good.id == bad.id && good.kind == bad.kind,
            (None, _) | (_, None) => false,
        };
        if is_same {
            continue;
        }
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(Fault::refused("a changed file has a name that is not UTF-8", "undo it by hand"));
        };
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let leaf = |entry: &Option<tree::Entry>| entry.as_ref().filter(|entry| entry.kind != EntryKind::Tree).map(leaf);
        let subtree = |entry: &Option<tree::Entry>| {
            entry.as_ref().filter(|entry| entry.kind == EntryKind::Tree).map(|entry| entry.id)
        };
        let (good_leaf, bad_leaf) = (leaf(&good).transpose()?, leaf(&bad).transpose()?);
        if good_leaf != bad_leaf {
            found.push(Change { path: path.clone(), good: good_leaf, bad: bad_leaf, tip: None });
        }
        if found.len() > MAX_CHANGES {
            return Err(too_many("changed files"));
        }
        let below = (subtree(&good), subtree(&bad));
        if below.0.is_some() || below.1.is_some() {
            let mut inner = (path, &mut **found);
            compare(repository, below, &mut inner, abort)?;
        }
    }
    Ok(())
}

fn leaf(entry: &tree::Entry) -> Result<Leaf, Fault> {
    let mode = match entry.kind {
        EntryKind::Blob => "100644",
        EntryKind::BlobExecutable => "100755",
        EntryKind::Link => "120000",
        EntryKind::Commit => "160000",
        EntryKind::Tree => "040000",
    };
    Ok(Leaf { mode: mode.to_owned(), id: sha(entry.id)? })
}

/// What a tree has at a path, or on the way there.
fn leaf_at(repository: &gix::Repository, root: ObjectId, path: &str) -> Result<Option<Leaf>, Fault> {
    let mut here = root;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let found = tree::entries(repository, here)?.into_iter().find(|entry| entry.name == part.as_bytes());
        let Some(entry) = found else { return Ok(None) };
        if parts.peek().is_none() || entry.kind != EntryKind::Tree {
            return leaf(&entry).map(Some);
        }
        here = entry.id;
    }
    Ok(None)
}

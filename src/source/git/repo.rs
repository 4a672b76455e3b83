//! One repository: what may block, under the rule that only the holder of its turn writes its mirror.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gix::ObjectId;
use tokio::runtime::Handle;

use crate::source::{Ancestry, CommitFacts, Look};

use super::abort::Abort;
use super::fault::{Fault, hold, is_full};
use super::place::{Remote, Way};
use super::talk::{Talk, Want};
use super::wire::SMALL_BYTES;
use super::{FETCH_LIMIT_BYTES, Flights, Token, history, mirror, ssh, whole};

/// How hard to try to make a commit whole (field reports 21 and 22), in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Ask for what the mirror lacks.
    Thin,
    /// Ask for all of it, into the same mirror.
    Full,
    /// Make a new mirror beside the old one, and put it in its place.
    Anew,
}

impl Effort {
    fn next(self) -> Option<Self> {
        match self {
            Self::Thin => Some(Self::Full),
            Self::Full => Some(Self::Anew),
            Self::Anew => None,
        }
    }
}

/// One repository's address, mirror and connections.
pub(super) struct Repo {
    /// Where it is.
    pub(super) remote: Remote,
    /// Its mirror.
    pub(super) dir: PathBuf,
    /// The client for HTTP.
    pub(super) client: reqwest::Client,
    /// The runtime that drives the client.
    pub(super) handle: Handle,
    /// The token of `[github]`, if this remote takes it.
    pub(super) token: Option<Token>,
    /// For `ssh://`.
    pub(super) keys: ssh::Keys,
    /// Held by the one who fetches.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// Fetches under way, shared by everybody who wants the same commit.
    pub(super) flights: Mutex<Flights>,
    /// Read while the mirror is used, written while it is replaced.
    pub(super) place: RwLock<()>,
    /// An HTTP conversation whose connection is kept alive for the next look.
    pub(super) talk: Mutex<Option<Talk>>,
    /// What this process has seen whole.
    pub(super) seen: Mutex<HashSet<ObjectId>>,
}

impl Repo {
    /// One look at one branch.
    pub(super) fn look(&self, full_name: &str, abort: &Arc<Abort>) -> Result<Look, Fault> {
        let tip = match &self.remote.way {
            Way::File(path) => tip_in(path, full_name)?,
            Way::Http { .. } | Way::Ssh { .. } => self.converse((SMALL_BYTES, abort), |talk| talk.tip(full_name))?,
        };
        let Some(tip) = tip else {
            return Ok(Look::Gone);
        };
        let sha = tip.to_string().parse().map_err(|_| Fault::remote("the tip is not a full sha"))?;
        Ok(Look::At(sha))
    }

    /// Makes a commit whole in the mirror. The caller holds the turn.
    pub(super) fn bring(&self, id: ObjectId, effort: Effort, abort: &Arc<Abort>) -> Result<CommitFacts, Fault> {
        let mut effort = effort;
        if effort == Effort::Thin {
            if let Some(facts) = self.known(id, abort)? {
                return Ok(facts);
            }
            if mirror::is_overgrown(&self.dir) {
                effort = Effort::Anew;
            }
        }
        loop {
            match self.attempt(id, effort, abort) {
                Ok(facts) => {
                    hold(&self.seen).insert(id);
                    return Ok(facts);
                }
                Err(Fault::Mirror(why)) => {
                    abort.check()?;
                    tracing::warn!(remote = %self.remote, sha = %id, ?effort, why, "a mirror needs repair");
                    // A full disk is not mended by a second mirror on it.
                    match effort.next().filter(|_| !is_full(&why)) {
                        Some(next) => effort = next,
                        None => return Err(Fault::Mirror(why)),
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// The facts of a commit that is recorded and, once for each process, checked again.
    fn known(&self, id: ObjectId, abort: &Abort) -> Result<Option<CommitFacts>, Fault> {
        if !mirror::is_recorded(&self.dir, id) {
            return Ok(None);
        }
        let look = || {
            let repository = mirror::open_isolated(&self.dir).map_err(Fault::Mirror)?;
            if !hold(&self.seen).contains(&id) {
                whole::check(&repository, id, abort)?;
            }
            mirror::touch(&self.dir, id);
            whole::facts(&repository, id)
        };
        match look() {
            Ok(facts) => {
                hold(&self.seen).insert(id);
                Ok(Some(facts))
            }
            Err(Fault::Mirror(why)) => {
                tracing::warn!(remote = %self.remote, sha = %id, why, "a recorded commit is no longer whole");
                mirror::forget(&self.dir, id);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// The facts of a commit that this process has seen whole, without waiting for anybody's turn.
    pub(super) fn seen_facts(&self, id: ObjectId) -> Option<CommitFacts> {
        if !hold(&self.seen).contains(&id) {
            return None;
        }
        let facts = self.with(id, |repository| whole::facts(repository, id));
        mirror::touch(&self.dir, id);
        facts.ok()
    }

    fn attempt(&self, id: ObjectId, effort: Effort, abort: &Arc<Abort>) -> Result<CommitFacts, Fault> {
        if effort == Effort::Anew {
            return self.anew(id, abort);
        }
        let mut haves = if effort == Effort::Thin { mirror::records(&self.dir) } else { Vec::new() };
        haves.truncate(mirror::MAX_HAVES);
        let repository = mirror::open_or_make(&self.dir)?;
        self.pour(&repository, (id, &haves), abort)?;
        let facts = checked(&self.dir, id, abort)?;
        mirror::record(&self.dir, id)?;
        Ok(facts)
    }

    /// Makes a new mirror, takes over what is still whole in the old one (field report 24), and swaps them.
    fn anew(&self, id: ObjectId, abort: &Arc<Abort>) -> Result<CommitFacts, Fault> {
        let successor = mirror::temporary(&self.dir);
        let repository = mirror::make_at(&successor)?;
        self.pour(&repository, (id, &[]), abort)?;
        let facts = checked(&successor, id, abort)?;
        if let Ok(old) = mirror::open_isolated(&self.dir) {
            let mut kept = mirror::records(&self.dir);
            kept.truncate(mirror::KEEP_RECORDS);
            for commit in kept.into_iter().rev().filter(|commit| *commit != id) {
                abort.check()?;
                match whole::copy((&old, &repository), commit, abort) {
                    Ok(()) => mirror::record(&successor, commit)?,
                    Err(fault) => {
                        tracing::warn!(remote = %self.remote, sha = %commit, ?fault, "a commit was lost with its mirror")
                    }
                }
            }
        }
        mirror::record(&successor, id)?;
        hold(&self.seen).clear();
        let _alone = self.place.write().unwrap_or_else(PoisonError::into_inner);
        mirror::swap(&successor, &self.dir)?;
        Ok(facts)
    }

    /// Gets the objects of a commit from the remote into `repository`.
    fn pour(
        &self,
        repository: &gix::Repository,
        what: (ObjectId, &[ObjectId]),
        abort: &Arc<Abort>,
    ) -> Result<(), Fault> {
        let (id, haves) = what;
        match &self.remote.way {
            Way::File(path) => {
                let from = open_remote(path)?;
                if !from.has_object(id) {
                    return Err(Fault::remote("the commit is no longer in the remote"));
                }
                whole::copy((&from, repository), id, abort)
            }
            Way::Http { .. } | Way::Ssh { .. } => {
                let want = Want { id, haves, depth: NonZeroU32::MIN, is_history: false };
                self.converse((FETCH_LIMIT_BYTES, abort), |talk| talk.receive(repository, &want, abort))
            }
        }
    }

    /// Works on a commit that is in the mirror.
    ///
    /// # Errors
    /// [`Fault::Mirror`] if it is not, or not whole; else what `work` gives.
    pub(super) fn with<T>(
        &self,
        id: ObjectId,
        work: impl FnOnce(&gix::Repository) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let _here = self.place.read().unwrap_or_else(PoisonError::into_inner);
        if !mirror::is_recorded(&self.dir, id) {
            return Err(Fault::Mirror("the commit is not in the mirror".to_owned()));
        }
        work(&mirror::open_isolated(&self.dir).map_err(Fault::Mirror)?)
    }

    /// Whether the first commit is the second or an ancestor of it. The caller holds the turn.
    pub(super) fn ancestry(&self, pair: (ObjectId, ObjectId), abort: &Arc<Abort>) -> Result<Ancestry, Fault> {
        if pair.0 == pair.1 {
            return Ok(Ancestry::Ancestor);
        }
        let walk = match &self.remote.way {
            Way::File(path) => history::walk(&open_remote(path)?, pair, abort).map_err(|fault| match fault {
                Fault::Mirror(why) => Fault::remote(why),
                other @ (Fault::Remote { .. } | Fault::Stopped | Fault::Final(_)) => other,
            })?,
            Way::Http { .. } | Way::Ssh { .. } => match self.deepen(pair, abort) {
                Err(Fault::Mirror(why)) => {
                    tracing::warn!(remote = %self.remote, why, "the history is fetched again");
                    std::fs::remove_dir_all(self.history_dir()).map_err(Fault::mirror)?;
                    self.deepen(pair, abort)?
                }
                other => other?,
            },
        };
        match walk {
            history::Walk::Met => Ok(Ancestry::Ancestor),
            history::Walk::NotMet => Ok(Ancestry::Unrelated),
            history::Walk::CutShort => Err(Fault::refused(
                "the remote's own history is incomplete",
                "complete it with `git fetch --unshallow` there",
            )),
        }
    }

    pub(super) fn history_dir(&self) -> PathBuf {
        self.dir.with_extension("history")
    }

    fn deepen(&self, pair: (ObjectId, ObjectId), abort: &Arc<Abort>) -> Result<history::Walk, Fault> {
        let dir = self.history_dir();
        if mirror::is_overgrown(&dir) {
            std::fs::remove_dir_all(&dir).map_err(Fault::mirror)?;
        }
        let repository = mirror::open_or_make(&dir)?;
        let mut walk = history::walk(&repository, pair, abort)?;
        for commits in history::DEPTHS {
            if walk != history::Walk::CutShort {
                break;
            }
            let want = Want { id: pair.1, haves: &[], depth: history::depth(commits), is_history: true };
            self.converse((FETCH_LIMIT_BYTES, abort), |talk| talk.receive(&repository, &want, abort))?;
            let repository = mirror::open_isolated(&dir).map_err(Fault::Mirror)?;
            walk = history::walk(&repository, pair, abort)?;
        }
        Ok(walk)
    }
}

/// Opens the mirror afresh, so that nothing cached hides what is on disk, and checks the commit.
fn checked(dir: &Path, id: ObjectId, abort: &Abort) -> Result<CommitFacts, Fault> {
    let repository = mirror::open_isolated(dir).map_err(Fault::Mirror)?;
    whole::check(&repository, id, abort)?;
    whole::facts(&repository, id)
}

/// Opens a `file://` remote for reading: the directory itself, or the `.git` in it.
pub(super) fn open_remote(path: &Path) -> Result<gix::Repository, Fault> {
    let inner = path.join(".git");
    let place = if inner.is_dir() { inner } else { path.to_owned() };
    mirror::open_isolated(&place).map_err(Fault::remote)
}

fn tip_in(path: &Path, full_name: &str) -> Result<Option<ObjectId>, Fault> {
    let repository = open_remote(path)?;
    let found = repository.try_find_reference(full_name).map_err(|error| Fault::remote(format!("{error:?}")))?;
    let Some(mut reference) = found else {
        return Ok(None);
    };
    let id = reference.peel_to_id().map_err(|error| Fault::remote(format!("{error:?}")))?;
    Ok(Some(id.detach()))
}

//! Git through gix: one bare mirror for each repository, fetched by sha, never a work tree, never a pull.
//!
//! What runs is never touched because a remote is away: only a remote that answered can say that a branch is
//! gone (promise P7). A mirror is a cache: whatever is wrong with it is repaired once, then it is made again
//! beside the old one (field reports 21, 22, 26, 27 and 34). No hook, filter, smudge or submodule is ever run.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use gix::ObjectId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::model::policy::Repository;
use crate::model::{BranchName, Class, Reason, ReasonCode, RepoPath, Sha};

use super::http::Roots;
use super::{Ancestry, CommitFacts, Export, Look, Source, SourceError};
use abort::Abort;
use fault::{Fault, hold, told};
use place::{Remote, Way};
use repo::{Effort, Repo};
use run::{blocking, bug, within};
use settings::{COPY_LIMIT_BYTES, FETCH_LIMIT_BYTES, OBJECT_LIMIT_BYTES};
pub use settings::{
    FETCH_BOUND, FETCHES_AT_ONCE, GitSettings, LOOK_BOUND, LOOKS_AT_ONCE, READ_BOUND, SSH_LOOKS_AT_ONCE, Token,
};

mod abort;
mod converse;
mod exchange;
mod export;
mod fault;
mod history;
mod mirror;
mod place;
mod push;
mod repo;
mod run;
mod settings;
mod ssh;
mod survey;
mod talk;
mod tree;
mod whole;
mod wire;

#[cfg(test)]
mod tests;

type Flight = Shared<BoxFuture<'static, Result<CommitFacts, SourceError>>>;
type Flights = HashMap<Sha, Flight>;

/// Git repositories as a [`Source`].
#[derive(Clone)]
pub struct GitSource {
    shared: Arc<Common>,
}

struct Common {
    settings: GitSettings,
    root: mirror::Root,
    direct: reqwest::Client,
    outer: reqwest::Client,
    looks: Arc<Semaphore>,
    ssh_looks: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    repos: Mutex<BTreeMap<Repository, Arc<Repo>>>,
    identities: RwLock<BTreeMap<Repository, PathBuf>>,
}

impl fmt::Debug for GitSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GitSource").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl GitSource {
    /// Takes the mirrors' directory for this process, and removes what an earlier process left unfinished.
    ///
    /// A TLS provider must be installed in the process before.
    ///
    /// # Errors
    /// [`SourceError`] when another process holds the directory or it cannot be written.
    pub fn open(settings: GitSettings) -> Result<Self, SourceError> {
        Self::open_trusting(settings, &Roots::default())
    }

    /// As [`GitSource::open`], with authorities that are trusted beside the system's.
    ///
    /// # Errors
    /// As [`GitSource::open`].
    pub fn open_trusting(settings: GitSettings, roots: &Roots) -> Result<Self, SourceError> {
        let path = settings.state_dir.join("git");
        let root = mirror::Root::take(path.clone()).map_err(|error| {
            let why = if error.kind() == std::io::ErrorKind::WouldBlock {
                "another process of trueup uses it; stop that one first".to_owned()
            } else {
                format!("{error}; make it writable for the daemon")
            };
            let message = format!("Git mirrors cannot be kept in {}: {why}", path.display());
            SourceError { reason: Reason::new(ReasonCode::GitUnavailable, message), class: Class::Stalled }
        })?;
        mirror::private_dir(&settings.state_dir.join("ssh")).map_err(|error| bug(&error.to_string()))?;
        let client = |is_loopback| wire::client(is_loopback, roots).map_err(|why| bug(&why));
        Ok(Self {
            shared: Arc::new(Common {
                direct: client(true)?,
                outer: client(false)?,
                settings,
                root,
                looks: Arc::new(Semaphore::new(LOOKS_AT_ONCE)),
                ssh_looks: Arc::new(Semaphore::new(SSH_LOOKS_AT_ONCE)),
                fetches: Arc::new(Semaphore::new(FETCHES_AT_ONCE)),
                repos: Mutex::new(BTreeMap::new()),
                identities: RwLock::default(),
            }),
        })
    }

    /// Sets the SSH key of each repository that has its own, in place of those set before.
    pub fn identify(&self, files: BTreeMap<Repository, PathBuf>) {
        let mut known = self.shared.identities.write().unwrap_or_else(PoisonError::into_inner);
        if *known != files {
            *known = files;
            hold(&self.shared.repos).retain(|_, repo| !matches!(repo.remote.way, Way::Ssh { .. }));
        }
    }

    fn identity(&self, repository: &Repository) -> Option<PathBuf> {
        let known = self.shared.identities.read().unwrap_or_else(PoisonError::into_inner);
        known.get(repository).or_else(|| self.shared.settings.identity_files.get(repository)).cloned()
    }

    /// Says whether a path of a fetched commit is a regular file: what a Dockerfile must be (ruling 43).
    ///
    /// # Errors
    /// As [`Source::read`], without a limit.
    pub async fn check_file(&self, repo: &Repository, sha: &Sha, path: &RepoPath) -> Result<(), SourceError> {
        let (commit, path) = (sha.clone(), path.clone());
        let what = format!("`{path}` at {} could not be read", sha.short());
        self.use_commit(repo, (sha, READ_BOUND, what), move |repository, _| {
            tree::file(repository, &commit, &path).map(|_| ())
        })
        .await
    }

    /// The submodules below `path` of a fetched commit: they are reported, never read (field report 32).
    ///
    /// # Errors
    /// [`SourceError`] when the tree cannot be read.
    pub async fn submodules(&self, repo: &Repository, sha: &Sha, path: &RepoPath) -> Result<Vec<String>, SourceError> {
        let (commit, path) = (sha.clone(), path.clone());
        let what = format!("the submodules at {} could not be listed", sha.short());
        self.use_commit(repo, (sha, READ_BOUND, what), move |repository, abort| {
            export::submodules(repository, (&commit, &path), abort)
        })
        .await
    }

    /// The repository's entry, made at its first use.
    fn repo(&self, repository: &Repository) -> Result<Arc<Repo>, SourceError> {
        let common = &self.shared;
        let identity = self.identity(repository);
        let mut repos = hold(&common.repos);
        if let Some(repo) = repos.get(repository) {
            return Ok(Arc::clone(repo));
        }
        let remote = Remote::of(repository, &common.settings.git_url).map_err(|why| SourceError {
            reason: Reason::new(
                ReasonCode::ConfigInvalid,
                format!("the repository's address cannot be used: {why}; correct `repo` in the registry"),
            ),
            class: Class::Stalled,
        })?;
        let (is_direct, takes_token) = match remote.way {
            Way::Http { is_loopback, takes_token, .. } => (is_loopback, takes_token),
            Way::File(_) | Way::Ssh { .. } => (true, false),
        };
        let repo = Arc::new(Repo {
            dir: common.root.mirror(&remote.directory()),
            remote,
            client: if is_direct { common.direct.clone() } else { common.outer.clone() },
            handle: Handle::current(),
            token: common.settings.token.clone().filter(|_| takes_token).map(|token| token.bound(repository)),
            keys: ssh::Keys { known_hosts: common.settings.state_dir.join("ssh/known_hosts"), identity },
            turn: Arc::default(),
            flights: Mutex::default(),
            place: RwLock::default(),
            talk: Mutex::default(),
            seen: Mutex::default(),
        });
        repos.insert(repository.clone(), Arc::clone(&repo));
        Ok(repo)
    }

    /// Joins the fetch of this commit that is under way, or starts it (field report 2).
    fn flight(&self, repo: &Arc<Repo>, branch: &BranchName, sha: &Sha) -> Flight {
        let mut flights = hold(&repo.flights);
        if let Some(flight) = flights.get(sha) {
            return flight.clone();
        }
        let (this, repo, branch, wanted) = (self.clone(), Arc::clone(repo), branch.clone(), sha.clone());
        let task = tokio::spawn(async move {
            let what = format!("the commit {} of `{branch}` could not be fetched", wanted.short());
            let result = this.bring(&repo, &wanted, Effort::Thin).await;
            hold(&repo.flights).remove(&wanted);
            result.map_err(|fault| told(&what, &repo.remote, fault))
        });
        let flight = task.map(|joined| joined.unwrap_or_else(|error| Err(bug(&error.to_string())))).boxed().shared();
        flights.insert(sha.clone(), flight.clone());
        flight
    }

    async fn bring(&self, repo: &Arc<Repo>, sha: &Sha, effort: Effort) -> Result<CommitFacts, Fault> {
        let id = tree::id(sha)?;
        let inner = Arc::clone(repo);
        self.in_turn(repo, move |abort| inner.bring(id, effort, abort)).await
    }

    /// Runs writing work under the repository's turn, all of it within [`FETCH_BOUND`].
    async fn in_turn<T: Send + 'static>(
        &self,
        repo: &Arc<Repo>,
        work: impl FnOnce(&Arc<Abort>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let turn = Arc::clone(&repo.turn);
        let places = Arc::clone(&self.shared.fetches);
        within(FETCH_BOUND, async move {
            let turn = turn.lock_owned().await;
            let permit = places.acquire_owned().await;
            blocking(move |abort| {
                // Both are held until the thread ends, even if nobody waits for it any more.
                let _held = (turn, permit);
                work(abort)
            })
            .await
        })
        .await
    }

    /// Works on a fetched commit; a mirror that lacks it or garbles it is repaired once.
    async fn use_commit<T: Send + 'static>(
        &self,
        repo: &Repository,
        about: (&Sha, Duration, String),
        work: impl Fn(&gix::Repository, &Abort) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, SourceError> {
        let (sha, bound, what) = about;
        let repo = self.repo(repo)?;
        let work = Arc::new(work);
        let once = |id: ObjectId| {
            let (repo, work) = (Arc::clone(&repo), Arc::clone(&work));
            within(bound, blocking(move |abort| repo.with(id, |repository| work(repository, abort))))
        };
        let tried = async {
            let id = tree::id(sha)?;
            match once(id).await {
                Err(Fault::Mirror(why)) => {
                    let effort = if mirror::is_recorded(&repo.dir, id) { Effort::Anew } else { Effort::Thin };
                    tracing::warn!(remote = %repo.remote, sha = %id, why, "a mirror is repaired before it is read");
                    self.bring(&repo, sha, effort).await?;
                    once(id).await
                }
                other => other,
            }
        };
        tried.await.map_err(|fault| told(&what, &repo.remote, fault))
    }
}

#[async_trait]
impl Source for GitSource {
    async fn look(&self, repo: &Repository, branch: &BranchName) -> Result<Look, SourceError> {
        let repo = self.repo(repo)?;
        let places = match repo.remote.way {
            Way::Ssh { .. } => Arc::clone(&self.shared.ssh_looks),
            Way::File(_) | Way::Http { .. } => Arc::clone(&self.shared.looks),
        };
        let (inner, full_name) = (Arc::clone(&repo), branch.full_ref());
        let looked = within(LOOK_BOUND, async move {
            let permit = places.acquire_owned().await;
            blocking(move |abort| {
                let _held = permit;
                inner.look(&full_name, abort)
            })
            .await
        });
        looked
            .await
            .map_err(|fault| told(&format!("the branch `{branch}` could not be looked at"), &repo.remote, fault))
    }

    async fn fetch(&self, repo: &Repository, branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError> {
        let repo = self.repo(repo)?;
        let what = format!("the commit {} of `{branch}` could not be read", sha.short());
        let id = tree::id(sha).map_err(|fault| told(&what, &repo.remote, fault))?;
        let inner = Arc::clone(&repo);
        // One that is here costs no turn, so that a fetch that hangs delays nobody else.
        if let Ok(Some(facts)) = within(READ_BOUND, blocking(move |_| Ok(inner.seen_facts(id)))).await {
            return Ok(facts);
        }
        self.flight(&repo, branch, sha).await
    }

    async fn read(&self, repo: &Repository, sha: &Sha, path: &RepoPath, limit: u64) -> Result<Vec<u8>, SourceError> {
        let (commit, path) = (sha.clone(), path.clone());
        let what = format!("`{path}` at {} could not be read", sha.short());
        self.use_commit(repo, (sha, READ_BOUND, what), move |repository, _| {
            tree::read(repository, &commit, (&path, limit))
        })
        .await
    }

    async fn export(&self, repo: &Repository, sha: &Sha, export: &Export<'_>) -> Result<PathBuf, SourceError> {
        let (commit, context, to, limit) = (sha.clone(), export.context.clone(), export.to.to_owned(), export.limit);
        let what = format!("`{context}` at {} could not be exported", sha.short());
        let path = to.clone();
        let modules = self
            .use_commit(repo, (sha, FETCH_BOUND, what), move |repository, abort| {
                let job = export::Job { commit: &commit, context: &context, to: &path, limit };
                export::write(repository, &job, abort)
            })
            .await?;
        if !modules.is_empty() {
            tracing::warn!(%repo, %sha, ?modules, "submodules are left empty in a build context");
        }
        Ok(to)
    }

    async fn ancestry(
        &self,
        repo: &Repository,
        branch: &BranchName,
        pair: (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError> {
        let repo = self.repo(repo)?;
        let asked = async {
            let pair = (tree::id(pair.0)?, tree::id(pair.1)?);
            let inner = Arc::clone(&repo);
            self.in_turn(&repo, move |abort| inner.ancestry(pair, abort)).await
        };
        let what = format!("whether `{branch}` was rewound could not be found out");
        asked.await.map_err(|fault| told(&what, &repo.remote, fault))
    }
}

//! One look for everybody who asks at the same time: a thousand targets of one repository are one or two
//! questions to its remote, not a thousand (field reports 1 and 2).
//!
//! Nobody is given an answer to a question that began before theirs: a push between the two would be
//! missed. So one look of a branch is under way, at most one waits for its turn, and whoever comes joins
//! the one that waits. Nothing is kept afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use crate::model::policy::Repository;
use crate::model::{BranchName, RepoPath, Sha};

use super::{Ancestry, CommitFacts, Export, Look, Source, SourceError};

type Flight = Shared<BoxFuture<'static, Result<Look, SourceError>>>;

/// The looks of one branch.
#[derive(Default)]
struct Line {
    /// Held by the look under way.
    turn: tokio::sync::Mutex<()>,
    /// The look that has not begun.
    next: Mutex<Option<Flight>>,
}

impl Line {
    fn next(&self) -> MutexGuard<'_, Option<Flight>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source whose looks are shared; all else goes through.
pub struct SharedLooks {
    source: Arc<dyn Source>,
    lines: Mutex<BTreeMap<(Repository, BranchName), Arc<Line>>>,
}

impl SharedLooks {
    /// Shares the looks of this source.
    #[must_use]
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source, lines: Mutex::default() }
    }

    /// Joins the look that waits for its turn, or is the next to wait.
    fn flight(&self, repo: &Repository, branch: &BranchName) -> Flight {
        let key = (repo.clone(), branch.clone());
        let line = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lines.entry(key.clone()).or_default())
        };
        let mut next = line.next();
        if let Some(flight) = next.as_ref() {
            return flight.clone();
        }
        let (source, own) = (Arc::clone(&self.source), Arc::clone(&line));
        let look = async move {
            let _turn = own.turn.lock().await;
            // It begins now: who comes later needs another one.
            own.next().take();
            source.look(&key.0, &key.1).await
        };
        let flight = look.boxed().shared();
        *next = Some(flight.clone());
        flight
    }
}

#[async_trait]
impl Source for SharedLooks {
    async fn look(&self, repo: &Repository, branch: &BranchName) -> Result<Look, SourceError> {
        self.flight(repo, branch).await
    }

    async fn fetch(&self, repo: &Repository, branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError> {
        self.source.fetch(repo, branch, sha).await
    }

    async fn read(&self, repo: &Repository, sha: &Sha, path: &RepoPath, limit: u64) -> Result<Vec<u8>, SourceError> {
        self.source.read(repo, sha, path, limit).await
    }

    async fn export(&self, repo: &Repository, sha: &Sha, export: &Export<'_>) -> Result<PathBuf, SourceError> {
        self.source.export(repo, sha, export).await
    }

    async fn ancestry(
        &self,
        repo: &Repository,
        branch: &BranchName,
        pair: (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError> {
        self.source.ancestry(repo, branch, pair).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Answers with the number of the look, once it is allowed to.
    struct Slow {
        begun: AtomicUsize,
        allowed: Semaphore,
    }

    #[async_trait]
    impl Source for Slow {
        async fn look(&self, _: &Repository, _: &BranchName) -> Result<Look, SourceError> {
            let number = self.begun.fetch_add(1, Ordering::SeqCst);
            self.allowed.acquire().await.unwrap().forget();
            Ok(Look::At(format!("{number:040}").parse().unwrap()))
        }

        async fn fetch(&self, _: &Repository, _: &BranchName, _: &Sha) -> Result<CommitFacts, SourceError> {
            panic!("not asked")
        }

        async fn read(&self, _: &Repository, _: &Sha, _: &RepoPath, _: u64) -> Result<Vec<u8>, SourceError> {
            panic!("not asked")
        }

        async fn export(&self, _: &Repository, _: &Sha, _: &Export<'_>) -> Result<PathBuf, SourceError> {
            panic!("not asked")
        }

        async fn ancestry(&self, _: &Repository, _: &BranchName, _: (&Sha, &Sha)) -> Result<Ancestry, SourceError> {
            panic!("not asked")
        }
    }

    fn at(number: usize) -> Look {
        Look::At(format!("{number:040}").parse().unwrap())
    }

    #[tokio::test]
    async fn a_thousand_that_ask_at_once_are_two_looks_and_nobody_gets_one_that_began_before() {
        let slow = Arc::new(Slow { begun: AtomicUsize::new(0), allowed: Semaphore::new(0) });
        let shared = SharedLooks::new(Arc::<Slow>::clone(&slow));
        let repo = Repository::Url("https://git.example.org/shop.git".to_owned());
        let (main, other): (BranchName, BranchName) = ("main".parse().unwrap(), "next".parse().unwrap());
        let first = shared.look(&repo, &main);
        tokio::pin!(first);
        assert!(futures_util::poll!(&mut first).is_pending(), "the first look is under way");
        let mut late: Vec<_> = (0..1000).map(|_| shared.look(&repo, &main)).collect();
        for look in &mut late {
            assert!(futures_util::poll!(look).is_pending());
        }
        assert_eq!(slow.begun.load(Ordering::SeqCst), 1);
        slow.allowed.add_permits(2);
        assert_eq!(first.await.unwrap(), at(0));
        // The first of those who wait may go away: the others lose nothing.
        drop(late.remove(0));
        for look in late {
            assert_eq!(look.await.unwrap(), at(1));
        }
        slow.allowed.add_permits(2);
        assert_eq!(shared.look(&repo, &other).await.unwrap(), at(2), "branches are looked at by themselves");
        assert_eq!(shared.look(&repo, &main).await.unwrap(), at(3), "nothing is kept");
    }
}

//! One round of passes over a thousand targets that have nothing to do.
//!
//! The loop and its workers, with the real store (SQLite, flushed), the real mirrors and remotes on this
//! disk; only the sources are counted on the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::watch;

use trueup::clock::SystemClock;
use trueup::edge::caddy::{CaddyEdge, CaddySettings};
use trueup::image::engine::EngineImages;
use trueup::model::policy::Repository;
use trueup::model::{BranchName, RepoPath, Sha, TargetName};
use trueup::probe::http::HttpProbeClient;
use trueup::reconcile::ports::{EdgeTls, Ports, PublicChecks, Settings};
use trueup::reconcile::progress::{Progress, Rest, Teller};
use trueup::reconcile::queue::Wake;
use trueup::reconcile::worker::Workers;
use trueup::source::git::{GitSettings, GitSource};
use trueup::source::shared::SharedLooks;
use trueup::source::{Ancestry, Checks, ChecksError, CiFacts, CommitFacts, Export, Look, Source, SourceError};
use trueup::store::sqlite::SqliteStore;
use trueup::target::docker::{DockerConfig, DockerTarget};

use super::app::SOCKET;
use super::fleet::{Fleet, REPOSITORIES, TARGETS};
use super::table::{Figure, largest, median};

/// Rounds that are measured, after one that is not.
const ROUNDS: usize = 7;
/// A round that takes longer is no round.
const BOUND: Duration = Duration::from_secs(120);

pub(crate) fn run() -> Vec<Figure> {
    super::runtime().block_on(rounds())
}

/// Counts what goes to the remotes.
struct Counted {
    git: GitSource,
    looks: AtomicUsize,
    others: AtomicUsize,
}

#[async_trait]
impl Source for Counted {
    async fn look(&self, repo: &Repository, branch: &BranchName) -> Result<Look, SourceError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.git.look(repo, branch).await
    }

    async fn fetch(&self, repo: &Repository, branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError> {
        self.others.fetch_add(1, Ordering::Relaxed);
        self.git.fetch(repo, branch, sha).await
    }

    async fn read(&self, repo: &Repository, sha: &Sha, path: &RepoPath, limit: u64) -> Result<Vec<u8>, SourceError> {
        self.git.read(repo, sha, path, limit).await
    }

    async fn export(
        &self,
        repo: &Repository,
        sha: &Sha,
        export: &Export<'_>,
    ) -> Result<std::path::PathBuf, SourceError> {
        self.git.export(repo, sha, export).await
    }

    async fn ancestry(
        &self,
        repo: &Repository,
        branch: &BranchName,
        pair: (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError> {
        self.others.fetch_add(1, Ordering::Relaxed);
        self.git.ancestry(repo, branch, pair).await
    }
}

/// Counts calls of GitHub's API, and makes none.
#[derive(Default)]
struct CountedChecks(AtomicUsize);

#[async_trait]
impl Checks for CountedChecks {
    async fn runs(
        &self,
        _repo: &Repository,
        _workflow: &str,
        _commit: (&BranchName, &Sha),
    ) -> Result<CiFacts, ChecksError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("an idle pass asks for no CI run")
    }
}

async fn ports(fleet: &Fleet, counted: &Arc<Counted>, checks: &Arc<CountedChecks>) -> Ports {
    let state_dir = fleet.state();
    let path = fleet.path();
    let (_, catalog) = watch::channel(Arc::new(fleet.catalog()));
    let edge = CaddyEdge::new(CaddySettings {
        admin: format!("unix/{}", path.join("admin.sock").display()).parse().unwrap(),
        sites: path.join("sites"),
        caddyfile: path.join("Caddyfile"),
        state_dir: state_dir.clone(),
    });
    let docker =
        DockerConfig { socket: SOCKET.into(), state_dir: state_dir.clone(), instance: "bench-idle".to_owned() };
    Ports {
        source: Arc::new(SharedLooks::new(Arc::<Counted>::clone(counted))),
        checks: Arc::<CountedChecks>::clone(checks),
        images: Arc::new(EngineImages::new(SOCKET.into())),
        target: Arc::new(DockerTarget::new(docker)),
        edge: Arc::new(edge),
        probe: Arc::new(HttpProbeClient::new()),
        store: Arc::new(SqliteStore::open(&state_dir).await.unwrap()),
        clock: Arc::new(SystemClock),
        teller: Teller::new(),
        settings: Arc::new(Settings {
            instance: "bench-idle".to_owned(),
            access_log_dir: path.to_owned(),
            state_dir,
            tls: EdgeTls::Off,
            public_checks: PublicChecks::Direct,
            // Rounds begin when they are asked for.
            poll_every: Duration::from_secs(3600),
            drift_every: Duration::from_secs(3600),
        }),
        catalog,
    }
}

/// Wakes everybody as the interval does, and waits until everybody has said that nothing is to be done.
async fn round(workers: &Workers) -> Duration {
    let mut told = workers.ports().teller.watch();
    let targets: Vec<TargetName> = workers.ports().catalog.borrow().targets().collect();
    let began = Instant::now();
    let mut waited: BTreeMap<TargetName, u64> =
        targets.into_iter().map(|target| (target.clone(), workers.wake(&target, Wake::TIMER))).collect();
    while !waited.is_empty() {
        let line = tokio::time::timeout(BOUND, told.recv()).await.expect("a round ends").unwrap();
        let Progress::Idle { target, rest: Rest::Converged { .. } } = line.progress else {
            panic!("not converged: {:?}", line.progress)
        };
        if waited.get(&target).is_some_and(|pass| line.pass >= *pass) {
            waited.remove(&target);
        }
    }
    began.elapsed()
}

/// This process's CPU time so far, in seconds. Source: proc_pid_stat(5), fields 14 and 15.
fn cpu_seconds() -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS
}

async fn rounds() -> Vec<Figure> {
    let fleet = Fleet::prepare(TARGETS, "").await;
    let git = GitSource::open(GitSettings {
        state_dir: fleet.state(),
        git_url: "https://git.example.org".to_owned(),
        token: None,
        identity_files: Default::default(),
    })
    .unwrap();
    let counted = Arc::new(Counted { git, looks: AtomicUsize::new(0), others: AtomicUsize::new(0) });
    let checks = Arc::new(CountedChecks::default());
    let workers = Workers::new(ports(&fleet, &counted, &checks).await);
    let first = round(&workers).await;
    counted.looks.store(0, Ordering::Relaxed);
    let before = cpu_seconds();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(round(&workers).await.as_secs_f64());
    }
    let rounds = f64::from(u32::try_from(ROUNDS).unwrap());
    let cpu = (cpu_seconds() - before) / rounds;
    let looks = f64::from(u32::try_from(counted.looks.load(Ordering::Relaxed)).unwrap()) / rounds;
    let calls = f64::from(u32::try_from(checks.0.load(Ordering::Relaxed)).unwrap());
    assert_eq!(counted.others.load(Ordering::Relaxed), 0, "an idle pass fetches nothing");
    workers.stop(Duration::from_secs(5)).await;
    let note = format!(
        "median of {ROUNDS} rounds, the slowest {:.2} s, the first after a start {:.2} s; {cpu:.2} s of CPU and {looks:.0} looks at {REPOSITORIES} repositories a round",
        largest(&times),
        first.as_secs_f64()
    );
    vec![
        Figure::new("idle pass over 1,000 converged targets", median(&times), "s").at_most(1.0).noting(note),
        Figure::new("charged GitHub calls of these passes", calls, "calls").at_most(0.0),
    ]
}

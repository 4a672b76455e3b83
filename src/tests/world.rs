//! The scenario harness: the loop with a real store, and a scripted outside in place of everything else.
//!
//! Time is tokio's paused clock, which jumps to the next timer; each effect lands in one ordered
//! record. A world can stop its daemon dead after any effect or write, and start another one on what
//! is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::model::live::SlotState;
use crate::model::policy::{HostPolicy, Project, TargetKind, TargetPolicy};
use crate::model::{ReleaseNumber, Sha, Slot, TargetName};
use crate::reconcile::ports::{Catalog, EdgeTls, Ports, PublicChecks, Settings};
use crate::reconcile::progress::{Progress, Rest, Teller};
use crate::reconcile::queue::Wake;
use crate::reconcile::worker::Workers;
use crate::store::Store as _;
use crate::store::record::{Pause, Pin, ReleaseRecord};
use crate::store::sqlite::SqliteStore;

mod engine;
mod fakes;
mod outside;
mod process;
mod registry;
mod store;

pub(crate) use outside::{Behaviour, Ci, Fault, Outside, PublicPath, State, sha};
pub(crate) use process::Stop;

use fakes::Fakes;
use process::Process;
use store::HeldStore;

/// Longer than everything that a scenario waits for at once.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// One host, its daemon, and everything around it.
pub(crate) struct World {
    pub(crate) outside: Arc<Outside>,
    pub(crate) target: TargetName,
    /// The records, as a test reads and writes them beside the daemon.
    pub(crate) store: HeldStore,
    pub(crate) workers: Workers,
    process: Arc<Process>,
    settings: Settings,
    catalog: watch::Sender<Arc<Catalog>>,
    _directory: tempfile::TempDir,
}

impl World {
    /// A host with one target, `shop/prod`, on which nothing was ever released; its branch has no commit.
    pub(crate) async fn empty() -> Self {
        Self::with_projects(&["shop"]).await
    }

    /// A host on which this commit of `shop/prod` is live.
    pub(crate) async fn serving(commit: &str) -> Self {
        let world = Self::empty().await;
        world.push(commit);
        world.settle().await;
        assert_eq!(world.traffic(), commit, "{}", world.effects());
        world.forget_effects();
        world
    }

    /// A host with several projects, each with the target `prod`.
    pub(crate) async fn with_projects(names: &[&str]) -> Self {
        let directory = private_directory();
        let store = store::held(SqliteStore::open(directory.path())).await.unwrap();
        let store = HeldStore { inner: Arc::new(store), process: Arc::default() };
        let projects = names.iter().zip(0_u16..).map(|(name, place)| registry::project(name, place));
        let catalog = Catalog { projects: projects.map(|project| (project.name.clone(), project)).collect() };
        let settings = Settings {
            instance: "here".to_owned(),
            state_dir: directory.path().to_owned(),
            access_log_dir: directory.path().to_owned(),
            tls: EdgeTls::Off,
            public_checks: PublicChecks::Direct,
            poll_every: Duration::from_secs(60),
            drift_every: Duration::from_secs(300),
        };
        let outside = Arc::new(Outside::new());
        let (catalog, _) = watch::channel(Arc::new(catalog));
        let process = Arc::new(Process::default());
        let workers = Workers::new(ports(&outside, &process, (&store.inner, &settings, &catalog)));
        let target = TargetName::new(names[0].parse().unwrap(), "prod".parse().unwrap());
        Self { outside, target, store, workers, process, settings, catalog, _directory: directory }
    }

    // What happens outside.

    /// Pushes a commit with this name onto the branch; the answer says how it behaves.
    pub(crate) fn push(&self, name: &str) -> Script<'_> {
        self.push_to(&self.target.project.to_string(), name)
    }

    pub(crate) fn push_to(&self, project: &str, name: &str) -> Script<'_> {
        let sha = self.outside.state().push(project, name);
        Script { outside: &self.outside, sha }
    }

    /// How an earlier commit behaves from now on.
    pub(crate) fn commit(&self, name: &str) -> Script<'_> {
        Script { outside: &self.outside, sha: self.sha(name) }
    }

    /// The full sha of a commit by its name.
    pub(crate) fn sha(&self, name: &str) -> Sha {
        sha(self.target.project.as_str(), name)
    }

    /// Moves the branch to a commit, wherever that leads.
    pub(crate) fn move_branch(&self, to: Option<&str>) {
        let tip = to.map(|name| self.sha(name));
        self.outside.state().branches.insert(self.target.project.to_string(), tip);
    }

    /// Changes something in the state of everything outside.
    pub(crate) fn outside<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.outside.state())
    }

    /// Makes the next `times` effects whose words begin so fail.
    pub(crate) fn fail(&self, effect: &str, times: u32, fault: Fault) {
        self.outside.state().faults.push((effect.to_owned(), times, fault));
    }

    // What the operator does.

    /// Edits the registry, and tells the daemon.
    pub(crate) fn registry(&self, edit: impl FnOnce(&mut Project)) {
        let mut catalog = Catalog::clone(&self.catalog.borrow());
        edit(catalog.projects.get_mut(&self.target.project).unwrap());
        self.catalog.send_replace(Arc::new(catalog));
        self.workers.wake_all(Wake::CONFIG);
    }

    /// Edits the policy of `shop/prod`.
    pub(crate) fn policy(&self, edit: impl FnOnce(&mut TargetPolicy)) {
        let label = self.target.target.clone();
        self.registry(|project| edit(project.targets.get_mut(&label).unwrap()));
    }

    /// Edits the host's part of the policy of `shop/prod`.
    pub(crate) fn host(&self, edit: impl FnOnce(&mut HostPolicy)) {
        self.policy(|policy| match &mut policy.kind {
            TargetKind::Host(host) => edit(host),
            TargetKind::Cluster(_) => panic!("not a host target"),
        });
    }

    /// Sets or lifts a person's pause.
    pub(crate) async fn pause(&self, is_paused: bool) {
        let pause = is_paused.then(|| Pause { by: "uid 0".to_owned(), at: self.now(), note: String::new() });
        self.store.put_pause(&self.target, pause.as_ref()).await.unwrap();
    }

    /// A person pauses the target just after the daemon's next write of this kind.
    pub(crate) fn pause_after_write(&self, method: &'static str) {
        let pause = Pause { by: "uid 0".to_owned(), at: self.now(), note: String::new() };
        self.process.pause_after_write(method, (self.target.clone(), pause));
    }

    /// Changes what the engine holds behind the daemon's back.
    pub(crate) fn host_state(&self, change: impl FnOnce(&mut outside::Host)) {
        change(self.outside.state().hosts.entry(self.target.clone()).or_default());
    }

    /// Puts something into a seat behind the daemon's back.
    pub(crate) fn seat(&self, slot: Slot, seat: SlotState) {
        let place = usize::from(slot == Slot::B);
        self.host_state(|host| host.live.slots[place] = seat);
    }

    /// The ports of slots a and b in the vhost.
    pub(crate) fn ports(&self) -> [u16; 2] {
        let state = self.outside.state();
        let text = state.sites[&self.target].vhost.as_deref().unwrap();
        Slot::BOTH.map(|slot| outside::port_of(text, slot).unwrap())
    }

    /// Takes the target out of the registry.
    pub(crate) fn forget_target(&self) {
        let mut catalog = Catalog::clone(&self.catalog.borrow());
        catalog.projects.clear();
        self.catalog.send_replace(Arc::new(catalog));
        self.workers.wake_all(Wake::CONFIG);
    }

    pub(crate) async fn pin(&self, commit: &str, until_moved_from: Option<&str>) {
        let tip = until_moved_from.map(|name| self.sha(name));
        let pin = Pin { sha: self.sha(commit), tip, by: "uid 0".to_owned(), at: self.now(), note: String::new() };
        self.store.put_pin(&self.target, Some(&pin)).await.unwrap();
        self.workers.wake(&self.target, Wake::PERSON);
    }

    /// `trueup retry`, as the API does it.
    pub(crate) async fn retry(&self) {
        let seen = self.store.observed_ref(&self.target).await.unwrap().and_then(|seen| seen.tip);
        if let Some(sha) = seen {
            self.store.lift_quarantine(&self.target, &sha, ("uid 0", self.now())).await.unwrap();
        }
        if let Some(newest) = self.releases().await.into_iter().next() {
            self.store.put_retired(&self.target, newest.number, self.now()).await.unwrap();
        }
        self.workers.wake(&self.target, Wake::PERSON);
    }

    // Time and the daemon.

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.outside.now()
    }

    /// Wakes the target, as a push does, and waits until a pass has nothing more to do.
    pub(crate) async fn settle(&self) {
        self.settled(Wake::SOURCE).await;
    }

    /// The same, and gives how the pass ended; none when the daemon was stopped before.
    pub(crate) async fn settled(&self, wake: Wake) -> Option<Rest> {
        let mut watcher = self.workers.ports().teller.watch();
        let number = self.workers.wake(&self.target, wake);
        let idle = async {
            loop {
                let told = watcher.recv().await.unwrap();
                let is_ours = told.pass >= number && *told.progress.target() == self.target;
                if let (true, Progress::Idle { rest, .. }) = (is_ours, told.progress) {
                    return Some(rest);
                }
            }
        };
        let settled = async {
            tokio::select! {
                rest = idle => rest,
                () = self.process.stopped() => None,
            }
        };
        let settled = tokio::time::timeout(PATIENCE, settled).await;
        settled.unwrap_or_else(|_| panic!("not settled within hours:\n{}", self.effects()))
    }

    /// Lets time pass.
    pub(crate) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Waits until the record of effects holds such a line.
    pub(crate) async fn until_effect(&self, line: &str) {
        let wait = async {
            while !self.outside.state().record.iter().any(|known| known == line) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "no effect `{line}`:\n{}", self.effects());
    }

    /// Stops the daemon dead, as `kill -9` does, and starts another on the same store.
    pub(crate) async fn restart(&mut self) {
        self.process.stop();
        self.start().await;
    }

    /// Starts another daemon in place of one that was stopped.
    pub(crate) async fn start(&mut self) {
        self.process = Arc::new(Process::default());
        self.workers =
            Workers::new(ports(&self.outside, &self.process, (&self.store.inner, &self.settings, &self.catalog)));
        self.workers.wake_all(Wake::CONFIG);
        self.workers.wake_unfinished().await;
    }

    /// With other settings, from the next start on.
    pub(crate) async fn restart_with(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        self.restart().await;
    }

    /// Stops the daemon dead after this many more effects and writes.
    pub(crate) fn stop_after(&self, touches: usize) {
        self.process.stop_after(touches);
    }

    /// Where the daemon was stopped.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.process.where_stopped()
    }

    /// How many effects and writes this daemon has made.
    pub(crate) fn touches(&self) -> usize {
        self.process.touches()
    }

    /// Carries every effect out twice from now on.
    pub(crate) fn everything_twice(&self) {
        self.process.everything_twice();
    }

    /// Makes the next `times` writes of this kind fail.
    pub(crate) fn fail_writes(&self, method: &'static str, times: u32) {
        self.process.fail_writes(method, times);
    }

    // What there is to see.

    /// What a visitor of the first host gets: a commit's name, or a status.
    pub(crate) fn traffic(&self) -> String {
        self.outside.state().traffic(&self.target)
    }

    /// The record of effects so far.
    pub(crate) fn effects(&self) -> String {
        self.outside.state().record.join("\n")
    }

    pub(crate) fn forget_effects(&self) {
        self.outside.state().record.clear();
    }

    /// Everything that stays: slots, marker, what is live and what is quarantined.
    pub(crate) async fn remains(&self) -> String {
        let live = self.store.live_release(&self.target).await.unwrap();
        let live = live.map_or("nothing".to_owned(), |live| self.name(&live.new.revision));
        let quarantined = self.store.quarantines(&self.target).await.unwrap();
        let quarantined: Vec<String> =
            quarantined.iter().map(|entry| format!("{} {}", self.name(&entry.sha), entry.reason.code)).collect();
        let unfinished = self.store.unfinished().await.unwrap().len();
        let seats = self.outside.state().seats(&self.target);
        format!("{seats}\nlive: {live}; quarantined: {}; unfinished: {unfinished}", quarantined.join(", "))
    }

    pub(crate) fn name(&self, sha: &Sha) -> String {
        self.outside.state().commits.get(sha).map_or_else(|| sha.short().to_owned(), |commit| commit.name.clone())
    }

    /// Newest first.
    pub(crate) async fn releases(&self) -> Vec<ReleaseRecord> {
        self.store.releases(&self.target, 100).await.unwrap()
    }

    /// `1 v1 live, 2 v2 nothing-activated NeverHealthy`.
    pub(crate) async fn history(&self) -> String {
        let mut all = self.releases().await;
        all.reverse();
        let line = |release: &ReleaseRecord| {
            let reason = release.phase.reason().map(|reason| format!(" {}", reason.code)).unwrap_or_default();
            let ReleaseNumber(number) = release.number;
            format!("{number} {} {}{reason}", self.name(&release.new.revision), release.phase)
        };
        all.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    /// The word of what holds the target; empty when nothing does.
    pub(crate) async fn held(&self) -> String {
        let conditions = self.store.conditions(&self.target).await.unwrap();
        let held = conditions.into_iter().find(|condition| condition.kind == "Held" && condition.is_true);
        held.map(|held| held.reason).unwrap_or_default()
    }

    /// Fails when a visitor ever got something else than an answer of a healthy container, or two
    /// containers are left running.
    pub(crate) fn assert_sound(&self) {
        let state = self.outside.state();
        assert!(state.violations.is_empty(), "{}\n{}", state.violations.join("\n"), state.record.join("\n"));
        let running = state.running(&self.target);
        assert!(running <= 1, "{running} containers are left running:\n{}", state.record.join("\n"));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.process.stop();
    }
}

/// How a commit behaves.
pub(crate) struct Script<'w> {
    outside: &'w Outside,
    pub(crate) sha: Sha,
}

impl Script<'_> {
    pub(crate) fn behaves(&self, behaviour: Behaviour) -> &Self {
        self.outside.state().commits.get_mut(&self.sha).unwrap().behaviour = behaviour;
        self
    }

    pub(crate) fn never_healthy(&self) -> &Self {
        self.behaves(Behaviour::NeverHealthy)
    }

    pub(crate) fn healthy_after(&self, seconds: u64) -> &Self {
        self.outside.state().commits.get_mut(&self.sha).unwrap().healthy_after = Duration::from_secs(seconds);
        self
    }

    /// Its image is not on the host.
    pub(crate) fn without_image(&self) -> &Self {
        self.outside.state().commits.get_mut(&self.sha).unwrap().has_image = false;
        self
    }

    /// Its manifest reads so.
    pub(crate) fn with_manifest(&self, text: &str) -> &Self {
        self.outside.state().commits.get_mut(&self.sha).unwrap().manifest = Some(text.to_owned());
        self
    }

    /// Its tree is that of another commit, as after a revert.
    pub(crate) fn with_tree_of(&self, other: &Sha) -> &Self {
        let mut state = self.outside.state();
        let tree = state.commits[other].tree.clone();
        state.commits.get_mut(&self.sha).unwrap().tree = tree;
        drop(state);
        self
    }

    /// What CI says of it.
    pub(crate) fn ci(&self, ci: Ci) -> &Self {
        self.outside.state().commits.get_mut(&self.sha).unwrap().ci = ci;
        self
    }
}

type Lasting<'w> = (&'w Arc<SqliteStore>, &'w Settings, &'w watch::Sender<Arc<Catalog>>);

fn ports(outside: &Arc<Outside>, process: &Arc<Process>, (store, settings, catalog): Lasting<'_>) -> Ports {
    let fakes = Arc::new(Fakes { outside: Arc::clone(outside), process: Arc::clone(process) });
    Ports {
        source: fakes.clone(),
        checks: fakes.clone(),
        images: fakes.clone(),
        target: fakes.clone(),
        edge: fakes.clone(),
        probe: fakes.clone(),
        clock: fakes,
        store: Arc::new(HeldStore { inner: Arc::clone(store), process: Arc::clone(process) }),
        teller: Teller::new(),
        settings: Arc::new(settings.clone()),
        catalog: catalog.subscribe(),
    }
}

/// In memory where the machine has such a place, since a scenario writes a store a thousand times.
fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("trueup-world").tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

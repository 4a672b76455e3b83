//! Workers: one for each target, so that passes are serial for a target and parallel across targets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::diff::drift::Drift;
use crate::model::policy::DriftPolicy;
use crate::model::{Digest, Sha, TargetName};
use crate::release::Phase;
use crate::source::{Ancestry, Look};

use super::backoff;
use super::drift;
use super::heal::Heals;
use super::pass::{Memory, Pass};
use super::ports::{Halt, Interrupt, Ports};
use super::queue::{Requeue, Wake};
use super::resume;
use super::seat::Seat;

/// The wait after a pass that could not even record what it did.
const AFTER_HALT: Duration = Duration::from_secs(5);

/// The wait between a change of the engine's and the look for drift: one `docker rm` is several events.
const DRIFT_DEBOUNCE: Duration = Duration::from_secs(2);

/// The shortest wait between two looks at the branch while a release runs: ten thousand wakes are no
/// more than a few looks.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// A target's seat and the task that works on it.
type Seated = (Arc<Seat>, JoinHandle<()>);

/// All workers of this daemon.
pub struct Workers {
    ports: Ports,
    seats: Mutex<BTreeMap<TargetName, Seated>>,
    shutdown: watch::Sender<bool>,
}

impl Workers {
    /// No workers yet.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        Self { ports, seats: Mutex::default(), shutdown: watch::Sender::new(false) }
    }

    /// The effects that the workers use.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Asks for a pass of one target, which gets its worker if it has none yet.
    ///
    /// Gives the number of the first pass that will know of it.
    pub fn wake(&self, target: &TargetName, wake: Wake) -> u64 {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seat, _)) = seats.get(target) {
            return seat.wake(wake);
        }
        // Before its worker begins, so that the first pass already knows of it, and no second one follows.
        let seat = Arc::new(Seat::default());
        let number = seat.wake(wake);
        seats.insert(target.clone(), self.start(target, seat));
        number
    }

    /// Asks for a pass of every target of the registry, and of those that only the store knows.
    pub fn wake_all(&self, wake: Wake) {
        let catalog = self.ports.catalog.borrow().clone();
        let known: Vec<TargetName> = {
            let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
            seats.keys().cloned().collect()
        };
        for target in catalog.targets().chain(known) {
            self.wake(&target, wake);
        }
    }

    /// Gives a worker to every target with an unfinished release, also to one that the registry no
    /// longer names: it is finished or undone all the same.
    pub async fn wake_unfinished(&self) {
        match self.ports.store.unfinished().await {
            Ok(unfinished) => {
                for record in unfinished {
                    self.wake(&record.new.target, Wake::TIMER);
                }
            }
            Err(error) => tracing::error!(error = %chain(&error), "unfinished releases cannot be read"),
        }
    }

    /// How many targets have a worker.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn start(&self, target: &TargetName, seat: Arc<Seat>) -> Seated {
        let worker = Worker {
            ports: self.ports.clone(),
            target: target.clone(),
            seat: Arc::clone(&seat),
            shutdown: self.shutdown.subscribe(),
            memory: Memory::default(),
            heals: Heals::default(),
        };
        (seat, tokio::spawn(worker.run()))
    }

    /// Stops every worker at its next safe point and waits, at most `patience`.
    pub async fn stop(&self, patience: Duration) {
        self.shutdown.send_replace(true);
        let tasks: Vec<JoinHandle<()>> = {
            let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *seats).into_values().map(|(_, task)| task).collect()
        };
        let all = async {
            for task in tasks {
                drop(task.await);
            }
        };
        drop(tokio::time::timeout(patience, all).await);
    }
}

struct Worker {
    ports: Ports,
    target: TargetName,
    seat: Arc<Seat>,
    shutdown: watch::Receiver<bool>,
    memory: Memory,
    heals: Heals,
}

impl Worker {
    async fn run(mut self) {
        let mut drift_due = self.ports.clock.now();
        // At the start an earlier process may have left a release in the middle; later, a pass that could
        // not write its records.
        let mut is_left = true;
        loop {
            if std::mem::take(&mut is_left)
                && let Err(Halt::Shutdown) = self.resume().await
            {
                return;
            }
            let (number, wake) = self.seat.begin();
            let requeue = match self.pass(number, wake).await {
                Ok(requeue) => requeue,
                Err(Halt::Shutdown) => return,
                Err(halt) => {
                    tracing::error!(target = %self.target, error = %chain(&halt), "a pass could not go on");
                    if self.is_over_after_halt().await {
                        return;
                    }
                    is_left = true;
                    Requeue::after(0, "a pass could not go on")
                }
            };
            if wake.by_person {
                self.heals = Heals::default();
            }
            if wake.by_engine || wake.by_person || self.ports.clock.now() >= drift_due {
                self.look_for_drift().await;
                let every = jiff::SignedDuration::try_from(self.ports.settings.drift_every).unwrap_or_default();
                let now = self.ports.clock.now();
                drift_due = now.checked_add(every).unwrap_or(now);
            }
            let until_drift = Duration::from_millis(super::millis_between(self.ports.clock.now(), drift_due));
            if self.is_over(self.wait(&requeue).min(until_drift)).await {
                return;
            }
        }
    }

    /// A wait of a whole interval ends at the instant that all targets of the repository share.
    fn wait(&self, requeue: &Requeue) -> Duration {
        let wait = Duration::from_secs(requeue.after_seconds);
        let every = self.ports.settings.poll_every;
        match self.ports.repository(&self.target) {
            Some(repository) if wait == every => {
                backoff::until_beat(self.ports.clock.now(), every, seed(&repository.to_string()))
            }
            Some(_) | None => wait,
        }
    }

    /// Waits for the next reason to look; says whether the daemon stops instead.
    async fn is_over(&mut self, wait: Duration) -> bool {
        if self.seat.peek().is_any() {
            return self.is_stopping();
        }
        let mut shutdown = self.shutdown.clone();
        let over = self.ports.clock.sleep(wait);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                () = self.seat.notify.notified() => match self.seat.peek() {
                    // Said before the pass that has just ended, which knew of it.
                    Wake::NONE => {}
                    Wake::ENGINE => {
                        self.ports.clock.sleep(DRIFT_DEBOUNCE).await;
                        break;
                    }
                    _ => break,
                },
                () = told(&mut shutdown) => break,
            }
        }
        self.is_stopping()
    }

    /// Waits after a halt, whoever asks meanwhile: what failed would fail again.
    async fn is_over_after_halt(&mut self) -> bool {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            () = self.ports.clock.sleep(AFTER_HALT) => {}
            () = told(&mut shutdown) => {}
        }
        self.is_stopping()
    }

    /// Whether the daemon stops; nobody left to say so means the same.
    fn is_stopping(&self) -> bool {
        *self.shutdown.borrow() || self.shutdown.has_changed().is_err()
    }

    /// Finishes or undoes what an earlier process left (promise P6).
    async fn resume(&mut self) -> Result<(), Halt> {
        loop {
            let (interrupt, interrupts) = watch::channel(Interrupt::None);
            let resumed = resume::resume(&self.ports, &self.target, interrupts);
            match self.watched(resumed, &interrupt).await {
                Ok(()) => return Ok(()),
                Err(Halt::Shutdown) => return Err(Halt::Shutdown),
                Err(halt) => {
                    tracing::error!(target = %self.target, error = %chain(&halt), "an unfinished release could not go on");
                    if self.is_over_after_halt().await {
                        return Err(Halt::Shutdown);
                    }
                }
            }
        }
    }

    async fn pass(&mut self, number: u64, wake: Wake) -> Result<Requeue, Halt> {
        let (interrupt, interrupts) = watch::channel(Interrupt::None);
        let mut memory = std::mem::take(&mut self.memory);
        let ports = self.ports.for_pass(number);
        let pass =
            Pass { ports: &ports, target: &self.target, wake, interrupts, memory: &mut memory, is_preview: false };
        let result = self.watched(pass.run(), &interrupt).await;
        self.memory = memory;
        result
    }

    /// Runs something that may take long, and tells it when another commit is wanted or the daemon stops.
    async fn watched<T>(
        &self,
        work: impl Future<Output = Result<T, Halt>>,
        interrupt: &watch::Sender<Interrupt>,
    ) -> Result<T, Halt> {
        tokio::pin!(work);
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            result = &mut work => return result,
            () = self.watch_branch(interrupt) => {}
            () = told(&mut shutdown) => {}
        }
        interrupt.send_replace(Interrupt::Shutdown);
        work.await
    }

    /// Looks, beside a release, whether another commit is wanted; says so once. Never returns.
    async fn watch_branch(&self, interrupt: &watch::Sender<Interrupt>) {
        loop {
            tokio::select! {
                () = self.seat.notify.notified() => {}
                () = self.ports.clock.sleep(self.ports.settings.poll_every) => {}
            }
            if let Some(newer) = self.newer().await {
                interrupt.send_replace(Interrupt::Superseded(newer));
                // The pass after this one takes it up.
                self.seat.wake(Wake::SOURCE);
                std::future::pending::<()>().await;
            }
            self.ports.clock.sleep(LOOKS_APART).await;
        }
    }

    /// What is wanted instead of the release that runs: a person's pin, or a commit that descends from
    /// its own. Moves that are no fast-forward wait for the next pass and its second look.
    async fn newer(&self) -> Option<Sha> {
        let catalog = self.ports.catalog.borrow().clone();
        let (project, policy) = catalog.find(&self.target)?;
        let branch = policy.branch.as_ref().unwrap_or(&project.branch);
        let store = &self.ports.store;
        let running = store.releases(&self.target, 1).await.ok()?.into_iter().next()?;
        if !matches!(running.phase, Phase::Planned | Phase::Converging | Phase::Verifying) {
            return None;
        }
        if let Some(pin) = store.pin(&self.target).await.ok()? {
            return (pin.sha != running.new.revision).then_some(pin.sha);
        }
        let Look::At(tip) = self.ports.source.look(&project.repo, branch).await.ok()? else { return None };
        if tip == running.new.revision {
            return None;
        }
        self.ports.source.fetch(&project.repo, branch, &tip).await.ok()?;
        let pair = (&running.new.revision, &tip);
        let ancestry = self.ports.source.ancestry(&project.repo, branch, pair).await.ok()?;
        (ancestry == Ancestry::Ancestor).then_some(tip)
    }

    async fn look_for_drift(&mut self) {
        let policy = drift::policy(&self.ports, &self.target);
        if policy == DriftPolicy::Off {
            return;
        }
        match drift::look(&self.ports, &self.target).await {
            Ok(Ok(drift::Look::Compared(found))) if found.is_empty() => {
                self.memory.heal = false;
                self.heals.clean(self.ports.clock.now());
            }
            Ok(Ok(drift::Look::Compared(found))) if policy == DriftPolicy::Heal => self.heal(&found).await,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(target = %self.target, reason = %error.reason, "drift cannot be looked for")
            }
            Err(halt) => tracing::error!(target = %self.target, error = %chain(&halt), "drift cannot be recorded"),
        }
    }

    async fn heal(&mut self, found: &Drift) {
        let (may_heal, condition) = self.heals.found(&self.target, &found.summary, self.ports.clock.now());
        if let Err(error) = self.ports.store.put_condition(&self.target, &condition).await {
            tracing::error!(target = %self.target, error = %chain(&error), "healing cannot be recorded");
            return;
        }
        self.memory.heal = may_heal;
        if may_heal {
            self.seat.wake(Wake::ENGINE);
        } else {
            tracing::error!(target = %self.target, "{}", condition.message);
        }
    }
}

/// A number that differs between texts, and is the same after a restart.
fn seed(text: &str) -> u64 {
    u64::from_str_radix(Digest::of(text.as_bytes()).prefix(12), 16).unwrap_or(0)
}

/// Returns when the daemon stops.
async fn told(shutdown: &mut watch::Receiver<bool>) {
    // A closed channel means that the daemon is gone.
    drop(shutdown.wait_for(|is_over| *is_over).await.map(|_| ()));
}

/// An error and what caused it, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

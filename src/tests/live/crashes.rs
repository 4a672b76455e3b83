//! The daemon dies in the middle of a release, at every line of its journal: the next start finishes or
//! undoes, and visitors notice nothing (promise P6).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use trueup::model::{ReleaseNumber, TargetName};
use trueup::store::Store;
use trueup::store::record::{JournalEntry, ReleaseRecord};

use super::app::AppSpec;
use super::client::Client;
use super::world::{PATIENCE, TARGET, World};

/// The daemon runs so long between two looks at its journal while it is close to the wanted line: shorter
/// than the time between two lines, each of which is synced to the disk.
const SLICE: Duration = Duration::from_micros(400);

/// So many lines before the wanted one the daemon is run in slices.
const CLOSE: usize = 3;

/// Tries for a line that was run past, each with shorter slices.
const TRIES: u32 = 4;

/// One line of so many may be run past at every try: on a busy machine a slice can be longer than it was
/// meant to be. The kills then lie on the lines beside it.
const MISSED: usize = 10;

/// Reads the store as `--offline` does.
struct Reader {
    runtime: tokio::runtime::Runtime,
    store: Arc<dyn Store>,
    target: TargetName,
}

impl Reader {
    fn of(world: &World) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(trueup::app::open_offline(&world.path("state"))).unwrap();
        let target = TargetName::new(world.project.parse().unwrap(), TARGET.parse().unwrap());
        Self { runtime, store, target }
    }

    /// None while the database is locked by a daemon that was stopped in the middle of a write.
    fn journal(&self, number: u64) -> Option<Vec<JournalEntry>> {
        self.runtime.block_on(self.store.journal_of(&self.target, ReleaseNumber(number))).ok()
    }

    fn release(&self, number: u64) -> Option<ReleaseRecord> {
        self.runtime.block_on(self.store.release(&self.target, ReleaseNumber(number))).ok().flatten()
    }

    /// Whether the release has its outcome and nothing is left of it.
    fn is_over(&self, number: u64) -> bool {
        self.release(number).is_some_and(|release| match release.outcome() {
            Some(trueup::model::outcome::Outcome::Live) => release.retired_at.is_some(),
            outcome => outcome.is_some(),
        })
    }
}

/// Kills the daemon once the release's journal has `line` lines; gives what it had then.
fn kill_at(world: &mut World, (number, line): (u64, usize), slice: Duration) -> Vec<JournalEntry> {
    let reader = Reader::of(world);
    let began = Instant::now();
    loop {
        let lines = reader.journal(number).map_or(0, |journal| journal.len());
        if lines >= line || reader.is_over(number) {
            world.kill_daemon();
            return world.until("the journal can be read", || reader.journal(number));
        }
        assert!(began.elapsed() < PATIENCE, "release {number} never had {line} lines");
        world.daemon().signal(Signal::CONT);
        std::thread::sleep(slice);
        if lines + CLOSE >= line {
            world.daemon().signal(Signal::STOP);
        }
    }
}

/// One release by a change of the registry, killed at `line`; gives the journal at that moment.
fn round(world: &mut World, at: (u64, usize), slice: Duration, check: Check<'_>) -> Vec<JournalEntry> {
    let (number, line) = at;
    world.set_env("ROUND", &number.to_string());
    let journal = kill_at(world, at, slice);
    world.launch_daemon();
    let reader = Reader::of(world);
    world.until(&format!("release {number}, killed at line {line}, has its outcome"), || {
        reader.is_over(number).then_some(())
    });
    check(world, number);
    journal
}

/// What must hold after each release.
type Check<'a> = &'a dyn Fn(&World, u64);

/// Lets one release run to its end, then kills others at each line that it wrote.
fn at_every_line(world: &mut World, first: u64, check: Check<'_>) {
    let mut number = first;
    // No journal is so long: this one ends by itself.
    let whole = round(world, (number, usize::MAX), SLICE, check);
    assert!(whole.len() > 20, "{whole:#?}");
    let client = Client::start(world.site());
    let mut missed = Vec::new();
    for (line, entry) in (1_usize..).zip(&whole) {
        let is_hit = (0..TRIES).any(|shorter| {
            number += 1;
            let journal = round(world, (number, line), SLICE / 2_u32.pow(shorter), check);
            client.assert_never_failed(&format!("killed at line {}: {:?}", journal.len(), journal.last()));
            journal.len() == line
        });
        if !is_hit {
            missed.push((line, entry.step.clone()));
        }
    }
    assert!(missed.len() * MISSED <= whole.len(), "lines that were run past at every try: {missed:#?}");
}

#[test]
fn a_good_release_killed_after_any_line_of_its_journal_is_finished() {
    let mut world = World::start();
    let sha = world.release(&AppSpec::page("shop one"));
    at_every_line(&mut world, 2, &|world, number| {
        let releases = world.about("releases", &["--offline", "--json", "--limit", "1"]).ended(0).json();
        assert_eq!((&releases[0]["release"], &releases[0]["state"]), (&number.into(), &"live".into()), "{releases:#}");
        assert!(world.serves(&sha));
        assert!(
            world.ask("/env").unwrap().body.contains(&format!("ROUND={number}\n")),
            "release {number} does not serve"
        );
    });
}

#[test]
fn a_release_that_fails_in_public_killed_after_any_line_of_its_journal_is_put_back() {
    let mut world = World::start();
    let old = world.release(&AppSpec::page("shop one"));
    let bad = world.push(&AppSpec::page("shop two").with("edge-page", "closed"));
    world.ended(&bad, "reverted");
    world.held("Quarantined");
    // Each change of the registry lifts the quarantine once.
    at_every_line(&mut world, 3, &|world, number| {
        let releases = world.about("releases", &["--offline", "--json", "--limit", "1"]).ended(0).json();
        assert_eq!(
            (&releases[0]["release"], &releases[0]["state"]),
            (&number.into(), &"reverted".into()),
            "{releases:#}"
        );
        assert!(world.serves(&old), "release {number}");
        assert_eq!(world.page(), "shop one");
        assert!(!world.engine().is_running(&world.container("b")), "release {number}: the candidate still runs");
    });
}

#[test]
fn a_daemon_that_is_told_to_stop_in_the_middle_of_a_release_goes_on_at_its_next_start() {
    let mut world = World::start();
    world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let next = world.push(&AppSpec::page("shop two").with("health", "unhealthy"));
    world.reached(&next, "wait at most");
    let port = world.slot_port(&next);
    assert!(world.stop_daemon().success());
    let release = world.about("releases", &["--offline", "--json"]).ended(0).json()[0].clone();
    assert_eq!((&release["revision"], &release["ended_at"]), (&next.clone().into(), &serde_json::Value::Null));
    assert_eq!(world.page(), "shop one");
    world.tell(port, "health=ok");
    world.start_daemon();
    world.ended(&next, "live");
    assert_eq!((world.tries(&next), world.page()), (1, "shop two".to_owned()));
    client.assert_never_failed("a stop in the middle of a release");
}

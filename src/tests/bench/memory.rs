//! Resident memory of the daemon: with nothing to do, and with a thousand targets that it polls.

use std::time::Duration;

use super::daemon::Daemon;
use super::fleet::{Fleet, TARGETS};
use super::table::{Figure, largest};

/// The intervals that are watched.
const POLLS: u32 = 3;
/// How often the memory is read in an interval.
const READS: u32 = 10;
/// How long the first look at every target may take.
const FIRST_ROUND: Duration = Duration::from_secs(120);
/// The interval of polls of this daemon.
const INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn run() -> Vec<Figure> {
    vec![
        figure("resident memory with no targets", 0, 30.0),
        figure("resident memory with 1,000 targets, polled every 5 s", TARGETS, 60.0),
    ]
}

fn figure(work: &str, targets: usize, bound: f64) -> Figure {
    let fleet = super::runtime().block_on(Fleet::prepare(targets, "[poll]\nevery = \"5s\"\n"));
    let mut daemon = Daemon::start(&fleet.config());
    daemon.until("every target was looked at", FIRST_ROUND, |daemon| {
        let all = daemon.ask(&["status"]).unwrap();
        let all = all.as_array().unwrap();
        all.len() == targets && all.iter().all(|status| status["state"] == "live" && !status["looked_at"].is_null())
    });
    let reads: Vec<f64> = (0..POLLS * READS)
        .map(|_| {
            std::thread::sleep(INTERVAL / READS);
            daemon.mib("VmRSS")
        })
        .collect();
    let note = format!(
        "the largest VmRSS of {} reads over {POLLS} intervals; the peak since the start (VmHWM) {:.1} MiB",
        reads.len(),
        daemon.mib("VmHWM")
    );
    Figure::new(work, largest(&reads), "MiB").at_most(bound).noting(note)
}

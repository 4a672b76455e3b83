//! From the end of a `git push` to a plan that waits for consent, with a repository on this disk.

use std::time::Duration;

use super::app::AppSpec;
use super::shop::Shop;
use super::table::{Figure, largest, median, millis};

/// Pushes that are measured, after one that is not.
const PUSHES: usize = 10;
/// A plan that takes longer never comes.
const BOUND: Duration = Duration::from_secs(90);

pub(crate) fn run() -> Vec<Figure> {
    let mut shop = Shop::start("always");
    let mut times: Vec<f64> = Vec::new();
    let mut last_plan = String::new();
    for number in 0..=PUSHES {
        let (sha, pushed) = shop.push(&AppSpec::page(&format!("page {number}")));
        let project = shop.project();
        let waiting = |daemon: &_| {
            let status = Shop::status(daemon, &project)?;
            let is_ready = status["wanted"] == sha.as_str() && status["held"]["reason"] == "NeedsApproval";
            let plan = status["held"]["plan"].as_str()?.to_owned();
            (is_ready && plan != last_plan).then_some(plan)
        };
        shop.daemon.until("a plan waits", BOUND, |daemon| waiting(daemon).is_some());
        let took = millis(pushed.elapsed());
        last_plan = waiting(&shop.daemon).unwrap();
        if number > 0 {
            times.push(took);
        }
    }
    let note = format!("median of {PUSHES} pushes, the slowest {:.0} ms; asked for every 2 ms", largest(&times));
    vec![Figure::new("git push -> plan ready, local remote", median(&times), "ms").at_most(1000.0).noting(note)]
}

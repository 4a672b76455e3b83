//! Our own part of a release, read from the journals of real releases.

use jiff::Timestamp;
use serde_json::Value;

use super::app::AppSpec;
use super::shop::Shop;
use super::table::{Figure, largest, median};

/// Good releases that are measured, after the first one.
const GOOD: usize = 5;
/// Releases whose smoke check fails in public only.
const BAD: usize = 4;

pub(crate) fn run() -> Vec<Figure> {
    let mut shop = Shop::start("never");
    let (mut overheads, mut reverts) = (Vec::new(), Vec::new());
    for number in 0..=GOOD {
        let (sha, _) = shop.push(&AppSpec::page(&format!("page {number}")));
        let journal = shop.journal(&sha, "live");
        if number > 0 {
            let healthy = time(&journal, "done", &["smoke:", "wait at most"], "converge");
            overheads.push(between(healthy, time(&journal, "done", &["confirm through the edge"], "commit")));
        }
    }
    for number in 0..BAD {
        let spec = AppSpec::page(&format!("page, bad {number}")).with("edge-page", "broken");
        let (sha, _) = shop.push(&spec);
        let journal = shop.journal(&sha, "reverted");
        let failed = time(&journal, "failed", &["prove in public"], "commit");
        reverts.push(between(failed, time(&journal, "done", &["confirm through the edge"], "undo_after")));
    }
    let note = |values: &[f64], what: &str| {
        let each: Vec<String> = values.iter().map(|value| format!("{value:.0}")).collect();
        format!("median of {} {what} (ms: {}), the slowest {:.0} ms", values.len(), each.join(", "), largest(values))
    };
    vec![
        Figure::new("candidate healthy -> traffic moved and confirmed", median(&overheads), "ms")
            .at_most(100.0)
            .noting(note(&overheads, "releases")),
        Figure::new("failed public smoke -> old slot serves, confirmed", median(&reverts), "ms")
            .at_most(1000.0)
            .noting(note(&reverts, "reverts")),
    ]
}

/// When the last step with one of these words came to this state.
fn time(journal: &[Value], state: &str, words: &[&str], section: &str) -> Timestamp {
    let is_it = |entry: &&Value| {
        let step = entry["step"].as_str().unwrap();
        entry["state"] == state && entry["section"] == section && words.iter().any(|word| step.starts_with(word))
    };
    let entry = journal.iter().rfind(is_it);
    let entry = entry.unwrap_or_else(|| panic!("no {state} {words:?} of {section} in {journal:#?}"));
    entry["at"].as_str().unwrap().parse().unwrap()
}

fn between(from: Timestamp, to: Timestamp) -> f64 {
    let micros = to.as_microsecond() - from.as_microsecond();
    f64::from(i32::try_from(micros).unwrap()) / 1000.0
}

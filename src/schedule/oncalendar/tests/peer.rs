//! The real tool, where it is installed, asked the same questions.
//!
//! Its package is called `systemd`; without it there is nothing to compare with, and the test
//! says so. `TRUEUP_CALENDAR_CASES` asks for more cases than the few seconds' worth that a
//! usual run makes, and `TRUEUP_CALENDAR_SEED` for others.

use std::collections::HashSet;
use std::process::Command;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::super::OnCalendar;
use super::{grammar, zone};

/// Local zones and base times: near changes of the clock, in a second pass, at the far end.
const SETTINGS: &[(&str, &str)] = &[
    ("UTC", "2026-03-01 00:00:00 UTC"),
    ("Europe/Berlin", "2026-10-24 20:17:31 UTC"),
    ("Europe/Berlin", "2026-03-28 23:00:00 UTC"),
    ("America/New_York", "2026-10-31 22:10:00 UTC"),
    ("Australia/Lord_Howe", "2026-04-04 10:00:00 UTC"),
    ("Europe/Dublin", "2026-10-24 22:00:00 UTC"),
    ("America/Santiago", "2026-09-05 12:00:00 UTC"),
    ("UTC", "2198-11-11 11:11:11 UTC"),
    ("Pacific/Auckland", "1971-02-03 04:05:06 UTC"),
    ("Asia/Kolkata", "2027-12-31 18:29:59 UTC"),
];
const ITERATIONS: usize = 3;
const BATCH: usize = 250;
const DEFAULT_CASES: usize = 1000;

/// What is said of an expression.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused,
    /// The tool itself cannot compute an elapse; nothing to compare.
    NoAnswer,
    Accepted {
        normal: String,
        next: Vec<String>,
    },
}

fn ours(expression: &str, local: &str, base: Timestamp) -> Answer {
    let local = zone(local);
    let Ok(spec) = OnCalendar::parse_in(expression, &local) else {
        return Answer::Refused;
    };
    let mut next = Vec::new();
    let mut after = base;
    for _ in 0..ITERATIONS {
        let Some(found) = spec.next_after(after, &local).unwrap() else {
            break;
        };
        assert!(found > after, "`{expression}`: {found} is not after {after}");
        next.push(found.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string());
        after = found;
    }
    Answer::Accepted { normal: spec.to_string(), next }
}

/// Asks the tool about a batch; `None` if it is not installed.
fn theirs(expressions: &[String], local: &str, base: &str) -> Option<Vec<Answer>> {
    let output = Command::new("systemd-analyze")
        .args(["calendar", &format!("--iterations={ITERATIONS}"), &format!("--base-time={base}"), "--"])
        .args(expressions)
        .env("TZ", local)
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let unanswered: HashSet<&str> = complaints
        .lines()
        .filter_map(|line| line.strip_prefix("Failed to determine next elapse for '")?.rsplit_once("': "))
        .map(|(expression, _)| expression)
        .collect();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut blocks = vec![Vec::new()];
    for line in text.lines() {
        if line.is_empty() {
            blocks.push(Vec::new());
        } else {
            blocks.last_mut().unwrap().push(line.trim_start());
        }
    }
    blocks.resize(blocks.len().max(expressions.len()), Vec::new());
    let answer = |(expression, lines): (&String, &Vec<&str>)| {
        if unanswered.contains(expression.as_str()) { Answer::NoAnswer } else { read(lines) }
    };
    assert_eq!(blocks.len(), expressions.len(), "{text}");
    Some(expressions.iter().zip(&blocks).map(answer).collect())
}

/// Reads the lines that the tool prints for one expression.
fn read(lines: &[&str]) -> Answer {
    let values = |names: &[&str]| -> Vec<String> {
        let value = |line: &&str| {
            let (name, value) = line.split_once(": ")?;
            names.iter().any(|wanted| name.starts_with(wanted)).then(|| value.to_owned())
        };
        lines.iter().filter_map(value).collect()
    };
    let Some(normal) = values(&["Normalized form"]).pop() else {
        return Answer::Refused;
    };
    let mut next = values(&["(in UTC)"]);
    if next.is_empty() {
        next = values(&["Next elapse", "Iter. #"]).into_iter().filter(|next| next != "never").collect();
    }
    Answer::Accepted { normal, next }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn normal_forms_and_elapses_are_those_of_the_real_tool_where_it_is_installed() {
    let cases = setting("TRUEUP_CALENDAR_CASES").map_or(DEFAULT_CASES, |cases| cases.try_into().unwrap());
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&setting("TRUEUP_CALENDAR_SEED").unwrap_or(0).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = prop_oneof![3 => grammar::expression(), 1 => grammar::mutated()];
    let mut sample = || strategy.new_tree(&mut runner).unwrap().current();
    let (mut asked, mut differences, mut accepted) = (0, Vec::new(), 0);
    for (local, base) in SETTINGS.iter().cycle() {
        if asked >= cases {
            break;
        }
        let batch: Vec<String> = (0..BATCH.min(cases.div_ceil(SETTINGS.len()))).map(|_| sample()).collect();
        asked += batch.len();
        let Some(answers) = theirs(&batch, local, base) else {
            println!("nothing compared: `systemd-analyze` is not installed (package systemd)");
            return;
        };
        let instant = crate::schedule::parse_instant(base, Timestamp::UNIX_EPOCH, &zone("UTC")).unwrap();
        for (expression, theirs) in batch.iter().zip(answers) {
            let ours = ours(expression, local, instant);
            accepted += usize::from(matches!(theirs, Answer::Accepted { .. }));
            let is_comparable = theirs != Answer::NoAnswer || ours == Answer::Refused;
            if is_comparable && ours != theirs {
                differences.push(format!("TZ={local} --base-time='{base}' '{expression}'\n  {ours:?}\n  {theirs:?}"));
            }
        }
    }
    println!("{asked} compared, {accepted} of them accepted");
    assert!(accepted > asked / 4, "too few expressions are well formed: {accepted} of {asked}");
    let shown = differences.len().min(20);
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences[..shown].join("\n"));
}

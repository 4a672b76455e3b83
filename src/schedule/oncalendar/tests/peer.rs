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
    Unsettled,
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
        if unanswered.contains(expression.as_str()) { Answer::Unsettled } else { read(lines) }
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
        // The local zone shows UTC, perhaps under another name.
        next = values(&["Next elapse", "Iter. #"])
            .into_iter()
            .filter_map(|next| next.rsplit_once(' ').map(|(time, _)| format!("{time} UTC")))
            .collect();
    }
    Answer::Accepted { normal, next }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Differences between our answers and the tool's, in words; `None` if it is not installed.
fn compare(batch: &[String], local: &str, base: &str) -> Option<(Vec<String>, usize)> {
    let answers = theirs(batch, local, base)?;
    let instant = crate::schedule::parse_instant(base, Timestamp::UNIX_EPOCH, &zone("UTC")).unwrap();
    let (mut differences, mut accepted) = (Vec::new(), 0);
    for (expression, theirs) in batch.iter().zip(answers) {
        let ours = ours(expression, local, instant);
        accepted += usize::from(matches!(theirs, Answer::Accepted { .. }));
        let is_comparable = theirs != Answer::Unsettled || ours == Answer::Refused;
        if is_comparable && ours != theirs {
            differences.push(format!("TZ={local} --base-time='{base}' '{expression}'\n  {ours:?}\n  {theirs:?}"));
        }
    }
    Some((differences, accepted))
}

fn assert_none(differences: &[String]) {
    let shown = &differences[..differences.len().min(20)];
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), shown.join("\n"));
}

fn say_not_installed() {
    println!("nothing compared: `systemd-analyze` is not installed (package systemd)");
}

#[test]
fn normal_forms_and_elapses_are_those_of_the_real_tool_where_it_is_installed() {
    let cases = setting("TRUEUP_CALENDAR_CASES").map_or(DEFAULT_CASES, |cases| cases.try_into().unwrap());
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&setting("TRUEUP_CALENDAR_SEED").unwrap_or(0).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = prop_oneof![6 => grammar::expression(), 2 => grammar::mutated(), 1 => grammar::anything()];
    let mut sample = || strategy.new_tree(&mut runner).unwrap().current();
    let batch_size = BATCH.min(cases.div_ceil(SETTINGS.len()));
    let (mut asked, mut accepted) = (0, 0);
    for (local, base) in SETTINGS.iter().cycle().take(cases.div_ceil(batch_size)) {
        let batch: Vec<String> = (0..batch_size).map(|_| sample()).collect();
        let Some((differences, well_formed)) = compare(&batch, local, base) else {
            return say_not_installed();
        };
        assert_none(&differences);
        asked += batch.len();
        accepted += well_formed;
    }
    println!("{asked} compared, {accepted} of them accepted");
    assert!(accepted > asked / 4, "too few are well formed: {accepted} of {asked}");
}

/// Expressions that elapse around a change of the clock, by its date in the zone.
fn around(change: Timestamp, local: &jiff::tz::TimeZone, words: &[&str]) -> Vec<String> {
    let day = local.to_datetime(change).date();
    let (month, day, year) = (day.month(), day.day(), day.year());
    let mut expressions: Vec<String> =
        ["*:0/15", "02:30", "*:45:59", "0/2:10", "00:00", "23:59:59", "daily"].map(str::to_owned).to_vec();
    for hour in 0..4 {
        expressions.push(format!("{hour}:30"));
        expressions.push(format!("{year}-{month}-{day} {hour}:15"));
        expressions.push(format!("*-*~1..4 {hour}:00:0/7.5"));
        expressions.push(format!("Sat..Sun {month}-* {hour}..{}:20,50", hour + 3));
    }
    expressions.extend(words.iter().map(|word| format!("*:20 {word}")));
    expressions
}

#[test]
fn changes_of_the_clock_are_those_of_the_real_tool_where_it_is_installed() {
    const WORDS: [&str; 16] = [
        "CET", "cest", "GMT", "BST", "IST", "EST", "EDT", "PST", "JDT", "-03", "+0330", "WEST", "NZDT", "LMT", "CDT",
        "+02",
    ];
    let step = setting("TRUEUP_CALENDAR_ZONE_STEP").map_or(17, |step| step.try_into().unwrap());
    let start = Timestamp::from_second(1_767_225_600).unwrap(); // 2026
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let mut differences = Vec::new();
    for name in names.iter().step_by(step) {
        let local = zone(name);
        let mut changes: Vec<Timestamp> = local.following(start).take(2).map(|change| change.timestamp()).collect();
        changes.push(start);
        for (change, hours) in changes.iter().zip([1, 30, 3]) {
            let base = *change - jiff::SignedDuration::from_hours(hours);
            let base = base.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
            let batch = around(*change, &local, &WORDS);
            let Some((found, _)) = compare(&batch, name, &base) else {
                return say_not_installed();
            };
            differences.extend(found);
        }
    }
    assert_none(&differences);
}

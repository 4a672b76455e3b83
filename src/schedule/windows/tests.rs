use jiff::Timestamp;
use serde::Deserialize;

use super::{CronError, SEARCH_LIMIT, Search, Window, WindowError, is_open, parse};
use crate::model::policy::{WindowEffect, WindowRule};

const FIRES: &str = include_str!("../../../testdata/schedule/windows/fires.jsonl");
const REFUSED: &str = include_str!("../../../testdata/schedule/windows/refused.jsonl");
const WINDOWS: &str = include_str!("../../../testdata/schedule/windows/windows.toml");

#[derive(Deserialize)]
struct Fires {
    name: String,
    cron: String,
    time_zone: String,
    after: Timestamp,
    opens: Vec<Timestamp>,
}

#[derive(Deserialize)]
struct Refused {
    cron: String,
    error: String,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    allow: Vec<(String, u32, String)>,
    #[serde(default)]
    deny: Vec<(String, u32, String)>,
    now: Timestamp,
    is_open: bool,
    until: Option<Timestamp>,
    why: String,
}

fn rule(effect: WindowEffect, (cron, duration_seconds, time_zone): (&str, u32, &str)) -> WindowRule {
    WindowRule { effect, cron: cron.to_owned(), duration_seconds, time_zone: time_zone.to_owned() }
}

#[test]
fn expressions_fire_as_crontab_says() {
    for line in FIRES.lines() {
        let case: Fires = serde_json::from_str(line).unwrap();
        let rule = rule(WindowEffect::Allow, (&case.cron, 60, &case.time_zone));
        let window = Window::new(&rule).unwrap();
        let mut search = Search { left: SEARCH_LIMIT };
        let opens: Vec<Timestamp> =
            std::iter::successors(search.opens_after(&window, case.after), |at| search.opens_after(&window, *at))
                .take(case.opens.len())
                .collect();
        assert_eq!(opens, case.opens, "{}: {}", case.name, case.cron);
    }
}

#[test]
fn what_crontab_does_not_know_is_refused_by_name() {
    for line in REFUSED.lines() {
        let case: Refused = serde_json::from_str(line).unwrap();
        assert_eq!(parse(&case.cron).unwrap_err().to_string(), case.error, "{}", case.cron);
    }
}

#[test]
fn windows_answer_as_their_table_says() {
    let cases: Cases = toml::from_str(WINDOWS).unwrap();
    for case in cases.case {
        let allow = case.allow.iter().map(|(cron, seconds, zone)| rule(WindowEffect::Allow, (cron, *seconds, zone)));
        let deny = case.deny.iter().map(|(cron, seconds, zone)| rule(WindowEffect::Deny, (cron, *seconds, zone)));
        let rules: Vec<WindowRule> = allow.chain(deny).collect();
        let windows = is_open(&rules, case.now).unwrap();
        assert_eq!((windows.is_open, windows.until), (case.is_open, case.until), "{}", case.name);
        assert!(windows.why.contains(&case.why), "{}: {}", case.name, windows.why);
        if let Some(until) = windows.until {
            assert_ne!(is_open(&rules, until).unwrap().is_open, case.is_open, "{}: at its end", case.name);
        }
    }
}

#[test]
fn a_window_that_never_closes_costs_a_bounded_search() {
    let rules = [rule(WindowEffect::Allow, ("* * * * *", 60, "Europe/Berlin"))];
    let now: Timestamp = "2026-11-30T10:00:30Z".parse().unwrap();
    let windows = is_open(&rules, now).unwrap();
    assert!(windows.is_open);
    assert!(windows.until.is_some_and(|until| until > now), "it says when to look again");
}

#[test]
fn a_rule_that_cannot_be_followed_is_an_error_and_not_an_open_window() {
    let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
    let zone = is_open(&[rule(WindowEffect::Deny, ("0 9 * * *", 60, "Europe/Atlantis"))], now).unwrap_err();
    assert_eq!(
        zone.to_string(),
        "the window `0 9 * * *` names the time zone `Europe/Atlantis`, which is not in the zone database"
    );
    let cron = is_open(&[rule(WindowEffect::Allow, ("soon", 60, "UTC"))], now).unwrap_err();
    assert!(matches!(cron, WindowError::Cron { error: CronError::Fields { found: 1, .. }, .. }));
}

//! The corpus, the real tool where it is installed, and whatever else may be typed.

mod corpus;
mod grammar;
mod peer;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{OnCalendar, Problem};

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// The next `count` elapses.
fn elapses(spec: &OnCalendar, after: Timestamp, local: &TimeZone, count: usize) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut after = after;
    while found.len() < count
        && let Some(next) = spec.next_after(after, local).unwrap()
    {
        assert!(next > after, "{spec}: {next} is not after {after}");
        found.push(next);
        after = next;
    }
    found
}

fn refused() -> Vec<(&'static str, usize, Problem)> {
    vec![
        ("", 0, Problem::Empty),
        (" daily", 0, Problem::LeadingBlank),
        ("daily ", 5, Problem::Trailing),
        ("Fri..Mon 01:00", 5, Problem::WeekdayRange),
        ("Mond", 3, Problem::WeekdayEnd),
        ("daily CEST", 6, Problem::UnknownZone { zone: "CEST".to_owned() }),
        ("04:00 Mars/Olympus", 6, Problem::UnknownZone { zone: "Mars/Olympus".to_owned() }),
        ("*-13-01", 2, Problem::OutOfRange { field: "months", from: 1, to: 12 }),
        ("23:59:60", 6, Problem::OutOfRange { field: "seconds", from: 0, to: 59 }),
        ("*:0/0", 4, Problem::ZeroStep),
        ("5..3:00", 0, Problem::NeverRepeats { field: "hours", from: 0, to: 23 }),
        ("99999999999:00", 0, Problem::TooLarge),
        ("2026~01-01", 7, Problem::MonthEnd),
        ("1:2:3:4", 5, Problem::Trailing),
        ("12", 2, Problem::Expected { expected: "`:` and minutes" }),
    ]
}

#[test]
fn a_refusal_says_where_it_goes_wrong_and_why() {
    for (text, byte, problem) in refused() {
        let error = OnCalendar::parse(text).unwrap_err();
        assert_eq!((error.byte(), error.problem()), (byte, &problem), "{text}");
        assert!(!error.problem().why().is_empty() && !error.problem().advice().is_empty());
    }
}

#[test]
fn a_place_is_counted_in_characters_for_people() {
    let error = OnCalendar::parse("Mon ä:00").unwrap_err();
    assert_eq!((error.byte(), error.character()), (4, 5));
    let error = OnCalendar::parse("").unwrap_err();
    assert_eq!((error.byte(), error.character()), (0, 1));
}

#[test]
fn the_second_pass_of_an_hour_never_gives_an_earlier_instant() {
    let berlin = zone("Europe/Berlin");
    let mut after = instant("2026-10-25T00:00:00Z");
    let spec = OnCalendar::parse("*:0/7:13").unwrap();
    while after < instant("2026-10-25T03:00:00Z") {
        assert!(spec.next_after(after, &berlin).unwrap().unwrap() > after);
        after += jiff::SignedDuration::from_secs(97);
    }
}

#[test]
fn where_systemd_gives_up_in_a_gap_the_search_goes_on_behind_it() {
    let chatham = OnCalendar::parse("02:50 Pacific/Chatham").unwrap();
    let found = elapses(&chatham, instant("2026-09-25T14:30:00Z"), &TimeZone::UTC, 2);
    assert_eq!(found, [instant("2026-09-27T13:05:00Z"), instant("2026-09-28T13:05:00Z")]);
    let once = OnCalendar::parse("2026-09-27 02:50 Pacific/Chatham").unwrap();
    assert_eq!(once.next_after(instant("2026-03-01T00:00:00Z"), &TimeZone::UTC).unwrap(), None);
    let impossible = OnCalendar::parse("*-02,04,06,09,11-31").unwrap();
    assert_eq!(impossible.next_after(instant("2026-03-01T00:00:00Z"), &TimeZone::UTC).unwrap(), None);
}

#[test]
fn instants_before_the_epoch_and_after_the_last_year_are_answered() {
    let daily = OnCalendar::parse("daily").unwrap();
    let first = daily.next_after(Timestamp::MIN, &TimeZone::UTC).unwrap();
    assert_eq!(first, Some(Timestamp::UNIX_EPOCH));
    assert_eq!(daily.next_after(Timestamp::MAX, &TimeZone::UTC).unwrap(), None);
    assert_eq!(daily.next_after(instant("2199-12-31T00:00:00Z"), &TimeZone::UTC).unwrap(), None);
}

#[test]
fn fractions_elapse_to_the_microsecond() {
    let spec = OnCalendar::parse("*:*:0/0.4").unwrap();
    let found = elapses(&spec, instant("2026-03-01T00:00:00.4000001Z"), &TimeZone::UTC, 2);
    assert_eq!(found, [instant("2026-03-01T00:00:00.8Z"), instant("2026-03-01T00:00:01.2Z")]);
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        if let Err(error) = OnCalendar::parse(&text) {
            prop_assert!(error.byte() <= text.len());
            prop_assert!(error.character() <= text.chars().count() + 1);
        }
    }

    #[test]
    fn nothing_like_an_expression_panics_and_every_elapse_lies_ahead(
        text in grammar::mutated(),
        second in -1_000_000_i64..253_402_000_000,
    ) {
        let after = Timestamp::from_second(second).unwrap();
        if let Ok(spec) = OnCalendar::parse_in(&text, &zone("Australia/Lord_Howe")) {
            elapses(&spec, after, &zone("Australia/Lord_Howe"), 2);
        }
    }

    #[test]
    fn a_normal_form_is_its_own_normal_form(text in grammar::expression()) {
        if let Ok(spec) = OnCalendar::parse(&text) {
            let normal = spec.to_string();
            prop_assert_eq!(OnCalendar::parse(&normal).unwrap().to_string(), normal);
        }
    }
}

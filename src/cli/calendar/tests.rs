use jiff::tz::TimeZone;

use super::{Reader, distance, elapses, explain, json, table};
use crate::schedule::OnCalendar;

/// The lines printed for an expression, read in a zone at noon of 2 March 2026, UTC.
fn lines(expression: &str, zone: &str, count: u32) -> String {
    let reader = Reader { now: "2026-03-02T12:00:00Z".parse().unwrap(), local: TimeZone::get(zone).unwrap() };
    let spec = OnCalendar::parse_in(expression, &reader.local).unwrap();
    let base = "2026-03-01T00:00:00Z".parse().unwrap();
    table(expression, &spec, &elapses(&spec, base, &reader.local, count).unwrap(), &reader)
}

#[test]
fn the_lines_are_those_of_systemd_analyze() {
    insta::assert_snapshot!(lines("06:00", "UTC", 2), @r"
      Original form: 06:00
    Normalized form: *-*-* 06:00:00
        Next elapse: Sun 2026-03-01 06:00:00 UTC
           From now: 1 day 6h ago
           Iter. #2: Mon 2026-03-02 06:00:00 UTC
           From now: 6h ago
");
    insta::assert_snapshot!(lines("Mon..Fri 09:00", "Europe/Berlin", 1), @r"
      Original form: Mon..Fri 09:00
    Normalized form: Mon..Fri *-*-* 09:00:00
        Next elapse: Mon 2026-03-02 09:00:00 CET
           (in UTC): Mon 2026-03-02 08:00:00 UTC
           From now: 4h 0min ago
");
}

#[test]
fn a_normal_form_is_not_printed_twice() {
    insta::assert_snapshot!(lines("*-02-30 00:00:00", "UTC", 3), @r"
    Normalized form: *-02-30 00:00:00
        Next elapse: never
");
}

#[test]
fn a_zone_whose_clocks_show_utc_needs_no_second_line() {
    assert!(!lines("daily", "Africa/Abidjan", 1).contains("(in UTC)"));
    assert!(lines("daily", "Europe/London", 1).contains("(in UTC)"));
}

#[test]
fn one_shot_expressions_end_the_list_early() {
    assert_eq!(lines("2026-05-05 12:00", "UTC", 10).matches("From now").count(), 1);
}

#[test]
fn json_has_whole_seconds_in_utc() {
    let spec = OnCalendar::parse("*:*:0/0.5").unwrap();
    let found = elapses(&spec, "2026-03-01T00:00:00Z".parse().unwrap(), &TimeZone::UTC, 2).unwrap();
    let expected = serde_json::json!({
        "expr": "*:*:0/0.5",
        "normalized": "*-*-* *:*:00/0.500000",
        "next": ["2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z"],
    });
    assert_eq!(json("*:*:0/0.5", &spec, &found), expected);
}

#[test]
fn a_refusal_says_what_where_why_and_what_to_do() {
    let error = OnCalendar::parse("Fri..Mon 01:00").unwrap_err();
    insta::assert_snapshot!(explain(&error), @r"
    error: `Fri..Mon 01:00` is not a calendar expression: a weekday range is `First..Last` and does not wrap around the week
    where: character 6 of the expression
    why:   a week begins with Monday, and a range runs forward within it
    do:    list the days instead, for example `Fri..Sun,Mon`
");
}

#[test]
fn distances_are_worded_as_systemd_words_them() {
    let worded = [
        (0, "now"),
        (1, "1us left"),
        (-1_500, "1ms ago"),
        (59_000_000, "59s left"),
        (61_000_000, "1min 1s left"),
        (-300_000_000, "5min ago"),
        (3_660_000_000, "1h 1min left"),
        (6 * 3_600_000_000, "6h left"),
        (25 * 3_600_000_000, "1 day 1h left"),
        (-2 * 86_400_000_000, "2 days ago"),
        (8 * 86_400_000_000, "1 week 1 day left"),
        (31 * 86_400_000_000, "1 month 0 days left"),
        (-400 * 86_400_000_000, "1 year 1 month ago"),
    ];
    let now = jiff::Timestamp::UNIX_EPOCH;
    for (microseconds, words) in worded {
        let instant = jiff::Timestamp::from_microsecond(microseconds).unwrap();
        assert_eq!(distance(instant, now), words);
    }
}

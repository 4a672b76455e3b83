//! Expressions from systemd's grammar, and such expressions with mistakes in them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Zones with every kind of change: an hour, half an hour, at midnight, backwards, none.
pub(super) const ZONES: &[&str] = &[
    "UTC",
    "utc",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Auckland",
    "Etc/GMT-14",
    "Asia/Tehran",
];

const SHORTHANDS: &[&str] = &[
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "yearly",
    "annually",
    "anually",
    "biannually",
    "bi-annually",
    "semiannually",
    "semi-annually",
    "DAILY",
    "Weekly",
    "weekly ",
    "fortnightly",
];

const DAYS: &[&str] = &[
    "Mon",
    "Tue",
    "Wed",
    "Thu",
    "Fri",
    "Sat",
    "Sun",
    "monday",
    "TUESDAY",
    "Wednesday",
    "thursday",
    "friday",
    "Saturday",
    "sunday",
    "sat",
    "SUN",
    "Tues",
];

fn text(strategy: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    strategy.boxed()
}

fn weekdays() -> BoxedStrategy<String> {
    let element = prop_oneof![
        3 => select(DAYS).prop_map(str::to_owned),
        2 => (select(DAYS), select(&["..", "-", "..", "."][..]), select(DAYS)).prop_map(|(a, dots, b)| format!("{a}{dots}{b}")),
    ];
    text((vec(element, 1..4), select(&["", "", "", ",", " "][..])).prop_map(|(days, end)| days.join(",") + end))
}

/// A number around a field's range, with or without a leading zero.
fn number(from: u32, to: u32) -> BoxedStrategy<String> {
    text(prop_oneof![
        12 => (from..=to).prop_map(|n| n.to_string()),
        4 => (from..=to).prop_map(|n| format!("{n:02}")),
        1 => (0..=to + 3).prop_map(|n| n.to_string()),
        1 => Just(to.to_string()),
    ])
}

fn fraction(whole: BoxedStrategy<String>) -> BoxedStrategy<String> {
    text(prop_oneof![
        4 => whole.clone(),
        1 => (whole, "[.][0-9]{1,8}").prop_map(|(whole, part)| whole + &part),
    ])
}

/// Mostly in the right order, as numbers go.
fn range(value: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let ends = (value.clone(), value.clone(), proptest::bool::weighted(0.9));
    text(ends.prop_map(|(a, b, is_sorted)| {
        let size = |number: &String| number.parse::<f64>().unwrap_or_default();
        if is_sorted && size(&a) > size(&b) { format!("{b}..{a}") } else { format!("{a}..{b}") }
    }))
}

fn chain(value: BoxedStrategy<String>, step: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let element = prop_oneof![
        6 => value.clone(),
        3 => range(&value),
        2 => (value.clone(), step.clone()).prop_map(|(a, n)| format!("{a}/{n}")),
        2 => (range(&value), step).prop_map(|(range, n)| format!("{range}/{n}")),
    ];
    text(prop_oneof![
        8 => Just("*".to_owned()),
        7 => vec(element.clone(), 1..2).prop_map(|list| list.join(",")),
        3 => vec(element, 2..6).prop_map(|list| list.join(",")),
    ])
}

fn field(from: u32, to: u32) -> BoxedStrategy<String> {
    chain(number(from, to), number(1, to.min(20) / 2))
}

fn year() -> BoxedStrategy<String> {
    let value = prop_oneof![
        8 => (2024_u32..2040).prop_map(|year| year.to_string()),
        2 => (1965_u32..2205).prop_map(|year| year.to_string()),
        2 => (0_u32..105).prop_map(|year| year.to_string()),
    ];
    text(prop_oneof![2 => Just("*".to_owned()), 3 => chain(text(value), number(1, 9))])
}

fn date() -> BoxedStrategy<String> {
    let mark = select(&["-", "-", "-", "~"][..]);
    text(prop_oneof![
        (year(), field(1, 12), mark.clone(), field(1, 31)).prop_map(|(y, m, mark, d)| format!("{y}-{m}{mark}{d}")),
        (field(1, 12), mark.clone(), field(1, 31)).prop_map(|(m, mark, d)| format!("{m}{mark}{d}")),
        (mark, field(1, 28)).prop_map(|(mark, d)| format!("*-*{mark}{d}")),
        Just("*-03,04,09,10,11-*".to_owned()),
    ])
}

fn time() -> BoxedStrategy<String> {
    let seconds = chain(fraction(number(0, 59)), fraction(number(0, 30)));
    text(prop_oneof![
        3 => (field(0, 23), field(0, 59)).prop_map(|(h, m)| format!("{h}:{m}")),
        2 => (field(0, 3), field(0, 59)).prop_map(|(h, m)| format!("{h}:{m}")),
        3 => (field(0, 23), field(0, 59), seconds).prop_map(|(h, m, s)| format!("{h}:{m}:{s}")),
    ])
}

/// A well-formed expression, or nearly: values may lie outside their fields.
pub(super) fn expression() -> BoxedStrategy<String> {
    let parts = (
        proptest::option::weighted(0.4, weekdays()),
        proptest::option::weighted(0.6, date()),
        proptest::option::weighted(0.7, time()),
        proptest::option::weighted(0.5, select(ZONES)),
        select(&[" ", " ", " ", "  "][..]),
    );
    let composed = parts.prop_map(|(days, date, time, zone, blank)| {
        let zone = zone.map(str::to_owned);
        [days, date, time, zone].into_iter().flatten().collect::<Vec<_>>().join(blank)
    });
    let shorthand = (select(SHORTHANDS), proptest::option::of(select(ZONES)))
        .prop_map(|(word, zone)| zone.map_or(word.to_owned(), |zone| format!("{word} {zone}")));
    let epoch = (select(&["@", "@ ", "@+", "@-", "Mon @"][..]), prop_oneof![0_u64..7_300_000_000, any::<u64>()])
        .prop_map(|(sign, second)| format!("{sign}{second}"));
    text(prop_oneof![20 => composed, 1 => shorthand, 1 => epoch])
}

/// An expression with a few characters put in, taken out or replaced.
pub(super) fn mutated() -> BoxedStrategy<String> {
    let edit = (any::<prop::sample::Index>(), 0..3_u8, select(b"*-~:.,/@ 0123456789+MonUTCzZ\tae_".as_slice()));
    text((expression(), vec(edit, 0..4)).prop_map(|(expression, edits)| {
        let mut bytes = expression.into_bytes();
        for (place, kind, byte) in edits {
            let at = place.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        String::from_utf8(bytes).unwrap()
    }))
}

/// Short texts of characters that expressions have, a few others, and long lists and numbers.
pub(super) fn anything() -> BoxedStrategy<String> {
    let long_list = (235..250_usize, select(&["*:", "*-*-", "", "*:*:", "*-"][..]))
        .prop_map(|(length, before)| before.to_owned() + &vec!["1"; length].join(","));
    let large = ("[0-9]{8,22}", select(&["*:*:", "", "*:*:0/", "@", "*:"][..]), select(&["", ":00", "-1-1"][..]))
        .prop_map(|(number, before, after)| format!("{before}{number}{after}"));
    text(prop_oneof![
        3 => "[-*~:.,/@ 0-9]{1,9}",
        1 => "[ -~]{0,12}",
        1 => "[ -~\t\u{e4}\u{b5}\u{2212}]{0,12}",
        1 => "(Mon|tue|FRI|Sunday)[-., :a-z]{0,4}(Mon|tue|FRI|Sunday|\\*|1)?( [0-9]{1,2}:[0-9]{2})?",
        1 => long_list,
        1 => large,
    ])
}

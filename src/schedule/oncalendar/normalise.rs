//! The normal form: its limits, its order, and how it is written.

use std::fmt::{self, Display, Formatter};

use super::error::Problem;
use super::zone::Zone;
use super::{FIRST_YEAR, LAST_YEAR, OnCalendar, SECOND, Span};

/// What a field is called, what it holds, and how wide its numbers are written.
struct Field {
    name: &'static str,
    from: i32,
    to: i32,
    width: usize,
}

/// Years, months, days, hours and minutes, in the order of [`OnCalendar::date_and_time`].
const FIELDS: [Field; 5] = [
    Field { name: "years", from: FIRST_YEAR, to: LAST_YEAR, width: 4 },
    Field { name: "months", from: 1, to: 12, width: 2 },
    Field { name: "days", from: 1, to: 31, width: 2 },
    Field { name: "hours", from: 0, to: 23, width: 2 },
    Field { name: "minutes", from: 0, to: 59, width: 2 },
];
/// The place of the days among [`FIELDS`].
const DAY: usize = 2;
/// The whole week as bits: no condition at all.
const EVERY_WEEKDAY: u8 = 0b111_1111;
/// The last microsecond of a minute.
const LAST_MICROSECOND: i32 = 60 * SECOND - 1;
/// How much each further element of a list of days from the end of the month may be less; with
/// the first, that is 28, so that every month has the day.
const MONTH_END_STEP: i32 = 3;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Brings an expression into its normal form and holds it to the limits of its fields.
///
/// An error is the place of the offending element and what is wrong with it.
pub(super) fn normalise(mut spec: OnCalendar) -> Result<OnCalendar, (usize, Problem)> {
    if spec.weekdays == EVERY_WEEKDAY {
        spec.weekdays = 0;
    }
    if spec.date_and_time[DAY].is_empty() {
        spec.days_from_month_end = false;
    }
    for year in &mut spec.date_and_time[0] {
        year.start = whole_year(year.start);
        year.stop = year.stop.map(whole_year);
    }
    for spans in spec.date_and_time.iter_mut().chain([&mut spec.microseconds]) {
        spans.iter_mut().for_each(trim);
        spans.sort_by_key(Span::key);
        spans.dedup_by_key(|span| span.key());
    }
    check(&spec)?;
    Ok(spec)
}

/// Makes a year of two digits whole: 0 to 69 are of this century, 70 to 99 of the last.
fn whole_year(year: i32) -> i32 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        i32::MIN..0 | 100.. => year,
    }
}

/// Ends a range at its last value; a range of one value becomes that value.
fn trim(span: &mut Span) {
    let Some(stop) = span.stop else { return };
    let mut last = stop;
    if stop > span.start && span.repeat > 0 {
        last -= (stop - span.start) % span.repeat;
    }
    if last == span.start {
        span.stop = None;
        span.repeat = 0;
    } else {
        span.stop = Some(last);
    }
}

/// Holds every element to the limits of its field.
fn check(spec: &OnCalendar) -> Result<(), (usize, Problem)> {
    for (index, (field, spans)) in FIELDS.iter().zip(&spec.date_and_time).enumerate() {
        let mut limit = (field.from, field.to);
        for span in spans {
            if index == DAY && spec.days_from_month_end {
                limit.1 -= MONTH_END_STEP;
                check_span(span, limit, true).map_err(|fault| fault.named(span, field.name))?;
            } else {
                check_span(span, limit, false).map_err(|fault| fault.named(span, field.name))?;
            }
        }
    }
    for span in &spec.microseconds {
        check_span(span, (0, LAST_MICROSECOND), false)
            .map_err(|fault| Fault { limit: (0, 59), ..fault }.named(span, "seconds"))?;
    }
    Ok(())
}

/// What is wrong with one element.
struct Fault {
    is_out_of_range: bool,
    limit: (i32, i32),
}

impl Fault {
    fn named(self, span: &Span, field: &'static str) -> (usize, Problem) {
        let (from, to) = self.limit;
        let problem = if self.is_out_of_range {
            Problem::OutOfRange { field, from, to }
        } else {
            Problem::NeverRepeats { field, from, to }
        };
        (span.at, problem)
    }
}

/// Holds one element to a range; a repetition must fit in at least once.
fn check_span(span: &Span, limit: (i32, i32), is_from_end: bool) -> Result<(), Fault> {
    let within = limit.0..=limit.1;
    let (start, repeat) = (span.start, span.repeat);
    if !within.contains(&start) || span.stop.is_some_and(|stop| !within.contains(&stop)) {
        return Err(Fault { is_out_of_range: true, limit });
    }
    let fits = repeat <= limit.1 - limit.0
        && match span.stop {
            Some(stop) => start + repeat <= stop,
            None if is_from_end => start - repeat >= limit.0,
            None => start + repeat <= limit.1,
        };
    if fits { Ok(()) } else { Err(Fault { is_out_of_range: false, limit }) }
}

impl Display for OnCalendar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.weekdays != 0 {
            write_weekdays(f, self.weekdays)?;
            f.write_str(" ")?;
        }
        let before = ["", "-", if self.days_from_month_end { "~" } else { "-" }, " ", ":"];
        for ((field, spans), before) in FIELDS.iter().zip(&self.date_and_time).zip(before) {
            f.write_str(before)?;
            if spans.is_empty() {
                f.write_str("*")?;
            } else {
                write_spans(f, spans, |f, value| write!(f, "{value:0width$}", width = field.width), 1)?;
            }
        }
        f.write_str(":")?;
        write_seconds(f, &self.microseconds)?;
        match &self.zone {
            Zone::Local => Ok(()),
            Zone::Utc => f.write_str(" UTC"),
            Zone::Named { name, .. } => write!(f, " {name}"),
            Zone::Abbreviated { abbreviation, .. } => write!(f, " {abbreviation}"),
        }
    }
}

/// Writes weekdays as lists and ranges; two neighbours are a list.
fn write_weekdays(f: &mut Formatter<'_>, weekdays: u8) -> fmt::Result {
    let is_set = |day: usize| day < WEEKDAYS.len() && weekdays & (1 << day) != 0;
    let mut day = 0;
    let mut comma = "";
    while day < WEEKDAYS.len() {
        if !is_set(day) {
            day += 1;
            continue;
        }
        let first = day;
        while is_set(day + 1) {
            day += 1;
        }
        write!(f, "{comma}{}", WEEKDAYS[first])?;
        match day - first {
            0 => {}
            1 => write!(f, ",{}", WEEKDAYS[day])?,
            2.. => write!(f, "..{}", WEEKDAYS[day])?,
        }
        comma = ",";
        day += 1;
    }
    Ok(())
}

/// Writes the seconds field: `*` where one element is every second.
fn write_seconds(f: &mut Formatter<'_>, spans: &[Span]) -> fmt::Result {
    if spans.iter().any(|span| span.key() == (0, None, SECOND)) {
        return f.write_str("*");
    }
    write_spans(f, spans, |f, value| write_fraction(f, value, 2), SECOND)
}

/// Writes microseconds as seconds, with six digits of fraction where there is one.
fn write_fraction(f: &mut Formatter<'_>, microseconds: i32, width: usize) -> fmt::Result {
    write!(f, "{:0width$}", microseconds / SECOND)?;
    match microseconds % SECOND {
        0 => Ok(()),
        fraction => write!(f, ".{fraction:06}"),
    }
}

/// Writes the elements of a field; a range with the step `unit` is written without it.
fn write_spans(
    f: &mut Formatter<'_>,
    spans: &[Span],
    value: impl Fn(&mut Formatter<'_>, i32) -> fmt::Result,
    unit: i32,
) -> fmt::Result {
    for (index, span) in spans.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        value(f, span.start)?;
        if let Some(stop) = span.stop {
            f.write_str("..")?;
            value(f, stop)?;
        }
        if span.repeat > 0 && !(span.stop.is_some() && span.repeat == unit) {
            f.write_str("/")?;
            if unit == SECOND {
                write_fraction(f, span.repeat, 1)?;
            } else {
                write!(f, "{}", span.repeat)?;
            }
        }
    }
    Ok(())
}

//! Instants as people write them: RFC 3339, and systemd's own forms.
//!
//! It refuses to ask for the time: `now` is an argument.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::oncalendar::wall::{DAY, FLOOR, HOUR, MONTH, Wall, WallClock};
use super::oncalendar::zone::{self, Zone};

/// The last instant taken, in microseconds since the epoch: 30 December 9999, as systemd has it.
const MAX_MICROSECOND: i64 = 253_402_214_399_999_999;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR_LENGTH: i64 = 60 * MINUTE;
const DAY_LENGTH: i64 = 24 * HOUR_LENGTH;
/// A twelfth of a year.
const MONTH_LENGTH: i64 = 2_629_800 * SECOND;
/// 365.25 days.
const YEAR_LENGTH: i64 = 31_557_600 * SECOND;
/// The units of a time span, in microseconds. Source: systemd.time(7), "Parsing Time Spans".
const UNITS: [(&[&str], i64); 9] = [
    (&["seconds", "second", "sec", "s", ""], SECOND),
    (&["minutes", "minute", "min", "m"], MINUTE),
    (&["months", "month", "M"], MONTH_LENGTH),
    (&["msec", "ms"], 1000),
    (&["hours", "hour", "hr", "h"], HOUR_LENGTH),
    (&["days", "day", "d"], DAY_LENGTH),
    (&["weeks", "week", "w"], 7 * DAY_LENGTH),
    (&["years", "year", "y"], YEAR_LENGTH),
    (&["usec", "us", "µs", "μs"], 1),
];
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "mon"),
    ("tuesday", "tue"),
    ("wednesday", "wed"),
    ("thursday", "thu"),
    ("friday", "fri"),
    ("saturday", "sat"),
    ("sunday", "sun"),
];

/// Why a text is not an instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstantError {
    /// It has none of the known forms.
    #[error("`{text}` is not a point in time")]
    Unknown {
        /// The text.
        text: String,
    },
    /// It is before 1970 or after 9999.
    #[error("`{text}` lies outside the years 1970 to 9999")]
    OutOfRange {
        /// The text.
        text: String,
    },
    /// The weekday is not that of the date.
    #[error("`{text}` names a weekday that the date does not have")]
    Weekday {
        /// The text.
        text: String,
    },
}

/// Reads an instant: RFC 3339 such as `2026-03-01T00:00:00Z`, or one of systemd's forms.
///
/// Those are `2026-03-01 12:00:30.5`, with or without seconds, weekday before or zone behind;
/// a date alone (midnight) or a time alone (today); `now`, `today`, `yesterday`, `tomorrow`;
/// `@` and seconds since the epoch; `+5h`, `-5h`, `5h ago`, `5h left`. Without a zone it is the
/// `local` one. The answer is rounded down to microseconds.
///
/// # Errors
/// [`InstantError`] if it has no such form or lies outside the years 1970 to 9999.
///
/// Source: systemd.time(7), "Parsing Timestamps"; RFC 3339.
pub fn parse_instant(text: &str, now: Timestamp, local: &TimeZone) -> Result<Timestamp, InstantError> {
    let out_of_range = || InstantError::OutOfRange { text: text.to_owned() };
    let microsecond = match text.parse::<Timestamp>() {
        Ok(instant) => instant.as_microsecond(),
        Err(_) => systemd_form(text, now, local)?,
    };
    if !(0..=MAX_MICROSECOND).contains(&microsecond) {
        return Err(out_of_range());
    }
    Timestamp::from_microsecond(microsecond).map_err(|_| out_of_range())
}

/// Reads one of systemd's forms as microseconds since the epoch.
fn systemd_form(text: &str, now: Timestamp, local: &TimeZone) -> Result<i64, InstantError> {
    let unknown = || InstantError::Unknown { text: text.to_owned() };
    let now_microsecond = now.as_microsecond();
    let relative = |span: &str, direction: i64| {
        let distance = time_span(span).ok_or_else(unknown)?;
        Ok(now_microsecond.saturating_add(direction.saturating_mul(distance)))
    };
    if text == "now" {
        return Ok(now_microsecond);
    }
    if let Some(span) = text.strip_prefix('@') {
        return time_span(span).ok_or_else(unknown);
    }
    if let Some(span) = text.strip_prefix('+').or_else(|| text.strip_suffix(" left")) {
        return relative(span, 1);
    }
    if let Some(span) = text.strip_prefix('-').or_else(|| text.strip_suffix(" ago")) {
        return relative(span, -1);
    }
    wall_form(text, now, local)
}

/// Reads a date, a time, or a word for a day.
fn wall_form(text: &str, now: Timestamp, local: &TimeZone) -> Result<i64, InstantError> {
    let unknown = || InstantError::Unknown { text: text.to_owned() };
    let (body, zone) = zone::split(text, Some(local));
    let (zone, is_summer) = match &zone {
        Zone::Local => (Some(local), None),
        Zone::Utc => (None, None),
        Zone::Named { zone, .. } => (Some(zone), None),
        Zone::Abbreviated { is_summer, .. } => (Some(local), Some(*is_summer)),
    };
    let mut clock = WallClock::new(zone);
    let mut wall = clock.read(now.as_microsecond().div_euclid(SECOND)).ok_or_else(unknown)?;
    wall.is_summer = is_summer;
    let (weekday, body) = split_weekday(body);
    let fraction = fill(&mut wall, body).ok_or_else(unknown)?;
    if weekday.is_some_and(|weekday| weekday != wall.weekday()) {
        return Err(InstantError::Weekday { text: text.to_owned() });
    }
    let (second, _) = clock.resolve(&wall).ok_or_else(|| InstantError::OutOfRange { text: text.to_owned() })?;
    Ok(second.saturating_mul(SECOND).saturating_add(fraction))
}

/// Splits a weekday and the blank after it off the front.
fn split_weekday(body: &str) -> (Option<i64>, &str) {
    let Some((word, rest)) = body.split_once(' ') else {
        return (None, body);
    };
    let is_word = |name: &str| word.eq_ignore_ascii_case(name);
    let day = (0..).zip(WEEKDAYS).find(|(_, (long, short))| is_word(long) || is_word(short));
    match day {
        Some((day, _)) => (Some(day), rest),
        None => (None, body),
    }
}

/// Writes what the text says into a reading; gives the microseconds.
fn fill(wall: &mut Wall, body: &str) -> Option<i64> {
    let day_offset = match body {
        "today" => Some(0),
        "yesterday" => Some(-1),
        "tomorrow" => Some(1),
        _ => None,
    };
    if let Some(offset) = day_offset {
        wall.parts[DAY] += offset;
        wall.reset_below(DAY);
        return Some(0);
    }
    let mut words = body.split_ascii_whitespace();
    let first = words.next()?;
    let time = if first.contains('-') {
        let [year, month, day] = date(first)?;
        wall.parts[..=DAY].copy_from_slice(&[year, month, day]);
        wall.reset_below(DAY);
        words.next()
    } else {
        Some(first)
    };
    if words.next().is_some() {
        return None;
    }
    let Some(time) = time else { return Some(0) };
    let ([hour, minute, second], fraction) = time_of_day(time)?;
    wall.parts[HOUR..].copy_from_slice(&[hour, minute, second]);
    Some(fraction)
}

/// Reads `YEAR-MONTH-DAY`; two digits of a year are 1969 to 2068, as strptime(3) has it.
fn date(word: &str) -> Option<[i64; 3]> {
    let mut parts = word.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (whole, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let year = match (year.len(), whole) {
        (0..=2, 69..) => whole + 1900,
        (0..=2, _) => whole + 2000,
        (3.., _) => whole,
    };
    let is_date = parts.next().is_none() && (FLOOR[MONTH]..=12).contains(&month) && (FLOOR[DAY]..=31).contains(&day);
    is_date.then_some([year, month, day])
}

/// Reads `HOUR:MINUTE[:SECOND[.FRACTION]]`, the fraction as microseconds.
fn time_of_day(word: &str) -> Option<([i64; 3], i64)> {
    let mut parts = word.split(':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let (second, fraction) = match parts.next().map(|second| second.split_once('.').ok_or(second)) {
        None => (0, 0),
        Some(Err(second)) => (number(second, 2)?, 0),
        Some(Ok((second, digits))) => (number(second, 2)?, microseconds(digits)?),
    };
    let is_time = parts.next().is_none() && hour < 24 && minute < 60 && second <= 61;
    is_time.then_some(([hour, minute, second], fraction))
}

/// Reads a number of at most `width` digits.
fn number(digits: &str, width: usize) -> Option<i64> {
    let is_number = digits.len() <= width && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// Reads the digits of a fraction of a second as microseconds, rounded half up.
fn microseconds(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept: String = digits.chars().chain("000000".chars()).take(6).collect();
    let rounds_up = digits.as_bytes().get(6).is_some_and(|next| *next >= b'5');
    Some(kept.parse::<i64>().ok()? + i64::from(rounds_up))
}

/// Reads a time span such as `5h 30min` or `1.5` (seconds), in microseconds.
fn time_span(text: &str) -> Option<i64> {
    let mut rest = text.trim_ascii();
    let mut total = 0_i64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("0", after),
        };
        if whole.is_empty() || fraction.is_empty() {
            return None;
        }
        let after = after.trim_ascii_start();
        let end = after.find(|next: char| !next.is_alphabetic()).unwrap_or(after.len());
        let (word, after) = after.split_at(end);
        let (_, unit) = UNITS.iter().find(|(words, _)| words.contains(&word))?;
        total = total.checked_add(whole.parse::<i64>().ok()?.checked_mul(*unit)?)?;
        let mut place = *unit;
        for digit in fraction.bytes() {
            place /= 10;
            total = total.checked_add(place * i64::from(digit - b'0'))?;
        }
        rest = after.trim_ascii_start();
    }
    Some(total)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests;

//! A five-field crontab expression, read through the `cron` crate.
//!
//! The crate speaks another dialect: seconds first, weekdays from 1 = Sunday, day of month AND day
//! of week, a lone number before a step, `?`, and shorthands (ruling 25). So each field is held to
//! crontab(5) here first, weekdays are handed on as names, and of the answer only the sets of
//! numbers are used; the calendar is ours, in jiff's civil time.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use cron::{Schedule, TimeUnitSpec as _};
use jiff::civil::Date;

/// Why a text is not a crontab expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error("`{text}` is not five fields (minute, hour, day of month, month, day of week): it has {found}")]
    Fields {
        /// The expression.
        text: String,
        /// How many fields it has.
        found: usize,
    },
    /// One field breaks a rule.
    #[error("{field} `{part}`: {rule}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The part of it that is wrong.
        part: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// No date matches, as for 30 February.
    #[error("`{0}` never comes: no date matches it")]
    Never(String),
}

/// One of the five fields.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Three-letter names of `min`, `min + 1`, …
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { name: "month", min: 1, max: 12, names: MONTHS };
/// 0 and 7 are both Sunday.
const WEEKDAY: Field = Field { name: "day of week", min: 0, max: 7, names: WEEKDAYS };

impl Field {
    fn wrong(&self, part: &str, rule: impl Into<String>) -> CronError {
        CronError::Field { field: self.name, part: part.to_owned(), rule: rule.into() }
    }

    /// The numbers that `text` stands for, by crontab(5) alone.
    fn numbers(&self, text: &str) -> Result<BTreeSet<u32>, CronError> {
        let mut numbers = BTreeSet::new();
        for part in text.split(',') {
            numbers.extend(self.part(part)?);
        }
        Ok(numbers)
    }

    /// `*`, `a`, `a-b`, each of the first and last with `/step`.
    fn part(&self, part: &str) -> Result<Vec<u32>, CronError> {
        let (base, step) = match part.split_once('/') {
            Some((base, step)) => (base, Some(self.step(part, step)?)),
            None => (part, None),
        };
        let (first, last) = if base == "*" {
            (self.min, self.max)
        } else if let Some((first, last)) = base.split_once('-') {
            (self.number(part, first)?, self.number(part, last)?)
        } else if let Some(step) = step {
            let example = format!("a step follows `*` or a range, for example `{base}-{}/{step}`", self.max);
            return Err(self.wrong(part, example));
        } else {
            let only = self.number(part, base)?;
            (only, only)
        };
        if first > last {
            return Err(self.wrong(part, "a range goes upwards"));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
        Ok((first..=last).step_by(step).collect())
    }

    fn step(&self, part: &str, text: &str) -> Result<u32, CronError> {
        match digits(text) {
            Some(step) if step >= 1 && step <= self.max => Ok(step),
            Some(_) | None => Err(self.wrong(part, format!("a step is a number from 1 to {}", self.max))),
        }
    }

    fn number(&self, part: &str, text: &str) -> Result<u32, CronError> {
        let named = self.names.iter().zip(self.min..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        match (digits(text), named) {
            (Some(number), _) if number >= self.min && number <= self.max => Ok(number),
            (_, Some((_, number))) => Ok(number),
            (_, None) if self.names.is_empty() => {
                Err(self.wrong(part, format!("a number from {} to {} is needed", self.min, self.max)))
            }
            (_, None) => Err(self.wrong(
                part,
                format!("a number from {} to {} or the first three letters of a name is needed", self.min, self.max),
            )),
        }
    }
}

/// At most four plain digits.
fn digits(text: &str) -> Option<u32> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// A crontab expression that can come true.
#[derive(Debug, Clone)]
pub struct Crontab {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: BTreeSet<u32>,
    months: BTreeSet<u32>,
    /// 1 = Sunday, as the crate counts.
    weekdays: BTreeSet<u32>,
    /// Whether one of the two day fields begins with `*`: then both must match, otherwise one is enough.
    is_day_open: bool,
    is_frequent: bool,
}

/// Reads a five-field crontab expression.
///
/// Numbers, `*`, lists, ranges and steps on `*` or a range; three-letter names of months and
/// weekdays; weekday 0 and 7 are Sunday. No shorthands (`@daily`), no seconds, no years.
///
/// # Errors
/// [`CronError`] names the field and the rule; also when no date ever matches (30 February).
///
/// Source: crontab(5); ruling 25.
pub fn parse(cron: &str) -> Result<Crontab, CronError> {
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(CronError::Fields { text: cron.to_owned(), found: fields.len() });
    };
    for (field, text) in [(&MINUTE, minute), (&HOUR, hour), (&DAY, day), (&MONTH, month)] {
        field.numbers(text)?;
    }
    let weekdays = weekday_names(weekday)?;
    let schedule = Schedule::from_str(&format!("0 {minute} {hour} {day} {month} {weekdays}")).map_err(|error| {
        CronError::Field { field: "cron expression", part: cron.to_owned(), rule: error.to_string() }
    })?;
    let crontab = Crontab {
        minutes: schedule.minutes().iter().filter_map(|minute| i8::try_from(minute).ok()).collect(),
        hours: schedule.hours().iter().filter_map(|hour| i8::try_from(hour).ok()).collect(),
        days: schedule.days_of_month().iter().collect(),
        months: schedule.months().iter().collect(),
        weekdays: schedule.days_of_week().iter().collect(),
        is_day_open: day.starts_with('*') || weekday.starts_with('*'),
        is_frequent: minute.starts_with('*') || hour.starts_with('*'),
    };
    if crontab.comes() { Ok(crontab) } else { Err(CronError::Never(cron.to_owned())) }
}

/// The weekday field as a list of names: the crate counts from 1, crontab from 0.
fn weekday_names(text: &str) -> Result<String, CronError> {
    let numbers: BTreeSet<u32> = WEEKDAY.numbers(text)?.into_iter().map(|number| number % 7).collect();
    let names: Vec<&str> =
        numbers.into_iter().filter_map(|number| WEEKDAYS.get(usize::try_from(number).ok()?).copied()).collect();
    Ok(names.join(","))
}

impl Crontab {
    /// Says whether it fires at some time of this day.
    #[must_use]
    pub fn matches(&self, date: Date) -> bool {
        let number = |value: i8| u32::try_from(value).unwrap_or(0);
        let is_day = self.days.contains(&number(date.day()));
        let is_weekday = self.weekdays.contains(&(number(date.weekday().to_sunday_zero_offset()) + 1));
        let is_either = if self.is_day_open { is_day && is_weekday } else { is_day || is_weekday };
        self.months.contains(&number(date.month())) && is_either
    }

    /// The times of a matching day, in order, as hour and minute.
    pub fn times(&self) -> impl Iterator<Item = (i8, i8)> + '_ {
        self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)))
    }

    /// Says whether it fires every hour or every few minutes: then a change of the clock neither
    /// moves nor saves a firing.
    ///
    /// Source: cron(8), 'Daylight Saving Time and other time changes'.
    #[must_use]
    pub fn is_frequent(&self) -> bool {
        self.is_frequent
    }

    /// Within 28 years every date of a leap year falls on every weekday.
    fn comes(&self) -> bool {
        let first = Date::constant(2000, 1, 1);
        first.series(jiff::Span::new().days(1)).take(28 * 366).any(|date| self.matches(date))
    }
}

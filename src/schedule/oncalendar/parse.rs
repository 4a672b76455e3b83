//! Which texts are expressions, and where the others go wrong.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::error::{ParseError, Problem};
use super::normalise::normalise;
use super::reader::{Reader, Refusal};
use super::zone::{self, Zone};
use super::{OnCalendar, SECOND, Span};

/// The most elements of one field: systemd's limit.
const MAX_ELEMENTS: usize = 241;
/// The last second that the year 2199 has, and a little more: later ones are refused anyway.
const MAX_EPOCH_SECOND: i64 = 7_258_204_800;
const NUMBER: &str = "a number or `*`";
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "mon"),
    ("tuesday", "tue"),
    ("wednesday", "wed"),
    ("thursday", "thu"),
    ("friday", "fri"),
    ("saturday", "sat"),
    ("sunday", "sun"),
];

/// Reads a whole expression.
pub(super) fn expression(text: &str, local: Option<&TimeZone>) -> Result<OnCalendar, ParseError> {
    let (body, zone) = zone::split(text, local);
    read(body, zone).map_err(|refusal| {
        let (byte, problem) = last_word(body).unwrap_or(refusal);
        ParseError { expression: text.to_owned(), byte, problem }
    })
}

/// What is wrong where only the last word is, such as a time zone that nobody knows.
fn last_word(body: &str) -> Option<Refusal> {
    let (rest, word) = body.rsplit_once(' ')?;
    let spec = read(rest, Zone::Local).ok()?;
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Some((rest.len() + 1, Problem::UnknownZone { zone: word.to_owned() }));
    }
    let has_time = spec.date_and_time.iter().any(|spans| !spans.is_empty()) || rest.contains(':');
    (has_time && word.is_empty()).then_some((rest.len(), Problem::Trailing))
}

fn read(body: &str, zone: Zone) -> Result<OnCalendar, Refusal> {
    if body.is_empty() {
        return Err((0, Problem::Empty));
    }
    if body.starts_with(' ') {
        let problem = if body.trim_start().is_empty() { Problem::Empty } else { Problem::LeadingBlank };
        return Err((0, problem));
    }
    let mut spec = OnCalendar {
        weekdays: 0,
        date_and_time: Default::default(),
        microseconds: Vec::new(),
        days_from_month_end: false,
        zone,
    };
    if !shorthand(&mut spec, body) {
        let mut reader = Reader { text: body.as_bytes(), at: 0 };
        spec.weekdays = reader.weekdays()?;
        if reader.peek() == Some(b'@') {
            reader.epoch(&mut spec)?;
        } else {
            reader.date(&mut spec)?;
            reader.time(&mut spec)?;
        }
        if reader.at < body.len() {
            return Err((reader.at, Problem::Trailing));
        }
    }
    normalise(spec)
}

/// A list of single values.
fn values<const N: usize>(list: [i32; N]) -> Vec<Span> {
    list.map(|start| Span { start, stop: None, repeat: 0, at: 0 }).to_vec()
}

/// Fills in a word such as `daily`, in any letter case; says whether the text is one.
fn shorthand(spec: &mut OnCalendar, body: &str) -> bool {
    let (months, days) = match body.to_ascii_lowercase().as_str() {
        "minutely" | "hourly" | "daily" => (vec![], vec![]),
        "weekly" => {
            spec.weekdays = 1;
            (vec![], vec![])
        }
        "monthly" => (vec![], values([1])),
        "quarterly" => (values([1, 4, 7, 10]), values([1])),
        "biannually" | "bi-annually" | "semiannually" | "semi-annually" => (values([1, 7]), values([1])),
        // The second spelling is an old mistake that is still understood.
        "annually" | "anually" | "yearly" => (values([1]), values([1])),
        _ => return false,
    };
    let is = |word: &str| body.eq_ignore_ascii_case(word);
    let hours = if is("minutely") || is("hourly") { vec![] } else { values([0]) };
    let minutes = if is("minutely") { vec![] } else { values([0]) };
    spec.date_and_time = [vec![], months, days, hours, minutes];
    spec.microseconds = values([0]);
    true
}

impl Reader<'_> {
    /// The weekday that starts here and the length of its name.
    fn weekday(&self) -> Option<(usize, usize)> {
        let starts =
            |name: &str| self.rest().get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let find = |(day, (long, short)): (usize, &(&str, &str))| {
            [long, short].into_iter().find(|name| starts(name)).map(|name| (day, name.len()))
        };
        WEEKDAYS.iter().enumerate().find_map(find)
    }

    /// Reads weekdays and the blanks after them; 0 if the expression begins otherwise.
    fn weekdays(&mut self) -> Result<u8, Refusal> {
        let mut bits = 0;
        let mut range_start = None;
        while let Some((day, length)) = self.weekday() {
            if range_start.is_some_and(|first| first > day) {
                return self.refuse(Problem::WeekdayRange);
            }
            self.at += length;
            bits |= (range_start.unwrap_or(day)..=day).fold(0, |bits, day| bits | (1 << day));
            match self.peek() {
                None | Some(b' ') => {
                    self.skip_blanks();
                    return Ok(bits);
                }
                Some(b',') => {
                    self.at += 1;
                    range_start = None;
                }
                Some(b'.' | b'-') => {
                    if range_start.is_some() || !(self.take(b'-') || self.take_dots()) {
                        return self.refuse(Problem::WeekdayRange);
                    }
                    range_start = Some(day);
                }
                Some(_) => return self.refuse(Problem::WeekdayEnd),
            }
            if self.is_at_end_or_blank() {
                if range_start.is_some() {
                    return self.refuse(Problem::WeekdayRange);
                }
                self.skip_blanks();
                return Ok(bits);
            }
        }
        if bits == 0 { Ok(0) } else { self.expected("a weekday") }
    }

    /// Reads `@` and seconds since the epoch.
    fn epoch(&mut self, spec: &mut OnCalendar) -> Result<(), Refusal> {
        let at = self.at;
        self.at += 1;
        while self.peek().is_some_and(|byte| byte == b' ' || (b'\t'..=b'\r').contains(&byte)) {
            self.at += 1;
        }
        // As strtoul(3) reads it: a sign is taken, and a negative number wraps around.
        let is_negative = self.take(b'-');
        if !is_negative {
            self.take(b'+');
        }
        let number = self.digits("seconds since the epoch")?;
        let Some(number) = number else {
            return Err((at, Problem::TooLarge));
        };
        let second = if is_negative { number.wrapping_neg() } else { number };
        let second = i64::try_from(second).ok().filter(|second| *second <= MAX_EPOCH_SECOND);
        let moment = second.and_then(|second| Timestamp::from_second(second).ok());
        let Some(moment) = moment else {
            return Err((at, Problem::TooLarge));
        };
        let moment = Offset::UTC.to_datetime(moment);
        let value = |start: i32| vec![Span { start, stop: None, repeat: 0, at }];
        spec.date_and_time = [
            value(i32::from(moment.year())),
            value(i32::from(moment.month())),
            value(i32::from(moment.day())),
            value(i32::from(moment.hour())),
            value(i32::from(moment.minute())),
        ];
        spec.microseconds = value(i32::from(moment.second()) * SECOND);
        spec.zone = Zone::Utc;
        Ok(())
    }

    /// Reads `[[YEAR-]MONTH-DAY]` and the blanks after it; a time is left alone.
    fn date(&mut self, spec: &mut OnCalendar) -> Result<(), Refusal> {
        let start = self.at;
        if self.peek().is_none() {
            return Ok(());
        }
        let first = self.chain(1)?;
        if matches!(self.peek(), None | Some(b':')) {
            self.at = start;
            return Ok(());
        }
        spec.days_from_month_end = self.date_separator()?;
        let second = self.chain(1)?;
        if self.is_at_end_or_blank() {
            spec.date_and_time[1] = first;
            spec.date_and_time[2] = second;
        } else {
            if spec.days_from_month_end {
                return self.refuse(Problem::MonthEnd);
            }
            spec.days_from_month_end = self.date_separator()?;
            let third = self.chain(1)?;
            if !self.is_at_end_or_blank() {
                return self.expected("a blank or the end after the date");
            }
            let [year, month, day, ..] = &mut spec.date_and_time;
            (*year, *month, *day) = (first, second, third);
        }
        self.skip_blanks();
        Ok(())
    }

    /// Takes `-` or `~`; says whether it was the latter.
    fn date_separator(&mut self) -> Result<bool, Refusal> {
        if self.take(b'~') {
            return Ok(true);
        }
        if self.take(b'-') { Ok(false) } else { self.expected("`-`, `~` or `:`") }
    }

    /// Reads `HOUR:MINUTE[:SECOND]`; nothing at all is midnight.
    fn time(&mut self, spec: &mut OnCalendar) -> Result<(), Refusal> {
        let (mut hours, mut minutes, mut seconds) = (values([0]), values([0]), values([0]));
        if self.peek().is_some() {
            hours = self.chain(1)?;
            if !self.take(b':') {
                return self.expected("`:` and minutes");
            }
            minutes = self.chain(1)?;
            if self.peek().is_some() {
                if !self.take(b':') {
                    return self.expected("`:` and seconds, or the end");
                }
                seconds = self.chain(SECOND)?;
            }
        }
        let [.., hour, minute] = &mut spec.date_and_time;
        (*hour, *minute) = (hours, minutes);
        spec.microseconds = seconds;
        Ok(())
    }

    /// Reads one field in multiples of `unit`: `*`, or elements with `,` between.
    fn chain(&mut self, unit: i32) -> Result<Vec<Span>, Refusal> {
        let at = self.at;
        if self.take(b'*') {
            let every_second = Span { start: 0, stop: None, repeat: SECOND, at };
            return Ok(if unit == SECOND { vec![every_second] } else { vec![] });
        }
        let mut spans = Vec::new();
        loop {
            if spans.len() >= MAX_ELEMENTS {
                return self.refuse(Problem::TooMany { most: MAX_ELEMENTS });
            }
            spans.push(self.span(unit)?);
            if !self.take(b',') {
                return Ok(spans);
            }
        }
    }

    /// Reads one element: `A`, `A..B`, `A/N` or `A..B/N`.
    fn span(&mut self, unit: i32) -> Result<Span, Refusal> {
        let at = self.at;
        let start = self.number(unit, NUMBER)?;
        let mut span = Span { start, stop: None, repeat: 0, at };
        if self.take_dots() {
            span.stop = Some(self.number(unit, "the end of the range")?);
            span.repeat = unit;
        }
        if self.take(b'/') {
            let step_at = self.at;
            span.repeat = self.number(unit, "a step")?;
            if span.repeat == 0 {
                return Err((step_at, Problem::ZeroStep));
            }
        } else if let (SECOND, Some(stop)) = (unit, span.stop)
            && start.checked_add(SECOND).is_none_or(|second| second > stop)
        {
            // Below one second only a written step says what a range holds.
            return Err((at, Problem::NeverRepeats { field: "seconds", from: 0, to: 59 }));
        }
        match self.peek() {
            None | Some(b' ' | b',' | b'-' | b'~' | b':') => Ok(span),
            Some(_) => self.expected("the end of the number"),
        }
    }
}

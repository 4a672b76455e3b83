//! systemd's calendar events: `OnCalendar=` expressions, their normal form and their elapses.
//!
//! The authority is `systemd-analyze calendar` of systemd 252 and systemd.time(7), "Calendar
//! Events"; what that version accepts is accepted here, what it refuses is refused, and its
//! oddities are kept (see [`OnCalendar::parse`]). It refuses to know the present time: every
//! question is about a given instant.
//!
//! | file | what it decides |
//! |---|---|
//! | `parse` | which texts are expressions, and where the others go wrong |
//! | `reader` | what a character or a number is |
//! | `zone` | which zone an expression names |
//! | `normalise` | the canonical form, the limits of each field, and how it is written |
//! | `wall` | which instant a wall clock reading stands for |
//! | `elapse` | the next instant that matches |

mod elapse;
mod error;
mod normalise;
mod parse;
mod reader;
#[cfg(test)]
mod tests;
pub(super) mod wall;
pub(super) mod zone;

pub use elapse::ElapseError;
pub use error::{ParseError, Problem};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use zone::Zone;

/// The earliest year an expression may name.
const FIRST_YEAR: i32 = 1970;
/// The last year an expression may name and the search looks at, so that it ends: systemd's bound.
const LAST_YEAR: i32 = 2199;
/// Microseconds in a second: the unit of the seconds field.
const SECOND: i32 = 1_000_000;

/// One element of a field: a value, a range or a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// The first value; microseconds in the seconds field.
    start: i32,
    /// The last value, where the element is a range.
    stop: Option<i32>,
    /// The distance between values; 0 where there is only one.
    repeat: i32,
    /// Where the element stands in the expression, in bytes; for messages only.
    at: usize,
}

impl Span {
    /// What elements are sorted and compared by: all but their place.
    fn key(&self) -> (i32, Option<i32>, i32) {
        (self.start, self.stop, self.repeat)
    }
}

/// A calendar expression that was understood, in its normal form.
///
/// [`Display`](std::fmt::Display) writes the normal form, which parses to an equal value in the
/// same local zone.
#[derive(Debug, Clone)]
pub struct OnCalendar {
    /// Bit 0 is Monday, bit 6 Sunday; 0 means any day.
    weekdays: u8,
    /// Years, months, days, hours and minutes; an empty list means any value.
    date_and_time: [Vec<Span>; 5],
    /// Microseconds within the minute; never empty.
    microseconds: Vec<Span>,
    /// Days count from the end of the month (`~`).
    days_from_month_end: bool,
    zone: Zone,
}

impl OnCalendar {
    /// Reads an expression such as `Mon..Fri 09:00`, `*-*-* 0/4:00:00 Europe/Berlin` or `daily`.
    ///
    /// What may surprise is systemd 252's: blanks around the expression are refused except after
    /// a weekday or a date, weekday ranges may not wrap, and a day counted from the end of the
    /// month goes up to 28 (each further one in a list up to 3 less). Zones are names of the time
    /// zone database in its own letter case, or `UTC` in any. The copies below
    /// `right/`, whose clocks count leap seconds, are refused.
    ///
    /// # Errors
    /// [`ParseError`] with the place and the reason. No text panics.
    ///
    /// Source: systemd.time(7), "Calendar Events".
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::expression(text, None)
    }

    /// Reads an expression as [`OnCalendar::parse`] does, where the abbreviations of the local
    /// zone (such as `CET` and `CEST`) may stand for a zone, too.
    ///
    /// # Errors
    /// [`ParseError`] with the place and the reason.
    pub fn parse_in(text: &str, local: &TimeZone) -> Result<Self, ParseError> {
        parse::expression(text, Some(local))
    }

    /// Returns the first instant after `after` that matches, in UTC, to the microsecond; `None`
    /// if none does before the year 2200, as for 30 February.
    ///
    /// `local` is the zone of expressions that name none. A wall clock reading that a change to
    /// summer time skips does not elapse on that day; one that occurs twice elapses once. An
    /// `after` before 1970 counts as 1970.
    ///
    /// # Errors
    /// [`ElapseError`] if the bounded search comes to no answer.
    pub fn next_after(&self, after: Timestamp, local: &TimeZone) -> Result<Option<Timestamp>, ElapseError> {
        elapse::next_after(self, after, local)
    }
}

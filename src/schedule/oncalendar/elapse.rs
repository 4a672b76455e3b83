//! The next instant that matches an expression.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::wall::{DAY, FLOOR, HOUR, MINUTE, MONTH, SECOND, Wall, WallClock, YEAR};
use super::zone::Zone;
use super::{LAST_YEAR, OnCalendar, Span};

/// How many steps one search may take; systemd gives up after as many.
const MAX_STEPS: usize = 1000;
/// How many searches are made in a row, where systemd would give up after the first.
///
/// A search that ends at its bound goes on where it stopped or, if it went in circles, after the
/// zone's next change of the clock; there are two of those a year up to [`LAST_YEAR`].
const MAX_SEARCHES: usize = 512;
/// What a search that only ran into its bound has passed at least, in microseconds: 40 days.
const PROGRESS_MICROSECONDS: i64 = 40 * 86_400 * SECOND_MICROSECONDS;
/// Microseconds in a second.
const SECOND_MICROSECONDS: i64 = 1_000_000;

/// Why the next elapse could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElapseError {
    /// The search reached its bound. No expression is known that does.
    #[error("the next elapse of `{expression}` after {after} was not found within the search's bound")]
    Unsettled {
        /// The normal form of the expression.
        expression: String,
        /// The instant after which it was looked for.
        after: Timestamp,
    },
}

/// How one search ended.
enum Search {
    /// Seconds and microseconds since the epoch.
    Found(i64, i64),
    Never,
    /// At its bound, here.
    Unsettled(Wall),
}

/// How a reading fits the calendar and the zone.
enum Fit {
    /// It exists.
    Exact,
    /// It does not, but this later one does.
    Later(Wall),
    /// It does not, and there is nothing to go on with.
    Outside,
}

/// See [`OnCalendar::next_after`].
pub(super) fn next_after(
    spec: &OnCalendar,
    after: Timestamp,
    local: &TimeZone,
) -> Result<Option<Timestamp>, ElapseError> {
    let (zone, is_summer) = match &spec.zone {
        Zone::Local => (Some(local), None),
        Zone::Utc => (None, None),
        Zone::Named { zone, .. } => (Some(zone), None),
        Zone::Abbreviated { is_summer, .. } => (Some(local), Some(*is_summer)),
    };
    let after_microsecond = floor_microsecond(after).max(-1);
    let mut from = after_microsecond;
    for _ in 0..MAX_SEARCHES {
        let mut finder = Finder { spec, clock: WallClock::new(zone), is_summer };
        from = match finder.search(from + 1) {
            Search::Never => return Ok(None),
            Search::Found(second, microsecond) => {
                let found = second * SECOND_MICROSECONDS + microsecond;
                if found > after_microsecond {
                    return Ok(Timestamp::from_microsecond(found).ok());
                }
                // The first pass of an hour whose second pass `after` lies in: it was then.
                next_minute(from)
            }
            Search::Unsettled(wall) => match finder.beyond(from, &wall) {
                Some(further) => further,
                None => break,
            },
        };
    }
    Err(ElapseError::Unsettled { expression: spec.to_string(), after })
}

/// The microsecond since the epoch that an instant lies in.
fn floor_microsecond(instant: Timestamp) -> i64 {
    let microsecond = instant.as_microsecond();
    let is_below_zero = instant.subsec_nanosecond() % 1000 < 0;
    if is_below_zero { microsecond - 1 } else { microsecond }
}

/// The last microsecond of a minute. Changes of the clock begin and end with whole ones.
const fn next_minute(microsecond: i64) -> i64 {
    let minute = 60 * SECOND_MICROSECONDS;
    ((microsecond + 1).div_euclid(minute) + 1) * minute - 1
}

/// One search for one expression.
struct Finder<'s> {
    spec: &'s OnCalendar,
    clock: WallClock<'s>,
    /// Whether readings are meant as summer time.
    is_summer: Option<bool>,
}

impl Finder<'_> {
    /// Looks for the first match at or after a microsecond since the epoch.
    ///
    /// Goes through the parts of the reading from the year down. A part that does not match
    /// moves on to the next value that does; if there is none, the part above goes on by one.
    /// Whenever that may have made a reading that does not exist, it starts over from the year.
    /// A clock that was turned back can lead to a reading before the first; then the search goes
    /// on an hour later, in the kind of time that is found there.
    fn search(&mut self, from: i64) -> Search {
        let (second, mut microsecond) = (from.div_euclid(SECOND_MICROSECONDS), from.rem_euclid(SECOND_MICROSECONDS));
        let Some(mut wall) = self.clock.read(second) else {
            return Search::Never;
        };
        let start = (wall.parts, microsecond);
        let mut was_turned_back = false;
        let mut checkpoint = None;
        'steps: for step in 0..MAX_STEPS {
            if let Some((_, reading)) = self.clock.resolve(&wall) {
                wall = reading;
            }
            if !was_turned_back {
                wall.is_summer = self.is_summer;
            }
            // The same state again means a circle, which its bound would only end later.
            let state = Some((wall, microsecond, was_turned_back, self.clock.correction()));
            if state == checkpoint {
                break;
            }
            if step.is_power_of_two() {
                checkpoint = state;
            }
            for part in [YEAR, MONTH, DAY, HOUR, MINUTE, SECOND] {
                match self.settle(part, &mut wall, &mut microsecond) {
                    Fit::Exact => {}
                    Fit::Later(_) | Fit::Outside if part == YEAR => return Search::Never,
                    Fit::Later(later) => {
                        wall = later;
                        continue 'steps;
                    }
                    Fit::Outside => {
                        carry(part - 1, &mut wall, &mut microsecond);
                        continue 'steps;
                    }
                }
                if part == DAY && !self.is_on_weekday(&wall) {
                    carry(DAY, &mut wall, &mut microsecond);
                    continue 'steps;
                }
            }
            if (wall.parts, microsecond) < start {
                wall.parts[HOUR] += 1;
                was_turned_back = true;
                continue;
            }
            return match self.clock.resolve(&wall) {
                Some((second, _)) => Search::Found(second, microsecond),
                None => Search::Never,
            };
        }
        Search::Unsettled(wall)
    }

    /// Moves one part of a reading to its next match, and says whether the reading exists then.
    fn settle(&mut self, part: usize, wall: &mut Wall, microsecond: &mut i64) -> Fit {
        let value = wall.parts[part];
        if part == SECOND {
            let Some(next) = self.next_value(part, value * SECOND_MICROSECONDS + *microsecond, wall) else {
                return Fit::Outside;
            };
            wall.parts[part] = next / SECOND_MICROSECONDS;
            *microsecond = next % SECOND_MICROSECONDS;
        } else {
            let Some(next) = self.next_value(part, value, wall) else {
                return Fit::Outside;
            };
            if next != value {
                wall.parts[part] = next;
                wall.reset_below(part);
                *microsecond = 0;
            }
        }
        self.fit(wall)
    }

    /// The least value of a part that matches and is not below `value`.
    fn next_value(&mut self, part: usize, value: i64, wall: &Wall) -> Option<i64> {
        let spec = self.spec;
        let spans = spec.date_and_time.get(part).unwrap_or(&spec.microseconds);
        if spans.is_empty() {
            return Some(value);
        }
        let is_from_end = part == DAY && spec.days_from_month_end;
        let candidates = spans.iter().filter_map(|span| {
            let (start, stop) = if is_from_end { self.nth_last(span, wall) } else { ends(span) };
            next_in_span(start, stop, i64::from(span.repeat), value)
        });
        candidates.min()
    }

    /// The days of this month that an element means that counts from the month's end.
    ///
    /// An element without an end asks the clock all the same, about the 2nd of the next month:
    /// systemd does, and the offset that the clock remembers from it decides which pass of a
    /// repeated hour comes next.
    fn nth_last(&mut self, span: &Span, wall: &Wall) -> (i64, Option<i64>) {
        let (nearest_end, farthest) = ends(span);
        let last = self.day_from_end(nearest_end, wall);
        let first = self.day_from_end(farthest.unwrap_or(-1), wall);
        if farthest.is_some() { (first, Some(last)) } else { (last, None) }
    }

    /// The day that is the `nth` last of the month.
    fn day_from_end(&mut self, nth: i64, wall: &Wall) -> i64 {
        let mut day = *wall;
        day.parts[MONTH] += 1;
        day.parts[DAY] = 1 - nth;
        self.clock.resolve(&day).map_or(-1, |(_, day)| day.parts[DAY])
    }

    /// Says whether a reading exists.
    fn fit(&mut self, wall: &Wall) -> Fit {
        if wall.parts[YEAR] > i64::from(LAST_YEAR) {
            return Fit::Outside;
        }
        let Some((_, mut reading)) = self.clock.resolve(wall) else {
            return Fit::Outside;
        };
        let Some(part) = (YEAR..=SECOND).find(|part| reading.parts[*part] != wall.parts[*part]) else {
            return Fit::Exact;
        };
        if reading.parts[part] < wall.parts[part] {
            return Fit::Outside;
        }
        // What carried over begins anew below: 33 March must not skip 1 April.
        if let (Some(below), Some(floor)) = (reading.parts.get_mut(part + 1), FLOOR.get(part + 1)) {
            *below = *floor;
        }
        Fit::Later(reading)
    }

    fn is_on_weekday(&mut self, wall: &Wall) -> bool {
        if self.spec.weekdays == 0 {
            return true;
        }
        let Some((_, day)) = self.clock.resolve(wall) else {
            return false;
        };
        self.spec.weekdays & (1 << day.weekday()) != 0
    }

    /// Where to go on after a search that reached its bound: further than it began.
    ///
    /// If it made no progress it circled in a gap that a change of the clock left, so the next
    /// search begins with that change.
    fn beyond(&mut self, from: i64, wall: &Wall) -> Option<i64> {
        let reached = self.clock.resolve(wall).map_or(0, |(second, _)| second * SECOND_MICROSECONDS - 1);
        if reached > from + PROGRESS_MICROSECONDS {
            return Some(reached);
        }
        let change = self.clock.next_change(reached.max(from).div_euclid(SECOND_MICROSECONDS))?;
        Some(change * SECOND_MICROSECONDS - 1)
    }
}

/// Goes on by one in a part and begins anew below it.
fn carry(part: usize, wall: &mut Wall, microsecond: &mut i64) {
    wall.parts[part] += 1;
    wall.reset_below(part);
    *microsecond = 0;
}

/// The first and the last value of an element.
fn ends(span: &Span) -> (i64, Option<i64>) {
    (i64::from(span.start), span.stop.map(i64::from))
}

/// The least value of an element that is not below `value`.
///
/// A step without an end goes on past the field's greatest value, and then carries over.
fn next_in_span(start: i64, stop: Option<i64>, repeat: i64, value: i64) -> Option<i64> {
    if start >= value {
        return Some(start);
    }
    if repeat == 0 {
        return None;
    }
    let steps = (value - start + repeat - 1) / repeat;
    let next = start + repeat * steps;
    stop.is_none_or(|stop| next <= stop).then_some(next)
}

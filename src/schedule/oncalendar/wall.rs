//! Which instant a wall clock reading stands for.
//!
//! Readings that a change of the clock skips or repeats have no one answer, and systemd leaves
//! the choice to mktime(3) of the GNU C library, which begins with the offset that its last
//! answer had and corrects itself. The same search is made here, in arithmetic of our own, since
//! which of two passes of an hour elapses follows from it.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// How often a guess is corrected: what mktime(3) grants itself.
const MAX_CORRECTIONS: usize = 6;
/// How far apart the neighbours are that are asked for the other kind of time: 6.96 days.
const NEIGHBOUR_SECONDS: i64 = 601_200;
/// How far away they are looked for: half of the longest time a zone kept one kind of time.
const MAX_NEIGHBOUR_SECONDS: i64 = 536_454_000 / 2 + NEIGHBOUR_SECONDS;
const DAY_SECONDS: i64 = 86_400;

/// The parts of a reading, from the largest to the smallest.
pub(in crate::schedule) const YEAR: usize = 0;
pub(in crate::schedule) const MONTH: usize = 1;
pub(in crate::schedule) const DAY: usize = 2;
pub(in crate::schedule) const HOUR: usize = 3;
pub(in crate::schedule) const MINUTE: usize = 4;
pub(in crate::schedule) const SECOND: usize = 5;
/// The least value of each part.
pub(in crate::schedule) const FLOOR: [i64; 6] = [0, 1, 1, 0, 0, 0];

/// A reading of a wall clock; parts may lie outside their usual range and then carry over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::schedule) struct Wall {
    pub(in crate::schedule) parts: [i64; 6],
    /// Whether it is meant as summer time; `None` leaves that open.
    pub(in crate::schedule) is_summer: Option<bool>,
}

impl Wall {
    /// The reading of a clock that shows UTC, `second` seconds since the epoch.
    fn of_utc(second: i64, is_summer: bool) -> Option<Self> {
        let reading = Offset::UTC.to_datetime(Timestamp::from_second(second).ok()?);
        let parts = [
            i64::from(reading.year()),
            i64::from(reading.month()),
            i64::from(reading.day()),
            i64::from(reading.hour()),
            i64::from(reading.minute()),
            i64::from(reading.second()),
        ];
        Some(Self { parts, is_summer: Some(is_summer) })
    }

    /// Sets every part below `part` to its least value.
    pub(in crate::schedule) fn reset_below(&mut self, part: usize) {
        for (value, floor) in self.parts.iter_mut().zip(FLOOR).skip(part + 1) {
            *value = floor;
        }
    }

    /// The weekday of the day: 0 is Monday, 6 Sunday.
    pub(in crate::schedule) fn weekday(&self) -> i64 {
        // The epoch was a Thursday.
        (self.as_utc().div_euclid(DAY_SECONDS) + 3).rem_euclid(7)
    }

    /// Seconds since the epoch if this were UTC; parts out of range carry over.
    fn as_utc(&self) -> i64 {
        let [year, month, day, hour, minute, second] = self.parts;
        let year = year + (month - 1).div_euclid(12);
        let month = (month - 1).rem_euclid(12) + 1;
        let days = days_before(year, month) + day - 1;
        days * DAY_SECONDS + hour * 3600 + minute * 60 + second
    }
}

/// Days from the epoch to the first of a month of the Gregorian calendar.
///
/// Counted in years that begin in March, so that the leap day comes last.
fn days_before(year: i64, month: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 153 days in every five months from March; 719468 days from 1 March 0 to the epoch.
    year * 365 + leap_days + (153 * month + 2) / 5 - 719_468
}

/// A wall clock in one zone, which remembers how far from UTC it last was.
pub(in crate::schedule) struct WallClock<'z> {
    /// `None` is UTC.
    zone: Option<&'z TimeZone>,
    /// UTC less wall clock of the last answer, in seconds.
    correction: i64,
}

impl<'z> WallClock<'z> {
    pub(in crate::schedule) const fn new(zone: Option<&'z TimeZone>) -> Self {
        Self { zone, correction: 0 }
    }

    /// UTC less wall clock of the last answer, in seconds: all that the clock remembers.
    pub(in crate::schedule) const fn correction(&self) -> i64 {
        self.correction
    }

    /// What the clock shows, `second` seconds since the epoch.
    pub(in crate::schedule) fn read(&self, second: i64) -> Option<Wall> {
        let Some(zone) = self.zone else {
            return Wall::of_utc(second, false);
        };
        let info = zone.to_offset_info(Timestamp::from_second(second).ok()?);
        Wall::of_utc(second + i64::from(info.offset().seconds()), info.dst().is_dst())
    }

    /// The instant of a reading, in seconds since the epoch, and the reading in its usual range.
    ///
    /// `None` before 1970 and where no instant is found.
    pub(in crate::schedule) fn resolve(&mut self, wall: &Wall) -> Option<(i64, Wall)> {
        let wanted = wall.as_utc();
        if self.zone.is_none() {
            let reading = Wall::of_utc(wanted, false)?;
            return (wanted >= 0).then_some((wanted, reading));
        }
        let (second, reading) = self.search(wanted, wall.is_summer)?;
        self.correction = second - wanted;
        (second >= 0).then_some((second, reading))
    }

    /// When the clock is next changed after `second`, in seconds since the epoch.
    pub(in crate::schedule) fn next_change(&self, second: i64) -> Option<i64> {
        let after = Timestamp::from_second(second).ok()?;
        self.zone?.following(after).next().map(|change| change.timestamp().as_second())
    }

    /// Corrects a guess until the clock shows what is wanted, or until that is known to be skipped.
    fn search(&self, wanted: i64, is_summer: Option<bool>) -> Option<(i64, Wall)> {
        let first = wanted + self.correction;
        let (mut guess, mut last, mut before_last) = (first, first, first);
        let mut last_was_summer = false;
        for _ in 0..MAX_CORRECTIONS {
            let reading = self.read(guess)?;
            let error = wanted - reading.as_utc();
            let shows_summer = reading.is_summer == Some(true);
            if error == 0 {
                let is_other = is_summer.is_some_and(|meant| meant != shows_summer);
                let neighbour = if is_other { self.neighbour(guess, wanted, is_summer) } else { None };
                return neighbour.or(Some((guess, reading)));
            }
            // Back and forth between two answers: the reading was skipped. Of the two the one
            // is taken that differs from what was meant, or else the one in summer time.
            let is_swinging = guess == before_last && guess != last;
            if is_swinging && is_summer.map_or(last_was_summer <= shows_summer, |meant| meant != shows_summer) {
                return Some((guess, reading));
            }
            (before_last, last, guess) = (last, guess, guess + error);
            last_was_summer = shows_summer;
        }
        None
    }

    /// Reads the wanted time with the offset of the nearest moment of the other kind of time.
    fn neighbour(&self, near: i64, wanted: i64, is_summer: Option<bool>) -> Option<(i64, Wall)> {
        let mut distance = NEIGHBOUR_SECONDS;
        while distance < MAX_NEIGHBOUR_SECONDS {
            for moment in [near - distance, near + distance] {
                let reading = self.read(moment)?;
                if reading.is_summer == is_summer {
                    let second = moment + wanted - reading.as_utc();
                    return self.read(second).map(|reading| (second, reading));
                }
            }
            distance += NEIGHBOUR_SECONDS;
        }
        None
    }
}

//! Release windows: may a release start at a given instant, and when does that change.
//!
//! Nothing here waits or knows what time it is.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::model::policy::{WindowEffect, WindowRule};

mod crontab;
#[cfg(test)]
mod tests;

pub use crontab::{CronError, Crontab, parse};

/// Days searched for the next opening: 29 February is eight years away in 2096.
pub const HORIZON_DAYS: usize = 366 * 9;

/// Searches for openings in one question: enough for a year of daily windows, and a bound on what
/// `* * * * *` can cost.
pub const SEARCH_LIMIT: u32 = 1_000;

/// Civil time looked through on both sides of an instant, so that an hour that comes twice is seen
/// twice; cron(8) speaks of changes under three hours too.
const CHANGE_OF_CLOCK: SignedDuration = SignedDuration::from_hours(3);

/// Whether a release may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Whether it may start now.
    pub is_open: bool,
    /// When to ask again: the first instant at which the answer changes, or, if [`SEARCH_LIMIT`]
    /// did not reach that far, one before it. Absent when the answer stays within [`HORIZON_DAYS`].
    pub until: Option<Timestamp>,
    /// The rule that decided, as half a sentence.
    pub why: String,
}

/// Why a rule of `windows` cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The expression is not one.
    #[error("the window `{cron}` cannot be read: {error}")]
    Cron {
        /// The expression.
        cron: String,
        /// What is wrong with it.
        #[source]
        error: CronError,
    },
    /// Nobody knows the zone.
    #[error("the window `{cron}` names the time zone `{time_zone}`, which is not in the zone database")]
    TimeZone {
        /// The expression.
        cron: String,
        /// The zone.
        time_zone: String,
    },
}

/// Says whether a release may start at `now`: inside an allowed window if there is any, and never
/// inside a denied one.
///
/// A window opens when its expression fires, in its own time zone, and stays open for its duration
/// of elapsed time; the end itself is outside. Where the clock is put forward over a firing, the
/// window opens as soon as the gap ends; where it is put back, it opens at the first of the two,
/// except for expressions that fire every hour or more often, which follow the clock on the wall.
///
/// # Errors
/// [`WindowError`] for a rule that cannot be followed; the caller must hold then.
///
/// Source: crontab(5), cron(8); design, section 4, `windows`.
pub fn is_open(rules: &[WindowRule], now: Timestamp) -> Result<Windows, WindowError> {
    let windows = rules.iter().map(Window::new).collect::<Result<Vec<_>, _>>()?;
    let mut search = Search { left: SEARCH_LIMIT };
    let (is_open, why) = judge(&windows, now, &mut search);
    let mut until = None;
    let mut at = now;
    while let Some(next) = windows.iter().filter_map(|window| search.boundary(window, at)).min() {
        until = Some(next);
        let is_same = judge(&windows, next, &mut search).0 == is_open;
        if !is_same || search.left == 0 {
            return Ok(Windows { is_open, until, why });
        }
        until = None;
        at = next;
    }
    Ok(Windows { is_open, until, why })
}

/// A rule, ready to be asked.
struct Window<'a> {
    rule: &'a WindowRule,
    crontab: Crontab,
    zone: TimeZone,
    duration: SignedDuration,
}

impl<'a> Window<'a> {
    fn new(rule: &'a WindowRule) -> Result<Self, WindowError> {
        let crontab = parse(&rule.cron).map_err(|error| WindowError::Cron { cron: rule.cron.clone(), error })?;
        let zone = TimeZone::get(&rule.time_zone)
            .map_err(|_| WindowError::TimeZone { cron: rule.cron.clone(), time_zone: rule.time_zone.clone() })?;
        Ok(Self { rule, crontab, zone, duration: SignedDuration::from_secs(i64::from(rule.duration_seconds)) })
    }

    fn name(&self) -> String {
        format!("`{}` for {} s ({})", self.rule.cron, self.rule.duration_seconds, self.rule.time_zone)
    }

    /// The first opening after `after`, exclusive, within the horizon.
    fn opens_after(&self, after: Timestamp) -> Option<Timestamp> {
        let civil = self.zone.to_datetime(after);
        let from = civil.checked_sub(CHANGE_OF_CLOCK).ok()?;
        let mut best: Option<(Timestamp, DateTime)> = None;
        for date in from.date().series(jiff::Span::new().days(1)).take(HORIZON_DAYS) {
            if best.is_some_and(|(_, limit)| date.at(0, 0, 0, 0) > limit) {
                break;
            }
            if self.crontab.matches(date) {
                self.opens_on(date, (from, after), &mut best);
            }
        }
        best.map(|(opens, _)| opens)
    }

    /// Lowers `best` to the first opening on `date` that is later than `after`. Beside it stands
    /// the civil time up to which an earlier instant could still turn up.
    fn opens_on(&self, date: Date, (from, after): (DateTime, Timestamp), best: &mut Option<(Timestamp, DateTime)>) {
        for (hour, minute) in self.crontab.times() {
            let civil = date.at(hour, minute, 0, 0);
            if civil < from {
                continue;
            }
            if best.is_some_and(|(_, limit)| civil > limit) {
                return;
            }
            for opens in self.instants(civil).into_iter().flatten().filter(|opens| *opens > after) {
                if best.is_none_or(|(first, _)| opens < first) {
                    *best = Some((opens, civil.checked_add(CHANGE_OF_CLOCK).unwrap_or(civil)));
                }
            }
        }
    }

    /// The instants at which the window opens for one civil time: none, one or two.
    fn instants(&self, civil: DateTime) -> [Option<Timestamp>; 2] {
        let ambiguous = self.zone.to_ambiguous_timestamp(civil);
        match (ambiguous.offset(), self.crontab.is_frequent()) {
            (AmbiguousOffset::Unambiguous { .. }, _) => [ambiguous.compatible().ok(), None],
            (AmbiguousOffset::Gap { .. }, true) => [None, None],
            (AmbiguousOffset::Gap { .. }, false) => {
                let before = ambiguous.earlier().ok();
                [before.and_then(|before| Some(self.zone.following(before).next()?.timestamp())), None]
            }
            (AmbiguousOffset::Fold { .. }, is_frequent) => {
                [ambiguous.earlier().ok(), ambiguous.later().ok().filter(|_| is_frequent)]
            }
        }
    }
}

/// Counts what a question costs.
struct Search {
    left: u32,
}

impl Search {
    fn opens_after(&mut self, window: &Window<'_>, after: Timestamp) -> Option<Timestamp> {
        self.left = self.left.saturating_sub(1);
        window.opens_after(after)
    }

    /// The end of the opening that `at` lies in, openings that touch or overlap taken as one.
    fn closes(&mut self, window: &Window<'_>, at: Timestamp) -> Option<Timestamp> {
        let opens = self.opens_after(window, at.checked_sub(window.duration).ok()?)?;
        if opens > at {
            return None;
        }
        let mut closes = opens.checked_add(window.duration).ok()?;
        while self.left > 0 {
            let again = self.opens_after(window, closes.checked_sub(window.duration).ok()?);
            let Some(again) = again.filter(|again| *again <= closes) else {
                break;
            };
            closes = again.checked_add(window.duration).ok()?;
        }
        Some(closes)
    }

    /// The first instant after `at` at which the window opens or closes.
    fn boundary(&mut self, window: &Window<'_>, at: Timestamp) -> Option<Timestamp> {
        match self.closes(window, at) {
            Some(closes) => Some(closes),
            None => self.opens_after(window, at),
        }
    }

    fn is_inside(&mut self, window: &Window<'_>, at: Timestamp) -> bool {
        let opens = at.checked_sub(window.duration).ok().and_then(|from| self.opens_after(window, from));
        opens.is_some_and(|opens| opens <= at)
    }
}

fn judge(windows: &[Window<'_>], at: Timestamp, search: &mut Search) -> (bool, String) {
    let is_denied = |window: &&Window<'_>| matches!(window.rule.effect, WindowEffect::Deny);
    if let Some(window) = windows.iter().filter(is_denied).find(|window| search.is_inside(window, at)) {
        return (false, format!("inside the denied window {}", window.name()));
    }
    let mut allowed = windows.iter().filter(|window| !is_denied(window)).peekable();
    if allowed.peek().is_none() {
        let why = if windows.is_empty() { "no windows are set" } else { "outside every denied window" };
        return (true, why.to_owned());
    }
    match allowed.find(|window| search.is_inside(window, at)) {
        Some(window) => (true, format!("inside the allowed window {}", window.name())),
        None => (false, "outside every allowed window".to_owned()),
    }
}

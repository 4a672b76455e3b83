//! Which zone an expression names: UTC, one of the database, or the local one.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How many changes of the clock rules make in a year.
const CHANGES_A_YEAR: usize = 2;
/// 1 January 2038 in seconds since the epoch: where the changes that a database lists end.
const END_OF_LISTED_CHANGES: i64 = 2_145_916_800;

/// The zone an expression is read in.
#[derive(Debug, Clone)]
pub(in crate::schedule) enum Zone {
    /// None named: the local one.
    Local,
    /// `UTC`, in any letter case.
    Utc,
    /// A name of the time zone database.
    Named { name: String, zone: TimeZone },
    /// The local one, at only one of its two kinds of time.
    Abbreviated { abbreviation: String, is_summer: bool },
}

/// Splits the zone off the end of an expression.
pub(in crate::schedule) fn split<'t>(text: &'t str, local: Option<&TimeZone>) -> (&'t str, Zone) {
    if let Some(rest) = strip_word(text, "UTC") {
        return (rest, Zone::Utc);
    }
    if let Some([winter, summer]) = local.map(abbreviations) {
        for (abbreviation, is_summer) in [(winter, false), (summer, true)] {
            if let Some(rest) = strip_word(text, &abbreviation) {
                return (rest, Zone::Abbreviated { abbreviation, is_summer });
            }
        }
    }
    if let Some((rest, name)) = text.rsplit_once(' ')
        && let Some(zone) = named(name)
    {
        return (rest, Zone::Named { name: name.to_owned(), zone });
    }
    (text, Zone::Local)
}

/// Takes a last word in any letter case, and the one blank before it, off a text.
fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (rest, last) = text.rsplit_once(' ')?;
    (!word.is_empty() && last.eq_ignore_ascii_case(word)).then_some(rest)
}

/// Finds a zone by its name in the database's own letter case.
///
/// The copies below `posix/` are the same zones under another name.
fn named(name: &str) -> Option<TimeZone> {
    let known = name.strip_prefix("posix/").unwrap_or(name);
    let zone = TimeZone::get(known).ok()?;
    (!zone.is_unknown() && zone.iana_name() == Some(known)).then_some(zone)
}

/// The zone's abbreviations of standard and of summer time, as the rules have them that still
/// hold when the listed changes end.
///
/// A zone without summer time has the same word twice, as tzset(3) gives it.
fn abbreviations(zone: &TimeZone) -> [String; 2] {
    let end = Timestamp::from_second(END_OF_LISTED_CHANGES).unwrap_or(Timestamp::MAX);
    let at_end = zone.to_offset_info(end);
    let mut found = [None, None];
    found[usize::from(at_end.dst().is_dst())] = Some(at_end.abbreviation().to_owned());
    for change in zone.following(end).take(CHANGES_A_YEAR) {
        found[usize::from(change.dst().is_dst())] = Some(change.abbreviation().to_owned());
    }
    let [winter, summer] = found;
    let winter = winter.or_else(|| summer.clone()).unwrap_or_default();
    let summer = summer.unwrap_or_else(|| winter.clone());
    [winter, summer]
}

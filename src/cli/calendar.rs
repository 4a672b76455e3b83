//! `trueup calendar`: what a calendar expression means and when it next elapses.
//!
//! It prints what `systemd-analyze calendar` prints, so that either may be asked.

use std::process::ExitCode;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::clock;
use crate::schedule::{ElapseError, OnCalendar, ParseError, parse_instant};

/// A moment far ahead, in seconds since the epoch, for what a zone is like in the end: the
/// Januaries and Julys of 2038.
const FAR_AHEAD: [i64; 2] = [2_145_916_800, 2_161_555_200];

/// Shows the normal form of a calendar expression and when it next elapses.
#[derive(Debug, clap::Args)]
pub(super) struct CalendarArgs {
    /// The expression, for example `Mon..Fri 09:00` or `daily`.
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// Looks for elapses after this time instead of now: RFC 3339, `2026-03-01 00:00 UTC`,
    /// `tomorrow`, `@1800000000`, `+5h`.
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    base_time: Option<String>,
    /// How many elapses to show, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Prints one JSON object with `expr`, `normalized` and `next`.
    #[arg(long)]
    json: bool,
}

/// Answers one `trueup calendar`: 0, 1 if the expression is refused, 2 if the base time is.
pub(super) fn run(args: &CalendarArgs) -> ExitCode {
    let local = TimeZone::system();
    let now = clock::now();
    let base = match args.base_time.as_deref().map(|text| parse_instant(text, now, &local)) {
        None => now,
        Some(Ok(instant)) => instant,
        Some(Err(error)) => {
            eprintln!("error: {error}");
            eprintln!("where: --base-time");
            eprintln!("why:   a base time is RFC 3339 or one of the forms of systemd.time(7)");
            eprintln!("do:    write for example `2026-03-01T00:00:00Z`, `2026-03-01 00:00 UTC` or `tomorrow`");
            return ExitCode::from(2);
        }
    };
    let spec = match OnCalendar::parse_in(&args.expression, &local) {
        Ok(spec) => spec,
        Err(error) => return refuse(args, &explain(&error), &error.to_string()),
    };
    match elapses(&spec, base, &local, args.count) {
        Err(error) => refuse(args, &explain_elapse(&error), &error.to_string()),
        Ok(elapses) if args.json => {
            println!("{}", json(&args.expression, &spec, &elapses));
            ExitCode::SUCCESS
        }
        Ok(elapses) => {
            print!("{}", table(&args.expression, &spec, &elapses, &Reader { now, local }));
            ExitCode::SUCCESS
        }
    }
}

/// Reports an expression without an answer.
fn refuse(args: &CalendarArgs, explanation: &str, error: &str) -> ExitCode {
    eprint!("{explanation}");
    if args.json {
        println!("{}", serde_json::json!({ "expr": args.expression, "error": error }));
    }
    ExitCode::FAILURE
}

/// What, where, why, and what to do.
fn explain(error: &ParseError) -> String {
    format!(
        "error: {error}\nwhere: character {} of the expression\nwhy:   {}\ndo:    {}\n",
        error.character(),
        error.problem().why(),
        error.problem().advice(),
    )
}

fn explain_elapse(error: &ElapseError) -> String {
    format!(
        "error: {error}\nwhere: the whole expression\nwhy:   searches are bounded, so that none runs for ever\n\
         do:    write the dates and times in simpler terms\n"
    )
}

/// The next `count` elapses; fewer if there are no more.
fn elapses(spec: &OnCalendar, base: Timestamp, local: &TimeZone, count: u32) -> Result<Vec<Timestamp>, ElapseError> {
    let mut found = Vec::new();
    let mut after = base;
    for _ in 0..count {
        let Some(next) = spec.next_after(after, local)? else {
            break;
        };
        found.push(next);
        after = next;
    }
    Ok(found)
}

/// The answer as one JSON object; elapses are in UTC and whole seconds, fractions cut off.
fn json(expression: &str, spec: &OnCalendar, elapses: &[Timestamp]) -> serde_json::Value {
    let next: Vec<String> = elapses.iter().map(|next| next.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).collect();
    serde_json::json!({ "expr": expression, "normalized": spec.to_string(), "next": next })
}

/// Who reads the table: when, and where.
struct Reader {
    now: Timestamp,
    local: TimeZone,
}

/// The answer as the lines that `systemd-analyze calendar` prints.
fn table(expression: &str, spec: &OnCalendar, elapses: &[Timestamp], reader: &Reader) -> String {
    let normal = spec.to_string();
    let mut lines = Vec::new();
    if normal != expression {
        lines.push(("Original form".to_owned(), expression.to_owned()));
    }
    lines.push(("Normalized form".to_owned(), normal));
    if elapses.is_empty() {
        lines.push(("Next elapse".to_owned(), "never".to_owned()));
    }
    for (number, next) in (1..).zip(elapses) {
        let name = if number == 1 { "Next elapse".to_owned() } else { format!("Iter. #{number}") };
        let here = next.to_zoned_datetime(reader.local.clone());
        lines.push((name, here.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()));
        if !is_utc(&reader.local) || here.offset().seconds() != 0 {
            lines.push(("(in UTC)".to_owned(), next.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string()));
        }
        lines.push(("From now".to_owned(), distance(*next, reader.now)));
    }
    lines.iter().map(|(name, value)| format!("{name:>15}: {value}\n")).collect()
}

/// Whether a zone's clocks show UTC, winter and summer, in the end.
fn is_utc(zone: &TimeZone) -> bool {
    FAR_AHEAD
        .iter()
        .all(|second| Timestamp::from_second(*second).is_ok_and(|moment| zone.to_offset(moment).seconds() == 0))
}

/// How far away an instant is, in the two units that matter, as systemd words it.
fn distance(instant: Timestamp, now: Timestamp) -> String {
    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const WEEK: i64 = 7 * DAY;
    const MONTH: i64 = 2_629_800 * SECOND;
    const YEAR: i64 = 31_557_600 * SECOND;
    let (instant, now) = (instant.as_microsecond(), now.as_microsecond());
    let side = if now > instant { "ago" } else { "left" };
    let d = (instant - now).abs();
    let text = if d >= YEAR {
        format!("{} {}", counted(d / YEAR, "year"), counted(d % YEAR / MONTH, "month"))
    } else if d >= MONTH {
        format!("{} {}", counted(d / MONTH, "month"), counted(d % MONTH / DAY, "day"))
    } else if d >= WEEK {
        format!("{} {}", counted(d / WEEK, "week"), counted(d % WEEK / DAY, "day"))
    } else if d >= 2 * DAY {
        counted(d / DAY, "day")
    } else if d >= 25 * HOUR {
        format!("1 day {}h", (d - DAY) / HOUR)
    } else if d >= 6 * HOUR {
        format!("{}h", d / HOUR)
    } else if d >= HOUR {
        format!("{}h {}min", d / HOUR, d % HOUR / MINUTE)
    } else if d >= 5 * MINUTE {
        format!("{}min", d / MINUTE)
    } else if d >= MINUTE {
        format!("{}min {}s", d / MINUTE, d % MINUTE / SECOND)
    } else if d >= SECOND {
        format!("{}s", d / SECOND)
    } else if d >= 1000 {
        format!("{}ms", d / 1000)
    } else if d > 0 {
        format!("{d}us")
    } else {
        return "now".to_owned();
    };
    format!("{text} {side}")
}

/// A number and its unit, in the plural where that is due.
fn counted(number: i64, unit: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests;

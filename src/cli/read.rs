//! Commands that read: `status`, `releases`, `log`, `why`, `drift`.

use std::process::ExitCode;

use clap::Args;

use super::daemon::{Daemon, print_json};
use super::paint::{Hue, Paint, ago, table, time, wrap};
use super::remote::RemoteError;
use super::target::{Global, MaybeTargetArgs, TargetArgs};
use crate::model::{Reason, ReleaseNumber, TargetLabel};
use crate::server::api::DriftAnswer;
use crate::server::views::{Delivered, ReleaseLog, ReleaseView, TargetStatus, Why};

/// Says what is live, what is wanted, and why they differ where they do.
#[derive(Debug, Clone, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    which: MaybeTargetArgs,
    /// Read the store without the daemon.
    #[arg(long)]
    offline: bool,
}

/// Lists the releases of a target, newest first.
#[derive(Debug, Clone, Args)]
pub(super) struct ReleasesArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How many.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Read the store without the daemon.
    #[arg(long)]
    offline: bool,
}

/// Shows the journal of a release: each step, when, and what became of it.
#[derive(Debug, Clone, Args)]
pub(super) struct LogArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The release's number; the newest when absent.
    #[arg(value_name = "RELEASE")]
    release: Option<u64>,
    /// Read the store without the daemon.
    #[arg(long)]
    offline: bool,
}

/// Says why a commit is live, or is not, and what became of a webhook delivery.
#[derive(Debug, Clone, Args)]
pub(super) struct WhyArgs {
    /// The project's name; or the id of a webhook delivery, alone.
    #[arg(value_name = "PROJECT|DELIVERY")]
    subject: String,
    /// The target's name.
    #[arg(value_name = "TARGET")]
    target: Option<TargetLabel>,
    /// A commit (at least 7 digits of its sha), or the id of a webhook delivery; what is wanted now when absent.
    #[arg(value_name = "SHA|DELIVERY")]
    about: Option<String>,
    /// Read the store without the daemon.
    #[arg(long)]
    offline: bool,
}

/// Compares what runs with what was released; exit code 3 when they differ.
#[derive(Debug, Clone, Args)]
pub(super) struct DriftArgs {
    #[command(flatten)]
    which: MaybeTargetArgs,
}

pub(super) async fn status(global: &Global, args: &StatusArgs) -> Result<ExitCode, RemoteError> {
    let daemon = Daemon::of(global, args.offline).await?;
    if let Some(name) = args.which.one() {
        let status = daemon.status(&name).await?;
        if global.json {
            print_json(&status);
        } else {
            print!("{}", one(&status, Paint::for_stdout()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = daemon.statuses().await?;
    all.retain(|status| args.which.matches(&status.target));
    if global.json {
        print_json(&all);
    } else if all.is_empty() {
        println!("no targets: put a project's file into {}/projects.d", global.config.display());
    } else {
        print!("{}", many(&all, Paint::for_stdout()));
    }
    Ok(ExitCode::SUCCESS)
}

fn many(all: &[TargetStatus], paint: Paint) -> String {
    let now = crate::clock::now();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|status| {
            let live = status.live.as_ref();
            vec![
                status.target.to_string(),
                status.state.as_str().to_owned(),
                live.map_or("-".to_owned(), |live| live.revision.short().to_owned()),
                live.map_or("-".to_owned(), |live| live.release.to_string()),
                status.tip.as_ref().map_or("-".to_owned(), |tip| tip.short().to_owned()),
                status.looked_at.map_or("never".to_owned(), |seen| ago(seen, now)),
                note(status),
            ]
        })
        .collect();
    table(&["TARGET", "STATE", "LIVE", "RELEASE", "TIP", "SEEN", "NOTE"], &rows, paint)
}

fn note(status: &TargetStatus) -> String {
    if let Some(held) = &status.held {
        let plan = held.plan.as_ref().map(|plan| format!(" {}", short(plan))).unwrap_or_default();
        return format!("{}{plan}", held.reason);
    }
    if let Some(drift) = &status.drift {
        return format!("drift: {}", drift.summary.join("; "));
    }
    let last = status.last_release.as_ref();
    let failed = last.filter(|last| last.reason.is_some());
    failed.map(|last| format!("release {} ended {}", last.release, last.state)).unwrap_or_default()
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

fn one(status: &TargetStatus, paint: Paint) -> String {
    let mut text =
        format!("{}  {}\n", paint.hue(Hue::Strong, &status.target.to_string()), paint.state(status.state.as_str(), 0));
    let mut line = |name: &str, value: String| {
        for (number, part) in wrap(&value, 86).into_iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            text.push_str(&format!("{name:>12}  {part}\n"));
        }
    };
    if let Some(live) = &status.live {
        let slot = live.slot.map(|slot| format!(" on slot {slot}")).unwrap_or_default();
        let since = live.since.map(|since| format!(" since {}", time(since))).unwrap_or_default();
        line("live", format!("{} as release {}{slot}{since}", live.revision.short(), live.release));
    } else {
        line("live", "nothing was ever released here".to_owned());
    }
    if let (Some(tip), Some(branch)) = (&status.tip, &status.branch) {
        let seen = status.looked_at.map(|seen| format!(", seen {}", time(seen))).unwrap_or_default();
        line("tip", format!("{} on {branch}{seen}", tip.short()));
    }
    if let Some(pin) = &status.pin {
        line("pinned", format!("to {} by {} since {}", pin.sha.short(), pin.by, time(pin.at)));
    }
    if let Some(pause) = &status.paused {
        line("paused", format!("by {} since {} {}", pause.by, time(pause.at), pause.note));
    }
    if let Some(held) = &status.held {
        line("held", format!("{} since {}: {}", held.reason, time(held.since), held.message));
        if let Some(plan) = &held.plan {
            line("plan", plan.clone());
        }
    }
    if let Some(last) = &status.last_release {
        let reason = last.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        line("last release", format!("{} of {} is {}{reason}", last.release, last.revision.short(), last.state));
    }
    if let Some(drift) = &status.drift {
        line("drift", format!("since {}: {}", time(drift.since), drift.summary.join("; ")));
    }
    for condition in &status.conditions {
        if !["Held", "Drifted"].contains(&condition.kind.as_str()) {
            let word = if condition.is_true { "yes" } else { "no" };
            line(&condition.kind, format!("{word}, {}: {}", condition.reason, condition.message));
        }
    }
    text
}

pub(super) async fn releases(global: &Global, args: &ReleasesArgs) -> Result<ExitCode, RemoteError> {
    let daemon = Daemon::of(global, args.offline).await?;
    let all = daemon.releases(&args.target, args.limit).await?;
    if global.json {
        print_json(&all);
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        println!("{} has no release yet", args.target.name());
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = all.iter().map(release_row).collect();
    print!("{}", table(&["RELEASE", "STATE", "COMMIT", "SLOT", "BEGAN", "BY", "WHY"], &rows, Paint::for_stdout()));
    Ok(ExitCode::SUCCESS)
}

fn release_row(release: &ReleaseView) -> Vec<String> {
    vec![
        release.release.to_string(),
        release.state.clone(),
        release.revision.short().to_owned(),
        release.slot.map_or("-".to_owned(), |slot| slot.to_string()),
        release.started_at.strftime("%m-%d %H:%M:%S").to_string(),
        release.trigger.clone(),
        release.reason.as_ref().map(brief).unwrap_or_default(),
    ]
}

/// Characters of a reason's sentence that a list shows; `why` and `log` show all of it.
const BRIEF: usize = 60;

fn brief(reason: &Reason) -> String {
    let sentence: String = reason.message.chars().take(BRIEF).collect();
    let rest = if sentence.len() < reason.message.len() { "…" } else { "" };
    format!("{}: {sentence}{rest}", reason.code)
}

pub(super) async fn log(global: &Global, args: &LogArgs) -> Result<ExitCode, RemoteError> {
    let daemon = Daemon::of(global, args.offline).await?;
    let log = daemon.log(&args.target, args.release.map(ReleaseNumber)).await?;
    if global.json {
        print_json(&log);
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", journal(&log, Paint::for_stdout()));
    Ok(ExitCode::SUCCESS)
}

fn journal(log: &ReleaseLog, paint: Paint) -> String {
    let release = &log.release;
    let mut text =
        format!("release {} of {}: {}\n", release.release, release.revision.short(), paint.state(&release.state, 0));
    for entry in &log.journal {
        use crate::store::record::StepState;
        let (mark, hue) = match entry.state {
            StepState::Intent => ("begin", Hue::Quiet),
            StepState::Done => ("done", Hue::Good),
            StepState::Failed => ("FAILED", Hue::Bad),
        };
        let at = entry.at.strftime("%H:%M:%S%.3f");
        text.push_str(&format!("{at}  {}  {}\n", paint.hue(hue, &format!("{mark:6}")), entry.step));
        for note in entry.note.iter().flat_map(|note| note.lines()) {
            text.push_str(&format!("{:22}{note}\n", ""));
        }
    }
    if let Some(reason) = &release.reason {
        text.push_str(&format!("\n{reason}\n"));
        for line in reason.evidence.iter().flat_map(|evidence| evidence.lines()) {
            text.push_str(&format!("  | {line}\n"));
        }
    }
    text
}

pub(super) async fn why(global: &Global, args: &WhyArgs) -> Result<ExitCode, RemoteError> {
    let daemon = Daemon::of(global, args.offline).await?;
    let Some(target) = &args.target else { return delivery(global, &daemon, &args.subject).await };
    let target = match args.subject.parse() {
        Ok(project) => TargetArgs::of(project, target.clone()),
        Err(error) => {
            eprintln!("error: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let why = daemon.why(&target, args.about.as_deref()).await?;
    if global.json {
        print_json(&why);
    } else {
        print!("{}", explained(&why, Paint::for_stdout()));
    }
    Ok(ExitCode::SUCCESS)
}

async fn delivery(global: &Global, daemon: &Daemon, id: &str) -> Result<ExitCode, RemoteError> {
    let delivered = daemon.delivery(id).await?;
    if global.json {
        print_json(&delivered);
    } else {
        print!("{}", told(&delivered, Paint::for_stdout()));
    }
    Ok(ExitCode::SUCCESS)
}

fn told(delivered: &Delivered, paint: Paint) -> String {
    let mut text = String::new();
    for line in wrap(&delivered.answer, 100) {
        text.push_str(&paint.hue(Hue::Strong, &line));
        text.push('\n');
    }
    for target in delivered.records.iter().flat_map(|record| &record.woken) {
        text.push_str(&format!("woke:  {target}\n"));
    }
    if !delivered.advice.is_empty() {
        text.push_str(&format!("do:    {}\n", delivered.advice));
    }
    text
}

fn explained(why: &Why, paint: Paint) -> String {
    let mut text = String::new();
    if let (None, Some(refused)) = (&why.sha, why.delivery.as_ref().filter(|it| it.records.is_empty())) {
        return told(refused, paint);
    }
    for line in wrap(&why.answer, 100) {
        text.push_str(&paint.hue(Hue::Strong, &line));
        text.push('\n');
    }
    for line in why.evidence.iter().flat_map(|evidence| evidence.lines()) {
        text.push_str(&format!("  | {line}\n"));
    }
    if !why.advice.is_empty() {
        text.push_str(&format!("do:    {}\n", why.advice));
    }
    if !why.releases.is_empty() {
        text.push('\n');
        let rows: Vec<Vec<String>> = why.releases.iter().map(release_row).collect();
        text.push_str(&table(&["RELEASE", "STATE", "COMMIT", "SLOT", "BEGAN", "BY", "WHY"], &rows, paint));
    }
    if let Some(ci) = &why.ci {
        let link = ci.link.as_ref().map(|link| format!(" ({link})")).unwrap_or_default();
        text.push_str(&format!("\nci:    {}{link}, asked {}\n", ci.message, time(ci.asked_at)));
    }
    if !why.events.is_empty() {
        text.push('\n');
        for event in why.events.iter().rev() {
            let head = format!("{}  {:8}", time(event.at), event.by);
            for (number, part) in wrap(&event.message, 65).into_iter().enumerate() {
                let head = if number == 0 { head.as_str() } else { "" };
                text.push_str(&format!("{head:33}  {part}\n"));
            }
        }
    }
    text
}

pub(super) async fn drift(global: &Global, args: &DriftArgs) -> Result<ExitCode, RemoteError> {
    let daemon = Daemon::of(global, false).await?;
    let statuses = daemon.statuses().await?;
    let names: Vec<_> =
        statuses.into_iter().map(|status| status.target).filter(|name| args.which.matches(name)).collect();
    if let (true, Some(name)) = (names.is_empty(), args.which.one()) {
        // Lets the daemon say what it does not know.
        daemon.status(&name).await?;
    }
    let mut answers: Vec<(String, DriftAnswer)> = Vec::new();
    for name in names {
        let answer = daemon.drift(&name).await?;
        answers.push((name.to_string(), answer));
    }
    let differs = answers.iter().any(|(_, answer)| !answer.summary.is_empty());
    if global.json {
        let list: Vec<_> = answers
            .iter()
            .map(|(target, answer)| {
                serde_json::json!({ "target": target, "state": answer.state, "summary": answer.summary,
                    "difference": answer.difference })
            })
            .collect();
        print_json(&list);
    } else {
        for (target, answer) in &answers {
            print_drift(target, answer);
        }
    }
    Ok(ExitCode::from(if differs { 3 } else { 0 }))
}

fn print_drift(target: &str, answer: &DriftAnswer) {
    let paint = Paint::for_stdout();
    match (answer.state.as_str(), answer.summary.as_slice()) {
        ("compared", []) => println!("{target}: no drift"),
        ("compared", summary) => {
            println!("{target}: {}", paint.hue(Hue::Bad, &summary.join("; ")));
            print!("{}", paint.difference(&answer.difference));
        }
        ("busy", _) => println!("{target}: a release is under way; ask again when it has ended"),
        _ => println!("{target}: nothing is released here, so there is nothing to compare with"),
    }
}

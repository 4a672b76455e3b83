//! Commands that act: `plan`, `sync`, `approve`, `deny`, `pause`, `resume`, `retry`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::daemon::{print_json, remote};
use super::paint::{Hue, Paint};
use super::remote::RemoteError;
use super::target::{Global, TargetArgs};
use crate::model::outcome::Outcome;
use crate::model::{Reason, Sha};
use crate::reconcile::preview::Preview;
use crate::reconcile::progress::{Progress, Rest};
use crate::server::api::{Decision, Note, PlanRequest, SyncRequest};

/// Exit code: held, or timed out waiting.
pub(super) const HELD: u8 = 5;

/// Shows what a release would do, and the difference; exit code 3 when there is one.
#[derive(Debug, Clone, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// A commit of the tracked branch, all 40 digits; the wanted one when absent.
    #[arg(long, value_name = "SHA")]
    sha: Option<Sha>,
}

/// Asks for a release now and shows it; exit code 5 when it is held.
#[derive(Debug, Clone, Args)]
pub(super) struct SyncArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// A commit of the tracked branch, all 40 digits: wanted until the branch moves on.
    #[arg(long, value_name = "SHA")]
    sha: Option<Sha>,
    /// Seconds to wait for the outcome; what was asked for goes on without us.
    #[arg(long, default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

/// Decides on a plan.
#[derive(Debug, Clone, Args)]
pub(super) struct DecideArgs {
    /// The plan's id, or its first 8 or more digits.
    #[arg(value_name = "PLAN")]
    id: String,
}

/// Holds a target, or lets it go on.
#[derive(Debug, Clone, Args)]
pub(super) struct NoteArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Why, for the others.
    #[arg(long, default_value = "")]
    note: String,
}

pub(super) async fn plan(global: &Global, args: &PlanArgs) -> Result<ExitCode, RemoteError> {
    let body = PlanRequest { sha: args.sha.clone() };
    let preview: Preview = remote(global).post(&args.target.path("/plan"), &body).await?;
    if global.json {
        print_json(&preview);
    } else {
        print_plan(&preview);
    }
    Ok(match (&preview.plan, &preview.held) {
        (Some(_), _) => ExitCode::from(3),
        (None, None) => ExitCode::SUCCESS,
        (None, Some(_)) => ExitCode::from(1),
    })
}

fn print_plan(preview: &Preview) {
    let paint = Paint::for_stdout();
    if let Some(id) = &preview.id {
        println!("{} {}", paint.hue(Hue::Strong, "plan"), id);
    }
    println!("{}", preview.summary);
    for step in &preview.steps {
        println!("  {step}");
    }
    if !preview.difference.is_empty() {
        println!();
        print!("{}", paint.difference(&preview.difference));
    }
    let evidence = preview.held.iter().filter_map(|reason| reason.evidence.as_deref());
    for line in evidence.flat_map(str::lines) {
        println!("  | {line}");
    }
    if let (Some(_), Some(reason)) = (&preview.plan, &preview.held) {
        println!("\n{} {reason}", paint.hue(Hue::Waiting, "held:"));
    }
}

pub(super) async fn sync(global: &Global, args: &SyncArgs) -> Result<ExitCode, RemoteError> {
    follow(global, (&args.target, args.timeout), args.sha.clone()).await
}

/// Asks for a release now and shows it until it has its outcome.
pub(super) async fn follow(
    global: &Global,
    (target, timeout): (&TargetArgs, u64),
    sha: Option<Sha>,
) -> Result<ExitCode, RemoteError> {
    let body = SyncRequest { sha };
    let path = target.path("/sync");
    let remote = remote(global);
    let mut end = None;
    let mut printer = Printer { paint: Paint::for_stdout(), is_json: global.json };
    let stream = remote.stream(&path, &body, |line| {
        let Ok(progress) = serde_json::from_str::<Progress>(line) else { return true };
        printer.show(line, &progress);
        let is_last = progress.is_last();
        end = Some(progress);
        !is_last
    });
    match tokio::time::timeout(Duration::from_secs(timeout), stream).await {
        Ok(result) => result?,
        Err(_) => {
            eprintln!("no outcome within {timeout} s; it goes on, and `trueup status` shows it");
            return Ok(ExitCode::from(HELD));
        }
    }
    Ok(match end {
        Some(Progress::Ended { outcome: Outcome::Live, .. } | Progress::Idle { rest: Rest::Converged { .. }, .. }) => {
            ExitCode::SUCCESS
        }
        Some(Progress::Idle { rest: Rest::Held { .. }, .. }) => ExitCode::from(HELD),
        Some(Progress::Ended { outcome: Outcome::Superseded, .. }) => ExitCode::from(HELD),
        _ => ExitCode::from(1),
    })
}

struct Printer {
    paint: Paint,
    is_json: bool,
}

impl Printer {
    fn show(&mut self, line: &str, progress: &Progress) {
        if self.is_json {
            println!("{line}");
            return;
        }
        match progress {
            Progress::Began { release, revision, cause, .. } => {
                println!("release {release} of {}: {cause}", revision.short());
            }
            Progress::Step { text, .. } if self.paint.is_terminal() => {
                use std::io::Write as _;
                print!("  {} {text} …", self.paint.hue(Hue::Quiet, "·"));
                drop(std::io::stdout().flush());
            }
            Progress::Step { text, .. } => println!("  - {text}"),
            Progress::StepDone { elapsed_ms, .. } if self.paint.is_terminal() => {
                println!("\r  {}", self.paint.hue(Hue::Good, &format!("✓ {elapsed_ms} ms")));
            }
            Progress::StepDone { elapsed_ms, .. } => println!("    done in {elapsed_ms} ms"),
            Progress::StepFailed { reason, .. } => {
                println!("\n  {} {reason}", self.paint.hue(Hue::Bad, "failed:"));
                self.evidence(reason);
            }
            Progress::Line { text, .. } => println!("    {}", self.paint.hue(Hue::Quiet, text)),
            Progress::Ended { release, outcome, reason, .. } => {
                let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                println!("release {release} ended {}{why}", self.paint.state(outcome.as_str(), 0));
            }
            Progress::Idle { rest, .. } => self.rest(rest),
        }
    }

    fn rest(&self, rest: &Rest) {
        match rest {
            Rest::Converged { revision, release } => {
                println!("nothing to do: {} is live as release {release}", revision.short());
            }
            Rest::Held { reason, plan } => {
                println!("{} {reason}", self.paint.hue(Hue::Waiting, "held:"));
                if let Some(plan) = plan {
                    println!("plan {plan}");
                }
                self.evidence(reason);
            }
            Rest::Denied { reason } => {
                println!("{} {reason}", self.paint.hue(Hue::Bad, "refused:"));
                self.evidence(reason);
            }
        }
    }

    fn evidence(&self, reason: &Reason) {
        for line in reason.evidence.iter().flat_map(|evidence| evidence.lines()) {
            println!("  | {line}");
        }
    }
}

pub(super) async fn decide(global: &Global, args: &DecideArgs, is_approved: bool) -> Result<ExitCode, RemoteError> {
    let path = format!("/api/v1/plans/{}/decision", args.id.trim());
    if !args.id.chars().all(|c| c.is_ascii_hexdigit()) {
        eprintln!("error: `{}` is not a plan's id: it has hex digits only", args.id);
        return Ok(ExitCode::from(2));
    }
    said(global, remote(global).post(&path, &Decision { is_approved }).await?)
}

pub(super) async fn note(global: &Global, args: &NoteArgs, verb: &str) -> Result<ExitCode, RemoteError> {
    let body = Note { note: args.note.clone() };
    said(global, remote(global).post(&args.target.path(&format!("/{verb}")), &body).await?)
}

fn said(global: &Global, answer: serde_json::Value) -> Result<ExitCode, RemoteError> {
    if global.json {
        print_json(&answer);
    } else if let Some(message) = answer.get("message").and_then(|message| message.as_str()) {
        println!("{message}");
    }
    Ok(ExitCode::SUCCESS)
}

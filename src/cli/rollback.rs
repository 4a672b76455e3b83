//! `rollback`: back to the good revision at once, and Git made to agree.

use std::process::ExitCode;

use clap::Args;

use super::act::{self, HELD};
use super::daemon::{print_json, remote};
use super::paint::{Hue, Paint};
use super::remote::RemoteError;
use super::target::{Global, TargetArgs};
use crate::model::Sha;
use crate::reconcile::rollback::Answer;
use crate::server::api::{RollbackAnswer, RollbackRequest};

/// Puts the release before back at once, holds it there, and writes the revert to Git.
///
/// One commit on top of the branch where that undoes no more than it should, else a pull request; never a
/// force push. Without the right to write, the git commands are printed and the exit code is 5. Data is
/// never reverted.
#[derive(Debug, Clone, Args)]
pub(super) struct RollbackArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The good revision, all 40 digits; what ran before when absent.
    #[arg(long, value_name = "SHA")]
    to: Option<Sha>,
    /// Open a pull request in any case.
    #[arg(long)]
    pull_request: bool,
    /// Seconds to wait for the outcome; what was asked for goes on without us.
    #[arg(long, default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

pub(super) async fn run(global: &Global, args: &RollbackArgs) -> Result<ExitCode, RemoteError> {
    let body = RollbackRequest { to: args.to.clone(), pull_request: args.pull_request };
    let answer: RollbackAnswer = remote(global).post(&args.target.path("/rollback"), &body).await?;
    if global.json {
        print_json(&answer);
    } else {
        show(&answer);
    }
    let outcome = act::follow(global, (&args.target, args.timeout), None).await?;
    Ok(match answer.git {
        Answer::Written { .. } | Answer::Nothing { .. } => outcome,
        Answer::ByHand { .. } | Answer::Failed { .. } if outcome == ExitCode::SUCCESS => ExitCode::from(HELD),
        Answer::ByHand { .. } | Answer::Failed { .. } => outcome,
    })
}

fn show(answer: &RollbackAnswer) {
    let paint = Paint::for_stdout();
    println!("{} to {} from {}", paint.hue(Hue::Strong, "back"), answer.good.short(), answer.bad.short());
    match &answer.git {
        Answer::Written { message, .. } => println!("{} {message}", paint.hue(Hue::Good, "git:")),
        Answer::Nothing { message } => println!("git: {message}"),
        Answer::Failed { message } => println!("{} {message}", paint.hue(Hue::Bad, "git:")),
        Answer::ByHand { message, commands } => {
            println!("{} {message}", paint.hue(Hue::Waiting, "git:"));
            println!("the target is held at {} until this is done:", answer.good.short());
            for command in commands {
                println!("  {command}");
            }
        }
    }
    println!("data is never reverted: what the newer releases wrote stays");
}

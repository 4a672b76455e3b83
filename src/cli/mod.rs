//! The command line: one file per command or kind of command; it prints and never decides.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the command line is where we print")]

mod act;
mod calendar;
mod check;
mod daemon;
mod diff;
mod doctor;
mod manifest;
mod paint;
mod read;
mod remote;
mod render;
mod rollback;
mod serve;
mod shell;
mod target;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use paint::Paint;
use remote::RemoteError;
use target::Global;

/// Keeps Docker hosts and Kubernetes clusters true to Git.
///
/// Exit codes: 0 done or no difference, 1 refused or failed, 2 usage, 3 a difference exists,
/// 4 no daemon, 5 held or timed out waiting.
#[derive(Debug, Parser)]
#[command(name = "trueup", version)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::CheckArgs),
    Calendar(calendar::CalendarArgs),
    Diff(diff::DiffArgs),
    Render(render::RenderArgs),
    Serve(serve::ServeArgs),
    Plan(act::PlanArgs),
    Sync(act::SyncArgs),
    /// Lets a plan that waits run.
    Approve(act::DecideArgs),
    /// Refuses a plan that waits.
    Deny(act::DecideArgs),
    Status(read::StatusArgs),
    Releases(read::ReleasesArgs),
    Log(read::LogArgs),
    Why(read::WhyArgs),
    Drift(read::DriftArgs),
    Rollback(rollback::RollbackArgs),
    Doctor(doctor::DoctorArgs),
    /// Begins no release of a target until `resume`; what runs keeps running.
    Pause(act::NoteArgs),
    /// Lifts a pause or a pin.
    Resume(act::NoteArgs),
    /// Lets a commit that failed be tried again, and looks at once.
    Retry(act::NoteArgs),
    Completions(shell::CompletionsArgs),
}

/// Runs one command line and gives the exit code of the design's section 5.
pub fn run<I: IntoIterator<Item = OsString>>(arguments: I) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // Nobody is left to tell if the terminal is gone.
            return error.print().map_or(ExitCode::from(2), |()| ExitCode::from(code));
        }
    };
    let Cli { global, command } = cli;
    match command {
        Command::Check(args) => check::run(&args),
        Command::Calendar(args) => calendar::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Render(args) => render::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Serve(args) => serve::run(&global, &args),
        other @ (Command::Plan(_)
        | Command::Sync(_)
        | Command::Approve(_)
        | Command::Deny(_)
        | Command::Status(_)
        | Command::Releases(_)
        | Command::Log(_)
        | Command::Why(_)
        | Command::Drift(_)
        | Command::Rollback(_)
        | Command::Doctor(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Retry(_)) => asked(&global, other),
    }
}

/// Runs a command that talks to the daemon or reads its store.
fn asked(global: &Global, command: Command) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no event loop can be made: {error}");
            return ExitCode::from(1);
        }
    };
    match runtime.block_on(answer(global, command)) {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}

async fn answer(global: &Global, command: Command) -> Result<ExitCode, RemoteError> {
    match command {
        Command::Plan(args) => act::plan(global, &args).await,
        Command::Sync(args) => act::sync(global, &args).await,
        Command::Approve(args) => act::decide(global, &args, true).await,
        Command::Deny(args) => act::decide(global, &args, false).await,
        Command::Status(args) => read::status(global, &args).await,
        Command::Releases(args) => read::releases(global, &args).await,
        Command::Log(args) => read::log(global, &args).await,
        Command::Why(args) => read::why(global, &args).await,
        Command::Drift(args) => read::drift(global, &args).await,
        Command::Rollback(args) => rollback::run(global, &args).await,
        Command::Doctor(args) => Ok(doctor::run(global, &args).await),
        Command::Pause(args) => act::note(global, &args, "pause").await,
        Command::Resume(args) => act::note(global, &args, "resume").await,
        Command::Retry(args) => act::note(global, &args, "retry").await,
        Command::Check(_)
        | Command::Calendar(_)
        | Command::Diff(_)
        | Command::Render(_)
        | Command::Serve(_)
        | Command::Completions(_) => Ok(ExitCode::from(2)),
    }
}

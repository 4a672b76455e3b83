//! The command line: one file per command; it prints and never decides.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the command line is where we print")]

mod calendar;
mod check;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use calendar::CalendarArgs;
use check::CheckArgs;

/// Keeps Docker hosts and Kubernetes clusters true to Git.
#[derive(Debug, Parser)]
#[command(name = "trueup", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Calendar(CalendarArgs),
    Check(CheckArgs),
}

/// Runs one command line and gives the exit code of `DESIGN` section 5.
pub fn run<I: IntoIterator<Item = OsString>>(arguments: I) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // Nobody is left to tell if the terminal is gone.
            return error.print().map_or(ExitCode::from(2), |()| ExitCode::from(code));
        }
    };
    match cli.command {
        Command::Calendar(args) => calendar::run(&args),
        Command::Check(args) => check::run(&args),
    }
}

//! The command `trueup`: parses its arguments, runs, and turns the outcome into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    trueup::cli::run(std::env::args_os())
}

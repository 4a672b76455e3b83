//! The command line: one file per command; it prints and never decides.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the command line is where we print"
)]

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs one command line and gives the exit code of `DESIGN` section 5.
pub fn run<I: IntoIterator<Item = OsString>>(_arguments: I) -> ExitCode {
    ExitCode::from(2)
}

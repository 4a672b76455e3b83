//! `completions`: help for shells.

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};

/// Prints completions for a shell.
#[derive(Debug, Clone, Args)]
pub(super) struct CompletionsArgs {
    /// Which shell.
    shell: clap_complete::Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> ExitCode {
    let mut command = super::Cli::command();
    clap_complete::generate(args.shell, &mut command, "trueup", &mut std::io::stdout());
    ExitCode::SUCCESS
}

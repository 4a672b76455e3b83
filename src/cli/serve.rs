//! `serve`: the daemon.

use std::process::ExitCode;

use clap::Args;

use super::target::Global;
use super::{Paint, paint::Hue};
use crate::app;
use crate::reconcile::worker::chain;

/// Runs the daemon in the foreground; SIGTERM or SIGINT stops it at the next safe point.
#[derive(Debug, Clone, Args)]
pub(super) struct ServeArgs {}

pub(super) fn run(global: &Global, _args: &ServeArgs) -> ExitCode {
    match app::serve(&global.config, global.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{} {}", Paint::for_stderr().hue(Hue::Bad, "error:"), chain(&error));
            eprintln!("do:    {}", error.fix());
            ExitCode::from(1)
        }
    }
}

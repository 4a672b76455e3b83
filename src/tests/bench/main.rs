//! Measures what the design promises about speed and size, with real parts, and prints a table.
//!
//! `just bench` runs every row; `just bench -- idle look` runs those rows; `--json` prints for machines,
//! `--list` names the rows. A figure that misses its aim is shown as such, and is no failure: only a row
//! that cannot be measured is. `docs/BENCHMARKS.md` says how each row is measured.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a row that cannot be measured ends the run, with the place where it stopped"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is what this program is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod caddy;
mod daemon;
mod fleet;
mod hakopod;
mod idle;
mod load;
mod look;
mod manifest;
mod memory;
mod push;
mod release;
mod shop;
mod switches;
mod table;
mod webhook;

#[path = "../app.rs"]
#[expect(dead_code, reason = "shared with the live tests, which use more of it")]
mod app;
#[path = "../git_http.rs"]
#[expect(dead_code, reason = "shared with the live tests, which use more of it")]
mod git_http;
#[path = "../git_repo.rs"]
mod git_repo;

// The shared files name these as `crate::…`, as the library's own tests do.
use trueup::{image, model};

use std::time::Instant;

use table::Figure;

/// A row, or a few that need the same surroundings: its name, and what it gives.
type Row = (&'static str, fn() -> Vec<Figure>);

const ROWS: &[Row] = &[
    ("manifest", manifest::run),
    ("hakopod", hakopod::run),
    ("look", look::run),
    ("idle", idle::run),
    ("memory", memory::run),
    ("switches", switches::run),
    ("push", push::run),
    ("release", release::run),
    ("webhook", webhook::run),
];

fn main() {
    // Every client of the process shares this one; nobody has installed another before.
    drop(rustls::crypto::ring::default_provider().install_default());
    // `cargo bench` itself adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| !name.starts_with("--")).collect();
    let unknown = names.iter().find(|name| ROWS.iter().all(|(row, _)| row != *name));
    if arguments.iter().any(|argument| argument == "--list") || unknown.is_some() {
        ROWS.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(i32::from(unknown.is_some()) * 2);
    }
    let mut figures = Vec::new();
    for (name, run) in ROWS.iter().filter(|(row, _)| names.is_empty() || names.contains(row)) {
        let began = Instant::now();
        figures.extend(run().into_iter().map(|figure| figure.of(name)));
        eprintln!("{name}: measured in {:.1} s", began.elapsed().as_secs_f64());
    }
    print!("{}", if is_json { table::json(&figures) } else { table::text(&figures) });
}

/// A runtime like the daemon's.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

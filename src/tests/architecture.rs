//! Holds the code to the map in `docs/ARCHITECTURE.md`: which module may import which, where each
//! crate lives, what decisions may not touch, and that nothing lies around unreached.
//!
//! Each rule is a function from files to complaints. It runs over the real tree, and over a bad
//! sample that it must complain about: a rule that cannot fail is no rule.

mod promises;
mod rules;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rules::{
    adapters_named_outside_of_app, clocks_outside_of_the_clock, crates_away_from_home, effects_in_decisions,
    files_that_are_too_long, files_that_no_mod_line_reaches, imports_that_do_not_point_down, layer,
    module_without_a_layer,
};
use scan::{Reached, SourceFile, reach};

/// Module → layer. Imports point down only; a module that is not here has no place yet.
const LAYERS: &[(&str, u8)] = &[
    ("main", 5),
    ("lib", 5),
    ("cli", 5),
    ("app", 5),
    ("server", 4),
    ("trigger", 4),
    ("reconcile", 3),
    ("jobs", 3),
    ("source", 2),
    ("image", 2),
    ("target", 2),
    ("edge", 2),
    ("volume", 2),
    ("secret", 2),
    ("egress", 2),
    ("probe", 2),
    ("store", 2),
    ("report", 2),
    ("clock", 2),
    ("release", 1),
    ("verify", 1),
    ("plan", 1),
    ("diff", 1),
    ("gate", 1),
    ("render", 1),
    ("manifest", 1),
    ("config", 1),
    ("schedule", 1),
    ("model", 0),
];

/// Imports inside a layer: who, whom, and why that is right.
const SIDEWAYS: &[(&str, &str, &str)] = &[
    ("main", "cli", "the one call of main"),
    ("cli", "app", "a command is handed its adapters"),
    ("plan", "diff", "a plan is made from a difference"),
    ("release", "plan", "a release's history is told in its plan's steps"),
    ("config", "schedule", "windows and backup times are checked when the registry is read"),
    ("manifest", "schedule", "job times are checked when the manifest is read"),
    ("gate", "schedule", "a window is a question about an instant"),
    ("edge", "probe", "`Trust`: the edge says which certificate a probe of it must accept"),
    ("report", "source", "`Forge`: one queue, one rate limit and one credential for all calls to GitHub"),
];

/// Adapters, and the modules that may name them; everybody else takes the trait.
const ADAPTERS: &[&str] = &[
    "source::git",
    "source::github",
    "target::docker",
    "target::kubernetes",
    "edge::caddy",
    "edge::cloudflare",
    "probe::http",
    "probe::exec",
    "store::sqlite",
    "store::postgres",
    "report::github",
];

/// Crate → where it may be named, as prefixes of paths.
const HOMES: &[(&str, &[&str])] = &[
    ("gix", &["src/source/git"]),
    ("octocrab", &["src/source/github", "src/report/github"]),
    ("bollard", &["src/target/docker", "src/image"]),
    ("kube", &["src/target/kubernetes"]),
    ("axum", &["src/server"]),
    ("notify", &["src/trigger/watch"]),
    ("similar", &["src/diff"]),
    ("cron", &["src/schedule"]),
    ("clap", &["src/cli"]),
    ("clap_complete", &["src/cli"]),
    ("sqlx", &["src/store"]),
];

/// What layers 0 and 1 may not name.
const NOT_IN_DECISIONS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "process"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["tokio"],
    &["async_trait"],
    &["futures_util"],
    &["tracing"],
    &["reqwest"],
    &["hyper"],
];

/// Lines in one file of working code.
const MOST_LINES: usize = 400;

/// Files whose length has a reason: path, and the reason.
const LONGER: &[(&str, &str)] = &[];

// The real tree.

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `.rs` file below `src`.
fn all_files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![root().join("src")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root()).unwrap();
                found.insert(relative.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// The roots that Cargo compiles: path, and whether it is a test.
fn crate_roots(cargo_toml: &str) -> Vec<(String, bool)> {
    let cargo: toml::Table = toml::from_str(cargo_toml).unwrap();
    let mut roots = vec![("src/lib.rs".to_owned(), false), ("src/main.rs".to_owned(), false)];
    for (kind, is_test) in [("bin", false), ("example", true), ("test", true), ("bench", true)] {
        let entries = cargo.get(kind).and_then(toml::Value::as_array);
        let paths = entries.into_iter().flatten().filter_map(|entry| entry.get("path")?.as_str());
        roots.extend(paths.map(|path| (path.to_owned(), is_test)));
    }
    roots
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

fn real_reach() -> Reached {
    let mut reached = Reached::default();
    for (path, is_test) in crate_roots(&read("Cargo.toml").unwrap()) {
        reach(&mut reached, &path, is_test, &read);
    }
    reached
}

fn real_files() -> Vec<SourceFile> {
    let reached = real_reach();
    let files = reached.files.iter();
    files.map(|(path, is_test)| SourceFile::new(path, *is_test, &read(path).unwrap())).collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The rule complains once about each line of `bad` that ends in `// bad`, and about nothing else.
#[track_caller]
fn assert_finds(rule: fn(&[SourceFile]) -> Vec<String>, path: &str, text: &str) {
    let complaints = rule(&[SourceFile::new(path, false, text)]);
    let lines = (1..).zip(text.lines()).filter(|(_, line)| line.ends_with("// bad"));
    let expected: BTreeSet<String> = lines.map(|(number, _)| format!("{path}:{number}:")).collect();
    assert!(!expected.is_empty(), "the sample has no line marked as bad");
    let found: BTreeSet<String> = complaints
        .iter()
        .map(|complaint| complaint.splitn(3, ':').take(2).fold(String::new(), |all, part| all + part + ":"))
        .collect();
    assert_eq!(found, expected, "{complaints:#?}");
    assert_none(&rule(&[SourceFile::new(path, true, text)]));
}

#[test]
fn every_module_has_a_layer() {
    assert_none(&module_without_a_layer(&real_files()));
}

#[test]
fn a_module_without_a_layer_is_noticed() {
    let file = SourceFile::new("src/helper/mod.rs", false, "");
    assert_eq!(module_without_a_layer(&[file]).len(), 1);
}

#[test]
fn imports_point_down_only() {
    assert_none(&imports_that_do_not_point_down(&real_files()));
}

#[test]
fn an_import_that_points_up_or_sideways_is_noticed() {
    let text = r##"
//! crate::store in a comment is nothing, nor is "crate::store" in a string.
use crate::model::Sha;
use crate::{diff::Change, model::Slot};
use crate::{model::Slot, store::Store}; // bad
use crate::gate::{Admitted, freeze}; // bad
const TEXT: &str = "crate::store"; /* crate::store /* nested */ crate::edge */
const RAW: &str = r#"a " crate::store"#;
const QUOTE: char = '"';
fn f<'a>(x: &'a crate::reconcile::Pass) {} // bad
fn g() -> Vec<super::super::edge::Edge> { super::step::x() } // bad
use crate::somewhere_else::X; // bad
#[cfg(test)]
mod tests { use crate::store::Store; }
#[cfg(test)]
use crate::store::Store;
"##;
    assert_finds(imports_that_do_not_point_down, "src/plan/step.rs", text);
    let main = "fn main() { trueup::cli::run(); }\nuse trueup::app::App; // bad\n";
    assert_finds(imports_that_do_not_point_down, "src/main.rs", main);
}

#[test]
fn every_exception_inside_a_layer_has_a_reason_and_two_modules_of_one_layer() {
    for (from, into, why) in SIDEWAYS {
        assert_eq!(layer(from), layer(into), "{from} → {into}");
        assert!(!why.is_empty(), "{from} → {into}");
    }
}

#[test]
fn imports_inside_a_layer_make_no_circle() {
    let mut rest: Vec<(&str, &str)> = SIDEWAYS.iter().map(|(from, into, _)| (*from, *into)).collect();
    while !rest.is_empty() {
        let before = rest.len();
        let froms: BTreeSet<&str> = rest.iter().map(|(from, _)| *from).collect();
        rest.retain(|(_, into)| froms.contains(into));
        assert!(rest.len() < before, "a circle among {rest:?}");
    }
}

#[test]
fn only_app_names_adapters() {
    assert_none(&adapters_named_outside_of_app(&real_files()));
}

#[test]
fn an_adapter_named_in_the_loop_is_noticed() {
    let text = "use crate::edge::Edge;\nuse crate::edge::{Edge, caddy::Caddy}; // bad\nfn f(x: crate::source::gitignore::X) {}\n";
    assert_finds(adapters_named_outside_of_app, "src/reconcile/pass.rs", text);
}

#[test]
fn every_crate_is_named_at_home_only() {
    assert_none(&crates_away_from_home(&real_files()));
}

#[test]
fn a_crate_away_from_home_is_noticed() {
    let text = "
struct Rule { cron: String }
fn f(rule: &Rule) { rule.cron.len(); self::cron::x(); crate::schedule::cron::y(); }
use gix; // bad
use {std::fmt, gix::ObjectId}; // bad
fn g() { let x = ::bollard::Docker::new(); } // bad
#[derive(clap::Parser)] // bad
struct Arguments;
";
    assert_finds(crates_away_from_home, "src/gate/mod.rs", text);
    assert_finds(crates_away_from_home, "src/source/github.rs", "use octocrab::Octocrab;\nuse gix::X; // bad\n");
}

#[test]
fn only_the_clock_asks_for_the_time() {
    assert_none(&clocks_outside_of_the_clock(&real_files()));
}

#[test]
fn a_clock_elsewhere_is_noticed() {
    let text = "
fn f(now: Timestamp) -> Timestamp { now }
fn g() { jiff::Timestamp::now(); } // bad
fn h() { let ask = std::time::Instant::now; } // bad
fn i(clock: &dyn Clock) { clock.now(); } // bad
fn j() { <Zoned as Clocky>::now(); } // bad
";
    assert_finds(clocks_outside_of_the_clock, "src/gate/freeze.rs", text);
    let text = "fn i(clock: &dyn Clock) { clock.now(); }\nfn g() { Timestamp::now(); } // bad\n";
    assert_finds(clocks_outside_of_the_clock, "src/reconcile/pass.rs", text);
}

#[test]
fn decisions_do_no_input_or_output() {
    assert_none(&effects_in_decisions(&real_files()));
}

#[test]
fn an_effect_in_a_decision_is_noticed() {
    let text = "
// async, tokio and std::fs may be spoken of.
use std::{fmt, collections::BTreeMap};
use std::{fmt, fs::File}; // bad
async fn f() {} // bad
fn g() { block_on(f().await); } // bad
fn h() { tokio::spawn(x); std::env::var(name); } // bad
fn i() { tracing::info!(x); } // bad
";
    assert_finds(effects_in_decisions, "src/render/vhost.rs", text);
    let below = SourceFile::new("src/store/mod.rs", false, "async fn f() { tokio::fs::read(x); }");
    assert_none(&effects_in_decisions(&[below]));
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    assert_none(&files_that_are_too_long(&real_files()));
}

#[test]
fn a_file_that_is_too_long_is_noticed() {
    let text = "//\n".repeat(MOST_LINES + 1);
    let of = |is_test| [SourceFile::new("src/plan/mod.rs", is_test, &text)];
    assert_eq!(files_that_are_too_long(&of(false)).len(), 1);
    assert_none(&files_that_are_too_long(&of(true)));
}

#[test]
fn every_file_is_reached_by_a_mod_line() {
    assert_none(&files_that_no_mod_line_reaches(&all_files(), &real_reach()));
}

#[test]
fn a_file_that_nothing_reaches_is_noticed() {
    let tree = BTreeMap::from([
        ("src/lib.rs", "pub mod a;\n#[cfg(test)]\nmod tests;\n// mod comment;\n"),
        ("src/a/mod.rs", "mod b;\n#[path = \"odd/name.rs\"]\nmod c;\nmod gone;\n"),
        ("src/a/b.rs", "mod d;\n#[cfg(test)]\nmod tests;"),
        ("src/a/b/d.rs", ""),
        ("src/a/b/tests.rs", ""),
        ("src/a/odd/name.rs", ""),
        ("src/tests/mod.rs", "mod e;"),
        ("src/tests/e.rs", ""),
        ("src/comment.rs", ""),
    ]);
    let read = |path: &str| tree.get(path).map(|text| (*text).to_owned());
    let mut reached = Reached::default();
    reach(&mut reached, "src/lib.rs", false, &read);
    let all = tree.keys().map(|path| (*path).to_owned()).collect();
    assert_eq!(
        files_that_no_mod_line_reaches(&all, &reached),
        ["src/comment.rs: no `mod` line reaches it", "src/a/mod.rs: mod gone: there is no such file"]
    );
    let tests: Vec<&str> =
        reached.files.iter().filter(|(_, is_test)| **is_test).map(|(path, _)| path.as_str()).collect();
    assert_eq!(tests, ["src/a/b/tests.rs", "src/tests/e.rs", "src/tests/mod.rs"]);
}

#[test]
fn roots_named_in_cargo_toml_are_roots() {
    let text = "[[test]]\nname = \"x\"\npath = \"src/tests/x.rs\"\n[[bin]]\nname = \"y\"\npath = \"src/y.rs\"\n";
    let roots = crate_roots(text);
    assert!(roots.contains(&("src/tests/x.rs".to_owned(), true)));
    assert!(roots.contains(&("src/y.rs".to_owned(), false)));
}

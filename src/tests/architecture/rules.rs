//! The rules: functions from files to complaints, each complaint beginning with `path:line:`.

use std::collections::BTreeSet;

use super::scan::{CodePath, Reached, SourceFile};
use super::{ADAPTERS, HOMES, LAYERS, LONGER, MOST_LINES, NOT_IN_DECISIONS, SIDEWAYS};

pub(super) fn layer(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, layer)| *layer)
}

fn working(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    files.iter().filter(|file| !file.is_test)
}

/// What a path names as seen from the crate's root: `crate::a::b` and `super::…` become `a::b`.
fn from_root(file: &SourceFile, path: &CodePath) -> Option<Vec<String>> {
    let first = path.segments.first()?;
    match first.as_str() {
        "crate" => Some(path.segments[1..].to_vec()),
        // The library's own name, as the binary and the benchmarks see it.
        "trueup" if matches!(file.module(), "main" | "benches") => Some(path.segments[1..].to_vec()),
        "super" => {
            let ups = path.segments.iter().take_while(|segment| *segment == "super").count();
            let module = file.module_path();
            let kept = module.len().checked_sub(ups)?;
            let mut whole: Vec<String> = module[..kept].iter().map(|part| (*part).to_owned()).collect();
            whole.extend_from_slice(&path.segments[ups..]);
            Some(whole)
        }
        _ => None,
    }
}

pub(super) fn module_without_a_layer(files: &[SourceFile]) -> Vec<String> {
    let modules: BTreeSet<&str> = working(files).map(SourceFile::module).collect();
    let homeless = modules.into_iter().filter(|module| layer(module).is_none());
    homeless
        .map(|module| format!("`{module}` has no layer: give it one in LAYERS and in docs/ARCHITECTURE.md"))
        .collect()
}

pub(super) fn imports_that_do_not_point_down(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in working(files).filter(|file| file.module() != "lib") {
        let own = file.module();
        for path in file.paths() {
            let Some(to) = from_root(file, &path).and_then(|whole| whole.first().cloned()) else {
                continue;
            };
            let is_sideways = SIDEWAYS.iter().any(|(from, into, _)| *from == own && *into == to);
            let is_down = match (layer(own), layer(&to)) {
                (Some(from), Some(into)) => into < from,
                _ => false,
            };
            if to != own && !is_down && !is_sideways {
                found.push(format!("{}:{}: `{own}` may not import `{to}`", file.path, path.line));
            }
        }
    }
    found
}

pub(super) fn adapters_named_outside_of_app(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in working(files).filter(|file| !matches!(file.module(), "app" | "lib")) {
        for path in file.paths() {
            let Some(whole) = from_root(file, &path).map(|whole| whole.join("::")) else {
                continue;
            };
            let named =
                ADAPTERS.iter().find(|adapter| whole == **adapter || whole.starts_with(&format!("{adapter}::")));
            if let Some(adapter) = named.filter(|adapter| !adapter.starts_with(&format!("{}::", file.module()))) {
                found.push(format!("{}:{}: only `app` may name `{adapter}`: take the trait", file.path, path.line));
            }
        }
    }
    found
}

pub(super) fn crates_away_from_home(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in working(files) {
        for path in file.paths() {
            let Some((name, homes)) = HOMES.iter().find(|(name, _)| path.segments[0] == *name) else {
                continue;
            };
            let is_crate = path.is_import || path.segments.len() > 1 && !file.declares(name);
            if is_crate && !homes.iter().any(|home| is_below(&file.path, home)) {
                found.push(format!("{}:{}: `{name}` lives in {}", file.path, path.line, homes.join(" and ")));
            }
        }
    }
    found
}

/// `src/source/git.rs` and `src/source/git/look.rs` are below `src/source/git`, `src/source/github.rs` is not.
fn is_below(path: &str, home: &str) -> bool {
    path.strip_prefix(home).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

pub(super) fn clocks_outside_of_the_clock(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in working(files).filter(|file| file.module() != "clock") {
        let is_decision = layer(file.module()).is_some_and(|layer| layer <= 1);
        for three in file.tokens.windows(3) {
            let [owner, mark, name] = [&three[0], &three[1], &three[2]].map(|token| token.text.as_str());
            let is_direct = mark == "::" && name == "now" && owner != "clock";
            let is_handed = mark == "." && name == "now" && is_decision;
            if is_direct || is_handed {
                found.push(format!(
                    "{}:{}: the time is an argument; only `clock.rs` asks for it",
                    file.path, three[2].line
                ));
            }
        }
    }
    found
}

pub(super) fn effects_in_decisions(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    let decisions = working(files).filter(|file| layer(file.module()).is_some_and(|layer| layer <= 1));
    for file in decisions {
        let words = file.tokens.iter().filter(|token| matches!(token.text.as_str(), "async" | "await"));
        found.extend(words.map(|token| format!("{}:{}: `{}` in a decision", file.path, token.line, token.text)));
        for path in file.paths() {
            let named = NOT_IN_DECISIONS.iter().find(|banned| {
                path.segments.len() >= banned.len() && banned.iter().zip(&path.segments).all(|(a, b)| a == b)
            });
            let is_local = path.segments.len() == 1 && !path.is_import;
            if let Some(banned) = named.filter(|_| !is_local) {
                found.push(format!("{}:{}: `{}` in a decision", file.path, path.line, banned.join("::")));
            }
        }
    }
    found
}

pub(super) fn files_that_are_too_long(files: &[SourceFile]) -> Vec<String> {
    let long = working(files).filter(|file| file.lines > MOST_LINES);
    let unexcused = long.filter(|file| !LONGER.iter().any(|(path, _)| *path == file.path));
    unexcused.map(|file| format!("{}: {} lines, {MOST_LINES} are allowed", file.path, file.lines)).collect()
}

pub(super) fn files_that_no_mod_line_reaches(all: &BTreeSet<String>, reached: &Reached) -> Vec<String> {
    let lost = all.iter().filter(|path| !reached.files.contains_key(*path));
    let lost = lost.map(|path| format!("{path}: no `mod` line reaches it"));
    let missing = reached.missing.iter().map(|line| format!("{line}: there is no such file"));
    lost.chain(missing).collect()
}

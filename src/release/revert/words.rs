//! The words of a revert: what it undoes, for whom, and why.

use super::{Between, Cause, Facts, Proposal, TRAILER, proposal_branch};

/// Commits that are listed one by one.
const LISTED: usize = 50;

/// Characters of a subject that are repeated.
const SUBJECT_CHARS: usize = 100;

/// Paths that a conflict names.
const CONFLICTS_LISTED: usize = 5;

/// The commit's message.
pub(super) fn message(facts: &Facts<'_>) -> String {
    let mut lines = vec![title(facts), String::new(), why(facts), String::new(), "This undoes:".to_owned()];
    lines.extend(list(&facts.survey.undone));
    lines.push(String::new());
    lines.push("Data is never reverted: what the undone commits wrote to disks and databases stays.".to_owned());
    lines.push(String::new());
    let mut named: Vec<&super::Sha> = facts.survey.undone.iter().map(|commit| &commit.sha).take(LISTED).collect();
    if !named.contains(&facts.bad) {
        named.insert(0, facts.bad);
    }
    lines.extend(named.into_iter().map(|sha| format!("{TRAILER}: {sha}")));
    lines.push(String::new());
    lines.join("\n")
}

fn title(facts: &Facts<'_>) -> String {
    format!("Revert to {} for {}", facts.good.short(), facts.target)
}

fn why(facts: &Facts<'_>) -> String {
    match facts.cause {
        Cause::Person { by } => format!("{} rolled {} back to {}.", plain(by), facts.target, facts.good),
        Cause::Failure { why } => format!(
            "{} failed on {} and was put back to {}: {}",
            facts.bad.short(),
            facts.target,
            facts.good,
            plain(why)
        ),
    }
}

fn list(commits: &[Between]) -> Vec<String> {
    let mut lines: Vec<String> = commits
        .iter()
        .take(LISTED)
        .map(|commit| format!("- {} {}", commit.sha.short(), plain(&commit.subject)))
        .collect();
    if commits.len() > LISTED {
        lines.push(format!("- and {} more", commits.len() - LISTED));
    }
    lines
}

/// Somebody's words, on one line, and without what would mean something in a commit message of ours: `[skip ci]`
/// in a repeated subject would leave the revert without a CI run (GitHub facts, section 3, trap 5).
fn plain(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|character| match character {
            '[' => '(',
            ']' => ')',
            '@' => '\u{ff20}',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect();
    match one_line.char_indices().nth(SUBJECT_CHARS) {
        Some((at, _)) => format!("{}…", one_line.get(..at).unwrap_or_default()),
        None => one_line,
    }
}

/// The pull request.
pub(super) fn proposal(facts: &Facts<'_>, message: &str, why: String) -> Proposal {
    let text = message.split_once("\n\n").map_or("", |(_, text)| text);
    Proposal {
        head: proposal_branch(facts.bad),
        title: title(facts),
        body: format!("{text}\nThis is a pull request because {why}.\n"),
        why,
    }
}

pub(super) fn conflict(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(CONFLICTS_LISTED).map(|path| format!("`{}`", plain(path))).collect();
    let more = paths.len().saturating_sub(CONFLICTS_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "newer commits changed the same files again ({}{more}): which lines to keep is for a person to say",
        shown.join(", ")
    )
}

//! What to write to Git so that it agrees with a target that went back (rulings 17 to 22).
//!
//! Pure: it is told what lies between the good revision and the tip, and says which commit to write, or why
//! none. It never asks for a force push: every order names the tip that it was made for, and a branch that
//! moved meanwhile needs a new order.

use serde::{Deserialize, Serialize};

use crate::model::policy::{Project, TargetKind};
use crate::model::{BranchName, RepoPath, Sha, TargetName};

#[cfg(test)]
mod tests;
mod words;

/// The trailer that names a commit which a revert of ours undoes.
pub const TRAILER: &str = "Trueup-Reverts";

/// The branch that a proposal of ours is made from.
#[must_use]
pub fn proposal_branch(bad: &Sha) -> String {
    format!("trueup/revert-{}", bad.short())
}

/// Whether a message carries our trailer.
#[must_use]
pub fn is_ours(message: &str) -> bool {
    undone_by(message).next().is_some()
}

/// The commits that a message's trailers name.
pub fn undone_by(message: &str) -> impl Iterator<Item = Sha> + '_ {
    let values = message.lines().filter_map(|line| line.strip_prefix(TRAILER)?.strip_prefix(':'));
    values.filter_map(|value| value.trim().parse().ok())
}

/// One commit of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// Its name.
    pub sha: Sha,
    /// First line of its message.
    pub subject: String,
    /// Whether it is a revert of ours.
    pub is_ours: bool,
}

/// A file as a tree names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// `100644`, `100755`, `120000`, `160000`; `040000` for a directory that stands where a file was asked for.
    pub mode: String,
    /// The object.
    pub id: Sha,
}

/// A path that differs between the good and the bad revision, with what the tip has there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path.
    pub path: String,
    /// At the good revision.
    pub good: Option<Leaf>,
    /// At the revision that is undone.
    pub bad: Option<Leaf>,
    /// At the tip; what stands in the way counts as there.
    pub tip: Option<Leaf>,
}

/// What lies between the good revision and the tip, as the repository says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The branch's tip.
    pub tip: Sha,
    /// Its tree.
    pub tip_tree: Sha,
    /// The good revision's tree.
    pub good_tree: Sha,
    /// Whether good, bad and tip lie on one line of descent.
    pub is_one_line: bool,
    /// Commits after the good revision up to the bad one, newest first.
    pub undone: Vec<Between>,
    /// Commits after the bad revision up to the tip, newest first.
    pub newer: Vec<Between>,
    /// What the undone commits changed.
    pub changes: Vec<Change>,
}

/// Who goes back, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A person's rollback.
    Person {
        /// Who.
        by: String,
    },
    /// A release that failed and was undone.
    Failure {
        /// Why it failed.
        why: String,
    },
}

/// All that the decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The target that went back.
    pub target: &'a TargetName,
    /// The branch that it follows.
    pub branch: &'a BranchName,
    /// The revision that is good.
    pub good: &'a Sha,
    /// The newest commit that is undone.
    pub bad: &'a Sha,
    /// What lies between.
    pub survey: &'a Survey,
    /// The project's own directory, and those of other projects in the same repository.
    pub grounds: &'a Grounds,
    /// Whether the branch takes no direct commits.
    pub is_protected: bool,
    /// Whether a pull request is wished for in any case.
    pub is_proposal_wanted: bool,
    /// Who and why.
    pub cause: &'a Cause,
    /// Whether this commit was already answered on this branch.
    pub is_answered: bool,
}

/// Who has which part of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grounds {
    /// The project's own directory; empty is the whole tree.
    pub own: String,
    /// Those of other projects.
    pub others: Vec<String>,
}

/// What the new commit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Exactly this tree.
    Tree(Sha),
    /// The tip's tree with these paths put back.
    Edits {
        /// The tip's tree.
        onto: Sha,
        /// Path → what it becomes; none removes it.
        edits: Vec<(String, Option<Leaf>)>,
    },
}

/// One commit on top of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The branch.
    pub branch: BranchName,
    /// The tip that it was made for: the commit's only parent.
    pub parent: Sha,
    /// What it holds.
    pub content: Content,
    /// The whole message, trailers included.
    pub message: String,
    /// How it is proposed; none = it goes onto the branch itself.
    pub proposal: Option<Proposal>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The new branch.
    pub head: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Why it is no direct commit.
    pub why: String,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// There is nothing to write, and why.
    Nothing(String),
    /// Write this.
    Write(Box<Order>),
    /// A person must do it, and why.
    Stuck(String),
}

/// Decides what to write.
///
/// Source: rulings 18 to 20.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> Decision {
    let survey = facts.survey;
    if let Some(end) = refused_as_automatic(facts) {
        return end;
    }
    if survey.tip_tree == survey.good_tree {
        return Decision::Nothing(format!(
            "`{}` at {} already has the tree of {}",
            facts.branch,
            survey.tip.short(),
            facts.good.short()
        ));
    }
    if !survey.is_one_line {
        return Decision::Stuck(format!(
            "{} and {} do not lie on one line of `{}`: what to undo is for a person to say",
            facts.good.short(),
            facts.bad.short(),
            facts.branch
        ));
    }
    let content = match content(survey) {
        Ok(Some(content)) => content,
        Ok(None) => return Decision::Nothing(format!("`{}` has undone all of it already", facts.branch)),
        Err(paths) => return Decision::Stuck(words::conflict(&paths)),
    };
    let message = words::message(facts);
    let proposal = why_no_direct_commit(facts).map(|why| words::proposal(facts, &message, why));
    Decision::Write(Box::new(Order {
        branch: facts.branch.clone(),
        parent: survey.tip.clone(),
        content,
        message,
        proposal,
    }))
}

/// At most once for each commit and branch, and never of a revert of ours (ruling 20).
fn refused_as_automatic(facts: &Facts<'_>) -> Option<Decision> {
    match facts.cause {
        Cause::Person { .. } => None,
        Cause::Failure { .. } if facts.is_answered => Some(Decision::Nothing(format!(
            "{} was answered on `{}` before: at most one automatic revert is written for one commit",
            facts.bad.short(),
            facts.branch
        ))),
        Cause::Failure { .. } => {
            let ours = facts.survey.undone.iter().find(|commit| commit.is_ours)?;
            Some(Decision::Stuck(format!(
                "{} is itself a revert by trueup: reverting it would bring back what failed before",
                ours.sha.short()
            )))
        }
    }
}

/// The good tree where nothing came after, else the inverse of what is undone; none when nothing is left to
/// undo. The error lists the paths that were changed again since.
fn content(survey: &Survey) -> Result<Option<Content>, Vec<String>> {
    if survey.newer.is_empty() {
        return Ok(Some(Content::Tree(survey.good_tree.clone())));
    }
    let edits = inverse(&survey.changes)?;
    Ok((!edits.is_empty()).then(|| Content::Edits { onto: survey.tip_tree.clone(), edits }))
}

/// The three-way inverse, file by file: what the tip still has as the bad revision left it goes back.
///
/// # Errors
/// The paths where the tip has neither the one nor the other.
pub fn inverse(changes: &[Change]) -> Result<Vec<(String, Option<Leaf>)>, Vec<String>> {
    let open: Vec<&Change> = changes.iter().filter(|change| change.tip != change.good).collect();
    let conflicts: Vec<String> =
        open.iter().filter(|change| change.tip != change.bad).map(|change| change.path.clone()).collect();
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    Ok(open.into_iter().map(|change| (change.path.clone(), change.good.clone())).collect())
}

/// Why the commit may not go straight onto the branch; none when it may (ruling 19).
fn why_no_direct_commit(facts: &Facts<'_>) -> Option<String> {
    if let Some(newest) = facts.survey.newer.first() {
        return Some(format!(
            "{} and what lies below it came after {}, and stays",
            newest.sha.short(),
            facts.bad.short()
        ));
    }
    if let Some(change) = facts.survey.changes.iter().find(|change| facts.grounds.is_shared(&change.path)) {
        return Some(format!("`{}` also belongs to another project of this repository", change.path));
    }
    if facts.is_protected {
        return Some(format!("`{}` is protected", facts.branch));
    }
    facts.is_proposal_wanted.then(|| "a pull request was asked for".to_owned())
}

impl Grounds {
    /// The grounds of a project among those that are read from the same repository.
    pub fn of<'p>(project: &Project, all: impl Iterator<Item = &'p Project>) -> Self {
        let others = all.filter(|other| other.repo == project.repo && other.name != project.name);
        Self { own: directory(project), others: others.map(directory).collect() }
    }

    /// Whether a change of this path may matter to another project: it lies in another one's directory, or,
    /// in a repository of several, outside of the own one.
    #[must_use]
    pub fn is_shared(&self, path: &str) -> bool {
        !self.others.is_empty() && (!is_below(&self.own, path) || self.others.iter().any(|other| is_below(other, path)))
    }
}

fn is_below(directory: &str, path: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The directory that a project's manifest stands for: the one that holds it, or its `deploy`.
fn directory(project: &Project) -> String {
    let has_host = project.targets.values().any(|target| matches!(target.kind, TargetKind::Host(_)));
    let path: &RepoPath = match &project.hakopod_toml {
        Some(path) if !has_host => path,
        Some(_) | None => &project.app_toml,
    };
    let above = |path: &str| path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
    let holder = above(path.as_str());
    if holder == "deploy" || holder.ends_with("/deploy") { above(&holder) } else { holder }
}

/// The commands that write the same by hand, for a daemon without the right to write (ruling 21).
#[must_use]
pub fn commands(facts: &Facts<'_>) -> Vec<String> {
    let (branch, survey) = (facts.branch, facts.survey);
    let mut lines = vec![format!("git fetch origin {branch}")];
    if survey.newer.is_empty() && survey.is_one_line {
        lines.push(format!("git switch --detach {}", survey.tip));
        lines.push(format!("git restore --source={} --staged --worktree -- :/", facts.good));
    } else {
        lines.push(format!("git switch --detach {}", survey.tip));
        lines.push(format!("git revert --no-commit {}..{}", facts.good, facts.bad));
    }
    lines.push(format!("git commit -m 'Revert to {}' -m '{TRAILER}: {}'", facts.good.short(), facts.bad));
    let onto = match why_no_direct_commit(facts) {
        Some(_) => proposal_branch(facts.bad),
        None => branch.to_string(),
    };
    lines.push(format!("git push origin HEAD:refs/heads/{onto}"));
    lines
}

//! The commit's CI run: green, or held with a name (rulings 8 and 9).
//!
//! Evidence belongs to exactly one sha (promise P4), and GitHub's answers are taken as claims: each
//! run is compared field by field with what was asked before it counts.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{CiProof, Facts, Stop};
use crate::model::ci::{CiFacts, CiRun};
use crate::model::policy::{NoCiRun, Repository};
use crate::model::{Class, Reason, ReasonCode, Sha};

/// How long after the first question an empty answer means "not yet": the list is served by a
/// search that lags behind, and a run is created some seconds after its push.
///
/// Source: GitHub facts, section 3, traps 2 and 5.
pub const CI_GRACE: SignedDuration = SignedDuration::from_mins(2);

/// What is known of one commit's CI run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiKnowledge {
    /// The commit that was asked for; knowledge about another one counts as none.
    pub sha: Sha,
    /// When it was first asked for.
    pub first_asked: Timestamp,
    /// The last answer, or why there is none.
    pub answer: Result<CiFacts, CiFailure>,
}

/// Why GitHub gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiFailure {
    /// What is recorded.
    pub reason: Reason,
    /// `Stalled` is a missing right: the commit is denied. Everything else is held.
    pub class: Class,
    /// Before this instant another question is useless.
    pub until: Option<Timestamp>,
}

/// A workflow's runs, with what they are compared to.
struct Runs<'a> {
    workflow_id: u64,
    is_disabled: bool,
    renamed_to: Option<&'a str>,
    runs: &'a [CiRun],
}

pub(super) fn check(facts: &Facts<'_>, now: Timestamp) -> Result<CiProof, Stop> {
    if !facts.policy.require_ci {
        return Ok(CiProof::NotRequired);
    }
    let (Repository::GitHub { .. }, workflow) = (facts.repo, &facts.policy.ci_workflow) else {
        let message = format!(
            "{} asks for CI (`require_ci`), and {} is a plain remote without any; set `require_ci = false` or name a GitHub repository",
            facts.target, facts.repo
        );
        return Err(Stop::deny(ReasonCode::CiMissing, message));
    };
    let Some(knowledge) = facts.ci.filter(|knowledge| knowledge.sha == *facts.sha) else {
        let message = format!("GitHub has not been asked yet for the run of `{workflow}` for {}", facts.sha.short());
        return Err(Stop::hold(ReasonCode::CiPending, message));
    };
    match &knowledge.answer {
        Err(failure) => Err(unanswered(failure)),
        Ok(CiFacts::NoSuchWorkflow { names }) => Err(no_workflow(facts, names)),
        Ok(CiFacts::Ambiguous { paths }) => {
            let message = format!(
                "{} has several workflows named `{workflow}` ({}); give one of them another name, or name another one in `ci_workflow`",
                facts.repo,
                list(paths)
            );
            Err(Stop::hold(ReasonCode::CiMissing, message))
        }
        Ok(CiFacts::Runs { workflow_id, is_disabled, renamed_to, runs }) => {
            let renamed_to = renamed_to.as_deref();
            let runs = Runs { workflow_id: *workflow_id, is_disabled: *is_disabled, renamed_to, runs };
            judge(facts, &runs, (knowledge.first_asked, now))
        }
    }
}

fn unanswered(failure: &CiFailure) -> Stop {
    match failure.class {
        Class::Stalled => Stop::Deny(failure.reason.clone()),
        Class::Transient | Class::Bug => {
            Stop::Hold { reason: failure.reason.clone(), until: failure.until, link: None }
        }
    }
}

fn no_workflow(facts: &Facts<'_>, names: &[String]) -> Stop {
    let there = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", list(names)) };
    let message = format!(
        "{} has no workflow named `{}`: {there}; correct `ci_workflow`, or set `require_ci = false`",
        facts.repo, facts.policy.ci_workflow
    );
    Stop::deny(ReasonCode::CiMissing, message)
}

fn judge(facts: &Facts<'_>, runs: &Runs<'_>, asked: (Timestamp, Timestamp)) -> Result<CiProof, Stop> {
    let ours = runs.runs.iter().filter(|run| mismatch(facts, runs, run).is_none());
    let Some(run) = ours.max_by_key(|run| (run.number, run.attempt, run.id)) else {
        return missing(facts, runs, asked);
    };
    let workflow = &facts.policy.ci_workflow;
    let name = format!("run {} (attempt {}) of `{workflow}` for {}", run.number, run.attempt, facts.sha.short());
    let link = &run.link;
    let (code, message) = match (run.status.as_str(), run.conclusion.as_deref()) {
        ("completed", Some("success")) => {
            return Ok(CiProof::Green { number: run.number, attempt: run.attempt, link: link.clone() });
        }
        ("completed", Some("cancelled")) => {
            (ReasonCode::CiCancelled, format!("{name} was cancelled; re-run it, or push again: {link}"))
        }
        ("completed", Some(word)) => {
            (ReasonCode::CiRed, format!("{name} ended with `{word}`; re-run it, or push a correction: {link}"))
        }
        (status, _) => (ReasonCode::CiPending, format!("{name} is `{status}` and has no result yet: {link}")),
    };
    Err(Stop::Hold { reason: Reason::new(code, message), until: None, link: Some(link.clone()) })
}

/// The first field in which a run is not what was asked for.
fn mismatch(facts: &Facts<'_>, runs: &Runs<'_>, run: &CiRun) -> Option<&'static str> {
    let repo = facts.repo.to_string();
    let is_ours = run.head_repository.as_deref().is_some_and(|from| {
        from.eq_ignore_ascii_case(&repo) || runs.renamed_to.is_some_and(|name| from.eq_ignore_ascii_case(name))
    });
    let fields = [
        ("another sha", run.head_sha == facts.sha.as_str()),
        ("another workflow", run.workflow_id == runs.workflow_id),
        ("another event than `push`", run.event == "push"),
        ("another branch", run.head_branch.as_deref() == Some(facts.branch.as_str())),
        ("another repository", is_ours),
    ];
    fields.into_iter().find(|(_, is_equal)| !is_equal).map(|(name, _)| name)
}

fn missing(facts: &Facts<'_>, runs: &Runs<'_>, (first_asked, now): (Timestamp, Timestamp)) -> Result<CiProof, Stop> {
    let workflow = &facts.policy.ci_workflow;
    let none = format!("no run of `{workflow}` is known for {} on `{}`", facts.sha.short(), facts.branch);
    if runs.is_disabled {
        let message = format!("{none}, and the workflow is switched off; enable it on GitHub, then push or re-run");
        return Err(Stop::hold(ReasonCode::CiMissing, message));
    }
    let aside = set_aside(facts, runs);
    let grace_ends = first_asked.checked_add(CI_GRACE).ok().filter(|end| *end > now);
    if let Some(end) = grace_ends {
        let reason = Reason::new(ReasonCode::CiPending, format!("{none}{aside} yet; waiting for one until {end}"));
        return Err(Stop::Hold { reason, until: Some(end), link: None });
    }
    let unchanged = match (facts.policy.no_ci_run, facts.release_paths_unchanged) {
        (NoCiRun::Hold, _) => "",
        (NoCiRun::AllowIfReleasePathsUnchanged, Some(true)) => return Ok(CiProof::NothingChanged),
        (NoCiRun::AllowIfReleasePathsUnchanged, Some(false)) => ", and what the release is made of has changed",
        (NoCiRun::AllowIfReleasePathsUnchanged, None) => {
            ", and whether what the release is made of has changed is not known"
        }
    };
    let message = format!(
        "{none}{aside}{unchanged}; perhaps the commit skips CI or the workflow's filters leave it out: push another commit, or see `no_ci_run`"
    );
    Err(Stop::hold(ReasonCode::CiMissing, message))
}

/// Names the runs that GitHub gave and that are not for this commit.
fn set_aside(facts: &Facts<'_>, runs: &Runs<'_>) -> String {
    let mut why: Vec<&str> = runs.runs.iter().filter_map(|run| mismatch(facts, runs, run)).collect();
    let count = why.len();
    why.sort_unstable();
    why.dedup();
    if count == 0 { String::new() } else { format!(" ({count} set aside: {})", why.join(", ")) }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

//! GitHub's JSON and links, as far as they are read.

use std::sync::Arc;

use serde::Deserialize;

use super::pages::Page;
use crate::model::ci::{CiFacts, CiRun};

/// One page of either list. A page that is neither is an error, never an empty list (promise P7).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Body {
    Workflows { workflows: Vec<Workflow> },
    Runs { workflow_runs: Vec<Run> },
}

#[derive(Debug, Deserialize)]
pub(super) struct Workflow {
    id: u64,
    name: String,
    path: String,
    state: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    id: u64,
    run_number: u64,
    #[serde(default = "first")]
    run_attempt: u64,
    workflow_id: u64,
    head_sha: String,
    head_branch: Option<String>,
    event: String,
    head_repository: Option<Named>,
    repository: Option<Named>,
    status: String,
    conclusion: Option<String>,
    html_url: String,
}

#[derive(Debug, Deserialize)]
struct Named {
    full_name: String,
}

fn first() -> u64 {
    1
}

/// What a workflow's name stands for.
pub(super) enum Resolved {
    One { id: u64, is_disabled: bool },
    Other(CiFacts),
}

/// Finds the workflow of exactly this name. Of several, the only one that is switched on counts:
/// the others can have no new runs.
pub(super) fn resolve(pages: &[Arc<Page>], name: &str) -> Resolved {
    let all = pages.iter().flat_map(|page| match &page.body {
        Body::Workflows { workflows } => workflows.as_slice(),
        Body::Runs { .. } => &[],
    });
    let there: Vec<&Workflow> = all.filter(|workflow| workflow.state != "deleted").collect();
    let named: Vec<&Workflow> = there.iter().copied().filter(|workflow| workflow.name == name).collect();
    let active: Vec<&Workflow> = named.iter().copied().filter(|workflow| !is_disabled(workflow)).collect();
    match (named.as_slice(), active.as_slice()) {
        ([one], _) | (_, [one]) => Resolved::One { id: one.id, is_disabled: is_disabled(one) },
        ([], _) => {
            let names = there.iter().map(|workflow| workflow.name.clone()).collect();
            Resolved::Other(CiFacts::NoSuchWorkflow { names })
        }
        (several, _) => {
            let paths = several.iter().map(|workflow| workflow.path.clone()).collect();
            Resolved::Other(CiFacts::Ambiguous { paths })
        }
    }
}

/// `disabled_manually`, `disabled_inactivity`, `disabled_fork`.
fn is_disabled(workflow: &Workflow) -> bool {
    workflow.state.starts_with("disabled")
}

/// The runs of all pages, unjudged.
pub(super) fn facts(pages: &[Arc<Page>], repo: &str, (workflow_id, is_disabled): (u64, bool)) -> CiFacts {
    let all: Vec<&Run> = pages
        .iter()
        .flat_map(|page| match &page.body {
            Body::Runs { workflow_runs } => workflow_runs.as_slice(),
            Body::Workflows { .. } => &[],
        })
        .collect();
    let now_named = all.iter().find_map(|run| run.repository.as_ref());
    let renamed_to =
        now_named.map(|named| named.full_name.clone()).filter(|full_name| !full_name.eq_ignore_ascii_case(repo));
    CiFacts::Runs { workflow_id, is_disabled, renamed_to, runs: all.into_iter().map(run).collect() }
}

fn run(run: &Run) -> CiRun {
    CiRun {
        id: run.id,
        number: run.run_number,
        attempt: run.run_attempt,
        workflow_id: run.workflow_id,
        head_sha: run.head_sha.clone(),
        head_branch: run.head_branch.clone(),
        event: run.event.clone(),
        head_repository: run.head_repository.as_ref().map(|named| named.full_name.clone()),
        status: run.status.clone(),
        conclusion: run.conclusion.clone(),
        link: run.html_url.clone(),
    }
}

/// The target of `rel="next"` in a `Link` header.
///
/// Source: RFC 8288, in the form that GitHub writes.
pub(super) fn next(link: &str) -> Option<String> {
    link.split(',').find_map(|entry| {
        let (target, parameters) = entry.split_once(';')?;
        let is_next = parameters.split(';').any(|parameter| parameter.trim() == "rel=\"next\"");
        let target = target.trim().strip_prefix('<')?.strip_suffix('>')?;
        is_next.then(|| target.to_owned())
    })
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub(super) fn encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&hex::encode_upper([byte]));
        }
        encoded
    })
}

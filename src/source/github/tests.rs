use std::sync::Arc;

use jiff::Timestamp;

use super::{GithubChecks, GithubSettings, wire};
use crate::model::policy::Repository;
use crate::model::{BranchName, Class, ReasonCode, Secret, Sha};
use crate::source::{Checks as _, ChecksError, CiFacts, CiRun};
use crate::tests::github::{Fault, Github, Run, TOKEN};

mod app;
mod failures;
mod memory;
mod strictness;
mod writing;

const NOW: &str = "2026-11-30T10:00:00Z";
const CI: u64 = 11;

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn epoch(text: &str) -> u64 {
    text.parse::<Timestamp>().unwrap().as_second().try_into().unwrap()
}

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

fn sha(letter: &str) -> Sha {
    letter.repeat(40).parse().unwrap()
}

fn settings(api_url: String) -> GithubSettings {
    GithubSettings { api_url, call_deadline: super::CALL_DEADLINE, now: Arc::new(now) }
}

fn checks(github: &Github) -> GithubChecks {
    GithubChecks::new(settings(github.url()), Some(Secret::new(TOKEN.to_owned()))).unwrap()
}

fn repo(name: &str) -> Repository {
    Repository::GitHub { owner: "acme".to_owned(), name: name.to_owned() }
}

async fn ask(checks: &GithubChecks) -> Result<CiFacts, ChecksError> {
    ask_for(checks, "a").await
}

async fn ask_for(checks: &GithubChecks, letter: &str) -> Result<CiFacts, ChecksError> {
    let main: BranchName = "main".parse().unwrap();
    checks.runs(&repo("shop"), "ci", (&main, &sha(letter))).await
}

/// A stand-in with the workflow `ci` and a green run of "a".
async fn green() -> Github {
    let github = Github::start().await;
    github.workflow("ci", CI);
    github.run(Run::green(7, CI, sha("a").as_str()));
    github
}

fn numbers(facts: CiFacts) -> Vec<u64> {
    runs(facts).into_iter().map(|run| run.number).collect()
}

fn runs(facts: CiFacts) -> Vec<CiRun> {
    match facts {
        CiFacts::Runs { runs, .. } => runs,
        CiFacts::NoSuchWorkflow { .. } | CiFacts::Ambiguous { .. } => {
            panic!("no runs in {facts:?}")
        }
    }
}

#[tokio::test]
async fn a_run_is_given_with_every_field() {
    let github = green().await;
    github.workflow("lint", 12);
    let facts = ask(&checks(&github)).await.unwrap();
    let run = CiRun {
        id: 30_000_000_007,
        number: 7,
        attempt: 1,
        workflow_id: CI,
        head_sha: sha("a").to_string(),
        head_branch: Some("main".to_owned()),
        event: "push".to_owned(),
        head_repository: Some("acme/shop".to_owned()),
        status: "completed".to_owned(),
        conclusion: Some("success".to_owned()),
        link: "https://github.test/acme/shop/actions/runs/7".to_owned(),
    };
    assert_eq!(facts, CiFacts::Runs { workflow_id: CI, is_disabled: false, renamed_to: None, runs: vec![run] });
    let asked: Vec<String> = github.asked().into_iter().map(|asked| asked.path_and_query).collect();
    let sha = sha("a");
    assert_eq!(
        asked,
        [
            "/repos/acme/shop/actions/workflows?per_page=100".to_owned(),
            format!("/repos/acme/shop/actions/workflows/11/runs?head_sha={sha}&event=push&branch=main&per_page=100"),
        ]
    );
}

#[tokio::test]
async fn a_run_in_progress_has_no_conclusion_and_a_re_run_keeps_its_number() {
    let github = green().await;
    let checks = checks(&github);
    ask(&checks).await.unwrap();
    let mut again = Run::green(7, CI, sha("a").as_str()).at("in_progress");
    again.attempt = 2;
    github.run(again);
    let runs = runs(ask(&checks).await.unwrap());
    let [run] = runs.as_slice() else { panic!("one run: {runs:?}") };
    assert_eq!((run.number, run.attempt, run.status.as_str(), run.conclusion.as_deref()), (7, 2, "in_progress", None));
    github.run(Run::green(7, CI, sha("a").as_str()).ended("cancelled"));
    let runs = self::runs(ask(&checks).await.unwrap());
    assert_eq!(runs.first().and_then(|run| run.conclusion.as_deref()), Some("cancelled"));
}

#[tokio::test]
async fn an_enterprise_server_without_limits_is_asked_below_its_path() {
    let github = green().await;
    github.without_limits();
    let checks = GithubChecks::new(settings(github.enterprise_url()), Some(Secret::new(TOKEN.to_owned()))).unwrap();
    assert_eq!(numbers(ask(&checks).await.unwrap()), [7]);
    assert_eq!(checks.budget(), None);
    assert!(github.asked().iter().all(|asked| asked.path_and_query.starts_with("/api/v3/repos/")));
}

#[tokio::test]
async fn a_branch_name_is_encoded() {
    let github = green().await;
    let mut run = Run::green(8, CI, sha("a").as_str());
    run.branch = Some("feat/a&b=c+d #1é".replace(' ', ""));
    let branch: BranchName = run.branch.as_deref().unwrap().parse().unwrap();
    github.run(run);
    let facts = checks(&github).runs(&repo("shop"), "ci", (&branch, &sha("a"))).await.unwrap();
    assert_eq!(numbers(facts), [8]);
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let github = green().await;
    for (id, name) in [(1, "a"), (2, "b"), (3, "c")] {
        github.workflow(name, id);
    }
    for number in [8, 9] {
        github.run(Run::green(number, CI, sha("a").as_str()));
    }
    github.page_size(1);
    assert_eq!(numbers(ask(&checks(&github)).await.unwrap()), [9, 8, 7]);
    assert_eq!(github.charged(), 4 + 3);
}

#[tokio::test]
async fn a_list_without_an_end_is_an_error_and_not_a_part_of_it() {
    let github = green().await;
    for id in 100..110 {
        github.workflow("lint", id);
    }
    github.page_size(1);
    let error = ask(&checks(&github)).await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.reason.message.contains("more than 10 pages"), "{error}");
    assert_eq!(github.asked().len(), 10);
}

#[tokio::test]
async fn a_next_page_on_another_host_is_not_followed() {
    let github = green().await;
    github.workflow("lint", 12);
    github.page_size(1);
    github.misbehave(Fault::StrangeLink);
    let error = ask(&checks(&github)).await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.reason.message.contains("is not followed"), "{error}");
    assert_eq!(github.asked().len(), 1);
}

#[tokio::test]
async fn a_renamed_repository_is_followed_and_its_new_name_told() {
    let github = green().await;
    github.rename("acme/store");
    let facts = ask(&checks(&github)).await.unwrap();
    assert!(matches!(&facts, CiFacts::Runs { renamed_to: Some(name), .. } if name == "acme/store"), "{facts:?}");
    assert_eq!(numbers(facts), [7]);
}

#[tokio::test]
async fn wrong_runs_are_handed_on_with_what_makes_them_wrong() {
    let github = green().await;
    let mut fork = Run::green(8, CI, sha("a").as_str());
    fork.fork = Some("mallory/shop".to_owned());
    let mut branch = Run::green(9, CI, sha("a").as_str());
    branch.branch = Some("other".to_owned());
    let mut event = Run::green(10, CI, sha("a").as_str());
    event.event = "pull_request".to_owned();
    for run in [fork, branch, event, Run::green(11, CI, sha("b").as_str()), Run::green(12, 99, sha("a").as_str())] {
        github.run(run);
    }
    let checks = checks(&github);
    github.misbehave(Fault::Status(502, "warm up"));
    ask(&checks).await.unwrap_err();
    github.outage(Some(Fault::Unfiltered));
    let runs = runs(ask(&checks).await.unwrap());
    let field = |number: u64| runs.iter().find(|run| run.number == number).unwrap().clone();
    assert_eq!(field(8).head_repository.as_deref(), Some("mallory/shop"));
    assert_eq!(field(9).head_branch.as_deref(), Some("other"));
    assert_eq!(field(10).event, "pull_request");
    assert_eq!(field(11).head_sha, sha("b").to_string());
    assert_eq!(field(12).workflow_id, 99);
}

#[tokio::test]
async fn an_empty_list_while_runs_exist_is_no_runs_and_no_error() {
    let github = green().await;
    let checks = checks(&github);
    ask(&checks).await.unwrap();
    github.run(Run::green(8, CI, sha("a").as_str()));
    github.misbehave(Fault::Unfiltered);
    github.misbehave(Fault::Empty);
    assert_eq!(numbers(ask(&checks).await.unwrap()), Vec::<u64>::new());
    assert_eq!(numbers(ask(&checks).await.unwrap()), [8, 7], "the next look sees them");
}

#[tokio::test]
async fn a_workflow_is_found_by_its_exact_name() {
    let github = green().await;
    let checks = checks(&github);
    let main: BranchName = "main".parse().unwrap();
    let facts = checks.runs(&repo("shop"), "CI", (&main, &sha("a"))).await.unwrap();
    assert_eq!(facts, CiFacts::NoSuchWorkflow { names: vec!["ci".to_owned()] });
    github.workflow("ci", 12);
    let paths = vec![".github/workflows/ci-11.yml".to_owned(), ".github/workflows/ci-12.yml".to_owned()];
    assert_eq!(ask(&checks).await.unwrap(), CiFacts::Ambiguous { paths });
    github.workflow_state(12, "disabled_inactivity");
    assert_eq!(numbers(ask(&checks).await.unwrap()), [7], "the one that is switched on is meant");
    github.workflow_state(12, "deleted");
    github.workflow_state(CI, "disabled_manually");
    let facts = ask(&checks).await.unwrap();
    assert!(matches!(facts, CiFacts::Runs { workflow_id: CI, is_disabled: true, .. }), "{facts:?}");
}

#[tokio::test]
async fn a_plain_remote_is_not_asked_about() {
    let github = green().await;
    let main: BranchName = "main".parse().unwrap();
    let plain = Repository::Url("file:///srv/shop.git".to_owned());
    let error = checks(&github).runs(&plain, "ci", (&main, &sha("a"))).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::CiMissing, Class::Stalled));
    assert!(github.asked().is_empty());
}

#[test]
fn the_next_page_is_read_from_any_place_of_a_link_header() {
    let link =
        "<https://h/a?page=1>; rel=\"prev\", <https://h/a?x=1&page=3>; rel=\"next\", <https://h/a>; rel=\"last\"";
    assert_eq!(wire::next(link).as_deref(), Some("https://h/a?x=1&page=3"));
    for none in ["", "<https://h/a>; rel=\"last\"", "https://h/a; rel=\"next\"", "<https://h/a>"] {
        assert_eq!(wire::next(none), None, "{none}");
    }
}

#[test]
fn only_unreserved_characters_stay_as_they_are() {
    assert_eq!(wire::encode("feat/a-b_c.d~e é"), "feat%2Fa-b_c.d~e%20%C3%A9");
}

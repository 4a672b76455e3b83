use proptest::prelude::*;
use serde::Deserialize;

use super::parse;
use crate::model::ProjectName;
use crate::tests::edits;

#[derive(Debug, Deserialize)]
struct CorpusCase {
    id: String,
    kind: String,
    toml: String,
    project: String,
    expect: String,
    message_contains: Option<String>,
}

fn corpus() -> Vec<CorpusCase> {
    let text = edits::text("manifest/apptoml/cases.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    cases.filter(|case: &CorpusCase| case.kind == "app").collect()
}

fn shop() -> ProjectName {
    "shop".parse().unwrap()
}

#[test]
fn the_contract_s_cases_are_accepted_and_refused_as_it_says() {
    for case in corpus() {
        let project: ProjectName = case.project.parse().unwrap();
        let read = parse(case.toml.as_bytes(), "deploy/app.toml", Some(&project));
        assert_eq!(read.is_ok(), case.expect == "accept", "{}: {read:?}", case.id);
        if let Some(message) = case.message_contains {
            let problems = read.unwrap_err();
            assert_eq!(problems.list.first().unwrap().message, message, "{}", case.id);
        }
    }
}

#[test]
fn every_rule_has_its_edit() {
    edits::run("manifest/apptoml", |bytes| parse(bytes, "app.toml", Some(&shop())));
}

#[test]
fn a_good_file_is_read_with_its_defaults() {
    let manifest = parse(edits::text("manifest/apptoml/minimal.toml").as_bytes(), "app.toml", None).unwrap();
    assert_eq!(manifest.project, shop());
    assert_eq!((manifest.component.as_str(), manifest.port, manifest.health.as_str()), ("web", 8080, "/healthz"));
    assert_eq!((manifest.dockerfile.as_str(), manifest.context.as_str()), ("Dockerfile", "."));
    assert_eq!((manifest.data, manifest.smoke.len(), manifest.jobs.len()), (None, 0, 0));
}

#[test]
fn header_names_are_kept_in_lower_case_and_schedules_in_their_normal_form() {
    let text = edits::text("manifest/apptoml/base.toml")
        .replace("content-type", "Content-Type")
        .replace("*-*-* 03:10:00", "03:10");
    let manifest = parse(text.as_bytes(), "app.toml", None).unwrap();
    assert!(manifest.smoke[0].headers.contains_key("content-type"));
    assert_eq!(manifest.jobs[0].schedule, "*-*-* 03:10:00");
    assert_eq!(manifest.jobs[0].timeout_seconds, 600);
}

#[test]
fn a_problem_has_its_line_and_column() {
    let text = "schema = 1\nproject = \"shop\"\norder = [\"web\"]\n[images.web]\ndockerfile = \"D\"\n[components.web]\nimage = \"web\"\nkind = \"ä\"; port = 1\n";
    let problems = parse(text.as_bytes(), "app.toml", None).unwrap_err();
    let place = problems.list[0].place.unwrap();
    assert_eq!((place.line, place.column), (8, 11), "{problems:?}");
    let text = text.replace("; port = 1", "\r\nport = 0");
    let problems = parse(text.as_bytes(), "app.toml", None).unwrap_err();
    let places: Vec<_> = problems.list.iter().map(|problem| problem.place.unwrap()).collect();
    assert_eq!((places[0].line, places[0].column), (8, 8));
    assert_eq!((places[1].line, places[1].column), (9, 8));
}

#[test]
fn a_misplaced_schema_says_which_line_to_move() {
    let text = "project = \"shop\"\n[state]\nschema = 1\n";
    let problems = parse(text.as_bytes(), "app.toml", None).unwrap_err();
    assert_eq!(problems.list[0].message, "app.toml: schema must be 1");
    assert!(problems.list[0].fix.contains("line 3"), "{}", problems.list[0].fix);
}

#[test]
fn a_later_schema_is_the_only_problem() {
    let problems = parse(b"schema = 2\nnew_key = 1\n", "app.toml", None).unwrap_err();
    assert_eq!(problems.list.len(), 1, "{problems:?}");
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    let text = edits::text("manifest/apptoml/base.toml").replace("health =", "heatlh =");
    let problems = parse(text.as_bytes(), "app.toml", None).unwrap_err();
    assert_eq!(problems.list[0].fix, "did you mean `health`?");
}

/// Every quoted text of a good file, replaced one at a time by something that must not be shown.
#[test]
fn no_message_shows_a_value() {
    let bases = corpus().into_iter().map(|case| case.toml).chain([edits::text("manifest/apptoml/base.toml")]);
    for base in bases {
        for canary in ["canary-s3cr3t-value", "Canary S3cr3t\\tValue", "ghp_c4naryS3cr3t0000000000000000000000"] {
            for edited in with_canaries(&base, canary) {
                let Err(problems) = parse(edited.as_bytes(), "app.toml", Some(&shop())) else {
                    continue;
                };
                let shown = serde_json::to_string(&problems).unwrap().to_lowercase();
                assert!(!shown.contains("s3cr3t"), "{shown}\n{edited}");
            }
        }
    }
}

/// `text` with each quoted string in turn replaced by `canary`, also left open, for a syntax error.
pub(crate) fn with_canaries(text: &str, canary: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('"').collect();
    let mut edited = Vec::new();
    for index in (1..parts.len()).step_by(2) {
        let mut with = parts.clone();
        with[index] = canary;
        edited.push(with.join("\""));
        let (before, after) = (parts[..index].join("\""), parts[index + 1..].join("\""));
        edited.push(format!("{before}\"{canary}{after}"));
        edited.push(format!("{before}{canary}\"{after}"));
        edited.push(format!("{before}[\"{canary}\"]{after}"));
    }
    edited
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _read = parse(&bytes, "app.toml", None);
    }

    #[test]
    fn no_changed_file_panics(case in 0_usize..50, at in 0_usize..2000, put in "\\PC{0,6}|[\\[\\]\"'=.\\n{},]{0,4}", cut in 0_usize..8) {
        let cases = corpus();
        let text: Vec<char> = cases[case % cases.len()].toml.chars().collect();
        let at = at % (text.len() + 1);
        let edited: String = text[..at].iter().copied().chain(put.chars()).chain(text[at..].iter().skip(cut).copied()).collect();
        if let Err(problems) = parse(edited.as_bytes(), "app.toml", None) {
            prop_assert!(!problems.list.is_empty());
            prop_assert!(problems.list.iter().all(|problem| !problem.message.contains("more problems")));
        }
    }
}

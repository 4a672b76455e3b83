//! `testdata/manifest/hakopod/cases.jsonl`: a line a case, naming its rule and the fields refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::super::rules::{self, PREVIEW, RULES};
use super::super::{parse, raw};
use super::good;
use crate::model::document::{self, FileName};

#[derive(Deserialize)]
struct Case {
    /// Of [`RULES`], or `types`, `unknown-key`, `syntax`.
    rule: String,
    /// Paths of the fields refused, all of them; none when it is accepted.
    refused: Vec<String>,
    /// The document; `«a*5»` stands for `aaaaa`.
    toml: String,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/manifest/hakopod/cases.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Case>(line).unwrap())
        .map(|case| Case { toml: expanded(&case.toml), ..case })
        .collect()
}

fn expanded(text: &str) -> String {
    let mut whole = String::new();
    for (index, part) in text.split('«').enumerate() {
        let rest = match part.split_once('»') {
            Some((run, rest)) if index > 0 => {
                let (letter, count) = run.split_once('*').unwrap();
                whole.push_str(&letter.repeat(count.parse().unwrap()));
                rest
            }
            _ => part,
        };
        whole.push_str(rest);
    }
    whole
}

/// Names of the rules that find something.
fn rules_of(text: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let read = document::read(text.as_bytes(), FileName { file: "", label: "" }, |root| {
        let (raw, failed) = raw::read(root);
        found = rules::check(&raw, &failed, RULES).into_iter().map(|finding| finding.rule).collect();
        Some(())
    });
    drop(read);
    found
}

#[test]
fn every_case_is_answered_by_exactly_its_fields() {
    let mut wrong = Vec::new();
    for case in cases() {
        let problems =
            parse(case.toml.as_bytes(), "hakopod.toml").err().map(|problems| problems.list).unwrap_or_default();
        let keys: BTreeSet<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        let wanted: BTreeSet<&str> = case.refused.iter().map(String::as_str).collect();
        let is_placed = problems.iter().all(|problem| problem.place.is_some());
        let of_rule = matches!(case.rule.as_str(), "types" | "unknown-key" | "syntax")
            || case.refused.is_empty()
            || rules_of(&case.toml).contains(case.rule.as_str());
        if keys != wanted || !is_placed || !of_rule {
            let shown: String = case.toml.chars().take(400).collect();
            wrong.push(format!(
                "{}: wanted {wanted:?}, got {keys:?}, rules {:?}\n{shown}",
                case.rule,
                rules_of(&case.toml)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n---\n"));
}

#[test]
fn every_rule_has_a_case_that_it_refuses_and_one_that_it_lets_through() {
    let cases = cases();
    assert!(cases.len() >= 300);
    let of = |name: &str, is_refused: bool| {
        cases.iter().any(|case| case.rule == name && case.refused.is_empty() != is_refused)
    };
    let no_good_case = [
        "actions",
        "env-file-is-imported",
        "session-excludes",
        "job-excludes",
        "http-names",
        "runtime-profile",
        "session-needs",
    ];
    for rule in RULES {
        assert!(of(rule.name, true), "`{}` refuses no case", rule.name);
        assert!(of(rule.name, false) || no_good_case.contains(&rule.name), "`{}` lets no case through", rule.name);
    }
}

#[test]
fn rules_have_names_of_their_own_and_a_section_of_the_rule_book() {
    let names: BTreeSet<&str> = RULES.iter().chain(PREVIEW).map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len() + PREVIEW.len());
    let is_section = |section: &str| {
        section.split('.').all(|part| part.parse::<u8>().is_ok_and(|number| (1..=26).contains(&number)))
    };
    assert!(RULES.iter().chain(PREVIEW).all(|rule| is_section(rule.section)));
}

#[test]
fn a_cycle_is_shown_whole() {
    let text = "name = \"s\"\n[services.a]\nimage = \"a\"\ndepends_on = [\"b\"]\n[services.b]\nimage = \"a\"\ndepends_on = [\"a\"]\n";
    let problems = parse(text.as_bytes(), "hakopod.toml").unwrap_err();
    assert_eq!(problems.list[0].message, "hakopod.toml: services.a.depends_on is a cycle: a → b → a");
}

#[test]
fn no_message_holds_a_value_of_the_file() {
    let text = "name = \"hunter2 x\"\nhunter2key = 1\n[services.web]\nimage = \"hunter2 x\"\nsize = \"hunter2\"\nnode_name = 1\n\
                port = \"hunter2\"\ndepends_on = [\"hunter2\"]\nnetworks = [\"hunter2\"]\nargs = [\"ok\", 1]\n\
                [services.web.env]\nDB_PASSWORD = \"hunter2\"\n[services.web.secrets]\nA = { ref = \"Hunter2\" }\n";
    let problems = parse(text.as_bytes(), "hakopod.toml").unwrap_err();
    assert!(problems.list.len() > 8);
    for problem in problems.list.iter().filter(|problem| problem.key != "hunter2key") {
        assert!(!format!("{problem:?}").to_lowercase().contains("hunter2"), "{problem:?}");
    }
    let syntax = parse(b"name = \"hunter2\nx", "hakopod.toml").unwrap_err();
    assert!(!format!("{syntax:?}").contains("hunter2"));
}

#[test]
fn places_are_those_of_the_values() {
    let text = "name = \"shop\"\n\n[services.web]\nimage = \"a\"\n  port = 70000\n";
    let problems = parse(text.as_bytes(), "hakopod.toml").unwrap_err();
    let place = problems.list[0].place.unwrap();
    assert_eq!((place.line, place.column), (5, 10));
}

#[test]
fn a_file_of_more_than_256_kib_is_refused_before_it_is_parsed() {
    let mut text = "name = \"shop\"\n[services.web]\nimage = \"a\"\n#".to_owned();
    text.push_str(&"x".repeat(262_144 - text.len()));
    good(&text);
    text.push('x');
    assert!(parse(text.as_bytes(), "hakopod.toml").is_err());
}

#[test]
fn a_specification_that_grows_past_256_kib_with_its_defaults_is_refused() {
    let content = "\\n".repeat(60_000);
    let file = |index: usize| {
        format!(
            "[services.s{index}]\nimage = \"a\"\n[services.s{index}.files.a]\nmount_path = \"/a\"\ncontent = \"\"\"{}\"\"\"\n",
            content.replace("\\n", "\n")
        )
    };
    let text = format!("name = \"shop\"\n{}{}{}", file(1), file(2), file(3));
    assert!(text.len() < 262_144);
    let problems = parse(text.as_bytes(), "hakopod.toml").unwrap_err();
    assert!(problems.list[0].message.contains("with defaults"), "{problems:?}");
}

/// The folder of real files beside the checkout, where it is there.
fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .skip(1)
        .take(3)
        .map(|above| above.join("shared/corpus/hakopod"));
    folder.into_iter().find(|folder| folder.is_dir())
}

#[test]
fn published_and_example_files_are_accepted_and_drafts_are_answered() {
    let Some(folder) = corpus() else { return };
    let index = std::fs::read_to_string(folder.join("INDEX.md")).unwrap();
    let mut accepted = 0;
    for row in index.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (name, kind) = (cells[1].trim_matches('`'), cells[6]);
        let bytes = std::fs::read(folder.join(name)).unwrap();
        match (kind, parse(&bytes, name)) {
            ("published" | "example", Ok(application)) => {
                accepted += 1;
                let again = good(&application.to_toml().unwrap());
                assert_eq!(application, again, "{name}");
            }
            ("published" | "example", Err(problems)) => panic!("{name}: {problems:#?}"),
            ("network", Ok(_)) => panic!("{name}: a virtual network is no application"),
            (_, Ok(_)) => {}
            (_, Err(problems)) => assert!(!problems.list.is_empty(), "{name}"),
        }
    }
    assert!(accepted >= 30, "{accepted}");
}

//! Holds the documents to the code: what they name exists.

use std::collections::BTreeSet;

use super::scan::{blank, tokens};
use super::{read, real_reach};
use crate::model::ReasonCode;

/// A test that `docs/ARCHITECTURE.md` names.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    /// `P1` to `P11`, `I1` to `I9`.
    row: String,
    /// The function's name.
    test: String,
    /// Whether it is marked as not written yet.
    is_to_come: bool,
}

/// The rows whose first cell is a letter of `PI` and a number; the last cell lists tests.
fn named_tests(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let number = cells[0].strip_prefix(['P', 'I']).map(str::parse::<u8>);
        if let Some(Ok(_)) = number {
            let tests = cells.last().copied().unwrap_or_default().split(", ");
            found.extend(tests.map(|item| Named {
                row: cells[0].to_owned(),
                test: item.split('`').nth(1).unwrap_or_default().to_owned(),
                is_to_come: item.ends_with("(to come)"),
            }));
        }
    }
    found
}

fn complaints(named: &[Named], functions: &BTreeSet<String>) -> Vec<String> {
    let wrong = named.iter().filter(|one| functions.contains(&one.test) == one.is_to_come);
    wrong
        .map(|one| match one.is_to_come {
            true => format!("{}: `{}` has come: remove its mark", one.row, one.test),
            false => format!("{}: there is no test `{}`", one.row, one.test),
        })
        .collect()
}

/// The name of every function in the tree, tests included.
fn functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in real_reach().files.keys() {
        let tokens = tokens(&blank(&read(path).unwrap()));
        let pairs = tokens.windows(2).filter(|pair| pair[0].text == "fn");
        found.extend(pairs.map(|pair| pair[1].text.clone()));
    }
    found
}

#[test]
fn every_promise_and_invariant_names_tests_that_exist() {
    let named = named_tests(&read("docs/ARCHITECTURE.md").unwrap());
    let rows: BTreeSet<&str> = named.iter().map(|one| one.row.as_str()).collect();
    let promises = (1..=11).map(|number| format!("P{number}"));
    let wanted: BTreeSet<String> = promises.chain((1..=9).map(|number| format!("I{number}"))).collect();
    assert_eq!(rows, wanted.iter().map(String::as_str).collect());
    super::assert_none(&complaints(&named, &functions()));
}

#[test]
fn a_named_test_that_does_not_exist_is_noticed() {
    let text = "| | promise | held by |\n|---|---|---|\n| P1 | x | `is_there`, `is_not` |\n| I2 | y | `later` (to come), `is_there` (to come) |\n";
    let named = named_tests(text);
    assert_eq!(named.len(), 4);
    assert_eq!(
        complaints(&named, &BTreeSet::from(["is_there".to_owned()])),
        ["P1: there is no test `is_not`", "I2: `is_there` has come: remove its mark"]
    );
}

/// The words in the first cells of tables.
fn explained(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_reason_is_explained_in_the_operations_page() {
    let text = read("docs/operations.md").unwrap();
    let explained = explained(&text);
    let missing: Vec<String> = ReasonCode::ALL
        .iter()
        .filter(|reason| !explained.contains(reason.as_str()))
        .map(|reason| format!("docs/operations.md: `{reason}` has no line that says what to do"))
        .collect();
    super::assert_none(&missing);
    let known: BTreeSet<&str> = ReasonCode::ALL.iter().map(|reason| reason.as_str()).collect();
    let is_word = |word: &&str| word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphanumeric);
    let stale: Vec<&str> = explained.into_iter().filter(is_word).filter(|word| !known.contains(word)).collect();
    assert!(stale.is_empty(), "docs/operations.md explains {stale:?}, which nothing gives any more");
}

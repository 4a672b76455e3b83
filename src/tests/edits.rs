//! Tables of edits: a good base file, and one change of it a case.
//!
//! `base.toml` is accepted; each `[[case]]` of `cases.toml` puts `put` where `find` stands (or at the
//! end, without `find`), and says what becomes of it: `message` is part of the one refusal, absent
//! when the file is accepted.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;

use crate::model::{Problem, Problems};

/// One change of the base file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    find: Option<String>,
    put: String,
    message: Option<String>,
    /// How many problems there are, when not one.
    problems: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// A directory below `testdata/`.
pub(crate) fn testdata(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
}

/// A file below `testdata/`.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(testdata(path)).unwrap_or_else(|error| panic!("testdata/{path}: {error}"))
}

/// Runs the cases of one directory; all failures are told at once.
pub(crate) fn run<T>(directory: &str, parse: impl Fn(&[u8]) -> Result<T, Problems>) {
    let base = text(&format!("{directory}/base.toml"));
    assert_eq!(parse(base.as_bytes()).err(), None, "the base file is accepted");
    let cases: Cases = toml::from_str(&text(&format!("{directory}/cases.toml")))
        .unwrap_or_else(|error| panic!("{directory}: {}", error.message()));
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for case in &cases.case {
        assert!(names.insert(&case.about), "two cases are called {:?}", case.about);
        let edited = match &case.find {
            Some(find) => {
                assert!(base.contains(find.as_str()), "{}: `{find}` is not in the base", case.about);
                base.replacen(find.as_str(), &case.put, 1)
            }
            None => format!("{base}\n{}\n", case.put),
        };
        let refused = parse(edited.as_bytes()).err();
        failures.extend(judge(case, refused.as_ref()));
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

fn judge(case: &Case, refused: Option<&Problems>) -> Option<String> {
    let list: &[Problem] = refused.map(|problems| problems.list.as_slice()).unwrap_or_default();
    let messages: Vec<&str> = list.iter().map(|problem| problem.message.as_str()).collect();
    let is_right = match &case.message {
        None => list.is_empty(),
        Some(message) => {
            list.len() == case.problems.unwrap_or(1)
                && messages.iter().any(|found| found.contains(message.as_str()))
                && list.iter().all(|problem| !problem.why.is_empty() && !problem.fix.is_empty())
        }
    };
    (!is_right).then(|| format!("- {}: wanted {:?}, got {messages:#?}", case.about, case.message))
}

//! Problems in files that people write: what, where, why and what to do.

use serde::Serialize;

/// Where in a file: 1-based line and column, the column counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
}

/// One thing wrong with a file.
///
/// No part of it ever holds a value that could be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where; absent when the problem is what the file lacks.
    pub place: Option<Place>,
    /// The dotted path of the key, for example `targets.prod.slots[1]`; empty for the whole file.
    pub key: String,
    /// What is wrong. Where the contract quotes a message, exactly that.
    pub message: String,
    /// Why it matters: the rule.
    pub why: String,
    /// What to do.
    pub fix: String,
}

/// All problems of one file, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.summary())]
pub struct Problems {
    /// The file's name as the reader knows it.
    pub file: String,
    /// At least one.
    pub list: Vec<Problem>,
}

impl Problems {
    /// The first message, and how many more there are.
    #[must_use]
    pub fn summary(&self) -> String {
        match self.list.as_slice() {
            [] => format!("{}: refused", self.file),
            [only] => only.message.clone(),
            [first, rest @ ..] => format!("{} (and {} more)", first.message, rest.len()),
        }
    }
}

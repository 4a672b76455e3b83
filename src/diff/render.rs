//! Unified text differences.

use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;

/// One document before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name, for example `deploy/app.toml`.
    pub name: String,
    /// The text before; none when it did not exist.
    pub before: Option<String>,
    /// The text after; none when it goes away.
    pub after: Option<String>,
}

impl Document {
    /// Whether both sides are the same.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after
    }
}

/// The unified difference of all documents that changed, in the given order; empty when none did.
///
/// The form is that of `diff -u`: `--- a/NAME`, `+++ b/NAME`, hunks; a side that does not exist is `/dev/null`.
#[must_use]
pub fn unified(documents: &[Document]) -> String {
    documents.iter().filter(|document| !document.is_unchanged()).map(one).collect()
}

fn one(document: &Document) -> String {
    let before = document.before.as_deref().unwrap_or_default();
    let after = document.after.as_deref().unwrap_or_default();
    let side = |prefix: &str, exists: bool| {
        if exists { format!("{prefix}/{}", document.name) } else { "/dev/null".to_owned() }
    };
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&side("a", document.before.is_some()), &side("b", document.after.is_some()))
        .to_string()
}

//! Keys that are not known: all of a table in one problem, with the nearest known one.

use super::report::{Refusal, shown_key};
use super::view::Table;

const STRICT: &str = "files of this kind are strict: a key that is not known would be ignored in silence";

impl Table<'_> {
    /// Notes every key that is not among `known`, in one problem at the first of them.
    ///
    /// `top_level` are the keys of the file's top level: one of those inside a table stands there
    /// because it was written after the table's header, and the message says so.
    pub fn only(&self, known: &[&str], top_level: &[&str]) {
        let mut unknown: Vec<(usize, &str)> = self
            .map
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .map(|key| (key.span().start, key.get_ref().as_ref()))
            .collect();
        unknown.sort_unstable();
        let Some((first_at, first)) = unknown.first().copied() else {
            return;
        };
        let names: Vec<String> = unknown.iter().take(10).map(|(_, key)| format!("'{}'", shown_key(key))).collect();
        let more = if unknown.len() > names.len() { ", …" } else { "" };
        let list = format!("[{}{more}]", names.join(", "));
        let misplaced = !self.path().is_empty() && unknown.iter().any(|(_, key)| top_level.contains(key));
        let sentence = match (self.path().is_empty(), misplaced) {
            (true, _) => format!("unknown top-level keys {list}"),
            (false, true) => {
                format!("{} has unknown keys {list} (top-level keys must come before the first [table])", self.path())
            }
            (false, false) => format!("{} has unknown keys {list}", self.path()),
        };
        let fix = if misplaced {
            "move top-level keys to the top of the file, before any line in square brackets".to_owned()
        } else {
            nearest_fix(first, known)
        };
        self.report.note((Some(first_at), &self.path_of(first)), &sentence, Refusal::new("", STRICT, fix));
    }
}

/// The longest key that is compared: no known one is half as long, and the comparison is quadratic.
const LONGEST_COMPARED: usize = 64;

impl Table<'_> {
    /// Notes every key that is not among `known`, each in a problem of its own.
    pub fn only_each(&self, known: &[&str]) {
        for key in self.map.keys().map(|key| key.get_ref().as_ref()).filter(|key| !known.contains(key)) {
            self.refuse_key(key, Refusal::new("is an unknown key", STRICT, nearest_fix(key, known)));
        }
    }
}

/// What to do about an unknown key: the nearest known one, or the whole list.
fn nearest_fix(key: &str, known: &[&str]) -> String {
    let near = |candidate: &&&str| strsim::damerau_levenshtein(key, candidate) <= (candidate.len() / 3).max(1);
    let compared = if key.len() <= LONGEST_COMPARED { known } else { &[] };
    let nearest = compared.iter().filter(near).min_by_key(|candidate| strsim::damerau_levenshtein(key, candidate));
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("remove it; the keys known here are {}", known.join(", ")),
    }
}

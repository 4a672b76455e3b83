//! Collects the problems of one file and gives each its place.

use std::borrow::Cow;
use std::cell::RefCell;

use super::super::problem::{Place, Problem, Problems};
use super::FileName;

/// The most problems that one file is told of: past that, the first ones say what is wrong.
const MAX_PROBLEMS: usize = 200;

/// The longest key that is shown as it is.
const MAX_SHOWN_KEY: usize = 64;

/// Why one value is refused. None of the texts may hold a value of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, as the end of a sentence that begins with the key: `must be at most 300`.
    pub what: Cow<'static, str>,
    /// The rule.
    pub why: Cow<'static, str>,
    /// What to do.
    pub fix: Cow<'static, str>,
}

impl Refusal {
    /// Joins the three answers.
    pub fn new(
        what: impl Into<Cow<'static, str>>,
        why: impl Into<Cow<'static, str>>,
        fix: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { what: what.into(), why: why.into(), fix: fix.into() }
    }
}

/// A key in a message: as it is when it looks like a key, otherwise only its length.
///
/// Somebody may have put a secret where a key belongs; what is long, has unusual characters or
/// looks like a token is not shown.
#[must_use]
pub fn shown_key(key: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !key.is_empty() && key.len() <= MAX_SHOWN_KEY && key.chars().all(plain) && !looks_like_token(key) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(format!("<a key of {} characters>", key.chars().count()))
    }
}

/// Says whether a text has the look of a credential: a known prefix, or long with mixed characters.
fn looks_like_token(text: &str) -> bool {
    const PREFIXES: [&str; 12] =
        ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AKIA", "eyJ", "AGE-SECRET"];
    let has = |class: fn(&char) -> bool| text.chars().any(|c| class(&c));
    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    let hex = text.len() >= 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    PREFIXES.iter().any(|prefix| text.starts_with(prefix)) || (text.len() >= 16 && mixed) || hex
}

/// How early a problem is told: `schema` and `project` come before everything else (the contract
/// checks them first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Schema,
    Project,
    Rest,
}

struct Found {
    rank: Rank,
    at: Option<usize>,
    problem: Problem,
}

/// The problems of one file, in the making.
pub struct Report<'a> {
    name: FileName<'a>,
    text: &'a str,
    found: RefCell<Vec<Found>>,
    dropped: RefCell<usize>,
}

impl<'a> Report<'a> {
    /// Nothing wrong yet.
    #[must_use]
    pub fn new(name: FileName<'a>, text: &'a str) -> Self {
        Self { name, text, found: RefCell::new(Vec::new()), dropped: RefCell::new(0) }
    }

    /// Says whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Notes a problem at a byte of the text; `sentence` is the message without the file's label.
    #[expect(clippy::too_many_arguments, reason = "a place, a path, a sentence and the answers")]
    pub(super) fn note(&self, at: Option<usize>, key: &str, sentence: &str, refusal: Refusal) {
        let mut found = self.found.borrow_mut();
        if found.len() >= MAX_PROBLEMS {
            *self.dropped.borrow_mut() += 1;
            return;
        }
        let rank = match key {
            "schema" => Rank::Schema,
            "project" => Rank::Project,
            _ => Rank::Rest,
        };
        let problem = Problem {
            place: None,
            key: key.to_owned(),
            message: format!("{}: {sentence}", self.name.label),
            why: refusal.why.into_owned(),
            fix: refusal.fix.into_owned(),
        };
        found.push(Found { rank, at, problem });
    }

    /// Notes what the TOML parser said. Its message is made of fixed texts; the line it would
    /// quote stays out.
    pub(super) fn syntax(&self, message: &str, at: Option<usize>) {
        let message: String = message.chars().filter(|c| !c.is_control()).take(200).collect();
        let refusal = Refusal::new(
            "",
            "past this place the file cannot be read, so nothing else in it was checked",
            "correct this line; every text value stands in quotes, every table header in brackets",
        );
        self.note(at, "", &format!("not valid TOML: {message}"), refusal);
    }

    /// The place of a byte of the text.
    #[must_use]
    pub fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        place_after(before.matches('\n').count(), before.rsplit('\n').next().unwrap_or_default())
    }

    /// Everything noted, in order: `schema`, `project`, what the file lacks, then by place.
    #[must_use]
    pub fn into_problems(self) -> Problems {
        let mut found = self.found.into_inner();
        found.sort_by_key(|found| (found.rank, found.at));
        let starts: Vec<usize> =
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(at, _)| at.saturating_add(1))).collect();
        let locate = |at: usize| {
            let line = starts.partition_point(|start| *start <= at).saturating_sub(1);
            let start = starts.get(line).copied().unwrap_or_default();
            place_after(line, self.text.get(start..at).unwrap_or_default())
        };
        let mut list: Vec<Problem> =
            found.into_iter().map(|found| Problem { place: found.at.map(locate), ..found.problem }).collect();
        let dropped = self.dropped.into_inner();
        if dropped > 0 || list.is_empty() {
            list.push(Problem {
                place: None,
                key: String::new(),
                message: format!("{}: {dropped} more problems are not shown", self.name.label),
                why: format!("at most {MAX_PROBLEMS} problems of one file are listed"),
                fix: "put the ones above right first".to_owned(),
            });
        }
        Problems { file: self.name.file.to_owned(), list }
    }
}

fn place_after(lines: usize, rest_of_line: &str) -> Place {
    let number = |count: usize| u32::try_from(count.saturating_add(1)).unwrap_or(u32::MAX);
    Place { line: number(lines), column: number(rest_of_line.chars().count()) }
}

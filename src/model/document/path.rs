//! Paths of values that were found wrong after the file had been read.
//!
//! A rule that looks at several values at once works on plain data; its problem is given a place
//! here, by walking the document again along the path.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::report::{Refusal, shown_key};
use super::view::Table;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array, from 0.
    Index(usize),
}

/// A path from the top level, as data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KeyPath {
    steps: Vec<Step>,
}

impl KeyPath {
    /// This path and one key more.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// This path and one index more.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps }
    }
}

impl fmt::Display for KeyPath {
    /// Dotted, in the form of [`super::Value::path`]: keys that do not look like keys are not shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => formatter.write_str(&shown_key(key))?,
                Step::Key(key) => write!(formatter, ".{}", shown_key(key))?,
                Step::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Where a walk stands.
enum Stand<'d> {
    Table(&'d DeTable<'d>),
    Value(&'d DeValue<'d>),
}

impl<'d> Table<'d> {
    /// Notes a problem at a path that begins at this table: at the value, or at the nearest thing
    /// around it that is in the file; with `on_key`, at the last key itself.
    pub fn refuse_at(&self, path: &KeyPath, on_key: bool, refusal: Refusal) {
        let shown = path.to_string();
        let sentence = if shown.is_empty() { refusal.what.to_string() } else { format!("{shown} {}", refusal.what) };
        self.report.note((Some(self.find(path, on_key)), &shown), &sentence, refusal);
    }

    fn find(&self, path: &KeyPath, on_key: bool) -> usize {
        let mut at = 0;
        let mut stand = Stand::Table(self.map);
        for (number, step) in path.steps.iter().enumerate() {
            let is_last = number.saturating_add(1) == path.steps.len();
            let table = match stand {
                Stand::Table(map) => Some(map),
                Stand::Value(value) => value.as_table(),
            };
            let array = match stand {
                Stand::Table(_) => None,
                Stand::Value(value) => value.as_array(),
            };
            let next = match step {
                Step::Key(key) => table
                    .and_then(|map| map.get_key_value(key.as_str()))
                    .map(|(key, value)| (if on_key && is_last { key.span().start } else { value.span().start }, value)),
                Step::Index(index) => {
                    array.and_then(|array| array.get(*index)).map(|value| (value.span().start, value))
                }
            };
            let Some((start, value)) = next else { break };
            at = start;
            stand = Stand::Value(value.get_ref());
        }
        at
    }
}

//! Tables and values that remember where they stand, so that each check can say what and where.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::problem::Place;
use super::report::{Refusal, Report, shown_key};

/// A table.
#[derive(Clone)]
pub struct Table<'d> {
    pub(super) report: &'d Report<'d>,
    path: String,
    at: Option<usize>,
    pub(super) map: &'d DeTable<'d>,
}

/// A value with its dotted path.
#[derive(Clone)]
pub struct Value<'d> {
    report: &'d Report<'d>,
    path: String,
    at: usize,
    item: &'d DeValue<'d>,
}

impl<'d> Table<'d> {
    pub(super) fn root(report: &'d Report<'d>, map: &'d DeTable<'d>) -> Self {
        Self { report, path: String::new(), at: None, map }
    }

    /// The dotted path, empty at the top level.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Says whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The dotted path of a key of this table.
    #[must_use]
    pub fn path_of(&self, key: &str) -> String {
        let key = shown_key(key);
        if self.path.is_empty() { key.into_owned() } else { format!("{}.{key}", self.path) }
    }

    fn value(&self, key: &str, value: &'d Spanned<DeValue<'d>>) -> Value<'d> {
        Value { report: self.report, path: self.path_of(key), at: value.span().start, item: value.get_ref() }
    }

    /// A key's value, if it is there.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'d>> {
        self.map.get(key).map(|value| self.value(key, value))
    }

    /// A key's value; its absence is noted, with `fix` as what to do.
    #[must_use]
    pub fn need(&self, key: &str, fix: &'static str) -> Option<Value<'d>> {
        let value = self.get(key);
        if value.is_none() {
            self.refuse(key, Refusal::new("is missing", "it is required and has no default", fix));
        }
        value
    }

    /// Every key with its value, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'d str, Value<'d>)> {
        let mut entries: Vec<_> = self.map.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(|(key, value)| (key.get_ref().as_ref(), self.value(key.get_ref(), value))).collect()
    }

    /// Where `key` stands inside one of the tables of this table, or inside their tables.
    #[must_use]
    pub fn place_inside(&self, key: &str) -> Option<Place> {
        let tables = |map: &'d DeTable<'d>| map.values().filter_map(|value| value.get_ref().as_table());
        let mut inner = tables(self.map).chain(tables(self.map).flat_map(tables));
        let at = inner.find_map(|map| map.get_key_value(key).map(|(key, _)| key.span().start))?;
        Some(self.report.place(at))
    }

    /// Notes a problem with a key that is not there, at the table's own place.
    pub fn refuse(&self, key: &str, refusal: Refusal) {
        let path = self.path_of(key);
        let sentence = format!("{path} {}", refusal.what);
        self.report.note((self.at, &path), &sentence, refusal);
    }

    /// Notes a problem with a key's name, at the key.
    pub fn refuse_key(&self, key: &str, refusal: Refusal) {
        let at = self.map.get_key_value(key).map(|(key, _)| key.span().start);
        let path = self.path_of(key);
        let sentence = format!("{path} {}", refusal.what);
        self.report.note((at.or(self.at), &path), &sentence, refusal);
    }
}

impl<'d> Value<'d> {
    /// The dotted path, with indices for members of arrays.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> Place {
        self.report.place(self.at)
    }

    /// Notes a problem with this value.
    pub fn refuse(&self, refusal: Refusal) {
        let sentence = format!("{} {}", self.path, refusal.what);
        self.refuse_with(&sentence, refusal);
    }

    /// Notes a problem whose sentence is given whole.
    pub fn refuse_with(&self, sentence: &str, refusal: Refusal) {
        self.report.note((Some(self.at), &self.path), sentence, refusal);
    }

    /// What it is, with its article.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.item {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    fn wrong_type(&self, wanted: &'static str, fix: &'static str) {
        self.refuse(Refusal::new(
            format!("must be {wanted}, not {}", self.kind()),
            "each key has one type, and nothing is converted",
            fix,
        ));
    }

    /// The text of a string; anything else is noted.
    #[must_use]
    pub fn text(&self) -> Option<&'d str> {
        let text = self.item.as_str();
        if text.is_none() {
            self.wrong_type("a string", "write text in double quotes");
        }
        text
    }

    /// A string read by `form`; its refusal is noted.
    #[must_use]
    pub fn read<T>(&self, form: impl FnOnce(&'d str) -> Result<T, Refusal>) -> Option<T> {
        match form(self.text()?) {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.refuse(refusal);
                None
            }
        }
    }

    /// One of a few words; anything else is noted.
    #[must_use]
    pub fn one_of<T: Copy>(&self, words: &[(&str, T)], why: &'static str) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.refuse(Refusal::new(format!("must be {}", list.join(" or ")), why, "write one of these words"));
        }
        found
    }

    /// An integer in a range; anything else, booleans and strings included, is noted.
    #[must_use]
    pub fn integer<T: TryFrom<i64>>(&self, range: RangeInclusive<i64>, why: &'static str) -> Option<T> {
        let Some(integer) = self.item.as_integer() else {
            self.wrong_type("an integer", "write a whole number without quotes");
            return None;
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let value = number.filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
        if value.is_none() {
            self.refuse(Refusal::new(
                format!("must be between {} and {}", range.start(), range.end()),
                why,
                "choose a number inside these bounds",
            ));
        }
        value
    }

    /// The text of a number, integer or float, in decimal; anything else is noted.
    #[must_use]
    pub fn decimal(&self) -> Option<&'d str> {
        match self.item {
            DeValue::Integer(integer) if integer.radix() == 10 => Some(integer.as_str()),
            DeValue::Float(float) => Some(float.as_str()),
            DeValue::Integer(_)
            | DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => {
                self.wrong_type("a number", "write a decimal number without quotes, such as 1 or 0.5");
                None
            }
        }
    }

    /// `true` or `false`; anything else is noted.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        let value = self.item.as_bool();
        if value.is_none() {
            self.wrong_type("a boolean", "write `true` or `false` without quotes");
        }
        value
    }

    /// The text of a string, without noting anything.
    #[must_use]
    pub fn as_text(&self) -> Option<&'d str> {
        self.item.as_str()
    }

    /// The number of an integer, without noting anything.
    #[must_use]
    pub fn whole(&self) -> Option<i64> {
        let integer = self.item.as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// A table, without noting anything.
    #[must_use]
    pub fn as_table(&self) -> Option<Table<'d>> {
        let map = self.item.as_table()?;
        Some(Table { report: self.report, path: self.path.clone(), at: Some(self.at), map })
    }

    /// The members of an array; anything else is noted.
    #[must_use]
    pub fn items(&self) -> Option<Vec<Value<'d>>> {
        let items = self.as_items();
        if items.is_none() {
            self.wrong_type("an array", "write a list in square brackets");
        }
        items
    }

    /// The members of an array, without noting anything.
    #[must_use]
    pub fn as_items(&self) -> Option<Vec<Value<'d>>> {
        let array = self.item.as_array()?;
        let item = |(index, value): (usize, &'d Spanned<DeValue<'d>>)| Value {
            report: self.report,
            path: format!("{}[{index}]", self.path),
            at: value.span().start,
            item: value.get_ref(),
        };
        Some(array.iter().enumerate().map(item).collect())
    }

    /// The members of an array, each read by `form`. All of them are looked at.
    #[must_use]
    pub fn each<T>(&self, form: impl Fn(&Value<'d>) -> Option<T>) -> Option<Vec<T>> {
        let read: Vec<Option<T>> = self.items()?.iter().map(form).collect();
        read.into_iter().collect()
    }

    /// A table; anything else is noted.
    #[must_use]
    pub fn table(&self) -> Option<Table<'d>> {
        let Some(map) = self.item.as_table() else {
            self.wrong_type("a table", "write it as a table: `[name]` with its keys below, or `{ … }`");
            return None;
        };
        Some(Table { report: self.report, path: self.path.clone(), at: Some(self.at), map })
    }
}

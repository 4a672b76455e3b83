//! The environment file's own grammar: no shell, no expansion.
//!
//! Source: rule book, section 7, "Dotenv grammar".

use std::collections::BTreeSet;

use super::super::form::is_env_name;

/// The most variables of one file.
const MAX_VARIABLES: usize = 128;
/// The longest value, in bytes.
const MAX_VALUE: usize = 4096;

/// One variable.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// It may be a credential; nothing prints it.
    pub(super) value: String,
    /// Line of its name, from 1.
    pub(super) line: usize,
}

/// Why a file is not one. The texts never hold a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DotenvError {
    #[error("is not UTF-8 text without a NUL")]
    Encoding,
    #[error("has a line {0} that is not `NAME=value`")]
    Line(usize),
    #[error("has no variable's name in line {0}")]
    Name(usize),
    #[error("has a variable in line {0} that it has already")]
    Twice(usize),
    #[error("has a quote that is opened in line {0} and never closed")]
    Open(usize),
    #[error("has an unknown escape in the double quotes of line {0}")]
    Escape(usize),
    #[error("has text behind the closing quote in line {0}")]
    Behind(usize),
    #[error("has a value of more than 4096 bytes in line {0}")]
    Long(usize),
    #[error("has more than 128 variables, in line {0}")]
    Many(usize),
}

/// Reads a file's bytes.
///
/// # Errors
/// The first problem, with its line.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>, DotenvError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DotenvError::Encoding)?;
    if text.contains('\0') {
        return Err(DotenvError::Encoding);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut cursor = Cursor { rest: &text, line: 1 };
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while !cursor.rest.is_empty() {
        let Some(entry) = cursor.entry()? else { continue };
        if !seen.insert(entry.name.clone()) {
            return Err(DotenvError::Twice(entry.line));
        }
        if entry.value.len() > MAX_VALUE {
            return Err(DotenvError::Long(entry.line));
        }
        if entries.len() >= MAX_VARIABLES {
            return Err(DotenvError::Many(entry.line));
        }
        entries.push(entry);
    }
    Ok(entries)
}

struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cursor<'a> {
    /// The rest of the line, which is passed.
    fn take_line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line = self.line.saturating_add(1);
        line
    }

    /// The next variable; nothing for a blank line or a comment.
    fn entry(&mut self) -> Result<Option<Entry>, DotenvError> {
        let number = self.line;
        let (line, _) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let trimmed = line.trim_start();
        if trimmed.trim_end().is_empty() || trimmed.starts_with('#') {
            self.take_line();
            return Ok(None);
        }
        let equals = line.find('=').ok_or(DotenvError::Line(number))?;
        let name = line.get(..equals).unwrap_or_default().trim();
        let name = match name.strip_prefix("export") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
            Some(_) | None => name,
        };
        if !is_env_name(name) {
            return Err(DotenvError::Name(number));
        }
        self.rest = self.rest.get(equals.saturating_add(1)..).unwrap_or_default();
        Ok(Some(Entry { name: name.to_owned(), value: self.value()?, line: number }))
    }

    fn value(&mut self) -> Result<String, DotenvError> {
        let blank = self.rest.find(|c| c != ' ' && c != '\t').unwrap_or(self.rest.len());
        let start = self.rest.get(blank..).unwrap_or_default();
        let Some(quote) = start.chars().next().filter(|c| *c == '\'' || *c == '"') else {
            return Ok(plain(self.take_line()).to_owned());
        };
        self.rest = start.get(1..).unwrap_or_default();
        let value = self.quoted(quote)?;
        let line = self.line;
        let behind = self.take_line().trim();
        if behind.is_empty() || behind.starts_with('#') { Ok(value) } else { Err(DotenvError::Behind(line)) }
    }

    /// The text up to the closing quote, which is passed; it may span lines.
    fn quoted(&mut self, quote: char) -> Result<String, DotenvError> {
        let opened = self.line;
        let mut value = String::new();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                _ if letter == quote => {
                    self.rest = self.rest.get(at.saturating_add(1)..).unwrap_or_default();
                    return Ok(value);
                }
                '\\' if quote == '"' => value.push(match letters.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 'r')) => '\r',
                    Some((_, 't')) => '\t',
                    Some((_, escaped @ ('"' | '\\'))) => escaped,
                    Some(_) | None => return Err(DotenvError::Escape(self.line)),
                }),
                _ => {
                    self.line = self.line.saturating_add(usize::from(letter == '\n'));
                    value.push(letter);
                }
            }
        }
        Err(DotenvError::Open(opened))
    }
}

/// A value without quotes: up to a `#` that is first or follows a blank, trimmed.
fn plain(line: &str) -> &str {
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        if letter == '#' && matches!(before, ' ' | '\t') {
            return line.get(..at).unwrap_or_default().trim();
        }
        before = letter;
    }
    line.trim()
}

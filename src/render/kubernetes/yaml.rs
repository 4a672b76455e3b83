//! Objects as YAML text: one document each, block style, keys in order, quoted wherever any reader of
//! YAML 1.1 or 1.2 could see something other than text.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Object;

/// Keys that come first in an object, so that a reader sees what it is.
const FIRST: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "namespace"];
/// Spaces of one level.
const INDENT: usize = 2;
/// Words that some reader takes for a boolean, null or number.
const WORDS: [&str; 12] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "~"];

/// All objects, `---` in front of each.
#[must_use]
pub fn documents(objects: &[Object]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&document(&object.value));
    }
    text
}

/// One document, with a newline at its end.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut text = String::new();
    node(&mut text, value, 0);
    if text.starts_with('\n') {
        text.remove(0);
    }
    text
}

/// Writes what follows a key or a dash: a scalar on the same line, or a block below.
fn node(text: &mut String, value: &Value, level: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            block(text, map, level);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                indent(text, level);
                list_item(text, item, level);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            if !text.is_empty() {
                text.push(' ');
            }
            scalar(text, value, level);
            text.push('\n');
        }
    }
}

fn block(text: &mut String, map: &Map<String, Value>, level: usize) {
    for (key, value) in ordered(map) {
        indent(text, level);
        entry(text, (key, value), level);
    }
}

/// The well-known keys, then the others by name, whatever order the map keeps.
fn ordered(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|(a, _), (b, _)| (place(a), a.as_str()).cmp(&(place(b), b.as_str())));
    entries
}

fn entry(text: &mut String, entry: (&str, &Value), level: usize) {
    let (key, value) = entry;
    string(text, key);
    text.push(':');
    // A list stands as deep as its key, a map one level deeper.
    let deeper = if value.is_array() { level } else { level.saturating_add(1) };
    node(text, value, deeper);
}

fn list_item(text: &mut String, item: &Value, level: usize) {
    text.push('-');
    match item {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in (0_usize..).zip(ordered(map)) {
                if index == 0 {
                    text.push(' ');
                } else {
                    indent(text, level.saturating_add(1));
                }
                entry(text, (key, value), level.saturating_add(1));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            node(text, item, level.saturating_add(1));
        }
    }
}

fn indent(text: &mut String, level: usize) {
    text.extend(std::iter::repeat_n(' ', level.saturating_mul(INDENT)));
}

fn scalar(text: &mut String, value: &Value, level: usize) {
    match value {
        Value::String(content) if is_literal(content) => literal(text, content, level),
        Value::String(content) => string(text, content),
        // Empty lists and maps, numbers, booleans and null are written as in JSON.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            // Writing into a string never fails.
            let _written = write!(text, "{value}");
        }
    }
}

/// Whether a text of several lines is as exact in literal style.
fn is_literal(content: &str) -> bool {
    let is_plain = |letter: char| letter == '\n' || letter == '\t' || (' '..='~').contains(&letter);
    content.trim_end_matches('\n').contains('\n')
        && content.chars().all(is_plain)
        && !content.starts_with([' ', '\t', '\n'])
        && !content.ends_with("\n\n")
}

fn literal(text: &mut String, content: &str, level: usize) {
    text.push_str(if content.ends_with('\n') { "|" } else { "|-" });
    for line in content.trim_end_matches('\n').split('\n') {
        text.push('\n');
        if !line.is_empty() {
            indent(text, level.max(1));
            text.push_str(line);
        }
    }
}

/// Plain where every reader agrees that it is this text, else in double quotes as in JSON.
fn string(text: &mut String, content: &str) {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let is_plain = content.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && content.bytes().all(is_word)
        && !WORDS.contains(&content.to_ascii_lowercase().as_str());
    if is_plain {
        text.push_str(content);
    } else {
        quoted(text, content);
    }
}

fn quoted(text: &mut String, content: &str) {
    text.push('"');
    for letter in content.chars() {
        let _written = match letter {
            '"' => write!(text, "\\\""),
            '\\' => write!(text, "\\\\"),
            '\n' => write!(text, "\\n"),
            '\t' => write!(text, "\\t"),
            '\r' => write!(text, "\\r"),
            ' '..='~' => write!(text, "{letter}"),
            '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' => {
                write!(text, "{letter}")
            }
            other if u32::from(other) < 0x1_0000 => write!(text, "\\u{:04x}", u32::from(other)),
            other => write!(text, "\\U{:08x}", u32::from(other)),
        };
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[ -~\n\t]{0,40}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map("[ -~]{0,8}|\\PC{0,4}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_it_was(value in json_value()) {
            let text = document(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }

    #[test]
    fn what_a_reader_could_take_for_something_else_is_quoted() {
        for word in
            ["", "yes", "No", "on", "null", "~", "1", "1e3", "0x1", "1.5", "2026-01-01", "12:30", "-", "? a", "a: b"]
        {
            assert!(document(&json!({ "k": word })).contains('"'), "{word}");
        }
        assert_eq!(document(&json!({ "b": "x", "kind": "K", "a": [] })), "kind: K\na: []\nb: x\n");
    }

    #[test]
    fn a_file_of_several_lines_stays_readable() {
        let text = document(&json!({ "data": { "site.conf": "a: 1\n\n  b\n" } }));
        assert_eq!(text, "data:\n  site.conf: |\n    a: 1\n\n      b\n");
    }
}

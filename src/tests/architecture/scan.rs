//! A small scanner for Rust text: enough to see paths and words, not a parser.
//!
//! Comments and the contents of strings are blanked out at equal length, so that an offset or a
//! line number in the blanked text is also one in the original.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One file as the rules see it.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Relative to the repository's root, with `/`: `src/edge/caddy.rs`.
    pub(super) path: String,
    /// Whether only `cfg(test)` reaches it.
    pub(super) is_test: bool,
    /// Lines in the file.
    pub(super) lines: usize,
    /// Code outside of `cfg(test)`, cut into tokens.
    pub(super) tokens: Vec<Token>,
}

/// One word or mark of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// An identifier, a number, `::`, or a single other character.
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
}

/// A path such as `crate::model::Sha`; a group in a `use` gives one for each leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodePath {
    /// Its segments.
    pub(super) segments: Vec<String>,
    /// Where it begins.
    pub(super) line: usize,
    /// Whether it stands directly after `use` or `extern crate`.
    pub(super) is_import: bool,
}

impl SourceFile {
    /// Scans one text.
    pub(super) fn new(path: &str, is_test: bool, text: &str) -> Self {
        let code = blank(text);
        Self { path: path.to_owned(), is_test, lines: text.lines().count(), tokens: without_tests(tokens(&code)) }
    }

    /// `["edge", "caddy"]` for `src/edge/caddy.rs`; empty for `src/lib.rs` and `src/main.rs`.
    pub(super) fn module_path(&self) -> Vec<&str> {
        let inner = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let inner = inner.strip_suffix(".rs").unwrap_or(inner);
        let mut parts: Vec<&str> = inner.split('/').collect();
        if parts.last().is_some_and(|last| matches!(*last, "mod" | "lib" | "main")) {
            parts.pop();
        }
        parts
    }

    /// The module of layer rules: the first part of the path, or the file's own name at the root.
    pub(super) fn module(&self) -> &str {
        let inner = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let first = inner.split('/').next().unwrap_or(inner);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// All paths in the code.
    pub(super) fn paths(&self) -> Vec<CodePath> {
        paths(&self.tokens)
    }

    /// Whether this file has a `mod name`.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.tokens.windows(2).any(|pair| pair[0].text == "mod" && pair[1].text == name)
    }
}

/// Blanks comments, and the contents of string and character literals.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at).unwrap_or(at);
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole literals are replaced by spaces")
}

/// The end of the comment or literal that begins at `at`, if one does.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let is_word_before = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|byte| *byte == b'\n');
        return Some(length.map_or(bytes.len(), |length| at + length));
    }
    if rest.starts_with(b"/*") {
        return Some(block_comment_end(bytes, at));
    }
    if rest[0] == b'"' {
        return Some(quoted_end(bytes, at + 1));
    }
    if !is_word_before && matches!(rest[0], b'r' | b'b' | b'c') {
        let raw = rest.iter().position(|byte| !matches!(byte, b'r' | b'b' | b'c'))?;
        let hashes = rest[raw..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(raw + hashes) == Some(&b'"') && rest[..raw].contains(&b'r') {
            return Some(raw_end(bytes, at + raw + hashes + 1, hashes));
        }
    }
    if rest[0] == b'\'' {
        return character_end(bytes, at);
    }
    None
}

fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0usize;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_end(bytes: &[u8], from: usize, hashes: usize) -> usize {
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    bytes[from..]
        .windows(end.len())
        .position(|window| window == end)
        .map_or(bytes.len(), |found| from + found + end.len())
}

/// `'x'`, `'\n'` and `'é'` are literals, `'a` is a lifetime.
fn character_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|byte| *byte == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let width = match bytes.get(at + 1)? {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (bytes.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Cuts blanked code into tokens.
pub(super) fn tokens(code: &str) -> Vec<Token> {
    let bytes = code.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let length = match bytes[at] {
            byte if is_word(byte) => bytes[at..].iter().take_while(|next| is_word(**next)).count(),
            b':' if bytes.get(at + 1) == Some(&b':') => 2,
            _ => 1,
        };
        if bytes[at] == b'\n' {
            line += 1;
        }
        if !bytes[at].is_ascii_whitespace() {
            let text = code[at..at + length].to_owned();
            out.push(Token { text, line });
        }
        at += length;
    }
    out
}

/// Drops each item that stands under `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let is_mark =
            tokens[at..].len() >= MARK.len() && MARK.iter().zip(&tokens[at..]).all(|(mark, token)| *mark == token.text);
        if is_mark {
            at = item_end(&tokens, at + MARK.len());
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

/// The end of the item that begins at `from`: its `;` or its closing brace, outside of brackets.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0usize;
    for (offset, token) in tokens[from..].iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return from + offset + 1;
                }
            }
            ";" if depth == 0 => return from + offset + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn is_identifier(token: &Token) -> bool {
    token.text.bytes().all(is_word) && !token.text.starts_with(|first: char| first.is_ascii_digit())
}

fn paths(tokens: &[Token]) -> Vec<CodePath> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = if at == 0 { "" } else { text(at - 1) };
        // After `::` it is the rest of a path, unless that one is absolute (`::gix`).
        let is_rest = before == "::" && at >= 2 && (is_identifier(&tokens[at - 2]) || text(at - 2) == ">");
        if is_identifier(&tokens[at]) && !is_rest && before != "." {
            let is_import = before == "use" || before == "crate" && at >= 2 && text(at - 2) == "extern";
            let start = CodePath { segments: Vec::new(), line: tokens[at].line, is_import };
            at = tree(tokens, at, &start, &mut out);
        } else {
            at += 1;
        }
    }
    out
}

/// Reads a path, or a tree of them, that begins at `at`; gives where it ends.
fn tree(tokens: &[Token], at: usize, prefix: &CodePath, out: &mut Vec<CodePath>) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut path = prefix.clone();
    let mut at = at;
    loop {
        if text(at) == "{" {
            at += 1;
            while at < tokens.len() && text(at) != "}" {
                let next = tree(tokens, at, &path, out);
                at = if next == at { at + 1 } else { next };
            }
            return at + 1;
        }
        let Some(token) = tokens.get(at).filter(|token| is_identifier(token) || token.text == "*") else {
            break;
        };
        path.segments.push(token.text.clone());
        at += 1;
        if text(at) != "::" || text(at + 1) == "<" {
            break;
        }
        at += 1;
    }
    if path.segments.len() > prefix.segments.len() {
        out.push(path);
    }
    at
}

/// Everything that the crate roots reach through `mod` lines.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Path → whether only tests reach it.
    pub(super) files: BTreeMap<String, bool>,
    /// `mod` lines without a file.
    pub(super) missing: BTreeSet<String>,
}

/// Follows `mod` lines from `root` on; `read` gives a file's text, or none when there is no such file.
pub(super) fn reach(reached: &mut Reached, root: &str, is_test: bool, read: &dyn Fn(&str) -> Option<String>) {
    let Some(text) = read(root) else {
        reached.missing.insert(root.to_owned());
        return;
    };
    // Reached twice: it is working code if one of the two ways is.
    if let Some(known) = reached.files.get(root)
        && (!known || is_test)
    {
        return;
    }
    reached.files.insert(root.to_owned(), is_test);
    for line in mod_lines(&text) {
        let is_child_test = is_test || line.is_test;
        let found = candidates(root, &line).into_iter().find(|path| read(path).is_some());
        match found {
            Some(path) => reach(reached, &path, is_child_test, read),
            None => {
                reached.missing.insert(format!("{root}: mod {}", line.name));
            }
        }
    }
}

struct ModLine {
    name: String,
    path: Option<String>,
    is_test: bool,
}

/// The `mod name;` lines of a text, with the attributes right above them.
fn mod_lines(text: &str) -> Vec<ModLine> {
    let code = blank(text);
    let mut out = Vec::new();
    let (mut path, mut is_test) = (None, false);
    for (code, original) in code.lines().zip(text.lines()) {
        let code = code.trim();
        if code.starts_with("#[path") {
            path = original.split('"').nth(1).map(str::to_owned);
        }
        is_test |= code.contains("#[cfg(test)]");
        let words: Vec<&str> = code.split_whitespace().collect();
        let name = words.iter().position(|word| *word == "mod").and_then(|at| words.get(at + 1));
        if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
            out.push(ModLine { name: name.to_owned(), path: path.take(), is_test });
        }
        if !code.is_empty() && !code.ends_with(']') {
            (path, is_test) = (None, false);
        }
    }
    out
}

fn candidates(root: &str, line: &ModLine) -> Vec<String> {
    let file = Path::new(root);
    let directory = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    let show = |path: PathBuf| path.to_string_lossy().replace('\\', "/");
    if let Some(path) = &line.path {
        return vec![show(directory.join(path))];
    }
    let below = match stem {
        "mod" | "lib" | "main" => directory,
        _ => directory.join(stem),
    };
    vec![show(below.join(format!("{}.rs", line.name))), show(below.join(&line.name).join("mod.rs"))]
}

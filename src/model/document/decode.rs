//! Bytes to text, with every way in which a file is not UTF-8 text called by its name.

use super::super::problem::{Place, Problem, Problems};
use super::FileName;

/// The largest file that is read, in bytes: a thousand times a usual manifest, and small enough to
/// be parsed for anybody who can push.
pub const MAX_BYTES: usize = 256 * 1024;

/// The first line of a Git LFS pointer, today's and the one of the first pre-releases.
///
/// Source: git-lfs `docs/spec.md`, "The Pointer".
const LFS_POINTERS: [&[u8]; 2] =
    [b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/"];

/// Turns a file's bytes into text, without its byte order mark.
///
/// # Errors
/// One problem: more than [`MAX_BYTES`], a Git LFS pointer, UTF-16 or UTF-32, or a byte that is not
/// UTF-8 with its exact offset from the start of the file.
pub fn decode<'a>(bytes: &'a [u8], name: FileName<'_>) -> Result<&'a str, Problems> {
    if bytes.len() > MAX_BYTES {
        return Err(whole(
            name,
            format!("the file has {} bytes, more than {MAX_BYTES}", bytes.len()),
            "a file of this kind is a few kilobytes of settings; the bound keeps a mistake from filling memory",
            "check that this is the right file, and move data out of it",
        ));
    }
    if LFS_POINTERS.iter().any(|pointer| bytes.starts_with(pointer)) {
        return Err(whole(
            name,
            "the file is a Git LFS pointer, not the file itself".to_owned(),
            "Git LFS keeps the content outside the repository, and only the repository is read",
            "run `git lfs untrack` for this path and commit the file itself",
        ));
    }
    if let Some(encoding) = wide_encoding(bytes) {
        return Err(whole(
            name,
            format!("the file is {encoding}, not UTF-8"),
            "TOML is UTF-8 by definition",
            "save the file as UTF-8",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| invalid_byte(bytes, error.valid_up_to(), name))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with('\u{feff}') {
        return Err(whole(
            name,
            "the file begins with two byte order marks".to_owned(),
            "one mark says that the file is UTF-8; a second one is part of the text",
            "save the file as UTF-8 without a byte order mark",
        ));
    }
    Ok(text)
}

/// Names UTF-16 and UTF-32 by their mark, or by the zero bytes beside the first ASCII character.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] => Some("UTF-16 (little endian)"),
        [0xfe, 0xff, ..] => Some("UTF-16 (big endian)"),
        [first, 0, 0, 0, ..] | [0, 0, 0, first, ..] if *first != 0 => Some("UTF-32"),
        [first, 0, third, 0, ..] if *first != 0 && *third != 0 => Some("UTF-16 (little endian)"),
        [0, second, 0, fourth, ..] if *second != 0 && *fourth != 0 => Some("UTF-16 (big endian)"),
        _ => None,
    }
}

fn invalid_byte(bytes: &[u8], offset: usize, name: FileName<'_>) -> Problems {
    let before = String::from_utf8_lossy(bytes.get(..offset).unwrap_or_default());
    let line = before.matches('\n').count().saturating_add(1);
    let last = before.rsplit('\n').next().unwrap_or_default();
    let column = last.strip_prefix('\u{feff}').unwrap_or(last).chars().count().saturating_add(1);
    let mut problems = whole(
        name,
        format!("the file is not UTF-8: invalid byte at offset {offset} (counted from 0)"),
        "TOML is UTF-8 by definition; the file looks like Latin-1, a binary file or a damaged one",
        "save the file as UTF-8",
    );
    if let Some(first) = problems.list.first_mut() {
        first.place = Some(Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        });
    }
    problems
}

fn whole(name: FileName<'_>, message: String, why: &str, fix: &str) -> Problems {
    Problems {
        file: name.file.to_owned(),
        list: vec![Problem {
            place: None,
            key: String::new(),
            message: format!("{}: {message}", name.label),
            why: why.to_owned(),
            fix: fix.to_owned(),
        }],
    }
}

//! The forms of single values: pure functions from a text to a value or a [`Refusal`].
//!
//! No refusal holds the text it refuses.

use super::super::name::{BranchName, RepoPath, is_label};
use super::report::Refusal;

/// One KiB, MiB, GiB and TiB: sizes are powers of 1024, as the engine's are.
const KIB: u64 = 1024;
/// Bytes of one `m`.
pub const MIB: u64 = 1024 * KIB;
/// Bytes of one `g`.
pub const GIB: u64 = 1024 * MIB;

/// A name: `^[a-z][a-z0-9-]{0,30}$`.
///
/// # Errors
/// When it is not.
pub fn label(text: &str) -> Result<&str, Refusal> {
    if is_label(text) { Ok(text) } else { Err(label_refusal()) }
}

/// What is said of every name that breaks the form of names.
#[must_use]
pub fn label_refusal() -> Refusal {
    Refusal::new(
        "is not a name",
        "names match ^[a-z][a-z0-9-]{0,30}$, since they become parts of host, container and directory names",
        "use a lower-case letter, then at most 30 lower-case letters, digits or hyphens",
    )
}

/// A duration of whole units: `90s`, `10m`, `2h`, and `3d` where days are allowed.
///
/// # Errors
/// When the form or the bounds (seconds, both included) are broken.
pub fn seconds(text: &str, bounds: (u32, u32), units: &'static str) -> Result<u32, Refusal> {
    let bad = || {
        Refusal::new(
            "is not a duration",
            "a duration is a whole number and one unit: s, m, h (or d where days make sense)",
            "write for example \"90s\", \"10m\" or \"2h\"",
        )
    };
    let unit = text.chars().next_back().filter(|unit| units.contains(*unit)).ok_or_else(bad)?;
    let digits = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    let is_number = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = if is_number {
        digits.parse().map_err(|_| bad())?
    } else {
        return Err(bad());
    };
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => 86400,
    };
    let (least, most) = bounds;
    u32::try_from(count.saturating_mul(factor)).ok().filter(|total| (least..=most).contains(total)).ok_or_else(|| {
        Refusal::new(
            format!("must be between {} and {}", shown_seconds(least), shown_seconds(most)),
            "shorter makes no sense here, and longer would hold up what waits for it",
            "choose a duration inside these bounds",
        )
    })
}

/// Seconds in their largest whole unit, as people write them.
fn shown_seconds(seconds: u32) -> String {
    match seconds {
        0 => "0s".to_owned(),
        days if days % 86400 == 0 => format!("{}d", days / 86400),
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        other => format!("{other}s"),
    }
}

/// A size: `64m`, `2g`; units k, m, g and t are powers of 1024.
///
/// # Errors
/// When the form or the bounds (as sizes, both included) are broken.
pub fn size(text: &str, least: &'static str, most: &'static str) -> Result<u64, Refusal> {
    let bad = || {
        Refusal::new(
            "is not a size",
            "a size is a whole number and one unit: k, m, g or t, in powers of 1024",
            "write for example \"256m\" or \"2g\"",
        )
    };
    let bytes = plain_size(text).ok_or_else(bad)?;
    let bound = |text: &str, otherwise: u64| plain_size(text).unwrap_or(otherwise);
    if (bound(least, 0)..=bound(most, u64::MAX)).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(Refusal::new(
            format!("must be between {least} and {most}"),
            "outside these bounds it could not work",
            "choose a size inside these bounds",
        ))
    }
}

fn plain_size(text: &str) -> Option<u64> {
    let factor = match text.bytes().next_back()? {
        b'k' => KIB,
        b'm' => MIB,
        b'g' => GIB,
        b't' => 1024 * GIB,
        _ => return None,
    };
    let digits = text.get(..text.len().saturating_sub(1))?;
    let is_number = !digits.is_empty() && digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse::<u64>().ok()?.checked_mul(factor) } else { None }
}

/// Thousandths of a CPU from a decimal number such as `1` or `0.25`, 0.01 to 1024.
///
/// # Errors
/// When it is out of bounds, finer than a thousandth, or written with an exponent.
pub fn cpus_milli(decimal: &str) -> Result<u32, Refusal> {
    let milli = |text: &str| -> Option<u32> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let is_plain = !whole.is_empty()
            && whole.len() <= 4
            && fraction.len() <= 3
            && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !is_plain {
            return None;
        }
        let thousandths: u32 = format!("{fraction:0<3}").parse().ok()?;
        whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(thousandths)
    };
    milli(decimal).filter(|milli| (10..=1_024_000).contains(milli)).ok_or_else(|| {
        Refusal::new(
            "must be between 0.01 and 1024, with at most three decimals",
            "a container without CPU time never answers, and the engine counts in thousandths here",
            "write for example 1 or 0.5",
        )
    })
}

/// A path in the repository, `.` for its root.
///
/// # Errors
/// When it is absolute, leaves the repository, or has empty parts.
pub fn repo_path(text: &str) -> Result<RepoPath, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            "is not a path inside the repository",
            "paths are relative to the repository's root, with `/` between parts and without `..`, `.git` or empty parts",
            "write for example \"Dockerfile\" or \"deploy/Dockerfile\"",
        )
    })
}

/// A path of a file in the repository.
///
/// # Errors
/// As [`repo_path`], and when it names the root or ends in `/`.
pub fn repo_file(text: &str) -> Result<RepoPath, Refusal> {
    let path = repo_path(text)?;
    if path.is_root() || text.ends_with('/') {
        return Err(Refusal::new("names a directory, not a file", "one file is read", "write the file's name too"));
    }
    Ok(path)
}

/// A branch's short name.
///
/// # Errors
/// When it breaks the rules of git-check-ref-format(1).
pub fn branch(text: &str) -> Result<BranchName, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            "is not a branch name",
            "the rules are those of git-check-ref-format, and a short name never begins with `refs/`",
            "write the branch's short name, for example \"main\"",
        )
    })
}

/// A header's name, in lower case.
///
/// Source: RFC 9110 section 5.6.2, `token`.
///
/// # Errors
/// When it is not a token.
pub fn header_name(text: &str) -> Result<String, Refusal> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.len() <= 256 && text.bytes().all(token) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(Refusal::new(
            "is not a header name",
            "header names are tokens: letters, digits and !#$%&'*+-.^_`|~ only",
            "write the name alone, without a colon or spaces",
        ))
    }
}

/// A path with an optional query, made of plain URL characters.
///
/// Source: RFC 3986, `path-absolute` and `query`: unreserved, sub-delims, `:`, `@`, `/`, `?`, and
/// complete percent escapes; no fragment, which is never sent.
///
/// # Errors
/// When it does not start with `/`, is longer than 2048 characters, or has another character.
pub fn url_path(text: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let mut pieces = text.split('%');
    let first = pieces.next().unwrap_or_default();
    let escaped = |piece: &str| {
        piece.len() >= 2
            && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
            && piece.bytes().skip(2).all(plain)
    };
    if !text.starts_with('/') {
        return Err(Refusal::new(
            "must start with `/`",
            "the check is sent to the release itself; a path cannot choose another server",
            "write for example \"/\" or \"/login?next=%2F\"",
        ));
    }
    if text.len() <= 2048 && first.bytes().all(plain) && pieces.all(escaped) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "has characters that do not belong in a URL",
            "a path is at most 2048 plain URL characters, anything else percent-encoded",
            "percent-encode spaces, quotes, brackets and letters outside ASCII, and leave out `#`",
        ))
    }
}

/// An absolute path on the host, without `.`, `..`, empty parts or a slash at its end.
///
/// # Errors
/// When it is not.
pub fn absolute_path(text: &str) -> Result<String, Refusal> {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_path = text.len() <= 1024
        && !text.chars().any(char::is_control)
        && text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part));
    if is_path {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not an absolute path",
            "the daemon has no working directory to be relative to",
            "write the whole path from `/`, without `.`, `..`, `//` or a slash at the end",
        ))
    }
}

/// A text on one line: no line breaks and no other control characters except the tab.
#[must_use]
pub fn is_one_line(text: &str) -> bool {
    !text.chars().any(|c| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}'))
}

//! The forms of single values, each a question with yes or no.
//!
//! Source: rule book, section 1.2 and the sections named at each function.

use std::net::{IpAddr, Ipv4Addr};

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Letters, digits and hyphens, with neither end a hyphen.
fn is_label(text: &str, most: usize) -> bool {
    text.len() <= most
        && text.bytes().next().is_some_and(lower_or_digit)
        && text.bytes().next_back().is_some_and(lower_or_digit)
        && text.bytes().all(|byte| lower_or_digit(byte) || byte == b'-')
}

/// `NAME`: `^[a-z][a-z0-9-]{0,38}[a-z0-9]$|^[a-z]$`.
pub(super) fn is_name(text: &str) -> bool {
    is_label(text, 40) && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
}

/// `RESOURCE-NAME`: `^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`.
pub(super) fn is_resource_name(text: &str) -> bool {
    is_label(text, 63)
}

/// `ENV-NAME`: `^[A-Za-z_][A-Za-z0-9_]*$`, at most 128 bytes.
pub(super) fn is_env_name(text: &str) -> bool {
    text.len() <= 128
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A DNS-1123 subdomain of at most 253 bytes.
pub(super) fn is_subdomain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.split('.').all(|label| is_label(label, 253))
}

/// A host name: 1 to 244 bytes, lower case, at least one dot, labels of at most 63, no IP address.
pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 244
        && text.contains('.')
        && text.split('.').all(|label| is_label(label, 63))
        && text.parse::<IpAddr>().is_err()
}

/// A Kubernetes port name: 1 to 15 bytes with a letter, no `--`. Section 4.
pub(super) fn is_port_name(text: &str) -> bool {
    is_label(text, 15) && text.bytes().any(|byte| byte.is_ascii_lowercase()) && !text.contains("--")
}

/// `^[a-zA-Z0-9_-]{1,64}$`. Section 13.
pub(super) fn is_nonce(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// `^[a-f0-9]{32}$`. Sections 18 and 22.
pub(super) fn is_identity(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// An image reference as it may stand in the file. Section 3.
pub(super) fn is_image(text: &str) -> bool {
    let is_plain = !text.is_empty()
        && text.len() <= 512
        && !text.contains([' ', '\t', '\n', '\r', '\\', '?', '#'])
        && !text.contains("://")
        && !text.contains("..")
        && !text.starts_with('/');
    let digest = match text.split_once('@') {
        None => true,
        Some((name, digest)) => !name.is_empty() && is_digest(digest),
    };
    is_plain && digest
}

/// `^sha256:[a-f0-9]{64}$`.
pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// An IPv4 network reduced to its network address. Section 5.7.
pub(super) fn masked_cidr(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let address: Ipv4Addr = address.parse().ok()?;
    let is_number = matches!(length.as_bytes(), [b'0'..=b'9'] | [b'1'..=b'3', b'0'..=b'9']);
    let length: u32 = if is_number { length.parse().ok()? } else { return None };
    let mask = match length {
        0 => 0,
        1..=32 => u32::MAX << 32_u32.checked_sub(length)?,
        _ => return None,
    };
    Some(format!("{}/{length}", Ipv4Addr::from_bits(address.to_bits() & mask)))
}

/// Whether all parts of a path are real: no empty one, no `.`, no `..`.
fn is_clean(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains(['\0', '\r', '\n'])
}

/// A clean absolute directory or file of at most `most` bytes, not `/`. Section 13.
pub(super) fn is_clean_absolute(text: &str, most: usize) -> bool {
    text.len() <= most && text.strip_prefix('/').is_some_and(is_clean)
}

/// A clean relative path of at most 200 bytes. Section 15.
pub(super) fn is_clean_relative(text: &str) -> bool {
    text.len() <= 200 && is_clean(text)
}

/// Whether one path is the other or lies below it.
pub(super) fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether two paths are equal or one is a directory of the other. Section 14.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    is_below(one, other) || is_below(other, one)
}

/// A path for an HTTP check. Section 12.
pub(super) fn is_health_path(text: &str) -> bool {
    let escape = |piece: &str| piece.len() >= 2 && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.len() <= 2048
        && text.starts_with('/')
        && !text.starts_with("//")
        && !text.bytes().any(|byte| byte < 0x20 || byte == 0x7f)
        && text.split('%').skip(1).all(escape)
}

/// A part of a provider's key or path: `[A-Za-z0-9._-]`, not `.` or `..`. Section 6.2.
pub(super) fn is_provider_part(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// An IANA time zone by its exact name. Section 18.
pub(super) fn is_time_zone(text: &str) -> bool {
    text.len() <= 100
        && jiff::tz::TimeZoneDatabase::bundled().get(text).is_ok_and(|zone| zone.iana_name() == Some(text))
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A cron expression of exactly five fields, as a Kubernetes CronJob takes it: weekdays 0 to 6 from
/// Sunday (ruling 25), names in any letter case, `a/n` meaning from `a` to the end. Section 18.
pub(super) fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else { return false };
    text.len() <= 100
        && is_cron_field(minute, (0, 59), &[])
        && is_cron_field(hour, (0, 23), &[])
        && is_cron_field(day, (1, 31), &[])
        && is_cron_field(month, (1, 12), &MONTHS)
        && is_cron_field(weekday, (0, 6), &WEEKDAYS)
}

fn is_cron_field(field: &str, bounds: (u32, u32), names: &[&str]) -> bool {
    let digits = |text: &str| -> Option<u32> {
        let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().ok() } else { None }
    };
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().zip(bounds.0..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map(|(_, number)| number).or_else(|| digits(text)).filter(|n| (bounds.0..=bounds.1).contains(n))
    };
    let range = |text: &str| match (text, text.split_once('-')) {
        ("*" | "?", _) => true,
        (_, Some((first, last))) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
        (_, None) => number(text).is_some(),
    };
    field.split(',').all(|part| match part.split_once('/') {
        Some((base, step)) => range(base) && digits(step).is_some_and(|step| step > 0),
        None => range(part),
    })
}

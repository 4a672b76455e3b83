//! Smoke checks: one check against one answer.

use super::evidence::{printable, seen};
use crate::model::desired::SmokeCheck;
use crate::model::sample::{Answer, Sample};
use crate::model::{Reason, ReasonCode};

/// Bytes of body that a smoke check reads. Source: app.toml contract, `[[smoke]]`.
pub const SMOKE_BODY_LIMIT: usize = 1024 * 1024;

/// Judges one smoke check on the idle slot. There is no second try: the slot is already healthy.
///
/// # Errors
/// `SmokeFailed`, with the check's path, what was expected and what came.
pub fn smoke(check: &SmokeCheck, sample: &Sample) -> Result<(), Reason> {
    match complaint(check, sample) {
        None => Ok(()),
        Some(complaint) => {
            let message = format!("smoke check `{}`: {complaint}", check.path);
            Err(Reason::new(ReasonCode::SmokeFailed, message).with_evidence(seen(sample)))
        }
    }
}

/// What is wrong with an answer; none when nothing is.
pub(super) fn complaint(check: &SmokeCheck, sample: &Sample) -> Option<String> {
    let Sample::Answer(answer) = sample else {
        return Some(seen(sample));
    };
    if answer.status != check.status {
        return Some(format!("expected status {}, got {}", check.status, answer.status));
    }
    body_complaint(check, answer)
        .or_else(|| check.headers.iter().find_map(|(name, part)| header_complaint(answer, name, part)))
        .or_else(|| check.headers_absent.iter().find_map(|name| present_complaint(answer, name)))
}

fn body_complaint(check: &SmokeCheck, answer: &Answer) -> Option<String> {
    let part = check.contains.as_deref()?;
    let body = answer.body.get(..SMOKE_BODY_LIMIT).unwrap_or(&answer.body);
    // An empty part is in every body; windows of 0 bytes do not exist.
    let is_there = part.is_empty() || body.windows(part.len()).any(|window| window == part.as_bytes());
    if is_there {
        return None;
    }
    let cut = if answer.is_truncated { " in its first 1 MiB" } else { "" };
    Some(format!("the body does not contain `{}`{cut}", printable(part.as_bytes())))
}

fn header_complaint(answer: &Answer, name: &str, part: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let values: Vec<&str> = answer.header(&name).collect();
    let [first, ..] = values.as_slice() else {
        return Some(format!("header `{name}` is missing"));
    };
    if values.iter().any(|value| value.contains(part)) {
        return None;
    }
    let part = printable(part.as_bytes());
    Some(format!("header `{name}` is `{}` and does not contain `{part}`", printable(first.as_bytes())))
}

fn present_complaint(answer: &Answer, name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let value = answer.header(&name).next()?;
    Some(format!("header `{name}` must be absent and is `{}`", printable(value.as_bytes())))
}

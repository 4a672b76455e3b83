//! Queries: read, written, and held to what GitHub knows.

use std::collections::BTreeMap;

use axum::extract::Request;

/// A query, decoded.
pub(super) type Query = BTreeMap<String, String>;

pub(super) fn query(request: &Request) -> Query {
    let pairs = request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), decode(value))).collect()
}

pub(super) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn unknown_key(query: &Query, known: &[&str]) -> Option<String> {
    query.keys().find(|key| !known.contains(&key.as_str())).map(|key| format!("the query key {key} is not known"))
}

/// A missing sha would give other commits' runs, a short one none.
pub(super) fn wrong_runs_query(query: &Query) -> Option<String> {
    let sha = query.get("head_sha").map_or("", String::as_str);
    let is_hex = sha.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !(is_hex && (sha.len() == 40 || sha.len() == 64)) {
        return Some(format!("`{sha}` is not a full sha"));
    }
    if query.get("event").map(String::as_str) != Some("push") {
        return Some("the event is not `push`".to_owned());
    }
    if query.get("branch").is_none_or(String::is_empty) {
        return Some("the branch is missing".to_owned());
    }
    unknown_key(query, &["head_sha", "event", "branch", "per_page", "page"])
}

//! `[[smoke]]`: HTTP checks as data, in `app.toml` and, for cluster targets, in the registry.
//!
//! Source: app.toml contract, `[[smoke]]`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::desired::SmokeCheck;
use super::form;
use super::report::Refusal;
use super::view::{Table, Value};

/// The contract's most checks.
const MAX_CHECKS: usize = 20;
/// The contract's longest `contains`, in characters.
const MAX_CONTAINS: usize = 500;
/// The longest header value or substring, in bytes: servers refuse more than a few KiB.
const MAX_HEADER_VALUE: usize = 4096;

const KEYS: [&str; 6] = ["path", "status", "contains", "headers", "headers_absent", "request_headers"];

/// Headers that the check itself decides, in lower case, besides everything `x-forwarded-`.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// Reads the checks of one file; an absent key is no check.
#[must_use]
pub fn read(value: Option<Value<'_>>, top_level: &[&str]) -> Option<Vec<SmokeCheck>> {
    let Some(value) = value else {
        return Some(Vec::new());
    };
    let items = value.items()?;
    if items.len() > MAX_CHECKS {
        value.refuse(Refusal::new(
            format!("has {} checks, more than {MAX_CHECKS}", items.len()),
            "every check runs before and after the switch, up to 10 s each, while the release waits",
            "keep the checks that tell a good release from a bad one",
        ));
        return None;
    }
    let checks: Vec<Option<SmokeCheck>> = items.iter().map(|item| check(&item.table()?, top_level)).collect();
    checks.into_iter().collect()
}

fn check(table: &Table<'_>, top_level: &[&str]) -> Option<SmokeCheck> {
    table.only(&KEYS, top_level);
    let path = table.need("path", "add the path to ask for, for example `path = \"/\"`");
    let path = path.and_then(|path| path.read(form::url_path));
    let status = match table.get("status") {
        Some(status) => status.integer(100..=599, "an HTTP status has three digits, 100 to 599"),
        None => Some(200),
    };
    let contains = match table.get("contains") {
        Some(contains) => contains.read(substring).map(Some),
        None => Some(None),
    };
    let headers = named_values(table.get("headers"), false);
    let headers_absent = absent(table.get("headers_absent"));
    let request_headers = named_values(table.get("request_headers"), true);
    let check = SmokeCheck {
        path: path?,
        status: status?,
        contains: contains?,
        headers: headers?,
        headers_absent: headers_absent?,
        request_headers: request_headers?,
    };
    if check.headers_absent.iter().any(|name| check.headers.contains_key(name)) {
        table.refuse(
            "headers_absent",
            Refusal::new(
                "names a header that `headers` asks for",
                "no answer can both have and lack one header",
                "take it out of one of the two",
            ),
        );
        return None;
    }
    Some(check)
}

fn substring(text: &str) -> Result<String, Refusal> {
    if text.chars().count() <= MAX_CONTAINS {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            format!("has more than {MAX_CONTAINS} characters"),
            "it is one substring that the body must contain, not the body",
            "choose a shorter, telling part of the page",
        ))
    }
}

fn absent(value: Option<Value<'_>>) -> Option<Vec<String>> {
    let Some(value) = value else {
        return Some(Vec::new());
    };
    let names: BTreeSet<String> = value.each(|item| item.read(form::header_name))?.into_iter().collect();
    Some(names.into_iter().collect())
}

/// A table of header name → text. Names differ in more than letter case.
fn named_values(value: Option<Value<'_>>, is_sent: bool) -> Option<BTreeMap<String, String>> {
    let Some(value) = value else {
        return Some(BTreeMap::new());
    };
    let table = value.table()?;
    let mut values = BTreeMap::new();
    let mut is_good = true;
    for (key, value) in table.entries() {
        let name = form::header_name(key).and_then(|name| sendable(name, is_sent));
        let text = value.read(|text| header_value(text, is_sent));
        match (name, text) {
            (Err(refusal), _) => {
                table.refuse_key(key, refusal);
                is_good = false;
            }
            (Ok(_), None) => is_good = false,
            (Ok(name), Some(text)) => {
                if values.insert(name, text).is_some() {
                    table.refuse_key(
                        key,
                        Refusal::new(
                            "is there twice, in different letter case",
                            "header names have no letter case",
                            "keep one of the two",
                        ),
                    );
                    is_good = false;
                }
            }
        }
    }
    is_good.then_some(values)
}

fn sendable(name: String, is_sent: bool) -> Result<String, Refusal> {
    if is_sent && (OWN_HEADERS.contains(&name.as_str()) || name.starts_with("x-forwarded-")) {
        return Err(Refusal::new(
            "may not be sent by a check",
            "Host, Content-Length, Transfer-Encoding, Connection and X-Forwarded-* say where the request goes \
             and how it is framed; the host sets them itself",
            "remove it",
        ));
    }
    Ok(name)
}

fn header_value(text: &str, is_sent: bool) -> Result<String, Refusal> {
    let is_good = |c: char| {
        if is_sent { c == ' ' || c.is_ascii_graphic() } else { !c.is_control() }
    };
    if text.len() <= MAX_HEADER_VALUE && text.chars().all(is_good) {
        return Ok(text.to_owned());
    }
    Err(Refusal::new(
        "is not a header value",
        "a header value is one line of at most 4096 bytes without control characters; what is sent is ASCII",
        "remove line breaks and other control characters",
    ))
}

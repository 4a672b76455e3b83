//! What a delivery says of itself in its headers: unverified words, kept short and printable.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};

use super::verify::Signature;

/// The longest word that is kept of a header; a delivery's GUID has 36 characters.
const LONGEST: usize = 100;

/// How the JSON is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapping {
    /// `application/json`.
    Json,
    /// `application/x-www-form-urlencoded`, the older default: the JSON is in the field `payload`.
    Form,
    /// Anything else.
    Other,
}

/// The headers that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// `X-GitHub-Hook-ID`, empty when it is absent.
    pub hook: String,
    /// `X-GitHub-Event`, empty when it is absent.
    pub event: String,
    /// `X-GitHub-Delivery`, empty when it is absent: one for each event, the same when it is delivered again.
    pub delivery: String,
    /// `X-Hub-Signature-256`; none when it is absent or of another form.
    pub signature: Option<Signature>,
    /// The content type.
    pub wrapping: Wrapping,
    /// The declared length in bytes.
    pub length: Option<u64>,
}

impl Envelope {
    /// Reads the headers. A value that is long, odd or doubled counts as absent.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let word = |name: &'static str| one(headers, &HeaderName::from_static(name)).unwrap_or_default().to_owned();
        let wrapping = match one(headers, &CONTENT_TYPE).map(kind).as_deref() {
            Some("application/json") => Wrapping::Json,
            Some("application/x-www-form-urlencoded") => Wrapping::Form,
            Some(_) | None => Wrapping::Other,
        };
        Self {
            hook: word("x-github-hook-id"),
            event: word("x-github-event"),
            delivery: word("x-github-delivery"),
            signature: one(headers, &HeaderName::from_static("x-hub-signature-256")).and_then(Signature::parse),
            wrapping,
            length: one(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        }
    }
}

fn kind(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The one value of a header, if it is short and prints on one line.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    let is_plain = value.len() <= LONGEST && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    (values.next().is_none() && is_plain).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn the_words_of_a_delivery_are_read() {
        let signature = format!("sha256={}", "ab".repeat(32));
        let envelope = Envelope::of(&headers(&[
            ("X-GitHub-Hook-ID", "41"),
            ("X-GitHub-Event", "push"),
            ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            ("X-Hub-Signature-256", &signature),
            ("Content-Type", "application/JSON; charset=utf-8"),
            ("Content-Length", "12"),
        ]));
        assert_eq!((envelope.hook.as_str(), envelope.event.as_str()), ("41", "push"));
        assert_eq!(envelope.delivery, "72d3162e-cc78-11e3-81ab-4c9367dc0958");
        assert_eq!(envelope.signature.unwrap().header(), signature);
        assert_eq!((envelope.wrapping, envelope.length), (Wrapping::Json, Some(12)));
    }

    #[test]
    fn what_is_absent_long_odd_or_doubled_is_absent() {
        let long = "x".repeat(101);
        let envelope = Envelope::of(&headers(&[
            ("X-GitHub-Event", &long),
            ("X-GitHub-Delivery", "a"),
            ("X-GitHub-Delivery", "b"),
            ("X-GitHub-Hook-ID", "\u{fc}"),
            ("X-Hub-Signature", "sha1=0"),
            ("Content-Length", "-1"),
        ]));
        assert_eq!((envelope.hook.as_str(), envelope.event.as_str(), envelope.delivery.as_str()), ("", "", ""));
        assert_eq!((envelope.signature, envelope.length), (None, None));
        assert_eq!(envelope.wrapping, Wrapping::Other);
    }
}

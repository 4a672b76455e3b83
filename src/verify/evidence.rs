//! Short, printable descriptions of what was seen.

use crate::model::sample::{Answer, Sample, SilenceKind};

/// Characters of a body that are ever shown.
///
/// Bodies are what the public can read, so showing some is safe; more than a glance belongs into the
/// application's own log.
pub const BODY_GLANCE: usize = 200;

/// What came, in one line.
#[must_use]
pub fn seen(sample: &Sample) -> String {
    match sample {
        Sample::Answer(answer) => seen_answer(answer),
        Sample::Silence { kind, detail } => {
            let what = match kind {
                SilenceKind::Name => "the name does not resolve",
                SilenceKind::Connection => "no connection",
                SilenceKind::Tls => "no TLS",
                SilenceKind::Timeout => "no answer in time",
            };
            let detail = printable(detail.as_bytes());
            if detail.is_empty() { what.to_owned() } else { format!("{what} ({detail})") }
        }
    }
}

/// Status and the start of the body, in one line.
#[must_use]
pub fn seen_answer(answer: &Answer) -> String {
    let place = match answer.header("location").next() {
        Some(location) if (300..400).contains(&answer.status) => {
            format!(" to `{}` (redirects are not followed)", printable(location.as_bytes()))
        }
        Some(_) | None => String::new(),
    };
    let body = printable(&answer.body);
    let body = if body.is_empty() { "an empty body".to_owned() } else { format!("`{body}`") };
    format!("status {}{place}, {body}", answer.status)
}

/// At most [`BODY_GLANCE`] characters, control characters and line ends as blanks, never an escape sequence.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..BODY_GLANCE * 4).unwrap_or(bytes));
    let is_invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let clean: String = text.chars().map(|c| if is_invisible(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    let joined = words.join(" ");
    let glance: String = joined.chars().take(BODY_GLANCE).collect();
    if glance.len() < joined.len() || bytes.len() > BODY_GLANCE * 4 { format!("{glance}…") } else { glance }
}

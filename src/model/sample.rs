//! Samples: what answered one GET, as it was seen. Judged by `verify`, taken by `probe`.

/// What answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sample {
    /// An HTTP answer, whatever it says. Redirects are not followed.
    Answer(Answer),
    /// No HTTP answer.
    Silence {
        /// What happened.
        kind: SilenceKind,
        /// The chain of errors, in one line.
        detail: String,
    },
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case, values as text, in the order they came.
    pub headers: Vec<(String, String)>,
    /// At most `body_limit` bytes.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub is_truncated: bool,
}

/// Why there was no HTTP answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceKind {
    /// The name does not resolve.
    Name,
    /// Nobody listens, or the connection broke.
    Connection,
    /// TLS could not be agreed.
    Tls,
    /// Out of time.
    Timeout,
}

impl Answer {
    /// The values of every line of one header; `name` in lower case.
    pub fn header<'answer>(&'answer self, name: &'answer str) -> impl Iterator<Item = &'answer str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

//! Revisions, digests, image ids and release numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Why a text is not a revision or a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    /// Not a full, lower-case object name.
    #[error("`{0}` is not a full commit sha: 40 lower-case hex digits are needed")]
    Sha(String),
    /// Not a SHA-256 digest.
    #[error("`{0}` is not a SHA-256 digest: 64 lower-case hex digits are needed")]
    Digest(String),
    /// Not an image id.
    #[error("`{0}` is not an image id: `sha256:` and 64 hex digits are needed")]
    ImageId(String),
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $error:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The whole value as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = HexError;
            fn from_str(text: &str) -> Result<Self, HexError> {
                let check: fn(&str) -> bool = $check;
                if check(text) { Ok(Self(text.to_owned())) } else { Err(HexError::$error(text.to_owned())) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = HexError;
            fn try_from(text: String) -> Result<Self, HexError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text_newtype! {
    /// A full object name: 40 hex digits (SHA-1) or 64 (SHA-256), lower case. Never abbreviated:
    /// GitHub answers an abbreviated sha with an empty list (github-facts, section 3).
    Sha, Sha, |text| (text.len() == 40 || text.len() == 64) && is_hex(text)
}
text_newtype! {
    /// The SHA-256 of some bytes, as 64 hex digits.
    Digest, Digest, |text| text.len() == 64 && is_hex(text)
}
text_newtype! {
    /// An image's id in the engine: `sha256:` and 64 hex digits.
    ImageId, ImageId, |text| text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && is_hex(hex))
}

impl Sha {
    /// The first 12 digits: the form in image tags and on screens.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(bytes)))
    }

    /// The first `length` hex digits, all 64 if it is larger.
    #[must_use]
    pub fn prefix(&self, length: usize) -> &str {
        self.0.get(..length).unwrap_or(&self.0)
    }
}

impl ImageId {
    /// The first 12 hex digits, as `docker images` prints them.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(7..19).unwrap_or(&self.0)
    }
}

/// A release's number: counted from 1 for each target, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReleaseNumber(pub u64);

impl fmt::Display for ReleaseNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

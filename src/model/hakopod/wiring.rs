//! References to secrets, and the private addresses made from them.

use serde::{Deserialize, Serialize};

/// Where a secret value comes from. It is never the value itself.
///
/// Source: rule book, section 6.2.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SecretRef {
    /// A secret of this application: `{ ref = "…" }`.
    Own {
        /// Its name: 1 to 40 characters.
        #[serde(rename = "ref")]
        name: String,
    },
    /// A value of an external provider: `{ provider, key, path }`.
    Provider {
        /// The provider's name.
        provider: String,
        /// The key: 1 to 128 bytes of `[A-Za-z0-9._-]`.
        key: String,
        /// The path in front of it: at most 512 bytes, segments like the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
}

/// `bindings.<ENV_NAME>`: a URL that is computed at deployment and only ever stored as a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The service that answers; it has a primary port and lets this one in.
    pub service: String,
    /// The scheme.
    pub protocol: BindingProtocol,
    /// At most 64 bytes; for redis a number from 0 to 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// At most 64 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Where the password comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretRef>,
}

/// `bindings.*.protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindingProtocol {
    /// No user, password or database.
    Http,
    /// User, password and database required.
    Postgres,
    /// As postgres.
    Mysql,
    /// Password required; user and database optional.
    Redis,
    /// As postgres; the database is the virtual host (ruling 53).
    Amqp,
}

impl BindingProtocol {
    /// The words of the file, which are the URL schemes too.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("http", Self::Http),
        ("postgres", Self::Postgres),
        ("mysql", Self::Mysql),
        ("redis", Self::Redis),
        ("amqp", Self::Amqp),
    ];
}

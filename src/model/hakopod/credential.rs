//! What looks like a credential, by its name or by its value.
//!
//! It cannot find a secret that is disguised as an ordinary value.
//!
//! Source: rule book, section 6.1, "Credential detection".

/// Endings of names, after `_` or alone.
const ENDINGS: [&str; 13] = [
    "PASSWORD",
    "PASSWD",
    "PWD",
    "TOKEN",
    "SECRET",
    "API_KEY",
    "PRIVATE_KEY",
    "ACCESS_KEY",
    "ACCESS_KEY_ID",
    "SECRET_KEY",
    "CLIENT_SECRET",
    "SIGNING_KEY",
    "ENCRYPTION_KEY",
];
/// Whole words anywhere in a name, between underscores.
const INSIDE: [&str; 4] = ["SECRET_KEY", "PRIVATE_KEY", "API_KEY", "CLIENT_SECRET"];
/// Prefixes of tokens; at least [`TOKEN_REST`] of `[A-Za-z0-9_-]` follow.
const TOKEN_PREFIXES: [&str; 8] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-proj-"];
const TOKEN_REST: usize = 12;

/// Whether a variable's name is that of a credential.
#[must_use]
pub fn is_credential_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let ends =
        |ending: &&str| upper.strip_suffix(*ending).is_some_and(|before| before.is_empty() || before.ends_with('_'));
    let holds = |word: &&str| format!("_{upper}_").contains(&format!("_{word}_"));
    ENDINGS.iter().any(ends) || INSIDE.iter().any(holds)
}

/// Whether a value is that of a credential: a private key, a known token, a JWT, a URL with a user.
#[must_use]
pub fn is_credential_value(value: &str) -> bool {
    has_private_key(value) || is_token(value) || is_web_token(value) || has_userinfo(value)
}

fn url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----`
fn has_private_key(value: &str) -> bool {
    value.split("-----BEGIN ").skip(1).any(|rest| {
        rest.split_once("PRIVATE KEY-----").is_some_and(|(words, _)| {
            words.is_empty()
                || words.strip_suffix(' ').is_some_and(|words| {
                    let word = |word: &str| {
                        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
                    };
                    words.split(' ').all(word)
                })
        })
    })
}

/// `^(?:gh[pousr]_|github_pat_|glpat-|sk-proj-)[A-Za-z0-9_-]{12,}`: not anchored at the end.
fn is_token(value: &str) -> bool {
    TOKEN_PREFIXES
        .iter()
        .filter_map(|prefix| value.strip_prefix(prefix))
        .any(|rest| rest.len() >= TOKEN_REST && rest.bytes().take(TOKEN_REST).all(url_safe))
}

/// `^eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`
fn is_web_token(value: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(url_safe);
    value.strip_prefix("eyJ").is_some_and(|rest| rest.split('.').count() == 3 && rest.split('.').all(part))
}

/// Whether it parses as a URL whose authority has a userinfo part, even an empty one.
fn has_userinfo(value: &str) -> bool {
    if value.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    let Some(rest) = after_scheme(value).strip_prefix("//") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, host)) = authority.rsplit_once('@') else { return false };
    let (address, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let path = address.split('?').next().unwrap_or_default();
    is_userinfo(user) && is_host(host) && has_good_escapes(path) && has_good_escapes(fragment)
}

/// The text after `scheme:`, or all of it when there is no scheme.
fn after_scheme(value: &str) -> &str {
    match value.split_once(':') {
        Some((scheme, rest))
            if scheme.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) =>
        {
            rest
        }
        Some(_) | None => value,
    }
}

/// RFC 3986 userinfo with complete escapes; a second `@` is let through as the Go parser does.
fn is_userinfo(user: &str) -> bool {
    user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte))
        && has_good_escapes(user)
}

/// No character that makes the authority unparseable.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => match host.rfind(':') {
            Some(at) => (host.get(..at).unwrap_or_default(), host.get(at..).unwrap_or_default()),
            None => (host, ""),
        },
    };
    let port_is_good =
        port.strip_prefix(':').map_or(port.is_empty(), |digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let plain = |byte: u8| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]<>\"%".contains(&byte);
    port_is_good && name.bytes().all(plain)
}

fn has_good_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|piece| piece.len() >= 2 && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

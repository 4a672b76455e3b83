//! Names and addresses on networks: hosts, egress entries, web addresses.
//!
//! Web addresses are encrypted unless they stay on this host, and hold no credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::report::Refusal;

/// Why a text is not a host name; none when it is one (lower case or not).
///
/// Source: RFC 1123 section 2.1 (letters, digits, hyphens; 63 a label, 253 in all), with an
/// alphabetic last label, so that no IPv4 address passes.
#[must_use]
pub fn host_name_problem(text: &str) -> Option<&'static str> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.contains("//") || text.contains('/') {
        Some("write the bare name, without a scheme and without a path")
    } else if text.contains(':') {
        Some("write the bare name, without a port")
    } else if text.starts_with("*.") {
        Some("write each name out; wildcards are not taken here")
    } else if text.ends_with('.') {
        Some("write the name without the dot at its end")
    } else if !text.is_ascii() {
        Some("write an international name in its ASCII form (xn--…)")
    } else if text.len() > 253 || !text.split('.').all(label) {
        Some("use labels of 1 to 63 letters, digits and inner hyphens, joined by dots, at most 253 characters in all")
    } else if text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit())) {
        Some("write a name, not an address")
    } else {
        None
    }
}

/// A host name in lower case.
///
/// # Errors
/// When it is not a host name.
pub fn host_name(text: &str) -> Result<String, Refusal> {
    match host_name_problem(text) {
        None => Ok(text.to_ascii_lowercase()),
        Some(fix) => Err(Refusal::new(
            "is not a valid host name",
            "a host is a DNS name of letters, digits, hyphens and dots, as browsers send it",
            fix,
        )),
    }
}

/// One egress entry, in lower case: `host:port`, `*.suffix:port`, `*:port`, `ip:port`, `[v6]:port`.
///
/// # Errors
/// When it is none of these, or the port is missing or not between 1 and 65535.
pub fn egress(text: &str) -> Result<String, Refusal> {
    const WHY: &str = "an entry is `host:port`, `*.suffix:port`, `*:port`, `ip:port` or `[v6]:port`";
    let refuse = |what: &'static str, fix: &'static str| Refusal::new(what, WHY, fix);
    if text.contains("://") {
        return Err(refuse("is not an egress entry", "write host and port only, without a scheme"));
    }
    let no_port = || refuse("has no port", "add the port, for example `:443`");
    let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if inner.is_none() && host.contains(':') {
        return Err(refuse("is not an egress entry", "write an IPv6 address in brackets: `[2001:db8::7]:443`"));
    }
    if host.starts_with('[') && inner.is_none() {
        return Err(no_port());
    }
    let is_number = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || port.starts_with('0') || port.parse::<u16>().is_err() {
        return Err(refuse("has no valid port", "write a port between 1 and 65535 after the last colon"));
    }
    let is_host = match inner {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let name = host.strip_prefix("*.").unwrap_or(host);
            host == "*" || host.parse::<Ipv4Addr>().is_ok() || host_name_problem(name).is_none()
        }
    };
    if is_host {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(refuse("is not an egress entry", "write a DNS name, an address, or `*` alone or as the first label"))
    }
}

/// Characters of a URL without query and fragment.
///
/// Source: RFC 3986 section 2, without `?` and `#`.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}?#".contains(&byte);
    !text.is_empty() && text.len() <= 2000 && text.bytes().all(plain)
}

/// The host of `host`, `host:port` or `[v6]:port`.
///
/// # Errors
/// When it is neither a host name nor an address, or the port is not a port.
pub fn host_of(authority: &str) -> Result<&str, Refusal> {
    let bad = || {
        Refusal::new(
            "has no valid host",
            "a server has a host name or an address, and perhaps a port",
            "write for example https://git.example.org/",
        )
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err() || port.starts_with('+')) {
        return Err(bad());
    }
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if is_address || host_name_problem(host).is_none() { Ok(host) } else { Err(bad()) }
}

/// Says whether a host is this host itself.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Reads an `https://` address, or an `http://` one of loopback, and gives its path too.
///
/// # Errors
/// Another scheme, plain http that leaves this host, a user or password, a query or fragment.
pub fn web(text: &str) -> Result<&str, Refusal> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    if !matches!(scheme, "https" | "http") || !is_plain(rest) {
        return Err(Refusal::new(
            "is not a web address",
            "it has the form https://host/path, without query and fragment",
            "write for example https://git.example.org/",
        ));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err(Refusal::new(
            "holds a user, password or token",
            "settings are shown in logs and on screens; secrets live in their own files",
            "remove everything before the `@`",
        ));
    }
    let host = host_of(authority)?;
    if scheme == "http" && !is_loopback(host) {
        return Err(Refusal::new(
            "is not encrypted",
            "anybody on the way could answer in its place; plain http is for loopback only",
            "write https://",
        ));
    }
    Ok(path)
}

//! The forms of `repo`, and the names of images.

use crate::model::document::{Refusal, form, net};
use crate::model::policy::Repository;

const FIX: &str = "write `owner/name` for GitHub, or a file://, https:// or ssh:// URL";

fn refuse(what: &'static str, why: &'static str, fix: &'static str) -> Refusal {
    Refusal::new(what, why, fix)
}

/// Reads `repo`: `owner/name`, or **(own)** a URL of a plain remote.
///
/// # Errors
/// When it is neither, or holds a password or token.
pub(super) fn read(text: &str) -> Result<Repository, Refusal> {
    if let Some((scheme, rest)) = text.split_once("://") {
        return remote(text, scheme, rest).map(|()| Repository::Url(text.to_owned()));
    }
    if text.contains('@') || text.contains(':') {
        return Err(refuse(
            "is written as `host:path`",
            "that form has no scheme and can be read in two ways",
            "write it as a URL: `ssh://git@host/path`",
        ));
    }
    let (owner, name) = text.split_once('/').ok_or_else(not_a_repository)?;
    let owner_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_owner = (1..=39).contains(&owner.len()) && owner.bytes().all(owner_byte) && !owner.starts_with('-');
    let is_name = (1..=100).contains(&name.len()) && name.bytes().all(name_byte) && !matches!(name, "." | "..");
    if name.to_ascii_lowercase().ends_with(".git") {
        return Err(refuse(
            "ends in `.git`",
            "on GitHub that is the end of the clone URL, not of the repository's name",
            "write it without `.git`",
        ));
    }
    if is_owner && is_name {
        Ok(Repository::GitHub { owner: owner.to_owned(), name: name.to_owned() })
    } else {
        Err(not_a_repository())
    }
}

fn not_a_repository() -> Refusal {
    refuse("is not a repository", "a repository is `owner/name` on GitHub, or the URL of a plain remote", FIX)
}

fn remote(text: &str, scheme: &str, rest: &str) -> Result<(), Refusal> {
    if !net::is_plain(rest) {
        return Err(refuse(
            "is not a plain URL",
            "a remote's URL has a scheme, a host and a path, and neither query nor fragment",
            FIX,
        ));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme {
        "file" => file(authority, path),
        "https" | "http" => {
            if net::web(text)?.is_empty() {
                Err(no_path())
            } else {
                Ok(())
            }
        }
        "ssh" => ssh(authority, path),
        _ => Err(refuse(
            "has a scheme that is not taken",
            "what travels must be authenticated: git:// and others are not, and remote helpers run programs",
            FIX,
        )),
    }
}

fn file(authority: &str, path: &str) -> Result<(), Refusal> {
    if !authority.is_empty() || form::absolute_path(&format!("/{}", path.trim_end_matches('/'))).is_err() {
        return Err(refuse(
            "is not a file URL with an absolute path",
            "a local remote is one directory on this host",
            "write for example `file:///srv/git/shop.git`",
        ));
    }
    Ok(())
}

fn ssh(authority: &str, path: &str) -> Result<(), Refusal> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') {
        return Err(refuse(
            "holds a password",
            "the registry is shown in logs and on screens; secrets live in their own files",
            "remove the password; ssh uses a key",
        ));
    }
    let user_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if user.starts_with('-') || host.starts_with('-') || !user.bytes().all(user_byte) {
        return Err(refuse(
            "is not a plain URL",
            "a user or host that starts with a hyphen would be read as an option",
            FIX,
        ));
    }
    net::host_of(host)?;
    if path.is_empty() { Err(no_path()) } else { Ok(()) }
}

fn no_path() -> Refusal {
    refuse("has no path", "the path says which repository of the server", FIX)
}

/// An image's name without tag and digest: `[host[:port]/]path`.
///
/// Source: OCI distribution specification 1.1, `<name>`.
///
/// # Errors
/// When it is not, or when it holds a tag or digest, which belong to the commit.
pub(super) fn image_name(text: &str) -> Result<String, Refusal> {
    let bad = |fix: &'static str| {
        refuse("is not an image's name", "the tag is the commit's; the name is host and path in lower case", fix)
    };
    if text.contains('@') || text.contains("://") {
        return Err(bad("write it without scheme, user and digest"));
    }
    let last = text.rsplit('/').next().unwrap_or_default();
    if last.contains(':') {
        return Err(bad("write it without a tag"));
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let part = |part: &str| part.bytes().all(inner) && edge(part.bytes().next()) && edge(part.bytes().next_back());
    let (first, rest) = text.split_once('/').unwrap_or(("", text));
    let is_first = first.is_empty() && !text.starts_with('/') || part(first) || net::host_of(first).is_ok();
    if text.len() <= 255 && is_first && !rest.is_empty() && rest.split('/').all(part) {
        Ok(text.to_owned())
    } else {
        Err(bad("write for example \"registry.example.org/shop\""))
    }
}

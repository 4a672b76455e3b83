//! Where a repository is: its address, taken apart once, with nothing secret left in it.
//!
//! Refuses what could carry more than an address: passwords in URLs, host names that a program could take
//! for an option, plain HTTP beyond this host.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use reqwest::Url;

use crate::model::Digest;
use crate::model::policy::Repository;

/// A repository's address. `Display` prints it without user, password, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remote {
    /// How to reach it.
    pub(super) way: Way,
    /// For people and for messages.
    shown: String,
}

/// How a repository is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// In-process, from its object database (ruling 23).
    File(PathBuf),
    /// Smart HTTP.
    Http {
        /// Without user and password, query and fragment.
        url: String,
        /// Whether the host is this machine: then no proxy is asked, and plain HTTP is allowed.
        is_loopback: bool,
        /// Whether the token of `[github]` may be sent there.
        takes_token: bool,
    },
    /// The fixed program `ssh`.
    Ssh {
        /// The account, as in `ssh -l`.
        user: Option<String>,
        /// The host, never an option.
        host: String,
        /// The port, if not 22.
        port: Option<u16>,
        /// The path on the host.
        path: String,
    },
}

impl fmt::Display for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl Remote {
    /// Takes a repository's address apart; `git_url` is the address of the GitHub of `[github]`.
    ///
    /// # Errors
    /// One sentence on why the address cannot be used, without the address.
    pub(super) fn of(repo: &Repository, git_url: &str) -> Result<Self, String> {
        match repo {
            Repository::Url(url) => Self::parse(url, false),
            Repository::GitHub { owner, name } => {
                let is_plain = |part: &str| {
                    !part.is_empty()
                        && !part.starts_with('.')
                        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
                };
                if !is_plain(owner) || !is_plain(name) {
                    return Err(
                        "owner and name of a GitHub repository have letters, digits, `.`, `_` and `-` only".to_owned()
                    );
                }
                Self::parse(&format!("{}/{owner}/{name}.git", git_url.trim_end_matches('/')), true)
            }
        }
    }

    /// The address as `git` takes it: never an option, never with a password.
    pub(super) fn address(&self) -> String {
        match &self.way {
            Way::File(path) => path.display().to_string(),
            Way::Http { url, .. } => url.clone(),
            Way::Ssh { user, host, port, path } => {
                let user = user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                let port = port.map_or_else(String::new, |port| format!(":{port}"));
                let slash = if path.starts_with('/') { "" } else { "/" };
                format!("ssh://{user}{host}{port}{slash}{path}")
            }
        }
    }

    fn parse(text: &str, takes_token: bool) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("it is not a URL ({error})"))?;
        if url.password().is_some() {
            return Err("a password in the URL would end up in logs; take it out".to_owned());
        }
        let way = match url.scheme() {
            "file" => Way::File(
                url.to_file_path().map_err(|()| "a `file://` URL has an absolute path and no host".to_owned())?,
            ),
            "http" | "https" => http(&url, takes_token)?,
            "ssh" => ssh(&url)?,
            other => {
                return Err(format!("the scheme `{other}` is not one of file, https, http (this host only) and ssh"));
            }
        };
        Ok(Self { way, shown: shown(url) })
    }

    /// The directory name of its mirror: 32 hex digits of a hash of everything that tells it from others.
    pub(super) fn directory(&self) -> String {
        let user = match &self.way {
            Way::Ssh { user, .. } => user.as_deref().unwrap_or_default(),
            Way::File(_) | Way::Http { .. } => "",
        };
        Digest::of(format!("{user}\0{}", self.shown).as_bytes()).prefix(32).to_owned()
    }
}

/// An address without user, password, query and fragment.
pub(super) fn shown(mut url: Url) -> String {
    // Both fail only for addresses that cannot have a user, such as `file://`.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

fn http(url: &Url, takes_token: bool) -> Result<Way, String> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !url.username().is_empty() {
        return Err("a user name in an HTTP URL is not used; take it out".to_owned());
    }
    if url.scheme() == "http" && !is_loopback {
        return Err("plain `http://` is read from this host only; use `https://`".to_owned());
    }
    Ok(Way::Http { url: shown(url.clone()), is_loopback, takes_token })
}

/// Source: ssh(1) takes a destination that starts with `-` for an option, whatever quoting is used.
fn ssh(url: &Url) -> Result<Way, String> {
    let is_word = |text: &str, more: &[u8]| {
        !text.starts_with('-') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() || !is_word(&host, b"._-:") {
        return Err("the host of an `ssh://` URL has letters, digits, `.`, `-` and `_` only".to_owned());
    }
    let user = (!url.username().is_empty()).then(|| url.username().to_owned());
    if user.as_deref().is_some_and(|user| !is_word(user, b"._-")) {
        return Err("the user of an `ssh://` URL has letters, digits, `.`, `-` and `_` only".to_owned());
    }
    let path = url.path();
    let path = if path.starts_with("/~") { path.trim_start_matches('/') } else { path };
    if path.len() < 2 || !is_word(path, b"/._-~+@") {
        return Err("the path of an `ssh://` URL has letters, digits and `/._-~+@` only".to_owned());
    }
    Ok(Way::Ssh { user, host, port: url.port(), path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Remote, String> {
        Remote::of(&Repository::Url(url.to_owned()), "https://github.com")
    }

    #[test]
    fn an_address_prints_without_user_password_and_query() {
        for (url, shown) in [
            ("ssh://git@example.org/a/b.git", "ssh://example.org/a/b.git"),
            ("https://example.org/a.git?token=canary#canary", "https://example.org/a.git"),
            ("file:///srv/git/shop.git", "file:///srv/git/shop.git"),
        ] {
            assert_eq!(of(url).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn an_address_that_could_carry_more_is_refused_without_repeating_it() {
        for url in [
            "https://user:canary@example.org/a.git",
            "https://canary@example.org/a.git",
            "http://example.org/canary.git",
            "ssh://-oProxyCommand=canary/x",
            "ssh://-lcanary@example.org/x",
            "ssh://git@example.org/x%27canary",
            "ext::canary",
            "git://example.org/canary",
            "file://canary/srv/x.git",
            "canary",
        ] {
            let why = of(url).unwrap_err();
            assert!(!why.contains("canary"), "{url}: {why}");
        }
    }

    #[test]
    fn a_github_repository_is_below_the_configured_address_and_takes_the_token() {
        let repo = Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() };
        let remote = Remote::of(&repo, "https://git.example.org/").unwrap();
        assert_eq!(remote.to_string(), "https://git.example.org/acme/shop.git");
        assert!(matches!(remote.way, Way::Http { takes_token: true, is_loopback: false, .. }));
        let odd = Repository::GitHub { owner: "..".to_owned(), name: "shop".to_owned() };
        assert!(Remote::of(&odd, "https://git.example.org").is_err());
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        for url in ["http://127.0.0.1:3000/a.git", "http://localhost/a.git", "http://[::1]:80/a.git"] {
            assert!(matches!(of(url).unwrap().way, Way::Http { is_loopback: true, takes_token: false, .. }));
        }
    }
}

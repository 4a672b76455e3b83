//! HTTP below gix: one pooled client for all repositories, waits that an abort can end, a token that only this file sees.
//!
//! gix's own reqwest back end keeps two threads and a connection pool for each repository, cannot be told to
//! stop while it waits, and repeats credentials in its options. This one implements the same trait.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use tokio::runtime::Handle;

use super::Token;
use super::abort::Abort;
use super::fault::{Fault, hold};
use super::place::shown;
use crate::source::http::Roots;

/// How long a server may send nothing: Git servers send keep-alive packets every 5 s while they pack.
const SILENCE: Duration = Duration::from_secs(60);
/// Answers up to this size are taken whole, so that their connection is free again before the next look.
pub(super) const SMALL_BYTES: u64 = 4 << 20;

/// Makes the client that all HTTP remotes of one kind share; loopback never goes through a proxy.
pub(super) fn client(is_loopback: bool, roots: &Roots) -> Result<Client, String> {
    crate::source::http::client(is_loopback, roots, concat!("git/trueup-", env!("CARGO_PKG_VERSION")))
}

/// What an operation and the connection it runs over tell each other.
#[derive(Debug, Default)]
pub(super) struct Link {
    state: Mutex<LinkState>,
}

#[derive(Debug, Default)]
struct LinkState {
    abort: Option<Arc<Abort>>,
    fault: Option<Fault>,
    left: u64,
}

impl Link {
    /// Starts an operation that may receive `limit` bytes.
    pub(super) fn begin(&self, abort: &Arc<Abort>, limit: u64) {
        *hold(&self.state) = LinkState { abort: Some(Arc::clone(abort)), fault: None, left: limit };
    }

    /// What the connection itself met, if anything: it outranks what gix made of it.
    pub(super) fn fault(&self) -> Option<Fault> {
        hold(&self.state).fault.take()
    }

    /// Remembers the first fault, and gives gix an error to unwind with.
    pub(super) fn fail(&self, fault: Fault) -> io::Error {
        hold(&self.state).fault.get_or_insert(fault);
        io::Error::other("the connection failed")
    }

    /// Counts received bytes against the limit.
    pub(super) fn count(&self, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let left = {
            let mut state = hold(&self.state);
            let left = state.left.checked_sub(bytes);
            state.left = left.unwrap_or(0);
            left
        };
        left.map(|_| ()).ok_or_else(|| {
            self.fail(Fault::refused("the answer is larger than a mirror accepts", "make the repository smaller"))
        })
    }

    /// Whether all of the answer is taken at once.
    pub(super) fn is_small(&self) -> bool {
        hold(&self.state).left <= SMALL_BYTES
    }

    fn abort(&self) -> Arc<Abort> {
        hold(&self.state).abort.clone().unwrap_or_default()
    }
}

/// One repository's HTTP.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) client: Client,
    pub(super) handle: Handle,
    pub(super) token: Option<Token>,
    pub(super) link: Arc<Link>,
}

impl Wire {
    pub(super) fn request(
        &self,
        method: Method,
        url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> RequestBuilder {
        let mut request = self.client.request(method, url);
        for header in headers {
            if let Some((name, value)) = header.as_ref().split_once(':')
                && !name.eq_ignore_ascii_case("user-agent")
            {
                request = request.header(name.trim(), value.trim());
            }
        }
        match self.token.as_ref().and_then(Token::read) {
            Some(secret) => request.basic_auth("x-access-token", Some(secret.expose())),
            None => request,
        }
    }

    /// Waits for `work`, the abort or [`SILENCE`], whichever is first.
    pub(super) fn wait<T>(&self, work: impl Future<Output = Result<T, reqwest::Error>>) -> io::Result<T> {
        let stopped = self.link.abort().token();
        let outcome = self.handle.block_on(async {
            tokio::select! {
                biased;
                () = stopped.cancelled() => Err(Fault::Stopped),
                result = tokio::time::timeout(SILENCE, work) => match result {
                    Err(_) => Err(Fault::remote(format!("nothing came for {} s", SILENCE.as_secs()))),
                    Ok(result) => result.map_err(unreachable_remote),
                },
            }
        });
        outcome.map_err(|fault| self.link.fail(fault))
    }

    pub(super) fn send(&self, request: RequestBuilder) -> io::Result<Response> {
        let response = self.wait(request.send())?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let moved_to = response
            .headers()
            .get(reqwest::header::LOCATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| response.url().join(text).ok())
            .map(shown);
        Err(self.link.fail(refusal(status, moved_to, self.token.is_some())))
    }
}

/// A connection error's causes in one line, without the address (it is in the message already).
fn unreachable_remote(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Fault::remote(text)
}

/// Source: github-facts; GitHub answers 404 where a token lacks the right to see, so both are named.
fn refusal(status: StatusCode, moved_to: Option<String>, has_token: bool) -> Fault {
    let code = status.as_u16();
    match code {
        300..=399 => Fault::refused(
            format!("the repository has moved to {}", moved_to.unwrap_or_else(|| "an unnamed place".to_owned())),
            "change `repo` or `git_url` to the new address",
        ),
        401 if has_token => Fault::refused("the token was refused (401)", "renew the token of `[github]`"),
        401 => Fault::refused("the remote asks for credentials (401)", "give a token, or use a remote that needs none"),
        403 => Fault::refused("access was denied (403)", "check the token's rights and the rate limit"),
        404 => Fault::refused(
            "there is no such repository, or no right to see it (404)",
            "check the name and the token's rights",
        ),
        _ => Fault::remote(format!("the server answered {code}")),
    }
}

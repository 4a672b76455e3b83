//! HTTP below gix: one pooled client for all repositories, waits that an abort can end, a token that only this file sees.
//!
//! gix's own reqwest back end keeps two threads and a connection pool for each repository, cannot be told to
//! stop while it waits, and repeats credentials in its options. This one implements the same trait.

use std::io::{self, BufRead, Cursor, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use tokio::runtime::Handle;

use super::Token;
use super::abort::Abort;
use super::fault::{Fault, hold};
use super::place::shown;

/// How long a server may send nothing: Git servers send keep-alive packets every 5 s while they pack.
const SILENCE: Duration = Duration::from_secs(60);
/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(15);
/// Answers up to this size are taken whole, so that their connection is free again before the next look.
pub(super) const SMALL_BYTES: u64 = 4 << 20;

/// Makes the client that all HTTP remotes of one kind share; loopback never goes through a proxy.
pub(super) fn client(is_loopback: bool) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err("no TLS provider is installed in this process".to_owned());
    }
    let builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(Duration::from_secs(300))
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(concat!("git/trueup-", env!("CARGO_PKG_VERSION")));
    let builder = if is_loopback {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(|error| format!("{error:?}"))
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
        *hold(&self.state) = LinkState {
            abort: Some(Arc::clone(abort)),
            fault: None,
            left: limit,
        };
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
            self.fail(Fault::refused(
                "the answer is larger than a mirror accepts",
                "make the repository smaller",
            ))
        })
    }

    fn is_small(&self) -> bool {
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
    fn request(
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
    fn wait<T>(&self, work: impl Future<Output = Result<T, reqwest::Error>>) -> io::Result<T> {
        let stopped = self.link.abort().token();
        let outcome = self.handle.block_on(async {
            tokio::select! {
                biased;
                () = stopped.cancelled() => Err(Fault::Stopped),
                result = tokio::time::timeout(SILENCE, work) => match result {
                    Err(_) => Err(Fault::remote(format!("nothing came for {} s", SILENCE.as_secs()))),
                    Ok(result) => result.map_err(|error| unreachable_remote(error)),
                },
            }
        });
        outcome.map_err(|fault| self.link.fail(fault))
    }

    fn send(&self, request: RequestBuilder) -> io::Result<Response> {
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
        Err(self
            .link
            .fail(refusal(status, moved_to, self.token.is_some())))
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
            format!(
                "the repository has moved to {}",
                moved_to.unwrap_or_else(|| "an unnamed place".to_owned())
            ),
            "change `repo` or `git_url` to the new address",
        ),
        401 if has_token => Fault::refused(
            "the token was refused (401)",
            "renew the token of `[github]`",
        ),
        401 => Fault::refused(
            "the remote asks for credentials (401)",
            "give a token, or use a remote that needs none",
        ),
        403 => Fault::refused(
            "access was denied (403)",
            "check the token's rights and the rate limit",
        ),
        404 => Fault::refused(
            "there is no such repository, or no right to see it (404)",
            "check the name and the token's rights",
        ),
        _ => Fault::remote(format!("the server answered {code}")),
    }
}

/// A request that is sent when its answer is first asked for, since gix hands the body over in between.
pub(super) struct Exchange {
    wire: Wire,
    request: Option<RequestBuilder>,
    body: Vec<u8>,
    response: Option<Response>,
    whole: Option<Bytes>,
}

type Shared = Arc<Mutex<Exchange>>;

impl Exchange {
    fn start(wire: Wire, request: RequestBuilder) -> Shared {
        Arc::new(Mutex::new(Self {
            wire,
            request: Some(request),
            body: Vec::new(),
            response: None,
            whole: None,
        }))
    }

    fn ensure_sent(&mut self) -> io::Result<()> {
        let Some(request) = self.request.take() else {
            return Ok(());
        };
        let body = std::mem::take(&mut self.body);
        let request = if body.is_empty() {
            request
        } else {
            request.body(body)
        };
        let response = self.wire.send(request)?;
        self.response = Some(response);
        if self.wire.link.is_small() {
            let mut whole = Vec::new();
            while let Some(chunk) = self.next()? {
                whole.extend_from_slice(&chunk);
            }
            self.whole = Some(whole.into());
        }
        Ok(())
    }

    fn header_lines(&self) -> Vec<u8> {
        let kind = self
            .response
            .as_ref()
            .and_then(|response| response.headers().get(reqwest::header::CONTENT_TYPE));
        let kind = kind
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        format!("content-type: {kind}\n").into_bytes()
    }

    fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(whole) = self.whole.as_mut() {
            let whole = std::mem::take(whole);
            return Ok((!whole.is_empty()).then_some(whole));
        }
        let Some(response) = self.response.as_mut() else {
            return Ok(None);
        };
        let chunk = self.wire.wait(response.chunk())?;
        if let Some(chunk) = &chunk {
            self.wire.link.count(chunk.len())?;
        }
        Ok(chunk)
    }
}

/// What gix writes its request into.
pub(super) struct PostBody(Shared);

impl Write for PostBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        hold(&self.0).body.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The one header that gix looks at.
pub(super) struct Headers {
    exchange: Shared,
    lines: Option<Cursor<Vec<u8>>>,
}

impl Headers {
    fn lines(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        if self.lines.is_none() {
            let mut exchange = hold(&self.exchange);
            exchange.ensure_sent()?;
            self.lines = Some(Cursor::new(exchange.header_lines()));
        }
        Ok(self.lines.get_or_insert_default())
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lines()?.read(buffer)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.lines()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(lines) = self.lines.as_mut() {
            lines.consume(amount);
        }
    }
}

/// The answer's body.
pub(super) struct Body {
    exchange: Shared,
    chunk: Bytes,
    is_at_end: bool,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() && !self.is_at_end {
            let mut exchange = hold(&self.exchange);
            exchange.ensure_sent()?;
            match exchange.next()? {
                Some(chunk) => self.chunk = chunk,
                None => self.is_at_end = true,
            }
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        self.chunk.advance(amount.min(self.chunk.len()));
    }
}

impl Http for Wire {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = PostBody;

    fn get(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Headers, Body>> {
        let exchange = Exchange::start(self.clone(), self.request(Method::GET, url, headers));
        hold(&exchange)
            .ensure_sent()
            .map_err(gix::Error::from_error)?;
        Ok(GetResponse {
            headers: Headers {
                exchange: Arc::clone(&exchange),
                lines: None,
            },
            body: Body {
                exchange,
                chunk: Bytes::new(),
                is_at_end: false,
            },
        })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Headers, Body, PostBody>> {
        let exchange = Exchange::start(self.clone(), self.request(Method::POST, url, headers));
        Ok(PostResponse {
            post_body: PostBody(Arc::clone(&exchange)),
            headers: Headers {
                exchange: Arc::clone(&exchange),
                lines: None,
            },
            body: Body {
                exchange,
                chunk: Bytes::new(),
                is_at_end: false,
            },
        })
    }

    fn configure(&mut self, _config: &dyn std::any::Any) -> gix::Result {
        Ok(())
    }
}

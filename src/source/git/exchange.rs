//! gix's HTTP trait over [`Wire`]: requests that are sent late, answers that are read piece by piece.

use std::io::{self, BufRead, Cursor, Read, Write};
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, Bytes};
use gix::protocol::transport::client::blocking_io::http::{GetResponse, Http, PostBodyDataKind, PostResponse};
use reqwest::{Method, RequestBuilder, Response};

use super::fault::hold;
use super::wire::Wire;

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
        Arc::new(Mutex::new(Self { wire, request: Some(request), body: Vec::new(), response: None, whole: None }))
    }

    fn ensure_sent(&mut self) -> io::Result<()> {
        let Some(request) = self.request.take() else {
            return Ok(());
        };
        let body = std::mem::take(&mut self.body);
        let request = if body.is_empty() { request } else { request.body(body) };
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
        let kind = self.response.as_ref().and_then(|response| response.headers().get(reqwest::header::CONTENT_TYPE));
        let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
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
        hold(&exchange).ensure_sent().map_err(gix::Error::from_error)?;
        Ok(GetResponse {
            headers: Headers { exchange: Arc::clone(&exchange), lines: None },
            body: Body { exchange, chunk: Bytes::new(), is_at_end: false },
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
            headers: Headers { exchange: Arc::clone(&exchange), lines: None },
            body: Body { exchange, chunk: Bytes::new(), is_at_end: false },
        })
    }

    fn configure(&mut self, _config: &dyn std::any::Any) -> gix::Result {
        Ok(())
    }
}

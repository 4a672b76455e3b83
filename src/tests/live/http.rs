//! One request, one answer, over TCP or a Unix socket: as little HTTP as the tests need.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// No answer of the parts takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// A GET on a loopback port, under a host's name.
pub(crate) fn get(port: u16, host: &str, path: &str) -> std::io::Result<Answer> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

/// Any request to a Unix socket, with a JSON body.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: local\r\nConnection: close\r\n");
    exchange(stream, &format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn exchange(mut stream: impl Read + Write, request: &str) -> std::io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let broken = || std::io::Error::other(format!("no HTTP answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    if length.is_some_and(|length| body.len() < length) {
        return Err(std::io::Error::other("the answer was cut"));
    }
    let body = if is_chunked { unchunked(body).ok_or_else(broken)? } else { body.to_owned() };
    Ok(Answer { status, body })
}

/// Source: RFC 9112, section 7.1.
fn unchunked(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
    }
}

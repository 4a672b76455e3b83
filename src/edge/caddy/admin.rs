//! Caddy's admin API, over loopback TCP or a Unix socket.
//!
//! Only reads, `/adapt` and `/load` are used. Any change through the API reloads the whole configuration, so
//! there is no smaller call to prefer (measured on 2.6.2).
//!
//! Source: Caddy's documentation, 'API'; behaviour of 2.6.2 as `docs/edge.md` lists it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::edge::EdgeError;

/// Bound on one call. A load may open listeners and read certificates, and answers within a second or so.
const CALL_BOUND: Duration = Duration::from_secs(30);
/// Largest answer that is read; a thousand vhosts need about 5 MB.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;
/// Looks for the admin endpoint after a load: Caddy closes it and opens it again.
const RETURN_LOOKS: u32 = 40;
/// Between two such looks.
const RETURN_PAUSE: Duration = Duration::from_millis(25);

/// Where Caddy's admin API listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    /// A loopback address: whoever reaches the API rules Caddy.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why a text is not an admin address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an admin address: write `http://127.0.0.1:2019` (loopback only) or `unix//run/caddy/admin.sock`")]
pub struct AdminAddressError(String);

impl FromStr for AdminAddress {
    type Err = AdminAddressError;

    /// `http://<loopback>:<port>`, `<loopback>:<port>`, `unix/<absolute path>` (Caddy's own form),
    /// `unix://<absolute path>`, or an absolute path.
    fn from_str(text: &str) -> Result<Self, AdminAddressError> {
        let refuse = || AdminAddressError(text.to_owned());
        let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix/")).unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        if path.len() < text.len() {
            return Err(refuse()); // a socket without an absolute path
        }
        let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let authority = authority.replace("localhost:", "127.0.0.1:");
        let socket: SocketAddr = authority.parse().map_err(|_| refuse())?;
        if socket.ip().is_loopback() { Ok(Self::Tcp(socket)) } else { Err(refuse()) }
    }
}

/// A client of the admin API. Every call has its own connection: there are few, and a load closes them anyway.
#[derive(Debug, Clone)]
pub(super) struct Admin {
    address: AdminAddress,
}

/// One answer.
struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// One call.
struct Call<'call> {
    method: &'call str,
    path: &'call str,
    /// A Caddyfile.
    body: Option<&'call str>,
}

impl Admin {
    pub(super) fn new(address: AdminAddress) -> Self {
        Self { address }
    }

    /// The running configuration; `null` when Caddy runs without one.
    pub(super) async fn config(&self) -> Result<Value, EdgeError> {
        let answer = self.call("GET", "/config/", None).await?;
        self.json(&answer, "/config/")
    }

    /// The running configuration, right after a load.
    pub(super) async fn config_after_load(&self) -> Result<Value, EdgeError> {
        let mut looks = 0;
        loop {
            looks += 1;
            match self.config().await {
                Ok(config) => return Ok(config),
                Err(error) if looks >= RETURN_LOOKS => return Err(error),
                Err(_) => tokio::time::sleep(RETURN_PAUSE).await,
            }
        }
    }

    /// Turns a Caddyfile into JSON without loading it.
    ///
    /// The outer error is Caddy's silence, the inner one Caddy's refusal in its own words.
    pub(super) async fn adapt(&self, caddyfile: &str) -> Result<Result<Value, String>, EdgeError> {
        let answer = self.call("POST", "/adapt", Some(caddyfile)).await?;
        if let Some(error) = refusal(&answer) {
            return Ok(Err(error));
        }
        let mut whole = self.json(&answer, "/adapt")?;
        Ok(Ok(whole.get_mut("result").map(Value::take).unwrap_or_default()))
    }

    /// Loads a Caddyfile. On failure Caddy keeps what it has.
    ///
    /// The outer error is Caddy's silence, the inner one Caddy's refusal in its own words.
    pub(super) async fn load(&self, caddyfile: &str) -> Result<Result<(), String>, EdgeError> {
        let answer = self.call("POST", "/load", Some(caddyfile)).await?;
        Ok(refusal(&answer).map_or(Ok(()), Err))
    }

    /// The root certificate, in PEM, of one of Caddy's own authorities (`local` unless configured).
    pub(super) async fn root_certificate(&self, authority: &str) -> Result<String, EdgeError> {
        let path = format!("/pki/ca/{authority}");
        let answer = self.call("GET", &path, None).await?;
        let whole = self.json(&answer, &path)?;
        let root = whole.get("root_certificate").and_then(Value::as_str);
        root.map(str::to_owned).ok_or_else(|| self.trouble(&format!("{path} names no root certificate")))
    }

    fn json(&self, answer: &Answer, path: &str) -> Result<Value, EdgeError> {
        if answer.status != StatusCode::OK {
            let said = refusal(answer).unwrap_or_default();
            return Err(self.trouble(&format!("{path} answered {}: {said}", answer.status.as_u16())));
        }
        // Caddy 2.6 sends the body and then a trailer; the collected body is the JSON alone.
        serde_json::from_slice(&answer.body).map_err(|error| self.trouble(&format!("{path} is not JSON: {error}")))
    }

    fn trouble(&self, what: &str) -> EdgeError {
        let place = match &self.address {
            AdminAddress::Tcp(socket) => format!("http://{socket}"),
            AdminAddress::Unix(path) => format!("unix/{}", path.display()),
        };
        EdgeError::unavailable(format!("Caddy's admin API at {place}: {what}"))
    }

    /// One call, within [`CALL_BOUND`].
    async fn call(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, EdgeError> {
        let call = Call { method, path, body };
        let asked = async {
            let answer = self.ask(&call, self.host()).await?;
            // Up to 2.6 a Unix socket wants an empty Host, later releases take the address too.
            match (&self.address, answer.status) {
                (AdminAddress::Unix(_), StatusCode::FORBIDDEN) => self.ask(&call, "127.0.0.1".to_owned()).await,
                _ => Ok(answer),
            }
        };
        match tokio::time::timeout(CALL_BOUND, asked).await {
            Ok(answer) => answer.map_err(|what| self.trouble(&what)),
            Err(_) => Err(self.trouble(&format!("no answer to {path} within {} s", CALL_BOUND.as_secs()))),
        }
    }

    fn host(&self) -> String {
        match &self.address {
            AdminAddress::Tcp(socket) => match socket.ip() {
                IpAddr::V4(_) => socket.to_string(),
                IpAddr::V6(_) => format!("[::1]:{}", socket.port()),
            },
            AdminAddress::Unix(_) => String::new(),
        }
    }

    async fn ask(&self, call: &Call<'_>, host: String) -> Result<Answer, String> {
        let Call { method, path, body } = *call;
        let bytes = Bytes::copy_from_slice(body.unwrap_or_default().as_bytes());
        let mut request = Request::builder().method(method).uri(path).header("Host", host);
        if body.is_some() {
            request = request.header("Content-Type", "text/caddyfile");
        }
        let request = request.body(Full::new(bytes)).map_err(|error| error.to_string())?;
        let response = match &self.address {
            AdminAddress::Tcp(socket) => {
                let stream =
                    TcpStream::connect(socket).await.map_err(|error| format!("{error} (is Caddy running?)"))?;
                exchange(stream, request).await?
            }
            AdminAddress::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| format!("{error} (is Caddy running?)"))?;
                exchange(stream, request).await?
            }
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
        let body = body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
        Ok(Answer { status, body })
    }
}

/// One request on one connection, which ends with it.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // Ends when the answer is read or either side closes; its result says nothing that the answer does not.
    drop(tokio::spawn(connection));
    sender.send_request(request).await.map_err(|error| error.to_string())
}

/// What Caddy refused, in its own words; none when it did not refuse.
///
/// A load that fails after the text was adapted with warnings answers **200**, with the warnings and then the
/// error in one body (measured on 2.6.2): the status alone proves nothing.
fn refusal(answer: &Answer) -> Option<String> {
    let documents = serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>();
    let error = documents
        .map_while(Result::ok)
        .find_map(|document| document.get("error").and_then(Value::as_str).map(str::to_owned));
    match error {
        Some(error) => Some(error),
        None if answer.status.is_success() => None,
        None => Some(format!("status {}", answer.status.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_or_a_socket() {
        let tcp = |text: &str| AdminAddress::Tcp(text.parse().unwrap());
        let unix = |text: &str| AdminAddress::Unix(text.into());
        for (text, address) in [
            ("http://127.0.0.1:2019", tcp("127.0.0.1:2019")),
            ("localhost:2019", tcp("127.0.0.1:2019")),
            ("http://[::1]:2019/", tcp("[::1]:2019")),
            ("unix//run/caddy/admin.sock", unix("/run/caddy/admin.sock")),
            ("unix:///run/caddy/admin.sock", unix("/run/caddy/admin.sock")),
            ("/run/caddy/admin.sock", unix("/run/caddy/admin.sock")),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for text in
            ["", "http://0.0.0.0:2019", "https://127.0.0.1:2019", "192.0.2.1:2019", "127.0.0.1", "unix/run", "run/x"]
        {
            assert!(text.parse::<AdminAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_that_failed_with_status_200_is_a_refusal() {
        let body = br#"[{"message":"not formatted"}]{"error":"loading config: address already in use"}"#;
        let answer = |status, body: &[u8]| Answer { status, body: Bytes::copy_from_slice(body) };
        assert_eq!(refusal(&answer(StatusCode::OK, body)).unwrap(), "loading config: address already in use");
        assert_eq!(refusal(&answer(StatusCode::OK, br#"[{"message":"not formatted"}]"#)), None);
        assert_eq!(refusal(&answer(StatusCode::OK, b"")), None);
        assert_eq!(refusal(&answer(StatusCode::BAD_GATEWAY, b"<html>")).unwrap(), "status 502");
    }
}

//! A real Git server for tests: `git http-backend` behind a small HTTP server on an ephemeral loopback port.
//!
//! It writes down what it was asked, and can misbehave.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// `GET` or `POST`.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) uri: String,
    /// `Authorization`, if any.
    pub(crate) authorization: Option<String>,
    /// `Git-Protocol`, if any.
    pub(crate) protocol: Option<String>,
    /// The body, as text.
    pub(crate) body: String,
}

/// How the server misbehaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It does not.
    #[default]
    Well,
    /// Every answer has this status.
    Status(u16),
    /// Bodies of answers to `POST` end after so many bytes, and the connection breaks.
    CutAfter(usize),
    /// Bodies of answers to `POST` stop after so many bytes, and nothing more ever comes.
    StallAfter(usize),
    /// No answer ever comes.
    Hang,
    /// Every answer is a redirect to there.
    Moved(String),
}

#[derive(Debug)]
struct Served {
    root: PathBuf,
    password: Option<String>,
    mood: Mutex<Mood>,
    asked: Mutex<Vec<Asked>>,
}

/// The running server; it ends when dropped.
#[derive(Debug)]
pub(crate) struct GitHttp {
    /// `http://127.0.0.1:<port>`; below it `<name>.git` of the root.
    pub(crate) url: String,
    served: Arc<Served>,
    task: JoinHandle<()>,
}

impl Drop for GitHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GitHttp {
    /// Serves the bare repositories below `root` to anybody, or only with `x-access-token:<password>`.
    pub(crate) async fn serve(root: PathBuf, password: Option<&str>) -> Self {
        let served = Arc::new(Served {
            root,
            password: password.map(|text| format!("x-access-token:{text}")),
            mood: Mutex::default(),
            asked: Mutex::default(),
        });
        let app = Router::new().fallback(answer).with_state(Arc::clone(&served));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, served, task }
    }

    /// Changes how it behaves from now on.
    pub(crate) fn mood(&self, mood: Mood) {
        *self.served.mood.lock().unwrap() = mood;
    }

    /// Takes what it was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.served.asked.lock().unwrap())
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

async fn answer(State(served): State<Arc<Served>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let asked = Asked {
        method: parts.method.to_string(),
        uri: parts.uri.to_string(),
        authorization: header(&parts.headers, "authorization"),
        protocol: header(&parts.headers, "git-protocol"),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let is_allowed = served.password.as_ref().is_none_or(|password| {
        asked.authorization.as_deref() == Some(&format!("Basic {}", base64(password.as_bytes())))
    });
    served.asked.lock().unwrap().push(asked);
    let mood = served.mood.lock().unwrap().clone();
    let with = |status: u16| Response::builder().status(StatusCode::from_u16(status).unwrap());
    match mood {
        Mood::Status(status) => return with(status).body(Body::empty()).unwrap(),
        Mood::Moved(to) => {
            return with(301).header("location", to).body(Body::empty()).unwrap();
        }
        Mood::Hang => std::future::pending::<()>().await,
        Mood::Well | Mood::CutAfter(_) | Mood::StallAfter(_) => {}
    }
    if !is_allowed {
        return with(401).header("www-authenticate", "Basic realm=\"git\"").body(Body::empty()).unwrap();
    }
    let is_post = parts.method == Method::POST;
    let (status, kind, body) = backend(&served, (&parts.method, &parts.uri, &parts.headers), body).await;
    let body = match mood {
        Mood::CutAfter(bytes) if is_post => cut(body, bytes),
        Mood::StallAfter(bytes) if is_post => stall(body, bytes),
        Mood::CutAfter(_) | Mood::StallAfter(_) | Mood::Well | Mood::Status(_) | Mood::Hang | Mood::Moved(_) => {
            Body::from(body)
        }
    };
    with(status).header("content-type", kind).body(body).unwrap()
}

/// Sends the beginning, and keeps the connection open.
fn stall(body: Bytes, bytes: usize) -> Body {
    let start = body.slice(..bytes.min(body.len()));
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(start)]);
    Body::from_stream(futures_util::StreamExt::chain(first, futures_util::stream::pending()))
}

/// Sends the beginning and then breaks the connection.
fn cut(body: Bytes, bytes: usize) -> Body {
    let start = body.slice(..bytes.min(body.len()));
    let parts = [Ok(start), Err(std::io::Error::other("cut"))];
    Body::from_stream(futures_util::stream::iter(parts))
}

/// Source: git-http-backend(1), RFC 3875.
async fn backend(served: &Served, request: (&Method, &Uri, &HeaderMap), body: Bytes) -> (u16, String, Bytes) {
    let (method, uri, headers) = request;
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_PROJECT_ROOT", &served.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header(headers, "content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", header(headers, "git-protocol").unwrap_or_default())
        .env("HTTP_CONTENT_ENCODING", header(headers, "content-encoding").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("install the package git");
    let mut stdin = child.stdin.take().unwrap();
    let feed = tokio::spawn(async move {
        // A backend that refuses early closes its end; that is its answer, not our failure.
        stdin.write_all(&body).await.ok();
    });
    let output = child.wait_with_output().await.unwrap().stdout;
    feed.await.unwrap();
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let value = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let status = value("status").and_then(|text| text.get(..3).and_then(|code| code.parse().ok())).unwrap_or(200);
    let body = Bytes::from(output).slice(end + 4..);
    (status, value("content-type").unwrap_or_default(), body)
}

/// Source: RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes.chunks(3).fold(String::new(), |mut text, chunk| {
        let bits = (0..3).fold(0_usize, |bits, at| (bits << 8) | usize::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * at)) & 63]);
            text.push(if at <= chunk.len() { letter } else { '=' });
        }
        text
    })
}

//! The daemon's socket, from the asking side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::Paint;
use super::paint::Hue;
use crate::server::api::Refusal;

/// Bytes of an answer that are read; a log of a thousand steps is far below.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// Nobody listens.
    #[error("no daemon answers on `{socket}`: {detail}")]
    NoDaemon { socket: PathBuf, detail: String },
    /// The daemon says no.
    #[error("{}", refusal.error)]
    Refused { refusal: Refusal },
    /// The answer is none of ours.
    #[error("the daemon's answer cannot be read: {0}")]
    Garbled(String),
}

impl RemoteError {
    /// Prints it in the house's form and gives the exit code.
    pub(super) fn report(&self) -> ExitCode {
        let paint = Paint::for_stderr();
        let error = paint.hue(Hue::Bad, "error:");
        let (code, fix) = match self {
            Self::NoDaemon { .. } => (
                4,
                "start it with `trueup serve`, or name its configuration with `--config DIR`; `--offline` reads the store without it".to_owned(),
            ),
            Self::Refused { refusal } => (1, refusal.fix.clone()),
            Self::Garbled(_) => (1, "check that the daemon and this command are of one version".to_owned()),
        };
        eprintln!("{error} {self}");
        if !fix.is_empty() {
            eprintln!("do:    {fix}");
        }
        ExitCode::from(code)
    }
}

/// The daemon behind one socket.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    socket: PathBuf,
}

impl Remote {
    pub(super) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// One GET.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RemoteError> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        read(response).await
    }

    /// One POST.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, RemoteError> {
        let body = serde_json::to_vec(body).map_err(|error| RemoteError::Garbled(error.to_string()))?;
        let response = self.send(Method::POST, path, Bytes::from(body)).await?;
        read(response).await
    }

    /// One POST whose answer comes a line at a time; `each` says whether to go on.
    pub(super) async fn stream(
        &self,
        path: &str,
        body: &impl Serialize,
        mut each: impl FnMut(&str) -> bool,
    ) -> Result<(), RemoteError> {
        let body = serde_json::to_vec(body).map_err(|error| RemoteError::Garbled(error.to_string()))?;
        let response = self.send(Method::POST, path, Bytes::from(body)).await?;
        if response.status() != StatusCode::OK {
            return read::<serde_json::Value>(response).await.map(|_| ());
        }
        let mut body = response.into_body();
        let mut rest: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| RemoteError::Garbled(error.to_string()))?;
            let Some(data) = frame.data_ref() else { continue };
            rest.extend_from_slice(data);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if !line.trim().is_empty() && !each(line.trim()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, RemoteError> {
        let no_daemon = |detail: String| RemoteError::NoDaemon { socket: self.socket.clone(), detail };
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| no_daemon(error.to_string()))?;
        let connection = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connection.map_err(|error| no_daemon(error.to_string()))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "trueup")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| RemoteError::Garbled(error.to_string()))?;
        sender.send_request(request).await.map_err(|error| no_daemon(error.to_string()))
    }
}

async fn read<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, RemoteError> {
    let status = response.status();
    let body = http_body_util::Limited::new(response.into_body(), ANSWER_LIMIT);
    let bytes = body.collect().await.map_err(|error| RemoteError::Garbled(error.to_string()))?.to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(|error| RemoteError::Garbled(error.to_string()));
    }
    let refusal = serde_json::from_slice(&bytes).unwrap_or_else(|_| Refusal {
        error: format!("{status}: {}", String::from_utf8_lossy(&bytes).trim()),
        fix: String::new(),
    });
    Err(RemoteError::Refused { refusal })
}

//! The connection to the engine: the API version is negotiated, every call has a deadline.
//!
//! The target's adapter has its own: effects never import each other.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};

use super::failure;
use crate::image::ImageError;
use crate::model::{Class, ReasonCode};

/// Reading calls.
pub(super) const READ_DEADLINE: Duration = Duration::from_secs(20);
/// Removing a tag can delete many layers.
pub(super) const WRITE_DEADLINE: Duration = Duration::from_secs(120);
/// Above the longest build: the policy's own bound decides.
const CLIENT_TIMEOUT_SECONDS: u64 = 24 * 60 * 60;

/// The engine behind one socket.
#[derive(Debug)]
pub(super) struct Client {
    socket: PathBuf,
    docker: Mutex<Option<Docker>>,
}

/// Why one call gave nothing.
#[derive(Debug)]
pub(super) struct CallError {
    what: String,
    socket: PathBuf,
    /// The HTTP status, when the engine answered one.
    pub(super) status: Option<u16>,
    pub(super) message: String,
}

impl Client {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket, docker: Mutex::new(None) }
    }

    /// The negotiated client (ruling 42).
    pub(super) async fn docker(&self) -> Result<Docker, CallError> {
        let known = self.docker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(docker) = known {
            return Ok(docker);
        }
        let socket = self.socket.to_string_lossy();
        let connect = async {
            Docker::connect_with_unix(&socket, CLIENT_TIMEOUT_SECONDS, API_DEFAULT_VERSION)?.negotiate_version().await
        };
        let docker = self.bounded("agree on an API version", READ_DEADLINE, connect).await?;
        *self.docker.lock().unwrap_or_else(PoisonError::into_inner) = Some(docker.clone());
        Ok(docker)
    }

    /// Runs one call for at most `deadline`. `what` completes "the engine did not …".
    pub(super) async fn bounded<T>(
        &self,
        what: &str,
        deadline: Duration,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, CallError> {
        match tokio::time::timeout(deadline, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(what, error)),
            Err(_elapsed) => Err(self.silent(what, format!("no answer within {} s", deadline.as_secs()))),
        }
    }

    /// What became of one call.
    pub(super) fn failed(&self, what: &str, error: Error) -> CallError {
        let Error::DockerResponseServerError { status_code, message } = error else {
            return self.silent(what, error.to_string());
        };
        // An engine that was replaced by one of another API version.
        if message.contains("client version") {
            self.forget();
        }
        CallError { what: what.to_owned(), socket: self.socket.clone(), status: Some(status_code), message }
    }

    fn silent(&self, what: &str, message: String) -> CallError {
        self.forget();
        CallError { what: what.to_owned(), socket: self.socket.clone(), status: None, message }
    }

    fn forget(&self) {
        *self.docker.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Absence as a value; every other failure stays one.
pub(super) fn optional<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.status == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<CallError> for ImageError {
    fn from(error: CallError) -> Self {
        let CallError { what, socket, message, .. } = error;
        let socket = socket.display();
        let text = format!(
            "the Docker engine at {socket} did not {what}: {message}. Nothing was concluded from it; check that the engine \
             runs (`docker -H unix://{socket} version`), it is asked again by itself"
        );
        failure(ReasonCode::EngineUnavailable, Class::Transient, text)
    }
}

//! The connection to the engine: the API version is negotiated, every call has a deadline.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};

use crate::model::{Class, Reason, ReasonCode};
use crate::target::TargetError;

/// Reading calls. An engine that is busy pulling or building answers them within a second or two.
pub(super) const READ_DEADLINE: Duration = Duration::from_secs(20);
/// Calls that make or remove something: layers and network namespaces are made under disk load.
pub(super) const WRITE_DEADLINE: Duration = Duration::from_secs(60);
/// Above every deadline of a single call (the longest is a stop with its grace), so that the
/// deadlines above decide and not the client's own.
const CLIENT_TIMEOUT_SECONDS: u64 = 900;

/// The engine behind one socket.
#[derive(Debug)]
pub(super) struct Engine {
    socket: PathBuf,
    /// The negotiated client, dropped whenever the engine stops understanding it.
    client: Mutex<Option<Docker>>,
}

/// Why one call gave nothing.
#[derive(Debug)]
pub(super) struct CallError {
    what: String,
    socket: PathBuf,
    /// The HTTP status, when the engine answered at all.
    pub(super) status: Option<u16>,
    /// What the engine or the connection said.
    pub(super) message: String,
}

impl Engine {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket, client: Mutex::new(None) }
    }

    /// The client, negotiated once: bollard starts above what Docker 20.10 speaks, and Docker 29
    /// refuses what is older than its minimum (ruling 42).
    pub(super) async fn client(&self) -> Result<Docker, CallError> {
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let socket = self.socket.to_string_lossy();
        let connect = async {
            Docker::connect_with_unix(&socket, CLIENT_TIMEOUT_SECONDS, API_DEFAULT_VERSION)?.negotiate_version().await
        };
        let client = self.bounded("agree on an API version", READ_DEADLINE, connect).await?;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// Runs one call of the engine for at most `deadline`. `what` completes "the engine did not …".
    pub(super) async fn bounded<T>(
        &self,
        what: &str,
        deadline: Duration,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, CallError> {
        let (status, message) = match tokio::time::timeout(deadline, call).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(Error::DockerResponseServerError { status_code, message })) => (Some(status_code), message),
            Ok(Err(error)) => (None, chain(&error)),
            Err(_elapsed) => (None, format!("no answer within {} s", deadline.as_secs())),
        };
        // A connection that broke, or an engine that was replaced by one of another API version.
        if status.is_none() || message.contains("client version") {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Err(CallError { what: what.to_owned(), socket: self.socket.clone(), status, message })
    }
}

/// The error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl CallError {
    /// Whether the engine answered that there is no such object.
    pub(super) fn is_absent(&self) -> bool {
        self.status == Some(404)
    }
}

/// Absence as a value; every other failure stays one.
pub(super) fn optional<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<CallError> for TargetError {
    fn from(error: CallError) -> Self {
        let CallError { what, socket, message, .. } = error;
        let socket = socket.display();
        let text = format!(
            "the Docker engine at {socket} did not {what}: {message}. Nothing was concluded from it; \
             check that the engine runs (`docker -H unix://{socket} version`), it is asked again by itself"
        );
        failure(ReasonCode::EngineUnavailable, Class::Transient, text)
    }
}

/// An error with its reason.
pub(super) fn failure(code: ReasonCode, class: Class, message: impl Into<String>) -> TargetError {
    TargetError { reason: Reason::new(code, message), class }
}

/// `NameTaken`: an object of our name that we did not make.
pub(super) fn name_taken(kind: &str, name: &str, id: &str) -> TargetError {
    let text = format!(
        "the {kind} name `{name}` is taken by {kind} {id}, which does not carry this installation's labels, so it is \
         left alone. Remove or rename it (`docker {kind} inspect {name}` shows whose it is)"
    );
    failure(ReasonCode::NameTaken, Class::Stalled, text)
}

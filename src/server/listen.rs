//! `[server] listen`: where strangers may knock, through the web server before us. A loopback address or a
//! Unix socket, and only what the given router serves; nothing is listened on unless the operator says so.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::socket::{self, SocketError};
use crate::config::host::Listen;

/// Connections at once; more wait in the system's queue. A proxy needs a handful.
const CONNECTIONS: usize = 1024;

/// How long a connection may take for the headers of its next request.
const HEADERS_PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of headers, and of one piece of a body.
const BUFFER_BYTES: usize = 64 * 1024;

/// The wait after the system refused to hand out a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A place that is listened on.
#[derive(Debug)]
pub enum Listening {
    /// A loopback port.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener, PathBuf),
}

/// Listens where the configuration says.
///
/// The Unix socket is open to every local user, as a port would be: what comes in must be signed.
///
/// # Errors
/// [`SocketError`], each naming the place.
pub async fn bind(listen: &Listen) -> Result<Listening, SocketError> {
    match listen {
        Listen::Tcp(address) => {
            let system = |source| SocketError::System { path: PathBuf::from(address.to_string()), source };
            TcpListener::bind(address).await.map(Listening::Tcp).map_err(system)
        }
        Listen::Unix(path) => {
            let listener = socket::listen(Path::new(path)).await?;
            let open = std::fs::Permissions::from_mode(0o666);
            std::fs::set_permissions(path, open)
                .map_err(|source| SocketError::System { path: PathBuf::from(path), source })?;
            Ok(Listening::Unix(listener, PathBuf::from(path)))
        }
    }
}

impl Listening {
    /// The port, where it is one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// Answers until the process ends.
    pub async fn serve(self, router: axum::Router) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match &self {
                Self::Tcp(listener) => match listener.accept().await {
                    Ok((stream, _)) => {
                        // Answers are small: none shall wait for another.
                        drop(stream.set_nodelay(true));
                        spawn(stream, &router, place);
                    }
                    Err(error) => pause(&error).await,
                },
                Self::Unix(listener, _) => match listener.accept().await {
                    Ok((stream, _)) => spawn(stream, &router, place),
                    Err(error) => pause(&error).await,
                },
            }
        }
    }
}

async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Each connection is a task: what goes wrong in one ends that one.
fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: &axum::Router,
    place: OwnedSemaphorePermit,
) {
    let service = TowerToHyperService::new(router.clone());
    tokio::spawn(async move {
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_PATIENCE)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(place);
    });
}

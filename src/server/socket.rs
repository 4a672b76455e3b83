//! The daemon's Unix socket: who may connect, and who did.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::net::{UnixListener, UnixStream};

/// Why the socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon answers there.
    #[error("another daemon already listens on `{path}`: stop it first, or give this one another `[server] socket`")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else stands there.
    #[error("`{path}` exists and is not a socket: it is left alone; move it away, or set another `[server] socket`")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("the socket `{path}` cannot be made")]
    System {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

/// Listens on `path`, mode 0660 (ruling 29). A socket that nobody answers on is what a killed daemon
/// left, and is replaced.
///
/// # Errors
/// [`SocketError`], each naming the path.
pub async fn listen(path: &Path) -> Result<UnixListener, SocketError> {
    let system = |source| SocketError::System { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::NotASocket { path: path.to_owned() });
        }
        Ok(_) if UnixStream::connect(path).await.is_ok() => {
            return Err(SocketError::InUse { path: path.to_owned() });
        }
        Ok(_) => std::fs::remove_file(path).map_err(system)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(system(error)),
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(system)?;
    give_to_group(path);
    Ok(listener)
}

/// Gives the socket to the group `trueup` where there is one; without it only root may connect.
fn give_to_group(path: &Path) {
    let Ok(groups) = std::fs::read_to_string("/etc/group") else { return };
    let gid = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some("trueup")).then(|| fields.nth(1)?.parse::<u32>().ok()).flatten()
    });
    if let Some(gid) = gid
        && let Err(error) = std::os::unix::fs::chown(path, None, Some(gid))
    {
        tracing::warn!(path = %path.display(), %error, "the socket could not be given to the group trueup");
    }
}

/// Who is at the other end: the kernel's word, kept for the audit log.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    uid: Option<u32>,
}

impl Peer {
    /// As the audit log writes it: `uid 0`.
    #[must_use]
    pub fn name(self) -> String {
        match self.uid {
            Some(uid) => format!("uid {uid}"),
            None => "an unknown user".to_owned(),
        }
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self { uid: stream.io().peer_cred().ok().map(|peer| peer.uid()) }
    }
}

/// Answers on the socket until the process ends.
///
/// # Errors
/// When the listener itself fails.
pub async fn serve(listener: UnixListener, router: axum::Router) -> std::io::Result<()> {
    axum::serve(listener, router.into_make_service_with_connect_info::<Peer>()).await
}

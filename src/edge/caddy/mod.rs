//! Caddy: the vhost through its admin API, the marker through the file system.
//!
//! Nothing of ours has to run for a site to keep serving (promise P8): the marker is a file that Caddy itself looks
//! for, and the vhost is a file that Caddy's own start reads. This module never edits the main Caddyfile, never touches
//! another file of the sites directory, and never loads a text that would change anything but its own vhost
//! (ruling 31). `docs/edge.md` has the operator's side.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Edge, EdgeError, EdgePath};
use crate::model::desired::Vhost;
use crate::model::live::LiveEdge;
use crate::model::{Class, Reason, ReasonCode, Slot, TargetName};
use crate::probe::Trust;
use crate::verify::Verified;

mod admin;
mod guard;
mod imports;
mod listen;
mod load;
mod marker;
mod sites;

#[cfg(test)]
mod tests;

pub use admin::{AdminAddress, AdminAddressError};

use admin::Admin;
use listen::{ServedTls, served};
use marker::Marker;
use sites::SiteFile;

/// Where this host's Caddy and our state are: `[edge]` and `[platform]` of the host file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaddySettings {
    /// `[edge] admin`.
    pub admin: AdminAddress,
    /// `[edge] sites`: absolute; the main Caddyfile has the line `import <sites>/*.caddy`.
    pub sites: PathBuf,
    /// `[edge] caddyfile`: absolute; read, never written.
    pub caddyfile: PathBuf,
    /// `[platform] state_dir`: absolute; the same that the vhosts were rendered with.
    pub state_dir: PathBuf,
}

/// The edge that is Caddy.
#[derive(Debug)]
pub struct CaddyEdge {
    settings: CaddySettings,
    admin: Admin,
    /// One load at a time, whatever the target: each compares with what runs before it.
    turn: Mutex<()>,
}

/// The `import` lines of a Caddyfile that depend on Caddy's working directory: line and what they name.
#[must_use]
pub fn unanchored_imports(caddyfile: &str) -> Vec<(usize, String)> {
    let all = imports::imports(caddyfile).into_iter();
    all.filter(|import| import.kind == imports::ImportKind::Relative).map(|import| (import.line, import.what)).collect()
}

impl CaddyEdge {
    /// Does nothing yet: Caddy is asked when there is something to ask.
    #[must_use]
    pub fn new(settings: CaddySettings) -> Self {
        Self { admin: Admin::new(settings.admin.clone()), settings, turn: Mutex::new(()) }
    }

    fn marker(&self, target: &TargetName) -> Marker {
        Marker::new(&self.settings.state_dir, target)
    }

    fn site(&self, file: &str) -> Result<SiteFile, EdgeError> {
        let is_name = file.ends_with(".caddy") && !file.starts_with('.') && !file.contains('/');
        if is_name {
            return Ok(SiteFile::new(&self.settings.sites, file));
        }
        let message = format!("`{file}` is not the name of a vhost file");
        Err(EdgeError { reason: Reason::new(ReasonCode::Bug, message), class: Class::Bug })
    }

    async fn move_marker(&self, target: &TargetName, slot: Option<Slot>) -> Result<(), EdgeError> {
        let marker = self.marker(target);
        let dir = marker.dir().to_owned();
        blocking("the marker", &dir, move || marker.write(slot)).await
    }

    /// Whether this vhost's text is what Caddy runs.
    async fn is_loaded(&self, text: &str) -> Result<bool, EdgeError> {
        let loaded = self.admin.config().await?;
        let Ok(alone) = self.admin.adapt(text).await? else {
            return Ok(false);
        };
        let ours = guard::hosts(&alone);
        Ok(!ours.is_empty() && guard::routes_of(&loaded, &ours) == guard::routes_of(&alone, &ours))
    }
}

#[async_trait]
impl Edge for CaddyEdge {
    async fn observe(&self, target: &TargetName, vhost_file: &str) -> Result<LiveEdge, EdgeError> {
        let site = self.site(vhost_file)?;
        let reader = site.clone();
        let (vhost, previous) =
            blocking("the vhost", &site.path(), move || Ok((reader.read()?, reader.previous()?))).await?;
        let marker = self.marker(target);
        let (dir, has_vhost) = (marker.dir().to_owned(), vhost.is_some());
        // A vhost without a marker directory was made with another state directory, or one that is not mounted now:
        // that is trouble, not `not released yet`.
        let read = move || {
            if has_vhost || marker.exists()? { marker.read() } else { Ok(None) }
        };
        let serving = blocking("the marker", &dir, read).await?;
        let is_loaded = match (&vhost, previous) {
            (Some(text), None) => self.is_loaded(text).await?,
            // A load that was begun and not ended is done again.
            (Some(_), Some(_)) | (None, _) => false,
        };
        Ok(LiveEdge { serving, vhost, is_loaded })
    }

    async fn ensure_vhost(&self, target: &TargetName, vhost: &Vhost) -> Result<(), EdgeError> {
        let turn = self.turn.lock().await;
        let outcome = self.ensure(target, vhost).await;
        drop(turn);
        outcome
    }

    async fn route(&self, target: &TargetName, slot: Slot, proof: &Verified) -> Result<(), EdgeError> {
        tracing::debug!(%target, %slot, revision = proof.revision().short(), "traffic moves");
        self.move_marker(target, Some(slot)).await
    }

    async fn route_back(&self, target: &TargetName, slot: Option<Slot>) -> Result<(), EdgeError> {
        self.move_marker(target, slot).await
    }

    async fn path(&self, host: &str) -> Result<EdgePath, EdgeError> {
        let config = self.admin.config().await?;
        let found =
            served(&config, host).ok_or_else(|| EdgeError::unavailable(format!("Caddy serves no {host} over TCP")))?;
        let trust = match &found.tls {
            ServedTls::Off | ServedTls::Public => Trust::System,
            ServedTls::Internal(authority) => Trust::AlsoRoots(self.admin.root_certificate(authority).await?),
            ServedTls::File(certificate) => {
                let path = PathBuf::from(certificate);
                Trust::Exactly(blocking("the certificate", &path.clone(), move || std::fs::read_to_string(path)).await?)
            }
        };
        let scheme = if found.tls == ServedTls::Off { "http" } else { "https" };
        Ok(EdgePath { scheme, socket: found.socket, trust })
    }
}

/// Runs file system work where it may block.
async fn blocking<T, F>(what: &str, path: &Path, work: F) -> Result<T, EdgeError>
where
    T: Send + 'static,
    F: FnOnce() -> io::Result<T> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    let error = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(EdgeError::unavailable(format!("{what} ({}): {error}", path.display())))
}

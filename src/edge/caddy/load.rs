//! A vhost's way into Caddy: write, adapt, compare, load, look; and back when anything fails.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::guard::{self, Hosts};
use super::imports::{ImportKind, imports};
use super::listen::{ServedTls, served};
use super::sites::SiteFile;
use super::{CaddyEdge, blocking};
use crate::edge::EdgeError;
use crate::model::desired::Vhost;
use crate::model::{Class, Reason, ReasonCode, TargetName};

/// One load that is meant to happen.
struct Change<'change> {
    /// The main Caddyfile's text.
    caddyfile: &'change str,
    /// What runs before it.
    loaded: &'change Value,
    /// The hosts that may change: of the new vhost and of the old one.
    ours: &'change Hosts,
    vhost: &'change Vhost,
}

impl CaddyEdge {
    /// Reads the main Caddyfile and refuses what a load could not keep.
    async fn caddyfile(&self) -> Result<String, EdgeError> {
        let path = self.settings.caddyfile.clone();
        let text = blocking("the main Caddyfile", &path.clone(), move || std::fs::read_to_string(path)).await?;
        let place = self.settings.caddyfile.display();
        let found = imports(&text);
        if let Some(relative) = found.iter().find(|import| import.kind == ImportKind::Relative) {
            return Err(EdgeError::refused(format!(
                "{place}:{}: `import {}` is not absolute, so a load through the admin API would resolve it against Caddy's working directory and drop its sites; write the absolute path",
                relative.line, relative.what
            )));
        }
        let sites = self.settings.sites.clone();
        let globs: Vec<String> =
            found.into_iter().filter(|import| import.kind == ImportKind::Absolute).map(|import| import.what).collect();
        let is_imported = blocking("the sites directory", &sites.clone(), move || Ok(covers(&globs, &sites))).await?;
        if is_imported {
            return Ok(text);
        }
        let sites = self.settings.sites.display();
        Err(EdgeError::refused(format!(
            "{place} does not import the sites directory; add the line `import {sites}/*.caddy` and reload Caddy"
        )))
    }

    /// The hosts that a vhost's text served, so that they may go away with it.
    async fn hosts_of(&self, text: &str) -> Result<Hosts, EdgeError> {
        Ok(self.admin.adapt(text).await?.map_or_else(|_| Hosts::new(), |adapted| guard::hosts(&adapted)))
    }

    /// The whole of [`crate::edge::Edge::ensure_vhost`], while it is our turn.
    pub(super) async fn ensure(&self, target: &TargetName, vhost: &Vhost) -> Result<(), EdgeError> {
        let site = self.site(&vhost.file)?;
        let loaded = self.admin.config().await?;
        let caddyfile = self.caddyfile().await?;
        let marker = self.marker(target);
        let dir = marker.dir().to_owned();
        blocking("the marker directory", &dir, move || marker.prepare()).await?;
        let reader = site.clone();
        let (text, previous) =
            blocking("the vhost", &site.path(), move || Ok((reader.read()?, reader.previous()?))).await?;
        let mut ours: Hosts = vhost.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        if text.as_deref() == Some(vhost.text.as_str())
            && let Ok(adapted) = self.admin.adapt(&caddyfile).await?
            && ours.is_subset(&guard::hosts(&adapted))
            && is_current(&loaded, &adapted, &ours)
        {
            return self.settle(&site).await;
        }
        for old in [text, previous].into_iter().flatten().filter(|old| !old.is_empty()) {
            ours.extend(self.hosts_of(&old).await?);
        }
        let (writer, new) = (site.clone(), vhost.text.clone());
        let written = blocking("the vhost", &site.path(), move || writer.replace(&new)).await;
        let outcome = match written {
            Ok(()) => self.load(&Change { caddyfile: &caddyfile, loaded: &loaded, ours: &ours, vhost }).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => self.settle(&site).await,
            Err(error) => Err(self.put_back(&site, error).await),
        }
    }

    /// Adapts, compares, loads, and looks whether Caddy does as it was told.
    async fn load(&self, change: &Change<'_>) -> Result<(), EdgeError> {
        let Change { caddyfile, ours, vhost, .. } = *change;
        let adapted = self.admin.adapt(caddyfile).await?;
        let adapted = adapted.map_err(|said| {
            EdgeError::refused(format!("Caddy does not accept its configuration with `{}`: {said}", vhost.file))
        })?;
        self.permit(change, &adapted).await?;
        let answer = self.admin.load(caddyfile).await;
        if let Ok(Err(said)) = answer {
            return Err(EdgeError::refused(format!(
                "Caddy did not load `{}` and keeps what it had: {said}",
                vhost.file
            )));
        }
        // A connection that broke during the load says nothing: what runs now does.
        let now = self.admin.config_after_load().await?;
        if is_current(&now, &adapted, ours) {
            return Ok(());
        }
        match answer {
            Err(error) => Err(error),
            Ok(_) => Err(EdgeError::unavailable(format!(
                "Caddy took `{}` and serves something else: does another program load configurations?",
                vhost.file
            ))),
        }
    }

    /// Ruling 31, and what can be seen to be missing before Caddy trips over it.
    async fn permit(&self, change: &Change<'_>, adapted: &Value) -> Result<(), EdgeError> {
        let Change { loaded, ours, vhost, .. } = *change;
        if let Some(objection) = guard::objection(loaded, adapted, ours) {
            return Err(EdgeError::refused(format!(
                "`{}` is not loaded: {objection}. If {} was edited, reload Caddy first (`systemctl reload caddy`)",
                vhost.file,
                self.settings.caddyfile.display()
            )));
        }
        let after = guard::hosts(adapted);
        if let Some(missing) = vhost.hosts.iter().find(|host| !after.contains(&host.to_ascii_lowercase())) {
            return Err(EdgeError::refused(format!(
                "`{}` is not loaded: Caddy would not serve {missing} with it",
                vhost.file
            )));
        }
        for host in &vhost.hosts {
            let Some(ServedTls::File(certificate)) = served(adapted, host).map(|served| served.tls) else {
                continue;
            };
            let path = PathBuf::from(&certificate);
            let is_there = blocking("the certificate", &path.clone(), move || std::fs::exists(path)).await?;
            if !is_there {
                let message = format!("the certificate of {host} is not there: {certificate}");
                return Err(EdgeError {
                    reason: Reason::new(ReasonCode::CertificateMissing, message),
                    class: Class::Stalled,
                });
            }
        }
        Ok(())
    }

    async fn settle(&self, site: &SiteFile) -> Result<(), EdgeError> {
        let settled = site.clone();
        blocking("the vhost", &site.path(), move || settled.settle()).await
    }

    /// Puts the old text back, and says so when that fails too.
    async fn put_back(&self, site: &SiteFile, error: EdgeError) -> EdgeError {
        let old = site.clone();
        match blocking("the vhost", &site.path(), move || old.restore()).await {
            Ok(()) => error,
            Err(second) => {
                let message = format!(
                    "{}; and the old vhost could not be put back: {}",
                    error.reason.message, second.reason.message
                );
                EdgeError { reason: Reason::new(error.reason.code, message), class: error.class }
            }
        }
    }
}

/// Whether what runs is what the Caddyfile now says, as far as these hosts go.
fn is_current(loaded: &Value, adapted: &Value, ours: &Hosts) -> bool {
    match (guard::pieces(loaded, ours), guard::pieces(adapted, ours)) {
        (Ok(loaded), Ok(adapted)) => loaded.ours == adapted.ours,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// Whether one of the imports is `<sites>/*.caddy`, by name or through a symbolic link.
fn covers(globs: &[String], sites: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    globs.iter().filter_map(|glob| glob.strip_suffix("/*.caddy")).any(|dir| real(Path::new(dir)) == real(sites))
}

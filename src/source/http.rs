//! The one way out by HTTP: Git and REST share roots, proxies and TLS.
//!
//! Authorities of `[github] ca_file` are trusted beside the system's, never instead of them (field reports 29
//! and 31). Proxies come from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; loopback never goes through one.

use std::time::Duration;

use reqwest::{Certificate, Client};

/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(15);

/// Authorities that are trusted beside the system's.
#[derive(Clone, Default)]
pub struct Roots(Vec<Certificate>);

impl Roots {
    /// Reads one or more certificates in PEM form.
    ///
    /// # Errors
    /// One sentence when there is none, or one cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let found = Certificate::from_pem_bundle(pem).map_err(|error| format!("it is no PEM file ({error})"))?;
        if found.is_empty() {
            return Err("it holds no certificate in PEM form".to_owned());
        }
        Ok(Self(found))
    }
}

impl std::fmt::Debug for Roots {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} authorities", self.0.len())
    }
}

/// Makes a client that follows no redirect by itself.
///
/// # Errors
/// One sentence when no TLS provider is installed, or a root cannot be used.
pub fn client(is_loopback: bool, roots: &Roots, agent: &str) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err("no TLS provider is installed in this process".to_owned());
    }
    let builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(Duration::from_secs(300))
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(agent);
    let builder = if roots.0.is_empty() { builder } else { builder.tls_certs_merge(roots.0.clone()) };
    let builder = if is_loopback { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| format!("{error:?}"))
}

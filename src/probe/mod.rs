//! Probes: samples of what answers, without judgement.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;

pub use crate::model::sample::{Answer, Sample, SilenceKind};

pub mod http;

/// One GET.
#[derive(Debug, Clone)]
pub struct HttpProbe {
    /// Whole URL; its host is the `Host` header and the TLS server name.
    pub url: String,
    /// Connect here instead of where the name resolves to.
    pub connect: Option<SocketAddr>,
    /// Sent as they are, after the defaults.
    pub headers: BTreeMap<String, String>,
    /// Which certificates are good.
    pub trust: Trust,
    /// From the first byte sent to the last byte read.
    pub timeout: Duration,
    /// Bytes of body that are read; the rest is dropped and `is_truncated` says so.
    pub body_limit: usize,
}

/// Which certificates a probe accepts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The system's roots.
    System,
    /// The system's roots and these, in PEM.
    AlsoRoots(String),
    /// Exactly this end-entity certificate, in PEM: for one that no public root signed.
    Exactly(String),
}

/// Takes samples.
#[async_trait]
pub trait Probe: Send + Sync {
    /// One GET, one sample. Never fails: silence is a sample too.
    async fn get(&self, probe: &HttpProbe) -> Sample;
}

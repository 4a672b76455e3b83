//! `huta.toml`: the host itself. Every default is written out here.
//!
//! | file | what it reads |
//! |---|---|
//! | `read` | the file as a whole |
//! | `sections` | the sections that there is one of |
//! | `named` | the tables that have names: upstreams, boxes, tokens, clusters, notify |
//!
//! Source: `DESIGN` section 4; rulings 13, 29 and 50.

mod named;
mod read;
mod sections;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use crate::model::cluster::{DnsPeer, Grants, IngressDialect, Limits};
use crate::model::outcome::Outcome;
use crate::model::{Digest, ProjectName};

pub use read::parse;

pub(super) use named::cluster;
pub(super) use read::TOP_LEVEL;

/// A validated `huta.toml`. [`HostConfig::default`] is a file with nothing but its schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostConfig {
    /// `[platform]`.
    pub platform: Platform,
    /// `[server]`.
    pub server: Server,
    /// `[store]`.
    pub store: StoreLocation,
    /// `[github]`.
    pub github: GitHub,
    /// `[poll] every`.
    pub poll: Poll,
    /// `[drift] every`.
    pub drift: Drift,
    /// `[docker]`.
    pub docker: Docker,
    /// `[edge]`.
    pub edge: Edge,
    /// `[cloudflare]`.
    pub cloudflare: Cloudflare,
    /// `[upstreams.<name>]`.
    pub upstreams: BTreeMap<String, Upstream>,
    /// `[backup]`; a target with data needs it.
    pub backup: Option<Backup>,
    /// `[boxes.<name>]`: name → SHA-256 of the box's token.
    pub boxes: BTreeMap<String, Digest>,
    /// `[tokens.<name>]`.
    pub tokens: BTreeMap<String, Token>,
    /// `[clusters.<name>]`.
    pub clusters: BTreeMap<String, Cluster>,
    /// `[notify.<name>]`.
    pub notify: BTreeMap<String, Notify>,
    /// `[credentials.<name>]` **(own)**: name → the path of an SSH deploy key.
    pub credentials: BTreeMap<String, String>,
}

/// `[platform]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// Where the store, mirrors and the marker live; default `/var/lib/trueup`.
    pub state_dir: String,
    /// The address that new DNS records get.
    pub public_ipv4: Option<Ipv4Addr>,
}

impl Default for Platform {
    fn default() -> Self {
        Self { state_dir: "/var/lib/trueup".to_owned(), public_ipv4: None }
    }
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where HTTP is served besides the socket; default nowhere.
    pub listen: Option<Listen>,
    /// The Unix socket of the command line; default `/run/trueup.sock`.
    pub socket: String,
}

impl Default for Server {
    fn default() -> Self {
        Self { listen: None, socket: "/run/trueup.sock".to_owned() }
    }
}

/// `listen`: never a public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A loopback address and port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(String),
}

/// `[store] url` or `url_file`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StoreLocation {
    /// SQLite in `state_dir`.
    #[default]
    StateDir,
    /// `sqlite:///absolute/path` or `postgres://…` without a password.
    Url(String),
    /// A file that holds the URL, password included.
    UrlFile(String),
}

/// `[github]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    /// Default `https://api.github.com`, without a slash at its end.
    pub api_url: String,
    /// Default `https://github.com`, without a slash at its end.
    pub git_url: String,
    /// A file with a token; excludes `app`.
    pub token_file: Option<String>,
    /// `[github.app]`.
    pub app: Option<GitHubApp>,
    /// `report`: whether commit statuses and deployments are written **(own)**, default false.
    pub report: bool,
    /// `ca_file`: authorities in PEM form that are trusted beside the system's, for Git and the API **(own)**.
    pub ca_file: Option<String>,
    /// One or two, so that a secret can be changed without a gap; empty = webhooks are off.
    pub webhook_secret_files: Vec<String>,
    /// `webhook_limit` **(own)**: the largest delivery in bytes, 64 KiB to 25 MiB, default 5 MiB (ruling 30).
    pub webhook_limit_bytes: u64,
}

impl Default for GitHub {
    fn default() -> Self {
        Self {
            api_url: "https://api.github.com".to_owned(),
            git_url: "https://github.com".to_owned(),
            token_file: None,
            app: None,
            report: false,
            ca_file: None,
            webhook_secret_files: Vec::new(),
            webhook_limit_bytes: 5 * 1024 * 1024,
        }
    }
}

/// `[github.app]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHubApp {
    /// `app_id`, at least 1.
    pub app_id: u64,
    /// `installation_id`, at least 1.
    pub installation_id: u64,
    /// `private_key_file`: a PEM file.
    pub private_key_file: String,
}

/// `[poll]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// `every`, in seconds, 1..=86400, default 60; jittered by who polls.
    pub every_seconds: u32,
}

impl Default for Poll {
    fn default() -> Self {
        Self { every_seconds: 60 }
    }
}

/// `[drift]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// `every`, in seconds, 10..=604800, default 300.
    pub every_seconds: u32,
}

impl Default for Drift {
    fn default() -> Self {
        Self { every_seconds: 300 }
    }
}

/// `[docker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Docker {
    /// The engine's socket, default `/var/run/docker.sock`.
    pub socket: String,
}

impl Default for Docker {
    fn default() -> Self {
        Self { socket: "/var/run/docker.sock".to_owned() }
    }
}

/// `[edge]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Caddy's admin endpoint, default `http://127.0.0.1:2019`.
    pub admin: Admin,
    /// The directory of site files, default `/etc/caddy/sites`.
    pub sites: String,
    /// The file that imports them, default `/etc/caddy/Caddyfile`.
    pub caddyfile: String,
    /// How the public proof is asked for.
    pub public_checks: PublicChecks,
    /// Which certificates the vhosts name.
    pub tls: EdgeTls,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            admin: Admin::Http("http://127.0.0.1:2019".to_owned()),
            sites: "/etc/caddy/sites".to_owned(),
            caddyfile: "/etc/caddy/Caddyfile".to_owned(),
            public_checks: PublicChecks::Public,
            tls: EdgeTls::OriginCa,
        }
    }
}

/// `admin`: who can reach it rules the edge, so it is loopback or a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admin {
    /// A loopback `http://` address without a slash at its end.
    Http(String),
    /// The path of a Unix socket.
    Unix(String),
}

/// `public_checks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicChecks {
    /// `https://<host>` as the world resolves it.
    Public,
    /// This host's own edge, by name.
    Direct,
}

/// `tls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeTls {
    /// Cloudflare's Origin CA; hosts lie in `[cloudflare] zones`. The contract's way.
    OriginCa,
    /// Caddy's own authority **(own)**.
    Internal,
    /// Plain HTTP **(own)**.
    Off,
}

/// `[cloudflare]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloudflare {
    /// Zones that hosts may lie in, lower case.
    pub zones: Vec<String>,
    /// A file with a token.
    pub token_file: Option<String>,
    /// Default `https://api.cloudflare.com/client/v4`, without a slash at its end.
    pub api_url: String,
}

impl Default for Cloudflare {
    fn default() -> Self {
        Self { zones: Vec::new(), token_file: None, api_url: "https://api.cloudflare.com/client/v4".to_owned() }
    }
}

/// `[upstreams.<name>]`: a service of this host that targets may be allowed to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// `host:port` or `ip:port`; without it the name is defined and leads nowhere yet.
    pub address: Option<String>,
}

/// `[backup]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Where copies go, default `/var/backups/trueup`.
    pub dir: String,
    /// Copies kept of each target, 1..=10000, default 14.
    pub keep: u32,
}

impl Default for Backup {
    fn default() -> Self {
        Self { dir: "/var/backups/trueup".to_owned(), keep: 14 }
    }
}

/// `[tokens.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// `token_sha256` of the token.
    pub sha256: Digest,
    /// What it may do (ruling 29).
    pub role: Role,
    /// For which projects; none = all.
    pub projects: Option<Vec<ProjectName>>,
}

/// `role` (ruling 29), each with the rights of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Plans, releases, approves.
    Deployer,
    /// Everything.
    Admin,
}

/// `[clusters.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Absolute path; none = the service account of the pod that runs the daemon.
    pub kubeconfig: Option<String>,
    /// A context of it; none = its current one.
    pub context: Option<String>,
    /// The domain below which applications get their names.
    pub app_domain: Option<String>,
    /// `ingress_class`.
    pub ingress_class: Option<String>,
    /// The certificate issuer.
    pub issuer: Option<String>,
    /// The default storage class.
    pub storage_class: Option<String>,
    /// `ingress_namespace` (ruling 50).
    pub ingress_namespace: Option<String>,
    /// `ingress_pod_labels` (ruling 50).
    pub ingress_pod_labels: BTreeMap<String, String>,
    /// `ingress_dialect` (ruling 50).
    pub ingress_dialect: IngressDialect,
    /// `dns_peers` (ruling 50).
    pub dns_peers: Vec<DnsPeer>,
    /// What applications may use.
    pub grants: Grants,
    /// Bounds of each application.
    pub limits: Limits,
}

/// `[notify.<name>]`: where outcomes are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// A file with the URL to post to: such URLs are secrets themselves.
    pub url_file: String,
    /// Outcome words that are told; empty = all.
    pub on: Vec<Outcome>,
}

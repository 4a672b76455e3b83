//! The desired state of a host target, and the documents that an engine and an edge take.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::{RepoPath, Slot, TargetName};
use super::policy::{HostPolicy, ImagePolicy};
use super::revision::{Digest, ImageId, Sha};

/// What one commit asks of one host target, joined with what the operator allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredState {
    /// Whose.
    pub target: TargetName,
    /// The commit.
    pub revision: Sha,
    /// The commit's tree: two commits with one tree ask for the same.
    pub tree: Sha,
    /// Digest of the manifest's bytes.
    pub manifest: Digest,
    /// Digest of the project's and the target's registry entries.
    pub registry: Digest,
    /// Where the image comes from.
    pub image: ImageRequest,
    /// The port inside the container.
    pub port: u16,
    /// Path of the health check.
    pub health: String,
    /// In the manifest's order.
    pub smoke: Vec<SmokeCheck>,
    /// The data mount path, and whether the manifest says that two releases may share it.
    pub data: Option<DataRequest>,
    /// Jobs, in the manifest's order.
    pub jobs: Vec<JobRequest>,
    /// The user and group of the container.
    pub uid: u32,
    /// The operator's part.
    pub policy: HostPolicy,
}

/// A data mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRequest {
    /// Absolute path inside the container.
    pub mount: String,
    /// `concurrent_safe` of the manifest.
    pub concurrent_safe: bool,
}

/// One `[[jobs]]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    /// Unique name.
    pub name: String,
    /// The argument vector.
    pub cmd: Vec<String>,
    /// Normalised OnCalendar expression.
    pub schedule: String,
    /// 1..=21600.
    pub timeout_seconds: u32,
    /// Also run after each release.
    pub after_release: bool,
}

/// How to get the commit's image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRequest {
    /// `huta-build/<project>:<sha12>`.
    pub reference: String,
    /// The revision label it must carry.
    pub revision: Sha,
    /// The project label it must carry.
    pub project: String,
    /// From where.
    pub policy: ImagePolicy,
    /// For builds: path of the Dockerfile, relative to the repository's root.
    pub dockerfile: RepoPath,
    /// For builds: the context directory, relative to the repository's root.
    pub context: RepoPath,
}

/// One `[[smoke]]` table: a GET, redirects not followed, 1 MiB of body, 10 s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmokeCheck {
    /// Path with an optional query.
    pub path: String,
    /// The exact status.
    pub status: u16,
    /// A substring of the body.
    pub contains: Option<String>,
    /// Response header name (lower case) → a substring of its value.
    pub headers: BTreeMap<String, String>,
    /// Response header names (lower case) that must be absent.
    pub headers_absent: Vec<String>,
    /// Sent with the request.
    pub request_headers: BTreeMap<String, String>,
}

/// Everything a slot's container is: what is asked of the engine, and what is compared for drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// `<project>.<target>.<slot>`.
    pub name: String,
    /// The seat.
    pub slot: Slot,
    /// The image's reference, for people.
    pub image: String,
    /// The pinned id, known once the image is prepared.
    pub image_id: Option<ImageId>,
    /// `<uid>:<uid>`.
    pub user: String,
    /// Variables, none of them secret.
    pub env: BTreeMap<String, String>,
    /// Our labels.
    pub labels: BTreeMap<String, String>,
    /// The port inside.
    pub container_port: u16,
    /// The loopback port outside.
    pub host_port: u16,
    /// The network's name.
    pub network: String,
    /// Bytes of memory; swap is not added to it.
    pub memory_bytes: u64,
    /// Billionths of a CPU.
    pub nano_cpus: u64,
    /// Processes.
    pub pids: u32,
    /// Path → options, for example `/tmp` → `rw,noexec,nosuid,nodev,size=16777216,mode=1777`.
    pub tmpfs: BTreeMap<String, String>,
    /// Always true.
    pub read_only_root: bool,
    /// Always `ALL`.
    pub cap_drop: Vec<String>,
    /// Always `no-new-privileges`.
    pub security_opt: Vec<String>,
    /// Always `127.0.0.1`: nothing answers there, so no name resolves (ruling 41).
    pub dns: Vec<String>,
}

/// A target's bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    /// `<project>.<target>`.
    pub name: String,
    /// `tu-` and 10 hex.
    pub bridge: String,
    /// Our labels.
    pub labels: BTreeMap<String, String>,
}

/// The body of a vhost's 503 before the first release. Source: app.toml contract, 'Before the first release'.
pub const NOT_RELEASED_YET: &str = "not released yet";

/// A target's vhost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vhost {
    /// File name in the sites directory, `<project>.<target>.caddy`.
    pub file: String,
    /// Host names it serves.
    pub hosts: Vec<String>,
    /// The whole text.
    pub text: String,
}

/// What the documents of one target are, for both seats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents {
    /// For slots a and b; labels carry no release number yet.
    pub containers: [ContainerSpec; 2],
    /// The bridge.
    pub network: NetworkSpec,
    /// The vhost.
    pub vhost: Vhost,
}

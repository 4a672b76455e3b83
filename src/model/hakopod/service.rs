//! One workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Autoscaling, Binding, CertificateMount, CustomHostnames, ExtraPort, Gpu, HttpEndpoint, Job, KubernetesPatches,
    Mount, PublicTcp, Readiness, Resources, SecretRef, Serverless, ServiceFile, ServiceVolume, Session, Sidecar, Size,
    TemporaryMount, Tls,
};

/// For fields that are written only when they are true.
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// `services.<name>`: a service, a job (`job`) or a sandbox (`session`).
///
/// Source: Hakopod TOML schema v1, table of service settings; rule book, section 2.1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Image reference as written, at most 512 bytes; a tag becomes a digest before anything is applied.
    pub image: String,
    /// Primary TCP port, 1 to 65535; its port name is `service`, its target port the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// At most 15 private endpoints, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ExtraPort>,
    /// HTTP ingress to `port`.
    #[serde(default)]
    pub public: bool,
    /// At most 4 further HTTP endpoints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, HttpEndpoint>,
    /// The certificate of the ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The ingress speaks HTTP/2 to the service.
    #[serde(default, skip_serializing_if = "is_false")]
    pub backend_http2: bool,
    /// 5 to 3600; absent means the installation's default of 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_timeout_seconds: Option<u32>,
    /// Tenant host names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_hostnames: Option<CustomHostnames>,
    /// At most 16 listeners, sorted by port; 64 in the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_tcp: Vec<PublicTcp>,
    /// At most 4, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_mounts: Vec<CertificateMount>,
    /// The service's own variables; what it runs with is [`super::Application::effective_env`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The service's own references; what it runs with is [`super::Application::effective_secrets`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretRef>,
    /// At most 16 computed URLs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bindings: BTreeMap<String, Binding>,
    /// Variable name → profile name: read, and refused when planned (ruling 53).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub database_client_profiles: BTreeMap<String, String>,
    /// Entry point, at most 64 elements; empty means the image's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments, at most 128 elements; empty means the image's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A clean absolute directory; absent means the image's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The profile.
    pub size: Size,
    /// Replaces single values of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// 1 to 20, kept while suspended; equals `autoscaling.min_replicas` where that is set.
    pub replicas: u32,
    /// Scaling by CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Stopped, or paused for a scheduled or invocation job.
    #[serde(default)]
    pub suspended: bool,
    /// Path of the HTTP readiness check on `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<String>,
    /// 10 to 900; absent means the installation's rollout timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_timeout_seconds: Option<u32>,
    /// A check of a listener, beside `healthcheck`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Readiness>,
    /// There exactly when the workload is neither job nor session; see [`Service::is_recreated`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// 1 to 3600, default 30.
    pub termination_grace_seconds: u32,
    /// A new one restarts the pods: at most 64 of `[a-zA-Z0-9_-]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_nonce: Option<String>,
    /// Workloads that come first, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Keys of the application's `networks`, sorted; empty only for sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<String>,
    /// Who may connect; absent means every member of a shared network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_access: Option<NetworkAccess>,
    /// At most 16 granted private destinations, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private_egress: Vec<String>,
    /// The one architecture that images and nodes must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Architecture>,
    /// Exact node name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// NVIDIA GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// 1 to 2147483647, default 10001.
    pub run_as_user: u32,
    /// 1 to 2147483647, default the user.
    pub run_as_group: u32,
    /// 1 to 2147483647, default the user.
    pub fs_group: u32,
    /// The image's file system is read-only.
    #[serde(default)]
    pub read_only_root_filesystem: bool,
    /// A managed registry credential's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_credential: Option<String>,
    /// An approved AWS workload binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_identity: Option<String>,
    /// An approved container daemon binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_daemon: Option<String>,
    /// A runtime profile's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_profile: Option<String>,
    /// The one data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<ServiceVolume>,
    /// Named volumes, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Scratch directories, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temporary_mounts: Vec<TemporaryMount>,
    /// Read-only files by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ServiceFile>,
    /// Makes it a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Makes it serverless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serverless: Option<Serverless>,
    /// Makes it a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// At most 4 further containers, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sidecars: Vec<Sidecar>,
    /// Patches for what is generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesPatches>,
}

/// `update_strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateStrategy {
    /// One more replica, none missing. The default.
    Rolling,
    /// The old pods stop before the new ones start.
    Recreate,
}

/// `architecture`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

/// `network_access`. An empty `from` keeps every local peer out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkAccess {
    /// At most 20 services of this application, sorted.
    #[serde(default)]
    pub from: Vec<String>,
    /// At most 32 peers `application/service`, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_applications: Vec<String>,
}

impl Service {
    /// Whether it keeps data: `volume` or at least one mount.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.volume.is_some() || !self.mounts.is_empty()
    }

    /// Whether old pods stop before new ones start.
    #[must_use]
    pub fn is_recreated(&self) -> bool {
        self.update_strategy == Some(UpdateStrategy::Recreate) || self.is_persistent()
    }

    /// The budget of one replica's own container, sidecars not counted.
    #[must_use]
    pub fn profile(&self) -> super::Profile {
        self.size.profile().with(self.resources.as_ref())
    }
}

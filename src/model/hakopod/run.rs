//! How a workload runs: probes, scaling, jobs, sessions, sidecars.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Mount, Resources, SecretRef, Size, TemporaryMount, is_false};

/// `readiness`: a check of one declared TCP listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// What is spoken.
    pub protocol: ReadinessProtocol,
    /// The target port of a declared TCP port.
    pub port: u16,
    /// The name that the certificate must have; there exactly with `smtp_starttls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// A file with the authorities; only with `smtp_starttls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca_file: Option<String>,
    /// 3 to 60, default 5.
    pub period_seconds: u32,
    /// 1 to 10, default 3, less than the period.
    pub timeout_seconds: u32,
    /// 1 to 10, default 3.
    pub failure_threshold: u32,
}

/// `readiness.protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessProtocol {
    /// A connection is enough.
    Tcp,
    /// Greeting and commands.
    Smtp,
    /// A verified STARTTLS.
    SmtpStarttls,
}

/// `autoscaling` by CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Autoscaling {
    /// 1 to `max_replicas`, default 1; the service's `replicas` equals it.
    pub min_replicas: u32,
    /// At most 20.
    pub max_replicas: u32,
    /// Per cent of the CPU request, 10 to 95, default 70.
    pub target_cpu: u32,
}

/// `job`: work that runs to its end instead of serving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// 10 to 900, default 300.
    pub timeout_seconds: u32,
    /// 0 to 3, default 0.
    pub retries: u32,
    /// Makes it a scheduled job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Makes it a job that callers start; never together with `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Invocation>,
}

impl Job {
    /// Whether it runs once with each release: neither scheduled nor started by callers.
    #[must_use]
    pub fn is_deployment(&self) -> bool {
        self.schedule.is_none() && self.invocation.is_none()
    }
}

/// `job.schedule`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Five fields, weekdays 0 to 6 from Sunday.
    pub cron: String,
    /// An IANA name, default `UTC`.
    pub timezone: String,
    /// 1 or 2, default 1.
    pub history_limit: u32,
}

/// `job.invocation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// 1 to 16 unique identities of 32 lower-case hex digits.
    pub allowed_identities: Vec<String>,
    /// 1 to 16 unique names.
    pub input_keys: Vec<String>,
    /// 2 to 131072, default 65536.
    pub max_input_bytes: u32,
    /// 1 to 64, default 16.
    pub queue_limit: u32,
}

/// `serverless`: zero or one replica, woken by requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serverless {
    /// 0 (the default) or 1.
    pub min_replicas: u32,
    /// 30 to 86400, default 300.
    pub idle_seconds: u32,
    /// 5 to 300, default 60.
    pub startup_timeout_seconds: u32,
    /// 1 to 300, default 60.
    pub request_timeout_seconds: u32,
    /// 1 to 64, default 16.
    pub max_concurrency: u32,
}

/// `session`: a sandbox that is made for one user at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// 1 to 32 unique identities of 32 lower-case hex digits.
    pub allowed_identities: Vec<String>,
    /// Not empty.
    pub helper_command: Vec<String>,
    /// Not empty.
    pub ready_command: Vec<String>,
    /// 60 to 900, default 900.
    pub idle_seconds: u32,
    /// At least `idle_seconds`, at most 3600, default 3600.
    pub lifetime_seconds: u32,
    /// The only service that the worker may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_proxy: Option<String>,
}

/// `gpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// 1 to 8.
    pub count: u32,
}

/// `kubernetes`: YAML strategic-merge patches, each at most 16384 bytes. At least one is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesPatches {
    /// For the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// For the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// For the Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<String>,
}

/// One entry of `sidecars`: a further container of the same pod, without ports (ruling 54).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sidecar {
    /// Unique in the service, never `app`.
    pub name: String,
    /// As for a service.
    pub image: String,
    /// As for a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// As for a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its own variables only; shared ones do not reach it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its own references only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretRef>,
    /// Its own profile, added to the service's in every budget.
    pub size: Size,
    /// Replaces single values of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// As for a service.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only_root_filesystem: bool,
    /// As for a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Volumes that the service mounts too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Scratch directories of the service, found by their `mount_path`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temporary_mounts: Vec<TemporaryMount>,
}

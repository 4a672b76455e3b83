//! What the operator decided: a project and its targets, as the registry gives them after validation.
//!
//! Source: app.toml contract, 'Host side: registry', and the design's own keys (section 4).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::desired::SmokeCheck;
use super::name::{BranchName, ProjectName, RepoPath, TargetLabel};
use super::revision::Digest;

/// A project of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Equal to the registry file's name.
    pub name: ProjectName,
    /// Where its commits come from.
    pub repo: Repository,
    /// Path of the host manifest in the repository.
    pub app_toml: RepoPath,
    /// Path of the cluster manifest in the repository **(own)**.
    pub hakopod_toml: Option<RepoPath>,
    /// Development boxes that may submit it.
    pub boxes: Vec<String>,
    /// The user and group every container of it runs as, 20000..=29999.
    pub uid: Option<u32>,
    /// The tracked branch, default `main` **(own)**.
    pub branch: BranchName,
    /// The name of the credential that reads `repo` **(own)**; none = the one of `[github]`.
    #[serde(default)]
    pub credential: Option<String>,
    /// Where its images come from **(own)**.
    pub image: ImagePolicy,
    /// By name.
    pub targets: BTreeMap<TargetLabel, TargetPolicy>,
}

/// The part of the registry that a release of one host target is made of.
#[derive(Serialize)]
struct ReleasePart<'a> {
    uid: Option<u32>,
    image: &'a ImagePolicy,
    hosts: &'a [String],
    slots: [u16; 2],
    limits: &'a Limits,
    env: &'a BTreeMap<String, String>,
    secrets: &'a [String],
    job_secrets: &'a BTreeMap<String, Vec<String>>,
    egress: &'a [String],
    upstreams: &'a [String],
    data: &'a Option<DataPolicy>,
    access_log: bool,
}

impl Project {
    /// The digest of what the registry puts into a release of one target; a change of it is a new
    /// generation (ruling 12), lifts a quarantine once (ruling 7), and voids a consent (ruling 6).
    ///
    /// Left out is what changes no release: `boxes`, who consents and when (`approve`,
    /// `require_ci`, `windows`, …), where commits come from, `keep_releases`, `drain`, `adopt`.
    /// A target that is unknown has the digest of nothing.
    #[must_use]
    pub fn release_digest(&self, label: &TargetLabel) -> Digest {
        let bytes = match self.targets.get(label).map(|target| &target.kind) {
            Some(TargetKind::Host(policy)) => serde_json::to_vec(&ReleasePart {
                uid: self.uid,
                image: &self.image,
                hosts: &policy.hosts,
                slots: policy.slots,
                limits: &policy.limits,
                env: &policy.env,
                secrets: &policy.secrets,
                job_secrets: &policy.job_secrets,
                egress: &policy.egress,
                upstreams: &policy.upstreams,
                data: &policy.data,
                access_log: policy.access_log,
            }),
            Some(TargetKind::Cluster(policy)) => serde_json::to_vec(policy),
            None => Ok(Vec::new()),
        };
        // Plain data with text keys always has a JSON form.
        Digest::of(&bytes.unwrap_or_default())
    }
}

/// Where a project's commits come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repository {
    /// `owner/name` on the GitHub of `[github]`.
    GitHub {
        /// The owner: a user or an organisation.
        owner: String,
        /// The repository's name.
        name: String,
    },
    /// A plain remote **(own)**: a `file://`, `https://`, `http://` (loopback only) or `ssh://` URL without a password in it.
    Url(String),
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GitHub { owner, name } => write!(formatter, "{owner}/{name}"),
            Self::Url(url) => formatter.write_str(url),
        }
    }
}

/// `[image]` of the registry **(own)**.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagePolicy {
    /// `from`.
    pub from: ImageFrom,
    /// `repository`: for `from = "registry"`, the image's name without a tag.
    pub repository: Option<String>,
    /// `credential`: the name of a registry credential.
    pub credential: Option<String>,
    /// Bounds of `from = "build"` (ruling 43).
    pub build: BuildPolicy,
}

/// Where images come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFrom {
    /// `huta-build/<project>:<sha12>` in this host's engine, put there by somebody else. The contract's way.
    Local,
    /// Built here from the commit's tree.
    Build,
    /// Pulled from an OCI registry.
    Registry,
}

/// Bounds on building a commit's image (ruling 43).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildPolicy {
    /// `build_network`: `none` (default) or `default`.
    pub network: String,
    /// `build_cpus` in thousandths of a CPU, default 1000.
    pub cpus_milli: u32,
    /// `build_memory` in bytes, default 1 GiB.
    pub memory_bytes: u64,
    /// `build_timeout` in seconds, default 900.
    pub timeout_seconds: u32,
    /// `build_context_limit` in bytes, default 1 GiB.
    pub context_limit_bytes: u64,
}

/// One target of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetPolicy {
    /// Overrides the project's branch **(own)**.
    pub branch: Option<BranchName>,
    /// Whether a person consents to each plan.
    pub approve: Approve,
    /// Whether the commit's CI run must be green.
    pub require_ci: bool,
    /// The workflow's name, default `ci` **(own)**.
    pub ci_workflow: String,
    /// What a commit without any run means **(own)** (ruling 9).
    pub no_ci_run: NoCiRun,
    /// What to do about drift **(own)**, default `report`.
    pub drift: DriftPolicy,
    /// When releases may start **(own)**; empty = always.
    pub windows: Vec<WindowRule>,
    /// What to write to Git after an automatic revert **(own)**, default `none`.
    pub on_failure: OnFailure,
    /// What runs it.
    pub kind: TargetKind,
}

/// `approve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approve {
    /// The plan waits for `trueup approve`. The contract's default.
    Always,
    /// Goes live unattended once CI is green **(own)**.
    Never,
}

/// `no_ci_run` **(own)**.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoCiRun {
    /// Held as `CiMissing`.
    Hold,
    /// Allowed when nothing the release is made of changed since the live revision.
    AllowIfReleasePathsUnchanged,
}

/// `drift` **(own)**.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftPolicy {
    /// Not looked for.
    Off,
    /// Looked for and shown.
    Report,
    /// Looked for, shown and put right.
    Heal,
}

/// `on_failure` **(own)**.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Nothing is written to Git.
    None,
    /// A revert is proposed.
    PullRequest,
    /// A revert is committed.
    Commit,
}

/// One rule of `windows` **(own)**.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRule {
    /// Whether releases may start inside it, or may not.
    pub effect: WindowEffect,
    /// When it opens: a five-field cron expression.
    pub cron: String,
    /// How long it stays open, in seconds, 60..=604800.
    pub duration_seconds: u32,
    /// IANA time zone, default `UTC`.
    pub time_zone: String,
}

/// `allow` or `deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowEffect {
    /// Releases may start inside only.
    Allow,
    /// Releases may not start inside.
    Deny,
}

/// What runs a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// Docker on this host, two slots behind Caddy.
    Host(Box<HostPolicy>),
    /// A Kubernetes cluster of `[clusters.<name>]`.
    Cluster(ClusterPolicy),
}

/// A cluster target's keys **(own)**.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPolicy {
    /// The name in `[clusters.<name>]`.
    pub cluster: String,
    /// The environment's name.
    pub environment: String,
    /// `[[targets.<t>.smoke]]`, checked once everything is ready.
    #[serde(default)]
    pub smoke: Vec<SmokeCheck>,
}

/// A host target's keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPolicy {
    /// Host names, at least one; the first is the one smoke checks ask for.
    pub hosts: Vec<String>,
    /// Loopback ports of slots a and b, 1025..=65535.
    pub slots: [u16; 2],
    /// Limits of each container.
    pub limits: Limits,
    /// Images kept, at least 1.
    pub keep_releases: u32,
    /// Seconds the old slot keeps running after the switch, 0..=300.
    pub drain_seconds: u32,
    /// Variables that are not secret.
    pub env: BTreeMap<String, String>,
    /// Names of secrets that the container gets.
    pub secrets: Vec<String>,
    /// Job name → names of secrets that only that job gets.
    pub job_secrets: BTreeMap<String, Vec<String>>,
    /// Allowed destinations; empty = none.
    pub egress: Vec<String>,
    /// Named services of this host.
    pub upstreams: Vec<String>,
    /// The data volume.
    pub data: Option<DataPolicy>,
    /// Whether the vhost writes an access log.
    pub access_log: bool,
    /// The file of a site that is taken over.
    pub adopt: Option<String>,
}

/// `limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `memory` in bytes, default 256 MiB.
    pub memory_bytes: u64,
    /// `cpus` in thousandths, default 1000.
    pub cpus_milli: u32,
    /// `pids`, default 128.
    pub pids: u32,
    /// `tmp` in bytes, 1 MiB..=4 GiB, default 16 MiB.
    pub tmp_bytes: u64,
}

/// `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPolicy {
    /// `size` in bytes, 64 MiB..=512 GiB.
    pub size_bytes: u64,
    /// `hourly`, `daily`, `off` or an OnCalendar expression, default `daily`.
    pub backup: String,
    /// Whether two releases may use it at once.
    pub concurrent: bool,
}

//! What a container finds in its file system beside its image.

use serde::{Deserialize, Serialize};

use super::{SecretRef, is_false};

/// `volume`: the one data directory of a service, claim `<service>-data`.
///
/// Size and class cannot change through a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceVolume {
    /// A clean absolute directory of at most 200 bytes.
    pub mount_path: String,
    /// 1 to 200 GiB.
    pub size_gib: u32,
    /// A DNS subdomain; absent means the installation's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
}

/// `volumes.<name>`: a volume of the application, claim `hakopod-volume-<name>`.
///
/// Size, class and access mode cannot change through a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedVolume {
    /// 1 to 200 GiB; all claims of an application together at most 200.
    pub size_gib: u32,
    /// Always there with `ReadWriteMany`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Who may mount it at once.
    pub access_mode: AccessMode,
}

/// `access_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AccessMode {
    /// One node at a time: services that share it run together. The default.
    #[default]
    ReadWriteOnce,
    /// Any node.
    ReadWriteMany,
}

/// One entry of `mounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// A key of the application's `volumes`.
    pub volume: String,
    /// A clean absolute directory of at most 200 bytes.
    pub mount_path: String,
    /// No writing through this path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// A directory inside the volume: relative, clean, at most 200 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
}

/// One entry of `temporary_mounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemporaryMount {
    /// A clean absolute directory of at most 200 bytes.
    pub mount_path: String,
    /// At least 1 MiB; at most 1048576 in one service.
    pub size_mib: u32,
    /// In memory, counted against the memory limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory: bool,
}

/// `files.<name>`: one read-only file. Exactly one of `content` and `secret` is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// A clean absolute path of at most 200 bytes.
    pub mount_path: String,
    /// The text, at most 65536 bytes; it may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Where the text comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// 292 (0444, the default) or 288 (0440).
    pub mode: u32,
}

//! A Hakopod application in its normal form: one canonical order, every default written out.
//!
//! Only `manifest::hakopod` makes these values, and it makes none that breaks a rule; what is read
//! back from the store was made there too. Nothing here resolves images, reads secrets or knows a
//! cluster.
//!
//! The serialised form is the schema of the file itself: written as TOML or JSON and read again, it
//! gives the same value. What is absent is left out, never written as `0` or `''`.
//!
//! | file | what it holds |
//! |---|---|
//! | `service` | one workload |
//! | `expose` | ports and every way in: HTTP, TLS, public TCP |
//! | `wiring` | secret references and bindings |
//! | `storage` | volumes, mounts and files |
//! | `run` | probes, jobs, sessions, scaling, sidecars |
//! | `quantity` | CPU and memory, and the size profiles |
//! | `credential` | what looks like a credential |
//! | `derived` | what follows from the values: effective environment, groups, order |

pub mod credential;
mod derived;
mod expose;
mod quantity;
mod run;
mod service;
mod storage;
mod wiring;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use derived::connected;
pub use expose::{
    CertificateMount, CertificateSource, CustomHostnames, ExtraPort, HttpEndpoint, IssuerKind, PortProtocol, PublicTcp,
    Tls,
};
pub use quantity::{Cpu, Memory, Profile, QuantityError, Resources, Size};
pub use run::{
    Autoscaling, Gpu, Invocation, Job, KubernetesPatches, Readiness, ReadinessProtocol, Schedule, Serverless, Session,
    Sidecar,
};
pub use service::{Architecture, NetworkAccess, Service, UpdateStrategy};
pub use storage::{AccessMode, Mount, NamedVolume, ServiceFile, ServiceVolume, TemporaryMount};
pub use wiring::{Binding, BindingProtocol, SecretRef};

pub(crate) use service::is_false;

/// The port name that the primary `port` of a service carries.
pub const PRIMARY_PORT_NAME: &str = "service";
/// The network that always exists.
pub const DEFAULT_NETWORK: &str = "default";
/// The user and the groups of a container that names none.
pub const DEFAULT_USER: u32 = 10001;

/// One application: the whole of one `hakopod.toml`.
///
/// Source: Hakopod TOML schema v1; rule book, section 1.1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Always 1.
    pub schema_version: u32,
    /// 1 to 40 characters: a lower-case letter, then letters, digits, hyphens, no hyphen at the end.
    pub name: String,
    /// Whether `env` reaches every service.
    #[serde(default)]
    pub inject_env: bool,
    /// What happens after a release failed.
    pub recovery: Recovery,
    /// Shared variables, at most 128; see [`Application::effective_env`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Shared references, at most 32; they reach every service whatever `inject_env` says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretRef>,
    /// Custom host name → public service, at most 20.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// At most 16; `default` is always there.
    pub networks: BTreeMap<String, Network>,
    /// Named volumes, at most 16.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, NamedVolume>,
    /// At most 20; empty means that every service is to be removed.
    pub services: BTreeMap<String, Service>,
}

/// `[recovery]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// What to do after a failed release.
    pub on_failure: OnFailure,
}

/// `recovery.on_failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Go back to the last good specification where that is safe. The default.
    Safe,
    /// Leave the failed release as it is.
    Disabled,
}

/// `[networks.<name>]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Without external egress.
    #[serde(default)]
    pub internal: bool,
    /// The project's virtual network that this one is part of; always together with `segment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_network: Option<String>,
    /// The segment of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
}

/// The normal form could not be written out; never the case for what was read from a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the specification of `{application}` cannot be written as {form}: {why}")]
pub struct WriteError {
    /// The application's name.
    pub application: String,
    /// `TOML` or `JSON`.
    pub form: &'static str,
    /// What the writer said.
    pub why: String,
}

impl Application {
    /// The canonical TOML text: keys in alphabetical order, values before tables.
    ///
    /// # Errors
    /// [`WriteError`] if the writer fails.
    pub fn to_toml(&self) -> Result<String, WriteError> {
        let table = toml::Table::try_from(self).map_err(|error| self.write_error("TOML", &error))?;
        toml::to_string(&table).map_err(|error| self.write_error("TOML", &error))
    }

    /// The canonical JSON text on one line: fields in the order of the schema, maps by name.
    ///
    /// # Errors
    /// [`WriteError`] if the writer fails.
    pub fn to_json(&self) -> Result<String, WriteError> {
        serde_json::to_string(self).map_err(|error| self.write_error("JSON", &error))
    }

    /// SHA-256 of the canonical JSON in lower-case hex: equal for every way to write the same application.
    ///
    /// # Errors
    /// [`WriteError`] if the writer fails.
    pub fn hash(&self) -> Result<String, WriteError> {
        Ok(hex::encode(Sha256::digest(self.to_json()?.as_bytes())))
    }

    fn write_error(&self, form: &'static str, error: &dyn std::error::Error) -> WriteError {
        WriteError { application: self.name.clone(), form, why: error.to_string() }
    }
}

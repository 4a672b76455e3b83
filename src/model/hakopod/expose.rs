//! Ports of a service, and every way in from outside.

use serde::{Deserialize, Serialize};

/// One entry of `ports`: a private endpoint beside the primary port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraPort {
    /// 1 to 15 bytes of `[a-z0-9-]` with a letter; unique, never `service` beside a primary port.
    pub name: String,
    /// The service's port, 1 to 65535.
    pub port: u16,
    /// The container's port, 1 to 65535.
    pub target_port: u16,
    /// The transport.
    pub protocol: PortProtocol,
}

/// `ports[].protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PortProtocol {
    /// The default.
    #[serde(rename = "TCP")]
    Tcp,
    /// Never reached from outside.
    #[serde(rename = "UDP")]
    Udp,
}

impl PortProtocol {
    /// `TCP` or `UDP`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// `http.<name>`: a further HTTP endpoint of a public service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpEndpoint {
    /// The service port of a declared TCP port.
    pub port: u16,
    /// A host name that `domains` maps to this service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// `tls`: exactly one of `certificate` and `issuer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// A managed certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// A cert-manager issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The issuer's kind; there exactly when `issuer` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_kind: Option<IssuerKind>,
}

/// `tls.issuer_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IssuerKind {
    /// The cluster's. The default.
    ClusterIssuer,
    /// The namespace's.
    Issuer,
}

/// `custom_hostnames`: tenant host names that come through the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomHostnames {
    /// Whether they may be attached.
    pub enabled: bool,
    /// 1 to 50000, default 1000.
    pub max: u32,
    /// What tenants point their CNAME at; absent means the generated host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// One entry of `public_tcp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicTcp {
    /// The outside port, 1 to 65535, unique in the application and none of the platform's.
    pub port: u16,
    /// The target port of exactly one declared TCP port.
    pub target_port: u16,
    /// 1 to 16 IPv4 networks, masked, unique, sorted as text.
    pub source_cidrs: Vec<String>,
}

/// One entry of `certificate_mounts`: exactly one of `certificate` and `source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateMount {
    /// An uploaded certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Follow another certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CertificateSource>,
    /// The host name that it must cover.
    pub hostname: String,
    /// The read-only directory with `tls.crt` and `tls.key`.
    pub mount_path: String,
}

/// `certificate_mounts[].source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertificateSource {
    /// The one of the service's ingress.
    Ingress,
}

//! What an operator says about a cluster, as far as applications notice: names, classes, grants, bounds.
//!
//! Nothing that a repository writes can widen it (promise 1). It holds no credential and no address
//! of an API server.

use std::collections::{BTreeMap, BTreeSet};

use super::hakopod::Application;

/// The settings of one cluster, `[clusters.<name>]`, without the way to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSettings {
    /// Its name, for messages; empty when the settings come from a file of their own.
    pub name: String,
    /// The domain below which services get their names.
    pub app_domain: Option<String>,
    /// `ingress_class`; absent means the dialect's usual one.
    pub ingress_class: Option<String>,
    /// The `ClusterIssuer` of services that name none.
    pub issuer: Option<String>,
    /// The class of claims that name none; absent means the cluster's default.
    pub storage_class: Option<String>,
    /// Where the ingress controller's pods are; absent means the dialect's usual place.
    pub ingress_namespace: Option<String>,
    /// What they carry; empty means the dialect's usual labels.
    pub ingress_pod_labels: BTreeMap<String, String>,
    /// Whose annotations are written.
    pub ingress_dialect: IngressDialect,
    /// Who answers names; empty means pods `k8s-app=kube-dns` in `kube-system`.
    pub dns_peers: Vec<DnsPeer>,
    /// What applications may use.
    pub grants: Grants,
    /// Bounds of each application.
    pub limits: Limits,
}

/// `ingress_dialect`: whose annotations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IngressDialect {
    /// The HAProxy ingress controller.
    Haproxy,
    /// ingress-nginx. The default.
    #[default]
    Nginx,
    /// Traefik.
    Traefik,
}

/// One entry of `dns_peers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsPeer {
    /// `namespace` or `namespace/key=value,key=value`.
    Pods {
        /// The namespace's name.
        namespace: String,
        /// Labels of the pods; none means all pods of the namespace.
        labels: BTreeMap<String, String>,
    },
    /// An IPv4 network, such as a node-local resolver's `169.254.20.10/32`.
    Network(String),
}

/// `grants`: what is not offered unless it is written there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// `gpu`: nodes with NVIDIA GPUs exist.
    pub gpu: bool,
    /// `kubernetes_patches`: patches of generated objects are applied.
    pub kubernetes_patches: bool,
    /// `probe_image`: the helper of SMTP and combined readiness checks, pinned by digest.
    pub probe_image: Option<String>,
    /// `domains.<zone>`: custom host names, the zone itself and everything below it; `*` is every zone.
    pub domains: BTreeMap<String, Scopes>,
    /// `networks."<virtual network>/<segment>"`.
    pub networks: BTreeMap<String, Scopes>,
    /// `private_egress.<name>`.
    pub private_egress: BTreeMap<String, PrivateDestination>,
}

/// `private_egress.<name>`: TCP destinations inside private networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateDestination {
    /// Who may use it.
    pub to: Scopes,
    /// At least one IPv4 network.
    pub cidrs: Vec<String>,
    /// At least one TCP port.
    pub ports: Vec<u16>,
}

/// `to`: whom a grant reaches, as `project[/environment[/application[/service]]]`; empty means everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scopes(pub BTreeSet<String>);

impl Scopes {
    /// Whether the grant reaches `path`, the parts of `project/environment/application/service` that are known.
    #[must_use]
    pub fn reaches(&self, path: &[&str]) -> bool {
        let covers = |scope: &String| {
            let mut parts = path.iter();
            scope.split('/').all(|part| parts.next() == Some(&part))
        };
        self.0.is_empty() || self.0.iter().any(covers)
    }
}

/// `limits`: bounds of each application's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Line of the namespace's quota → its value, which then is exactly that. Values are whole numbers
    /// in the line's unit: thousandths of a core, bytes, or a count.
    pub quota: BTreeMap<String, QuotaValue>,
    /// `rollout_timeout_seconds`, 10 to 900: the start-up budget of a service that names none; default 180.
    pub rollout_timeout_seconds: Option<u32>,
}

/// In which unit a line of the quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaUnit {
    /// Thousandths of a core.
    Milli,
    /// Bytes.
    Bytes,
    /// A plain number.
    Count,
}

/// Every line of a namespace's quota, which are the keys of `limits` too.
pub const QUOTA_LINES: [(&str, QuotaUnit); 15] = [
    ("requests.cpu", QuotaUnit::Milli),
    ("limits.cpu", QuotaUnit::Milli),
    ("requests.memory", QuotaUnit::Bytes),
    ("limits.memory", QuotaUnit::Bytes),
    ("requests.ephemeral-storage", QuotaUnit::Bytes),
    ("limits.ephemeral-storage", QuotaUnit::Bytes),
    ("pods", QuotaUnit::Count),
    ("services", QuotaUnit::Count),
    ("persistentvolumeclaims", QuotaUnit::Count),
    ("requests.storage", QuotaUnit::Bytes),
    ("count/jobs.batch", QuotaUnit::Count),
    ("count/cronjobs.batch", QuotaUnit::Count),
    ("count/configmaps", QuotaUnit::Count),
    ("count/secrets", QuotaUnit::Count),
    ("requests.nvidia.com/gpu", QuotaUnit::Count),
];

/// One bound, as written and as a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaValue {
    /// As the operator wrote it, such as `16` or `32Gi`.
    pub text: String,
    /// Thousandths of a core, bytes, or a count.
    pub number: u64,
}

impl ClusterSettings {
    /// Settings under which everything that can be granted is, for looking at a manifest without a cluster:
    /// host names end in `apps.example.invalid`, which never resolves.
    #[must_use]
    pub fn preview(application: &Application) -> Self {
        let mut grants = Grants { gpu: true, kubernetes_patches: true, ..Grants::default() };
        grants.probe_image = Some(format!("example.invalid/probe@sha256:{}", "0".repeat(64)));
        grants.domains.insert("*".to_owned(), Scopes::default());
        let networks = application.networks.values();
        let shared =
            networks.filter_map(|network| Some((network.virtual_network.as_ref()?, network.segment.as_ref()?)));
        grants.networks = shared.map(|(name, segment)| (format!("{name}/{segment}"), Scopes::default())).collect();
        let wanted = application.services.values().flat_map(|service| &service.private_egress);
        let anywhere =
            || PrivateDestination { to: Scopes::default(), cidrs: vec!["192.0.2.0/24".to_owned()], ports: vec![1] };
        grants.private_egress = wanted.map(|name| (name.clone(), anywhere())).collect();
        Self { app_domain: Some("apps.example.invalid".to_owned()), grants, ..Self::default() }
    }

    /// How messages name a key of these settings.
    #[must_use]
    pub fn key(&self, key: &str) -> String {
        if self.name.is_empty() { format!("`{key}`") } else { format!("`clusters.{}.{key}`", self.name) }
    }

    /// Whether a custom host name lies in a zone that is granted to `path`.
    #[must_use]
    pub fn grants_domain(&self, host: &str, path: &[&str]) -> bool {
        let lies_in = |zone: &str| {
            zone == "*" || host.strip_suffix(zone).is_some_and(|front| front.is_empty() || front.ends_with('.'))
        };
        self.grants.domains.iter().any(|(zone, scopes)| lies_in(zone) && scopes.reaches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &[&str]) -> Scopes {
        Scopes(text.iter().map(|one| (*one).to_owned()).collect())
    }

    #[test]
    fn a_grant_reaches_what_lies_below_its_scope_and_nothing_beside_it() {
        let path = ["shop", "production", "api", "web"];
        for (scope, reaches) in [
            ("shop", true),
            ("shop/production", true),
            ("shop/production/api/web", true),
            ("shop/staging", false),
            ("sho", false),
            ("shop/production/api/web/more", false),
        ] {
            assert_eq!(scopes(&[scope]).reaches(&path), reaches, "{scope}");
        }
        assert!(Scopes::default().reaches(&path));
    }

    #[test]
    fn a_domain_lies_in_its_zone_by_whole_labels() {
        let mut settings = ClusterSettings::default();
        assert!(!settings.grants_domain("example.org", &["shop"]));
        settings.grants.domains.insert("example.org".to_owned(), scopes(&["shop"]));
        assert!(settings.grants_domain("example.org", &["shop"]) && settings.grants_domain("a.example.org", &["shop"]));
        assert!(!settings.grants_domain("badexample.org", &["shop"]));
        assert!(!settings.grants_domain("example.org", &["cafe"]));
    }
}

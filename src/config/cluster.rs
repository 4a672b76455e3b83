//! A cluster's settings: what `[clusters.<name>]` grants and bounds, and such a table in a file of its own.
//!
//! Source: `DESIGN` section 4; ruling 50. The keys of `grants` and `limits` are our own.

use std::collections::BTreeMap;

use super::host::{self, Cluster, TOP_LEVEL};
use crate::model::Problems;
use crate::model::cluster::{
    ClusterSettings, DnsPeer, Grants, Limits, PrivateDestination, QUOTA_LINES, QuotaUnit, QuotaValue, Scopes,
};
use crate::model::document::{self, FileName, Refusal, Table, Value, form, net};

/// Parts of `project/environment/application/service`.
const SCOPE_PARTS: usize = 4;

impl Cluster {
    /// What of it applications notice; `name` is the cluster's, for messages.
    #[must_use]
    pub fn settings(&self, name: &str) -> ClusterSettings {
        ClusterSettings {
            name: name.to_owned(),
            app_domain: self.app_domain.clone(),
            ingress_class: self.ingress_class.clone(),
            issuer: self.issuer.clone(),
            storage_class: self.storage_class.clone(),
            ingress_namespace: self.ingress_namespace.clone(),
            ingress_pod_labels: self.ingress_pod_labels.clone(),
            ingress_dialect: self.ingress_dialect,
            dns_peers: self.dns_peers.clone(),
            grants: self.grants.clone(),
            limits: self.limits.clone(),
        }
    }
}

/// Parses cluster settings: the keys of `[clusters.<name>]` at the top level, or a file with exactly one
/// such table, which may be a whole `huta.toml`.
///
/// # Errors
/// All problems of the file.
pub fn parse(bytes: &[u8], file: &str) -> Result<ClusterSettings, Problems> {
    document::read(bytes, FileName { file, label: "cluster settings" }, |root| match root.get("clusters") {
        None => host::cluster(root).map(|cluster| cluster.settings("")),
        Some(value) => {
            root.only(&TOP_LEVEL, &[]);
            let table = value.table()?;
            match table.entries().as_slice() {
                [(name, one)] => host::cluster(&one.table()?).map(|cluster| cluster.settings(name)),
                entries => {
                    value.refuse(Refusal::new(
                        format!("has {} clusters", entries.len()),
                        "objects are made for one cluster",
                        "keep exactly one [clusters.<name>] table",
                    ));
                    None
                }
            }
        }
    })
}

fn optional<'d, T: Default>(table: &Table<'d>, key: &str, read: impl FnOnce(&Value<'d>) -> Option<T>) -> Option<T> {
    table.get(key).map_or_else(|| Some(T::default()), |value| read(&value))
}

/// Reads `grants`.
pub(super) fn grants(table: &Table<'_>) -> Option<Grants> {
    table.only(&["gpu", "kubernetes_patches", "probe_image", "domains", "networks", "private_egress"], &[]);
    let gpu = optional(table, "gpu", Value::boolean);
    let kubernetes_patches = optional(table, "kubernetes_patches", Value::boolean);
    let probe_image = optional(table, "probe_image", |value| value.read(pinned_image).map(Some));
    let domains = named(table, "domains", (zone, scoped));
    let networks = named(table, "networks", (segment, scoped));
    let private_egress = named(table, "private_egress", (label, private_destination));
    Some(Grants {
        gpu: gpu?,
        kubernetes_patches: kubernetes_patches?,
        probe_image: probe_image?,
        domains: domains?,
        networks: networks?,
        private_egress: private_egress?,
    })
}

/// How a named grant's name and table are read.
type Forms<T> = (fn(&str) -> Result<(), Refusal>, fn(&Table<'_>) -> Option<T>);

fn named<T>(table: &Table<'_>, key: &str, forms: Forms<T>) -> Option<BTreeMap<String, T>> {
    let Some(value) = table.get(key) else { return Some(BTreeMap::new()) };
    let grants = value.table()?;
    let mut read = BTreeMap::new();
    let mut is_good = true;
    for (name, value) in grants.entries() {
        if let Err(refusal) = forms.0(name) {
            grants.refuse_key(name, refusal);
            is_good = false;
        }
        match value.table().and_then(|table| forms.1(&table)) {
            Some(grant) => {
                read.insert(name.to_owned(), grant);
            }
            None => is_good = false,
        }
    }
    is_good.then_some(read)
}

fn zone(text: &str) -> Result<(), Refusal> {
    if text == "*" { Ok(()) } else { net::host_name(text).map(|_| ()) }
}

fn label(text: &str) -> Result<(), Refusal> {
    form::label(text).map(|_| ())
}

fn segment(text: &str) -> Result<(), Refusal> {
    let is_good = text
        .split_once('/')
        .is_some_and(|(network, segment)| form::label(network).is_ok() && form::label(segment).is_ok());
    is_good.then_some(()).ok_or_else(|| {
        Refusal::new("is not a segment", "a segment belongs to a virtual network", "write \"network/segment\"")
    })
}

fn scoped(table: &Table<'_>) -> Option<Scopes> {
    table.only(&["to"], &[]);
    scopes(table)
}

fn scopes(table: &Table<'_>) -> Option<Scopes> {
    let to = optional(table, "to", |value| value.each(|item| item.read(scope)))?;
    Some(Scopes(to.into_iter().collect()))
}

fn scope(text: &str) -> Result<String, Refusal> {
    if text.split('/').count() <= SCOPE_PARTS && text.split('/').all(|part| form::label(part).is_ok()) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a scope",
            "a grant reaches a project, an environment, an application or a service",
            "write \"project\", \"project/environment\", and so on to the service",
        ))
    }
}

fn private_destination(table: &Table<'_>) -> Option<PrivateDestination> {
    table.only(&["to", "cidrs", "ports"], &[]);
    let to = scopes(table);
    let cidrs = table.need("cidrs", "add for example `cidrs = [\"10.1.2.0/24\"]`");
    let cidrs = cidrs.and_then(|value| some(&value, value.each(|item| item.read(network))));
    let ports = table.need("ports", "add for example `ports = [5432]`").and_then(|value| {
        some(&value, value.each(|item| item.integer(1..=65535, "TCP ports are numbers from 1 to 65535")))
    });
    Some(PrivateDestination { to: to?, cidrs: cidrs?, ports: ports? })
}

fn some<T>(value: &Value<'_>, list: Option<Vec<T>>) -> Option<Vec<T>> {
    let list = list?;
    if list.is_empty() {
        let why = "an empty list would grant everything there, or nothing";
        value.refuse(Refusal::new("is empty", why, "name at least one"));
        return None;
    }
    Some(list)
}

fn network(text: &str) -> Result<String, Refusal> {
    let is_network = text.split_once('/').is_some_and(|(address, length)| {
        let is_length = !length.starts_with('+') && length.parse::<u8>().is_ok_and(|length| length <= 32);
        address.parse::<std::net::Ipv4Addr>().is_ok() && is_length
    });
    is_network.then(|| text.to_owned()).ok_or_else(|| {
        Refusal::new("is not an IPv4 network", "policies take networks", "write for example \"10.1.2.0/24\"")
    })
}

fn pinned_image(text: &str) -> Result<String, Refusal> {
    let is_hex = |digest: &str| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_pinned = text.rsplit_once("@sha256:").is_some_and(|(name, digest)| !name.is_empty() && is_hex(digest));
    is_pinned.then(|| text.to_owned()).ok_or_else(|| {
        Refusal::new(
            "is not pinned by digest",
            "the helper runs in every pod that asks for it",
            "write \"registry.example.org/probe@sha256:…\"",
        )
    })
}

/// Reads `limits`.
pub(super) fn limits(table: &Table<'_>) -> Option<Limits> {
    let mut known: Vec<&str> = QUOTA_LINES.iter().map(|(name, _)| *name).collect();
    known.push("rollout_timeout_seconds");
    table.only(&known, &[]);
    let rollout_timeout_seconds = optional(table, "rollout_timeout_seconds", |value| {
        value.integer(10..=900, "a rollout is waited for this long, and the contract allows 900 s").map(Some)
    });
    let mut quota = BTreeMap::new();
    let mut is_good = true;
    for (name, unit) in QUOTA_LINES {
        let Some(value) = table.get(name) else { continue };
        match value.read(|text| quantity(text, unit)) {
            Some(bound) => {
                quota.insert(name.to_owned(), bound);
            }
            None => is_good = false,
        }
    }
    let rollout_timeout_seconds = rollout_timeout_seconds?;
    is_good.then_some(Limits { quota, rollout_timeout_seconds })
}

fn quantity(text: &str, unit: QuotaUnit) -> Result<QuotaValue, Refusal> {
    let number = match unit {
        QuotaUnit::Milli => match text.strip_suffix('m') {
            Some(milli) => digits(milli),
            None => digits(text).and_then(|cores| cores.checked_mul(1000)),
        },
        QuotaUnit::Bytes => bytes(text),
        QuotaUnit::Count => digits(text),
    };
    number.map(|number| QuotaValue { text: text.to_owned(), number }).ok_or_else(|| {
        Refusal::new(
            "is not a quantity",
            "cores are \"16\" or \"1500m\", sizes \"32Gi\", counts \"64\"",
            "write whole numbers in quotes",
        )
    })
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u32); 4] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)];
    let found = UNITS.iter().find_map(|(suffix, shift)| Some((text.strip_suffix(suffix)?, *shift)));
    let (number, shift) = found.unwrap_or((text, 0));
    digits(number)?.checked_mul(1_u64.checked_shl(shift)?)
}

/// Reads one entry of `dns_peers`.
pub(super) fn dns_peer(value: &Value<'_>) -> Option<DnsPeer> {
    value.read(|text| {
        if let Ok(network) = network(text) {
            return Ok(DnsPeer::Network(network));
        }
        let (namespace, labels) = text.split_once('/').unwrap_or((text, ""));
        let pairs = labels.split(',').filter(|pair| !pair.is_empty());
        let labels: Option<BTreeMap<String, String>> =
            pairs.map(|pair| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))).collect();
        match labels {
            Some(labels) if form::label(namespace).is_ok() => {
                Ok(DnsPeer::Pods { namespace: namespace.to_owned(), labels })
            }
            Some(_) | None => Err(Refusal::new(
                "is not who answers names",
                "policies let workloads ask pods of a namespace, or a network",
                "write \"kube-system\", \"kube-system/k8s-app=kube-dns\" or \"169.254.20.10/32\"",
            )),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_bare_keys_or_the_one_cluster_of_a_file() {
        let bare = parse(b"app_domain = \"apps.example.org\"\n[grants]\ngpu = true\n", "x.toml").unwrap();
        assert_eq!((bare.app_domain.as_deref(), bare.grants.gpu), (Some("apps.example.org"), true));
        assert_eq!(bare.key("grants.gpu"), "`grants.gpu`");
        let one = parse(b"schema = 1\n[clusters.main]\napp_domain = \"apps.example.org\"\n", "x.toml").unwrap();
        assert_eq!(one.key("app_domain"), "`clusters.main.app_domain`");
        assert!(parse(b"", "x.toml").is_ok(), "nothing is granted");
    }

    #[test]
    fn two_clusters_are_one_too_many() {
        let refused = parse(b"[clusters.a]\n[clusters.b]\n", "x.toml").unwrap_err();
        assert!(refused.summary().contains("has 2 clusters"), "{refused}");
    }

    #[test]
    fn quantities_are_exact() {
        let number = |text: &str, unit| quantity(text, unit).map(|value| value.number).ok();
        assert_eq!(number("16", QuotaUnit::Milli), Some(16000));
        assert_eq!(number("1500m", QuotaUnit::Milli), Some(1500));
        assert_eq!(number("2Gi", QuotaUnit::Bytes), Some(2 << 30));
        assert_eq!(number("64", QuotaUnit::Count), Some(64));
        for (text, unit) in [
            ("", QuotaUnit::Count),
            ("-1", QuotaUnit::Count),
            ("99999999999999999999", QuotaUnit::Bytes),
            ("1G", QuotaUnit::Bytes),
        ] {
            assert_eq!(number(text, unit), None, "{text}");
        }
    }
}

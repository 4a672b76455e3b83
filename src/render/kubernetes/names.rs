//! Every name and label (rulings 1–3).
//!
//! Names that join two free parts put a dot between them, which neither part may hold: joined with
//! hyphens, `a-b` and `c` would be `a` and `b-c`.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::super::container::{LABEL_INSTANCE, LABEL_MANIFEST, LABEL_RELEASE, LABEL_REVISION, LABEL_TARGET};

/// Label of every object of ours, with the value `trueup`.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label of every object: [`owner`].
pub const LABEL_OWNER: &str = "run.trueup.owner";
/// Label of every object of a service: its name.
pub const LABEL_SERVICE: &str = "run.trueup.service";
/// Label of pods: the application's name, for peers of other applications.
pub(super) const LABEL_APPLICATION: &str = "run.trueup.application";
/// Label of namespaces: a hash of project and environment.
pub(super) const LABEL_SCOPE: &str = "run.trueup.scope";
/// Label of pods, followed by the network's name.
pub(super) const LABEL_NETWORK: &str = "run.trueup.net.";
/// Label of pods, followed by a hash of the shared network.
pub(super) const LABEL_SHARED: &str = "run.trueup.shared.";
/// Annotation of the namespace: `<project>/<environment>/<application>`, for people.
pub const ANNOTATION_APPLICATION: &str = "run.trueup.application";
/// Annotation of claims, which are never removed with what used them.
pub(super) const ANNOTATION_RETAIN: &str = "run.trueup.retain-data";
/// Annotation of pod templates: a new value restarts the pods.
pub(super) const ANNOTATION_NONCE: &str = "run.trueup.restart-nonce";
pub(super) const ANNOTATION_TARGET: &str = LABEL_TARGET;
pub(super) const ANNOTATION_RELEASE: &str = LABEL_RELEASE;
pub(super) const ANNOTATION_REVISION: &str = LABEL_REVISION;
pub(super) const ANNOTATION_MANIFEST: &str = LABEL_MANIFEST;

/// Readable bytes in front of a namespace's hash.
const READABLE: usize = 50;
/// Hex digits of the hash in a namespace's name.
const NAMESPACE_HASH: usize = 8;
/// Hex digits of the hash in a generated host name: service, endpoint and hash fit one label of 63.
const HOST_HASH: usize = 12;
/// Hex digits of a hash in a label: its value has at most 63 characters.
const LABEL_HASH: usize = 32;
/// Hex digits in the name of what is named by its content.
const CONTENT_HASH: usize = 16;

/// The first `length` hex digits of the SHA-256 of the parts, NUL between them.
fn hash(parts: &[&str], length: usize) -> String {
    let mut hex = hex::encode(Sha256::digest(parts.join("\0").as_bytes()));
    hex.truncate(length);
    hex
}

/// 32 hex digits that stand for project, environment and application.
#[must_use]
pub fn owner(project: &str, environment: &str, application: &str) -> String {
    hash(&[project, environment, application], LABEL_HASH)
}

/// The namespace: at most 50 readable bytes, a hyphen, and 8 hex digits that make it unique.
#[must_use]
pub fn namespace(project: &str, environment: &str, application: &str) -> String {
    let plain = |letter: char| {
        let lower = letter.to_ascii_lowercase();
        if lower.is_ascii_alphanumeric() { lower } else { '-' }
    };
    let all = format!("{project}-{environment}-{application}");
    let readable: String = all.chars().map(plain).take(READABLE).collect();
    let readable = readable.trim_matches('-');
    let hash = hash(&[project, environment, application], NAMESPACE_HASH);
    if readable.is_empty() { format!("trueup-{hash}") } else { format!("{readable}-{hash}") }
}

/// The names of one application.
pub(super) struct Names {
    pub(super) namespace: String,
    pub(super) owner: String,
    /// A hash of project and environment.
    pub(super) scope: String,
    project: String,
    environment: String,
    host_hash: String,
    instance: Option<String>,
}

impl Names {
    pub(super) fn new(scope: (&str, &str, &str), instance: Option<&str>) -> Self {
        let (project, environment, application) = scope;
        Self {
            namespace: namespace(project, environment, application),
            owner: owner(project, environment, application),
            scope: hash(&[project, environment], LABEL_HASH),
            project: project.to_owned(),
            environment: environment.to_owned(),
            host_hash: hash(&[project, environment, application], HOST_HASH),
            instance: instance.map(str::to_owned),
        }
    }

    /// Labels of an object; of a service, when one is named.
    pub(super) fn labels(&self, service: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = self.selector(service);
        if let Some(instance) = &self.instance {
            labels.insert(LABEL_INSTANCE.to_owned(), instance.clone());
        }
        labels
    }

    /// Labels by which pods are selected: they never change while the application lives.
    pub(super) fn selector(&self, service: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (MANAGED_BY.to_owned(), "trueup".to_owned()),
            (LABEL_OWNER.to_owned(), self.owner.clone()),
        ]);
        if let Some(service) = service {
            labels.insert(LABEL_SERVICE.to_owned(), service.to_owned());
        }
        labels
    }

    /// The pod label of a segment that applications share.
    pub(super) fn shared_label(&self, virtual_network: &str, segment: &str) -> String {
        let hash = hash(&[&self.project, &self.environment, virtual_network, segment], LABEL_HASH);
        format!("{LABEL_SHARED}{hash}")
    }

    /// The generated host name of a service, or of one of its named endpoints.
    pub(super) fn host(&self, service: &str, endpoint: Option<&str>, domain: &str) -> String {
        let hash = &self.host_hash;
        match endpoint {
            Some(endpoint) => format!("{service}-{endpoint}-{hash}.{domain}"),
            None => format!("{service}-{hash}.{domain}"),
        }
    }
}

/// The name of a service's Secret or ConfigMap of one kind, of one version.
pub(super) fn of_service(service: &str, kind: &str, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{service}.{kind}.{version}"),
        None => format!("{service}.{kind}"),
    }
}

/// A name that changes with the content.
pub(super) fn content_version(contents: &BTreeMap<&str, &str>) -> String {
    let parts: Vec<&str> = contents.iter().flat_map(|(name, content)| [*name, *content]).collect();
    hash(&parts, CONTENT_HASH)
}

/// The claim of a service's own volume.
pub(super) fn own_claim(service: &str) -> String {
    format!("{service}-data")
}

/// The claim of a named volume.
pub(super) fn named_claim(volume: &str) -> String {
    format!("hakopod-volume-{volume}")
}

/// The Secret of an uploaded certificate.
pub(super) fn certificate(service: &str, certificate: &str) -> String {
    format!("{service}.{certificate}.certificate")
}

/// The Secret of a registry credential.
pub(super) fn registry_credential(credential: &str) -> String {
    format!("{credential}.registry-credential")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_names_do_not_collide() {
        assert_ne!(namespace("a-b", "c", "d"), namespace("a", "b-c", "d"));
        assert_ne!(owner("a-b", "c", "d"), owner("a", "b-c", "d"));
        assert_ne!(content_version(&[("a", "bc")].into()), content_version(&[("ab", "c")].into()));
    }

    #[test]
    fn a_namespace_is_a_label_of_at_most_59_characters() {
        let long = "x".repeat(40);
        for (project, environment, application) in
            [("shop", "production", "api"), (long.as_str(), long.as_str(), long.as_str()), ("-", "-", "-")]
        {
            let name = namespace(project, environment, application);
            assert!(name.len() <= 59 && !name.starts_with('-') && !name.ends_with('-'), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{name}");
        }
        assert!(namespace("shop", "production", "api").starts_with("shop-production-api-"));
    }

    #[test]
    fn the_first_label_of_a_generated_host_fits_63_characters() {
        let names = Names::new(("shop", "production", "api"), None);
        let host = names.host(&"s".repeat(40), Some("endpoint"), "example.org");
        assert_eq!(host.split('.').next().map(str::len), Some(62));
    }
}

//! What is around an application when it is rendered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::names::{self, Names};
use super::{Object, patch};
use crate::model::cluster::ClusterSettings;
use crate::model::hakopod::Application;

/// The oldest minor version of Kubernetes 1 that is rendered for: server-side apply, Ingress v1.
pub const OLDEST_MINOR: u32 = 20;
/// The newest one whose objects were checked.
pub const NEWEST_MINOR: u32 = 37;
/// First minor version whose namespaces carry `kubernetes.io/metadata.name`.
const NAMED_NAMESPACES: u32 = 21;
/// First minor version that takes `timeZone` on schedules without a feature gate.
const TIME_ZONES: u32 = 25;

/// What a server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// 20 for Kubernetes 1.20.
    pub minor: u32,
    /// Every served `(apiVersion, kind)` among those that differ between versions.
    pub kinds: BTreeSet<(String, String)>,
    /// Namespaces that carry `kubernetes.io/metadata.name` although the server does not set it.
    pub named_namespaces: BTreeSet<String>,
}

impl Server {
    /// What an ordinary server of Kubernetes 1.`minor` serves.
    ///
    /// Source: Kubernetes deprecated API migration guide.
    #[must_use]
    pub fn of_minor(minor: u32) -> Self {
        const KINDS: [(&str, &str, u32, u32); 5] = [
            ("batch/v1beta1", "CronJob", 8, 24),
            ("batch/v1", "CronJob", 21, u32::MAX),
            ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 12, 25),
            ("autoscaling/v2", "HorizontalPodAutoscaler", 23, u32::MAX),
            ("autoscaling/v1", "HorizontalPodAutoscaler", 2, u32::MAX),
        ];
        let served = KINDS.iter().filter(|(_, _, from, until)| (*from..=*until).contains(&minor));
        let kinds = served.map(|(version, kind, _, _)| ((*version).to_owned(), (*kind).to_owned())).collect();
        Self { minor, kinds, named_namespaces: BTreeSet::new() }
    }

    /// The first of `versions` in which the server serves `kind`.
    pub(super) fn first<'v>(&self, kind: &str, versions: &[&'v str]) -> Option<&'v str> {
        let is_served = |version: &&&str| self.kinds.contains(&((**version).to_owned(), kind.to_owned()));
        versions.iter().find(is_served).copied()
    }

    /// Whether a policy can select a namespace by its name.
    pub(super) fn selects_by_name(&self, namespace: &str) -> bool {
        self.minor >= NAMED_NAMESPACES || self.named_namespaces.contains(namespace)
    }

    /// Whether schedules may name a time zone.
    pub(super) fn knows_time_zones(&self) -> bool {
        self.minor >= TIME_ZONES && self.kinds.contains(&("batch/v1".to_owned(), "CronJob".to_owned()))
    }
}

/// The release that the objects belong to: enough to rebuild a lost store (ruling 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// `<project>/<target>`.
    pub target: String,
    /// The release's number.
    pub number: u64,
    /// The full sha.
    pub revision: String,
    /// Digest of the manifest.
    pub manifest: String,
}

/// Everything that rendering looks at beside the application.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// The manifest's name, for messages.
    pub file: &'a str,
    /// The project's name.
    pub project: &'a str,
    /// The environment's name.
    pub environment: &'a str,
    /// The installation of trueup, for a label; absent when nothing will be applied.
    pub instance: Option<&'a str>,
    /// The release, for annotations; absent when nothing will be applied.
    pub release: Option<&'a Release>,
    /// The cluster's settings.
    pub settings: &'a ClusterSettings,
    /// The cluster's server.
    pub server: &'a Server,
    /// Image as written → image by digest. What is not there is rendered as written.
    pub images: BTreeMap<String, String>,
    /// Service → version of its secret values, which ends the name of its Secrets: a changed value is
    /// a new Secret, and old pods keep the old one.
    pub secret_versions: BTreeMap<String, String>,
    /// Service → replicas that run now, kept while an autoscaler rules them (ruling 49).
    pub running_replicas: BTreeMap<String, u32>,
}

impl<'a> Context<'a> {
    /// A context without a release, with images as written.
    #[must_use]
    pub fn preview(file: &'a str, scope: (&'a str, &'a str), cluster: (&'a ClusterSettings, &'a Server)) -> Self {
        Self {
            file,
            project: scope.0,
            environment: scope.1,
            instance: None,
            release: None,
            settings: cluster.0,
            server: cluster.1,
            images: BTreeMap::new(),
            secret_versions: BTreeMap::new(),
            running_replicas: BTreeMap::new(),
        }
    }
}

/// An application in its context.
pub(super) struct View<'a> {
    pub(super) application: &'a Application,
    pub(super) context: &'a Context<'a>,
    pub(super) names: Names,
}

impl<'a> View<'a> {
    pub(super) fn new(application: &'a Application, context: &'a Context<'a>) -> Self {
        let names = Names::new((context.project, context.environment, &application.name), context.instance);
        Self { application, context, names }
    }

    pub(super) fn object(&self, service: Option<&str>, value: Value) -> Object {
        Object { service: service.map(str::to_owned), value: super::without_nulls(value) }
    }

    /// The parts of a grant's scope that name a service.
    pub(super) fn path<'s>(&'s self, service: &'s str) -> [&'s str; 4] {
        [self.context.project, self.context.environment, &self.application.name, service]
    }

    /// `metadata` of an object of the namespace; of a service, when one is named.
    pub(super) fn metadata(&self, name: &str, service: Option<&str>) -> Value {
        json!({ "name": name, "namespace": self.names.namespace, "labels": self.names.labels(service) })
    }

    /// `metadata` of what a release replaces as a whole: with the release's annotations.
    pub(super) fn released(&self, name: &str, service: Option<&str>) -> Value {
        let annotations = self.release_annotations();
        json!({
            "name": name,
            "namespace": self.names.namespace,
            "labels": self.names.labels(service),
            "annotations": if annotations.is_empty() { Value::Null } else { json!(annotations) },
        })
    }

    pub(super) fn release_annotations(&self) -> BTreeMap<String, String> {
        let of = |release: &Release| {
            BTreeMap::from([
                (names::ANNOTATION_TARGET.to_owned(), release.target.clone()),
                (names::ANNOTATION_RELEASE.to_owned(), release.number.to_string()),
                (names::ANNOTATION_REVISION.to_owned(), release.revision.clone()),
                (names::ANNOTATION_MANIFEST.to_owned(), release.manifest.clone()),
            ])
        };
        self.context.release.map(of).unwrap_or_default()
    }

    /// The reference that is applied.
    pub(super) fn image<'s>(&'s self, written: &'s str) -> &'s str {
        self.context.images.get(written).map_or(written, String::as_str)
    }

    /// Where a patch of a service stands, and whether patches are granted.
    pub(super) fn patch_place(&self, service: &str, kind: patch::Kind) -> patch::Place {
        patch::Place {
            key: format!("services.{service}.kubernetes.{}", kind.word()),
            kind,
            is_granted: self.context.settings.grants.kubernetes_patches,
        }
    }
}

//! The rule table: every rule in the order in which it is looked at, beside the section of the rule
//! book that states it.
//!
//! A rule is a function from what stands in the file to findings; it sees the whole application and
//! changes nothing. All rules run, so that one look shows everything.

mod counts;
mod document;
mod environment;
mod exposure;
mod jobs;
mod mounts;
mod network;
mod ports;
mod preview;
mod process;
mod scaling;
mod sessions;
mod sidecars;
mod storage;
mod wiring;

pub(super) use process::size_of;
pub(super) use storage::groups as placement_groups;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::raw::{Map, RawApplication, RawService};
use crate::model::document::{KeyPath, Refusal};

/// One thing that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The rule's name in [`RULES`].
    pub(super) rule: &'static str,
    pub(super) path: KeyPath,
    /// Whether the key itself is meant, not its value.
    pub(super) on_key: bool,
    pub(super) refusal: Refusal,
}

/// A rule of the table.
pub(super) struct Rule {
    /// Section of the rule book.
    pub(super) section: &'static str,
    /// What it is called in tests.
    pub(super) name: &'static str,
    check: Check,
}

enum Check {
    /// Looked at once.
    Application(fn(&App<'_>)),
    /// Looked at for each service, by name.
    Service(fn(&One<'_>)),
}

const fn app(section: &'static str, name: &'static str, check: fn(&App<'_>)) -> Rule {
    Rule { section, name, check: Check::Application(check) }
}

const fn each(section: &'static str, name: &'static str, check: fn(&One<'_>)) -> Rule {
    Rule { section, name, check: Check::Service(check) }
}

/// Every rule, in the order of the rule book's section 25.
pub(super) const RULES: &[Rule] = &[
    app("1", "env-file-is-imported", document::env_file),
    app("1.3", "recovery", document::recovery),
    app("1.1", "schema-version", document::schema_version),
    app("1.1", "name", document::name),
    app("2", "services", document::services),
    each("1.2", "service-name", document::service_name),
    each("26", "actions", document::actions),
    app("5.1", "domains", exposure::domains),
    app("8", "networks", network::networks),
    app("6.2", "shared-secrets", environment::shared_secrets),
    app("6.1", "shared-env", environment::shared_env),
    each("22", "session", sessions::session),
    each("22", "session-needs", sessions::needs),
    each("22", "session-excludes", sessions::excludes),
    each("22", "session-proxy", sessions::egress_proxy),
    each("20", "certificate-mounts", mounts::certificates),
    each("21", "resource-names", process::resource_names),
    each("21", "container-daemon", process::container_daemon),
    each("21", "runtime-profile", process::runtime_profile),
    each("13", "restart-nonce", process::restart_nonce),
    each("5.3", "tls", exposure::tls),
    each("5.4", "backend-http2", exposure::backend_http2),
    each("5.5", "ingress-timeout", exposure::ingress_timeout),
    each("5.6", "custom-hostnames", exposure::custom_hostnames),
    each("24", "kubernetes", exposure::kubernetes),
    each("3", "image", process::image),
    each("4", "port", ports::primary),
    each("4", "public", ports::public),
    each("4", "ports", ports::extra),
    each("10", "size", process::size),
    each("10", "resources", process::resources),
    each("11", "suspended", scaling::suspended),
    each("11", "replicas", scaling::replicas),
    each("12", "healthcheck", process::healthcheck),
    each("12", "startup-timeout", process::startup_timeout),
    each("12", "update-strategy", process::update_strategy),
    each("12", "termination-grace", process::termination_grace),
    each("6.1", "env", environment::env),
    each("6.1", "effective-env", environment::effective_env),
    each("6.2", "secrets", environment::secrets),
    each("6.3", "reserved-env", environment::reserved),
    each("13", "command", process::command),
    each("13", "working-dir", process::working_dir),
    each("8", "service-networks", network::memberships),
    each("9", "depends-on", network::depends_on),
    each("8.2", "private-egress", network::private_egress),
    each("11", "autoscaling", scaling::autoscaling),
    each("19", "serverless", scaling::serverless),
    each("14", "mount-counts", mounts::counts),
    each("15", "mounts", mounts::named),
    each("15", "temporary-mounts", mounts::temporary),
    each("14", "protected-directories", mounts::protected),
    each("14", "reserved-directories", mounts::reserved),
    each("14", "mount-overlaps", mounts::overlaps),
    each("13", "architecture", process::architecture),
    each("13", "user-and-groups", process::users),
    each("15", "volume", storage::volume),
    each("13", "gpu", scaling::gpu),
    each("18", "job", jobs::job),
    each("18", "job-excludes", jobs::excludes),
    each("18", "job-schedule", jobs::schedule),
    each("18", "job-invocation", jobs::invocation),
    each("16", "files", mounts::files),
    each("23", "sidecars", sidecars::sidecars),
    app("15", "named-volumes", storage::named),
    app("15", "storage-totals", storage::totals),
    app("15", "claim-names", storage::claim_names),
    app("15", "shared-volume-groups", storage::shared_groups),
    app("15", "shared-volume-placement", storage::placement),
    each("17", "bindings", wiring::bindings),
    each("17", "client-profiles", wiring::client_profiles),
    each("8.1", "network-access", network::access),
    each("5.2", "http", exposure::http),
    app("5.2", "http-names", exposure::http_names),
    each("12", "readiness", ports::readiness),
    each("5.7", "public-tcp", ports::public_tcp),
    app("5.7", "public-tcp-unique", ports::public_tcp_unique),
    app("9", "dependency-cycle", network::cycle),
];

/// What a preview must obey beside [`RULES`].
pub(super) const PREVIEW: &[Rule] = &[
    app("26", "preview-application", preview::application),
    each("26", "preview-service", preview::service),
    app("26", "preview-storage", preview::storage),
];

/// Runs rules over an application; `failed` are the paths of values that could not be read.
pub(super) fn check(raw: &RawApplication, failed: &BTreeSet<String>, rules: &[Rule]) -> Vec<Finding> {
    let none = Map::new();
    let sink = Sink { failed, rule: Cell::new(""), found: RefCell::new(Vec::new()) };
    let application = App { raw, services: raw.services.as_ref().unwrap_or(&none), sink: &sink };
    for rule in rules {
        sink.rule.set(rule.name);
        match rule.check {
            Check::Application(check) => check(&application),
            Check::Service(check) => application.each(|service| check(service)),
        }
    }
    sink.found.into_inner()
}

/// Where findings go.
pub(super) struct Sink<'a> {
    failed: &'a BTreeSet<String>,
    rule: Cell<&'static str>,
    found: RefCell<Vec<Finding>>,
}

/// The three answers of a refusal.
type Text = Cow<'static, str>;

impl Sink<'_> {
    fn note(&self, path: KeyPath, on_key: bool, refusal: Refusal) {
        if !self.is_failed(&path) {
            self.found.borrow_mut().push(Finding { rule: self.rule.get(), path, on_key, refusal });
        }
    }

    /// Whether the value, something around it or a member of it could not be read.
    fn is_failed(&self, path: &KeyPath) -> bool {
        if self.failed.is_empty() {
            return false;
        }
        let path = path.to_string();
        self.failed.iter().any(|failed| {
            let below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
            path.strip_prefix(failed.as_str()).is_some_and(below)
                || failed.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('['))
        })
    }
}

/// The application that a rule looks at.
pub(super) struct App<'a> {
    raw: &'a RawApplication,
    services: &'a Map<RawService>,
    sink: &'a Sink<'a>,
}

/// The service that a rule looks at.
pub(super) struct One<'a> {
    app: &'a App<'a>,
    name: &'a str,
    raw: &'a RawService,
}

impl<'a> App<'a> {
    fn at(&self, key: &str) -> KeyPath {
        KeyPath::default().key(key)
    }

    #[expect(clippy::too_many_arguments, reason = "the place and the three answers that every refusal has")]
    fn refuse(&self, path: KeyPath, what: impl Into<Text>, why: impl Into<Text>, fix: impl Into<Text>) {
        self.sink.note(path, false, Refusal::new(what, why, fix));
    }

    #[expect(clippy::too_many_arguments, reason = "the place and the three answers that every refusal has")]
    fn refuse_key(&self, path: KeyPath, what: impl Into<Text>, why: impl Into<Text>, fix: impl Into<Text>) {
        self.sink.note(path, true, Refusal::new(what, why, fix));
    }

    fn each(&'a self, mut look: impl FnMut(&One<'a>)) {
        for (name, raw) in self.services {
            look(&One { app: self, name, raw });
        }
    }

    fn one(&'a self, name: &'a str) -> Option<One<'a>> {
        self.services.get(name).map(|raw| One { app: self, name, raw })
    }
}

impl<'a> One<'a> {
    fn path(&self) -> KeyPath {
        self.app.at("services").key(self.name)
    }

    fn at(&self, field: &str) -> KeyPath {
        self.path().key(field)
    }

    /// Refuses a field of the service.
    #[expect(clippy::too_many_arguments, reason = "the place and the three answers that every refusal has")]
    fn refuse(&self, field: &str, what: impl Into<Text>, why: impl Into<Text>, fix: impl Into<Text>) {
        self.app.refuse(self.at(field), what, why, fix);
    }

    /// Whether the field is there but could not be read, so that its absence means nothing.
    fn is_failed(&self, field: &str) -> bool {
        self.app.sink.is_failed(&self.at(field))
    }

    /// Whether there is a primary port, as far as can be told.
    fn has_port(&self) -> bool {
        self.raw.port != 0 || self.is_failed("port")
    }

    fn is_public(&self) -> bool {
        self.raw.public || self.is_failed("public")
    }

    /// Networks as they will be: `default` when none is named, none for a session.
    fn networks(&self) -> Vec<&'a str> {
        match &self.raw.networks {
            _ if self.raw.session.is_some() => Vec::new(),
            Some(networks) => networks.iter().map(String::as_str).collect(),
            None => vec![crate::model::hakopod::DEFAULT_NETWORK],
        }
    }

    fn is_persistent(&self) -> bool {
        self.raw.volume.is_some() || !self.raw.mounts.is_empty()
    }

    /// Holds a number to its bounds; 0 is "not set".
    fn range(&self, path: KeyPath, value: i64, bounds: RangeInclusive<i64>) {
        if value != 0 && !bounds.contains(&value) {
            self.app.refuse(
                path,
                format!("must be between {} and {}", bounds.start(), bounds.end()),
                "the schema bounds it",
                "choose a number inside these bounds, or leave it out for the default",
            );
        }
    }

    /// Like [`One::range`], where 0 or nothing is refused too.
    fn needed(&self, path: KeyPath, value: i64, bounds: RangeInclusive<i64>) {
        if !bounds.contains(&value) {
            self.app.refuse(
                path,
                format!("must be between {} and {}", bounds.start(), bounds.end()),
                "it is required and has no default",
                "write a number inside these bounds",
            );
        }
    }

    /// Refuses each field that is set.
    fn exclude(&self, fields: &[(bool, &str)], what: &'static str, why: &'static str) {
        for (_, field) in fields.iter().filter(|(is_set, _)| *is_set) {
            self.refuse(field, what, why, "remove it, or move it to a service of another kind");
        }
    }
}

impl RawService {
    fn is_job(&self) -> bool {
        self.job.is_some()
    }

    /// A job that does not run once with each release.
    fn is_started_elsewhere(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.schedule.is_some() || job.invocation.is_some())
    }
}

//! What the cluster's settings or its server do not offer: refused when planned, naming the setting.
//!
//! Source: Hakopod TOML schema v1, plan-time rules; rulings 11, 50 and 53.

use super::context::{OLDEST_MINOR, View};
use super::{autoscaler, ingress, job, policy, probe, quota};
use crate::model::Problem;
use crate::model::cluster::{DnsPeer, IngressDialect};
use crate::model::hakopod::Service;

/// One refusal: the field below the service, what, why, what to do.
struct Refusal<'r>(&'r str, &'r str, String, String);

/// Everything that keeps an application out of this cluster.
pub(super) fn problems(view: &View<'_>) -> Vec<Problem> {
    let mut list = server(view);
    list.extend(quota::problems(view));
    for (name, service) in &view.application.services {
        let groups =
            [never(service), granted(view, name, service), networks(view, name, service), exposed(view, service)];
        let refusals = groups.into_iter().flatten().chain(domains(view, name)).chain(certificates(view, name, service));
        list.extend(refusals.map(|Refusal(field, what, why, fix)| Problem {
            place: None,
            key: format!("services.{name}.{field}"),
            message: format!("services.{name}.{field} {what}"),
            why,
            fix,
        }));
    }
    list
}

/// What no setting of a cluster turns on in this version.
fn never(service: &Service) -> Vec<Refusal<'static>> {
    let job = service.job.as_ref();
    let wanted = [
        ("serverless", service.serverless.is_some(), "an activation gateway"),
        ("session", service.session.is_some(), "sandbox sessions"),
        ("aws_identity", service.aws_identity.is_some(), "AWS workload identities"),
        ("container_daemon", service.container_daemon.is_some(), "container daemons"),
        ("custom_hostnames", service.custom_hostnames.is_some(), "custom host names of tenants"),
        ("public_tcp", !service.public_tcp.is_empty(), "public TCP ports"),
        ("runtime_profile", service.runtime_profile.is_some(), "runtime profiles"),
        ("database_client_profiles", !service.database_client_profiles.is_empty(), "database client profiles"),
        ("job.invocation", job.is_some_and(|job| job.invocation.is_some()), "jobs that callers start"),
    ];
    let asked = wanted.into_iter().filter(|(_, is_asked, _)| *is_asked);
    asked
        .map(|(field, _, offer)| {
            let why = format!("it needs {offer}, and `grants` of a cluster has no such key in this version");
            Refusal(field, "is not offered by this cluster", why, format!("remove `{field}`"))
        })
        .collect()
}

/// What `grants` turns on.
fn granted(view: &View<'_>, name: &str, service: &Service) -> Vec<Refusal<'static>> {
    let settings = view.context.settings;
    let mut list = Vec::new();
    let mut need = |field: &'static str, key: &str, example: &str| {
        let key = settings.key(&format!("grants.{key}"));
        let why = format!("it is the operator's to give, and {key} does not");
        list.push(Refusal(field, "is not granted", why, format!("set {key}, for example `{example}`")));
    };
    if service.gpu.is_some() && !settings.grants.gpu {
        need("gpu", "gpu", "gpu = true");
    }
    if service.kubernetes.is_some() && !settings.grants.kubernetes_patches {
        need("kubernetes", "kubernetes_patches", "kubernetes_patches = true");
    }
    if probe::needs_helper(service) && settings.grants.probe_image.is_none() {
        need("readiness", "probe_image", "probe_image = \"registry.example.org/probe@sha256:…\"");
    }
    for destination in &service.private_egress {
        let grant = settings.grants.private_egress.get(destination);
        if !grant.is_some_and(|grant| grant.to.reaches(&view.path(name))) {
            let example = "cidrs = [\"10.1.2.0/24\"], ports = [5432], to = [\"project/environment\"]";
            need("private_egress", &format!("private_egress.{destination}"), example);
        }
    }
    list
}

/// Segments that other applications share.
fn networks(view: &View<'_>, name: &str, service: &Service) -> Vec<Refusal<'static>> {
    let settings = view.context.settings;
    let joined = service.networks.iter().filter_map(|network| view.application.networks.get(network));
    let pairs = joined.filter_map(|network| Some((network.virtual_network.as_ref()?, network.segment.as_ref()?)));
    let refused = pairs.filter_map(|(network, segment)| {
        let grant = format!("{network}/{segment}");
        let is_granted = settings.grants.networks.get(&grant).is_some_and(|to| to.reaches(&view.path(name)));
        let key = settings.key(&format!("grants.networks.\"{grant}\""));
        (!is_granted).then(|| {
            let why = format!("a segment is shared by applications that the operator names in {key}");
            Refusal(
                "networks",
                "joins a shared segment that is not granted",
                why,
                format!("add this application to {key}"),
            )
        })
    });
    refused.collect()
}

/// What the way in from outside needs.
fn exposed(view: &View<'_>, service: &Service) -> Vec<Refusal<'static>> {
    let settings = view.context.settings;
    let mut list = Vec::new();
    if (service.public || ingress::is_certificate_only(service)) && settings.app_domain.is_none() {
        let key = settings.key("app_domain");
        let fix = format!("set {key}, for example `app_domain = \"apps.example.org\"`");
        list.push(Refusal("public", "has no host name", format!("names lie below {key}, which is not set"), fix));
    }
    let key = settings.key("ingress_dialect");
    if service.ingress_timeout_seconds.is_some() && settings.ingress_dialect == IngressDialect::Traefik {
        let why = format!("{key} is traefik, which takes timeouts from its own configuration only");
        list.push(Refusal("ingress_timeout_seconds", "cannot be set here", why, "remove it".to_owned()));
    }
    let schedule = service.job.as_ref().and_then(|job| job.schedule.as_ref());
    if let Some(schedule) = schedule {
        let server = view.context.server;
        if schedule.timezone != "UTC" && !server.knows_time_zones() {
            let why = format!("Kubernetes 1.{} knows no time zones on schedules", server.minor);
            let fix = "write the schedule in UTC and remove `timezone`, or use Kubernetes 1.25 or newer".to_owned();
            list.push(Refusal("job.schedule.timezone", "cannot be kept", why, fix));
        }
    }
    list
}

/// Custom host names are the operator's to give.
fn domains(view: &View<'_>, name: &str) -> Vec<Refusal<'static>> {
    let settings = view.context.settings;
    let own = view.application.domains.iter().filter(|(_, to)| to.as_str() == name);
    let refused = own.filter(|(host, _)| !settings.grants_domain(host, &view.path(name)));
    refused
        .map(|(host, _)| {
            let key = settings.key(&format!("grants.domains.\"{host}\""));
            let why = format!("{host} is mapped to it, and no zone of {} holds it", settings.key("grants.domains"));
            Refusal(
                "public",
                "has a custom host name that is not granted",
                why,
                format!("add {key} or a zone above it"),
            )
        })
        .collect()
}

/// A certificate that follows the ingress needs one there, for a host of the service.
fn certificates(view: &View<'_>, name: &str, service: &Service) -> Vec<Refusal<'static>> {
    let mut followed = service.certificate_mounts.iter().filter(|mount| mount.source.is_some()).peekable();
    let mut list = Vec::new();
    if followed.peek().is_some() && ingress::issuer(view, service).is_none() && ingress::uploaded(service).is_none() {
        let key = view.context.settings.key("issuer");
        let why = format!("the service's ingress has no certificate: it names none, and {key} is not set");
        list.push(Refusal("certificate_mounts", "has nothing to follow", why, format!("set `tls`, or {key}")));
    }
    let mut hosts = ingress::hosts(view, name, service);
    if ingress::is_certificate_only(service) {
        hosts.truncate(1);
    }
    let is_missing = |host: &str| !hosts.is_empty() && !hosts.iter().any(|(known, _)| known == host);
    list.extend(followed.filter(|mount| is_missing(&mount.hostname)).map(|mount| {
        let why = format!("the ingress's certificate covers the service's own hosts, and {} is none", mount.hostname);
        let fix = hosts.first().map(|(host, _)| format!("use {host}, or upload a certificate")).unwrap_or_default();
        Refusal("certificate_mounts", "names a host that the ingress does not have", why, fix)
    }));
    list
}

/// What the server itself lacks.
fn server(view: &View<'_>) -> Vec<Problem> {
    let server = view.context.server;
    let mut list = Vec::new();
    let mut note = |message: String, why: &str, fix: String| {
        list.push(Problem { place: None, key: String::new(), message, why: why.to_owned(), fix });
    };
    if server.minor < OLDEST_MINOR {
        let why = "server-side apply and Ingress v1 are complete since then";
        note(format!("Kubernetes 1.{} is too old", server.minor), why, format!("use 1.{OLDEST_MINOR} or newer"));
    }
    let services = || view.application.services.values();
    if services().any(|one| one.autoscaling.is_some())
        && server.first(autoscaler::KIND, &autoscaler::VERSIONS).is_none()
    {
        let why = "a service scales, and the server serves no version of it that is known";
        note("the cluster has no HorizontalPodAutoscaler".to_owned(), why, "remove `autoscaling`".to_owned());
    }
    let is_scheduled = |one: &Service| one.job.as_ref().is_some_and(|job| job.schedule.is_some());
    if services().any(is_scheduled) && server.first(job::CRON_JOB, &job::CRON_VERSIONS).is_none() {
        let why = "a job has a schedule, and the server serves no version of it that is known";
        note("the cluster has no CronJob".to_owned(), why, "remove `job.schedule`".to_owned());
    }
    let peers = policy::dns_peers(view).into_iter().filter_map(|peer| match peer {
        DnsPeer::Pods { namespace, .. } => Some(namespace),
        DnsPeer::Network(_) => None,
    });
    let is_exposed = services().any(|one| one.public);
    let mut selected: Vec<String> =
        peers.chain(is_exposed.then(|| policy::controller_namespace(view).to_owned())).collect();
    selected.sort();
    selected.dedup();
    for namespace in selected.iter().filter(|namespace| !server.selects_by_name(namespace)) {
        let why = "policies select it by that label, which servers set by themselves from 1.21 on";
        let fix = format!("run: kubectl label namespace {namespace} kubernetes.io/metadata.name={namespace}");
        note(format!("the namespace {namespace} has no label kubernetes.io/metadata.name"), why, fix);
    }
    list
}

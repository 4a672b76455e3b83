//! From a file that breaks no rule to its normal form: defaults written out, sets in order.
//!
//! Source: rule book, section 25.

use std::collections::BTreeMap;

use super::form::masked_cidr;
use super::raw::{
    Map, RawApplication, RawBinding, RawCertificateMount, RawFile, RawJob, RawKubernetes, RawMount, RawNetworkAccess,
    RawPort, RawPublicTcp, RawReadiness, RawResources, RawSecretRef, RawServerless, RawService, RawSession, RawSidecar,
    RawTemporaryMount, RawTls, RawVolume,
};
use super::rules::{placement_groups, size_of};
use crate::model::hakopod::{
    AccessMode, Application, Architecture, Autoscaling, Binding, BindingProtocol, CertificateMount, CertificateSource,
    CustomHostnames, DEFAULT_NETWORK, DEFAULT_USER, ExtraPort, Gpu, HttpEndpoint, Invocation, IssuerKind, Job,
    KubernetesPatches, Mount, NamedVolume, Network, NetworkAccess, OnFailure, PortProtocol, PublicTcp, Readiness,
    ReadinessProtocol, Recovery, Resources, Schedule, SecretRef, Serverless, Service, ServiceFile, ServiceVolume,
    Session, Sidecar, TemporaryMount, Tls, UpdateStrategy,
};

/// The mode of a file that names none: 0444.
const DEFAULT_MODE: u32 = 292;

/// A number that a rule has bounded; 0 means `default`.
fn number<T: TryFrom<i64> + Copy>(value: impl Into<i64>, default: T) -> T {
    match value.into() {
        0 => default,
        given => T::try_from(given).unwrap_or(default),
    }
}

fn optional_number<T: TryFrom<i64>>(value: impl Into<i64>) -> Option<T> {
    Some(value.into()).filter(|value| *value != 0).and_then(|value| T::try_from(value).ok())
}

fn optional(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort_unstable();
    list
}

fn each<T, U>(map: Map<T>, form: impl Fn(T) -> U) -> BTreeMap<String, U> {
    map.into_iter().map(|(key, value)| (key, form(value))).collect()
}

/// The normal form of an application that breaks no rule.
pub(super) fn application(mut raw: RawApplication) -> Application {
    agree(&mut raw);
    let mut networks = each(raw.networks, |network| Network {
        internal: network.internal,
        virtual_network: optional(network.virtual_network),
        segment: optional(network.segment),
    });
    networks.entry(DEFAULT_NETWORK.to_owned()).or_default();
    let is_disabled = raw.recovery.is_some_and(|recovery| recovery.on_failure == "disabled");
    Application {
        schema_version: 1,
        name: raw.name,
        inject_env: raw.inject_env.unwrap_or_default(),
        recovery: Recovery { on_failure: if is_disabled { OnFailure::Disabled } else { OnFailure::Safe } },
        env: raw.env,
        secrets: each(raw.secrets, secret),
        domains: raw.domains,
        networks,
        volumes: each(raw.volumes, |volume| NamedVolume {
            size_gib: number(volume.size_gib, 1),
            storage_class: optional(volume.storage_class),
            access_mode: match volume.access_mode.as_str() {
                "ReadWriteMany" => AccessMode::ReadWriteMany,
                _ => AccessMode::ReadWriteOnce,
            },
        }),
        services: each(raw.services.unwrap_or_default(), service),
    }
}

/// Copies the node and the architecture that a group agrees on to every member.
fn agree(raw: &mut RawApplication) {
    let mut agreed: Vec<(Vec<String>, String, String)> = Vec::new();
    if let Some(services) = &raw.services {
        for group in placement_groups(raw, services) {
            let first = |field: fn(&RawService) -> &String| {
                let values = group.iter().filter_map(|name| services.get(*name)).map(field);
                values.into_iter().find(|text| !text.is_empty()).cloned().unwrap_or_default()
            };
            let node = first(|service| &service.node_name);
            let architecture = first(|service| &service.architecture);
            agreed.push((group.iter().map(|name| (*name).to_owned()).collect(), node, architecture));
        }
    }
    for (group, node, architecture) in agreed {
        for (_, service) in raw.services.iter_mut().flatten().filter(|(name, _)| group.contains(name)) {
            service.node_name.clone_from(&node);
            service.architecture.clone_from(&architecture);
        }
    }
}

#[expect(clippy::too_many_lines, reason = "one line a field, and a service has fifty")]
fn service(raw: RawService) -> Service {
    let is_regular = raw.job.is_none() && raw.session.is_none();
    let user = number(raw.run_as_user, DEFAULT_USER);
    let autoscaling = raw.autoscaling.map(|scaling| Autoscaling {
        min_replicas: number(scaling.min_replicas, 1),
        max_replicas: number(scaling.max_replicas, 1),
        target_cpu: number(scaling.target_cpu, 70),
    });
    let update_strategy = match raw.update_strategy.as_str() {
        "recreate" => UpdateStrategy::Recreate,
        _ => UpdateStrategy::Rolling,
    };
    Service {
        image: raw.image,
        port: optional_number(raw.port),
        ports: ports(raw.ports),
        public: raw.public,
        http: each(raw.http, |endpoint| HttpEndpoint {
            port: number(endpoint.port, 0),
            domain: optional(endpoint.domain),
        }),
        tls: raw.tls.map(tls),
        backend_http2: raw.backend_http2,
        ingress_timeout_seconds: optional_number(raw.ingress_timeout_seconds),
        custom_hostnames: raw.custom_hostnames.map(|table| CustomHostnames {
            enabled: table.enabled,
            max: number(table.max, 1000),
            target: optional(table.target),
        }),
        public_tcp: public_tcp(raw.public_tcp),
        certificate_mounts: raw.certificate_mounts.into_iter().map(certificate_mount).collect(),
        env: raw.env,
        secrets: each(raw.secrets, secret),
        bindings: each(raw.bindings, binding),
        database_client_profiles: raw.database_client_profiles,
        command: raw.command,
        args: raw.args,
        working_dir: optional(raw.working_dir),
        size: size_of(&raw.size).unwrap_or_default(),
        resources: resources(&raw.resources),
        replicas: autoscaling.map_or_else(|| number(raw.replicas, 1), |scaling| scaling.min_replicas),
        autoscaling,
        suspended: raw.suspended,
        healthcheck: optional(raw.healthcheck),
        startup_timeout_seconds: optional_number(raw.startup_timeout_seconds),
        readiness: raw.readiness.map(readiness),
        update_strategy: is_regular.then_some(update_strategy),
        termination_grace_seconds: number(raw.termination_grace_seconds, 30),
        restart_nonce: optional(raw.restart_nonce),
        depends_on: sorted(raw.depends_on),
        networks: match raw.networks {
            _ if raw.session.is_some() => Vec::new(),
            None => vec![DEFAULT_NETWORK.to_owned()],
            Some(networks) => sorted(networks),
        },
        network_access: raw.network_access.map(network_access),
        private_egress: sorted(raw.private_egress),
        architecture: match raw.architecture.as_str() {
            "amd64" => Some(Architecture::Amd64),
            "arm64" => Some(Architecture::Arm64),
            _ => None,
        },
        node_name: optional(raw.node_name),
        gpu: raw.gpu.map(|gpu| Gpu { count: number(gpu.count, 1) }),
        run_as_user: user,
        run_as_group: number(raw.run_as_group, user),
        fs_group: number(raw.fs_group, user),
        read_only_root_filesystem: raw.read_only_root_filesystem,
        registry_credential: optional(raw.registry_credential),
        aws_identity: optional(raw.aws_identity),
        container_daemon: optional(raw.container_daemon),
        runtime_profile: optional(raw.runtime_profile),
        volume: raw.volume.map(volume),
        sidecars: raw.sidecars.into_iter().map(|sidecar| self::sidecar(sidecar, &raw.temporary_mounts)).collect(),
        mounts: raw.mounts.into_iter().map(mount).collect(),
        temporary_mounts: raw.temporary_mounts.iter().map(temporary_mount).collect(),
        files: each(raw.files, file),
        job: raw.job.map(job),
        serverless: raw.serverless.as_ref().map(serverless),
        session: raw.session.map(session),
        kubernetes: kubernetes(raw.kubernetes),
    }
}

fn secret(raw: RawSecretRef) -> SecretRef {
    if raw.name.is_empty() {
        SecretRef::Provider { provider: raw.provider, key: raw.key, path: optional(raw.path) }
    } else {
        SecretRef::Own { name: raw.name }
    }
}

fn ports(raw: Vec<RawPort>) -> Vec<ExtraPort> {
    let port = |port: RawPort| ExtraPort {
        protocol: if port.transport() == "UDP" { PortProtocol::Udp } else { PortProtocol::Tcp },
        target_port: number(port.target_port, number(port.port, 0)),
        port: number(port.port, 0),
        name: port.name,
    };
    let mut ports: Vec<ExtraPort> = raw.into_iter().map(port).collect();
    ports.sort_by(|one, other| one.name.cmp(&other.name));
    ports
}

fn public_tcp(raw: Vec<RawPublicTcp>) -> Vec<PublicTcp> {
    let listener = |listener: RawPublicTcp| PublicTcp {
        port: number(listener.port, 0),
        target_port: number(listener.target_port, 0),
        source_cidrs: sorted(listener.source_cidrs.iter().filter_map(|cidr| masked_cidr(cidr)).collect()),
    };
    let mut listeners: Vec<PublicTcp> = raw.into_iter().map(listener).collect();
    listeners.sort_by_key(|listener| listener.port);
    listeners
}

fn tls(raw: RawTls) -> Tls {
    let issuer_kind = match raw.issuer_kind.as_str() {
        "Issuer" => IssuerKind::Issuer,
        _ => IssuerKind::ClusterIssuer,
    };
    let issuer = optional(raw.issuer);
    Tls { certificate: optional(raw.certificate), issuer_kind: issuer.as_ref().map(|_| issuer_kind), issuer }
}

fn certificate_mount(raw: RawCertificateMount) -> CertificateMount {
    CertificateMount {
        certificate: optional(raw.certificate),
        source: (raw.source == "ingress").then_some(CertificateSource::Ingress),
        hostname: raw.hostname,
        mount_path: raw.mount_path,
    }
}

fn binding(raw: RawBinding) -> Binding {
    let protocol = BindingProtocol::WORDS.iter().find(|(word, _)| *word == raw.protocol);
    Binding {
        service: raw.service,
        protocol: protocol.map_or(BindingProtocol::Http, |(_, protocol)| *protocol),
        database: optional(raw.database),
        username: optional(raw.username),
        password: raw.password.map(secret),
    }
}

fn resources(raw: &RawResources) -> Option<Resources> {
    let resources = Resources {
        cpu_request: raw.cpu_request.parse().ok(),
        cpu_limit: raw.cpu_limit.parse().ok(),
        memory_request: raw.memory_request.parse().ok(),
        memory_limit: raw.memory_limit.parse().ok(),
    };
    Some(resources).filter(|resources| *resources != Resources::default())
}

fn readiness(raw: RawReadiness) -> Readiness {
    Readiness {
        protocol: match raw.protocol.as_str() {
            "smtp" => ReadinessProtocol::Smtp,
            "smtp_starttls" => ReadinessProtocol::SmtpStarttls,
            _ => ReadinessProtocol::Tcp,
        },
        port: number(raw.port, 0),
        tls_server_name: optional(raw.tls_server_name),
        tls_ca_file: optional(raw.tls_ca_file),
        period_seconds: number(raw.period_seconds, 5),
        timeout_seconds: number(raw.timeout_seconds, 3),
        failure_threshold: number(raw.failure_threshold, 3),
    }
}

fn network_access(raw: RawNetworkAccess) -> NetworkAccess {
    NetworkAccess { from: sorted(raw.from), from_applications: sorted(raw.from_applications) }
}

fn volume(raw: RawVolume) -> ServiceVolume {
    ServiceVolume {
        mount_path: raw.mount_path,
        size_gib: number(raw.size_gib, 1),
        storage_class: optional(raw.storage_class),
    }
}

fn mount(raw: RawMount) -> Mount {
    Mount { volume: raw.volume, mount_path: raw.mount_path, read_only: raw.read_only, sub_path: optional(raw.sub_path) }
}

fn temporary_mount(raw: &RawTemporaryMount) -> TemporaryMount {
    TemporaryMount { mount_path: raw.mount_path.clone(), size_mib: number(raw.size_mib, 1), memory: raw.memory }
}

fn file(raw: RawFile) -> ServiceFile {
    ServiceFile {
        mount_path: raw.mount_path,
        content: raw.content,
        secret: raw.secret.map(secret),
        mode: number(raw.mode, DEFAULT_MODE),
    }
}

fn job(raw: RawJob) -> Job {
    Job {
        timeout_seconds: number(raw.timeout_seconds, 300),
        retries: number(raw.retries, 0),
        schedule: raw.schedule.map(|schedule| Schedule {
            cron: schedule.cron.split_whitespace().collect::<Vec<_>>().join(" "),
            timezone: or(schedule.timezone, "UTC"),
            history_limit: number(schedule.history_limit, 1),
        }),
        invocation: raw.invocation.map(|invocation| Invocation {
            allowed_identities: invocation.allowed_identities,
            input_keys: invocation.input_keys,
            max_input_bytes: number(invocation.max_input_bytes, 65536),
            queue_limit: number(invocation.queue_limit, 16),
        }),
    }
}

fn serverless(raw: &RawServerless) -> Serverless {
    Serverless {
        min_replicas: number(raw.min_replicas, 0),
        idle_seconds: number(raw.idle_seconds, 300),
        startup_timeout_seconds: number(raw.startup_timeout_seconds, 60),
        request_timeout_seconds: number(raw.request_timeout_seconds, 60),
        max_concurrency: number(raw.max_concurrency, 16),
    }
}

fn session(raw: RawSession) -> Session {
    Session {
        allowed_identities: raw.allowed_identities,
        helper_command: raw.helper_command,
        ready_command: raw.ready_command,
        idle_seconds: number(raw.idle_seconds, 900),
        lifetime_seconds: number(raw.lifetime_seconds, 3600),
        egress_proxy: optional(raw.egress_proxy),
    }
}

fn kubernetes(raw: RawKubernetes) -> Option<KubernetesPatches> {
    let patches = KubernetesPatches {
        deployment: optional(raw.deployment),
        service: optional(raw.service),
        ingress: optional(raw.ingress),
    };
    Some(patches).filter(|patches| *patches != KubernetesPatches::default())
}

fn sidecar(raw: RawSidecar, scratch: &[RawTemporaryMount]) -> Sidecar {
    let own = |mount: &RawTemporaryMount| {
        temporary_mount(scratch.iter().find(|own| own.mount_path == mount.mount_path).unwrap_or(mount))
    };
    Sidecar {
        name: raw.name,
        image: raw.image,
        command: raw.command,
        args: raw.args,
        env: raw.env,
        secrets: each(raw.secrets, secret),
        size: size_of(&raw.size).unwrap_or_default(),
        resources: resources(&raw.resources),
        read_only_root_filesystem: raw.read_only_root_filesystem,
        working_dir: optional(raw.working_dir),
        mounts: raw.mounts.into_iter().map(mount).collect(),
        temporary_mounts: raw.temporary_mounts.iter().map(own).collect(),
    }
}

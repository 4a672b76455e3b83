//! What stands in the file, read with strict types and nothing decided yet.
//!
//! A key that is missing, `0`, `''` or an empty list is the type's default here, which is how the
//! schema says "not set"; only where it tells them apart is there an `Option`. Every value of a
//! wrong type is noted and remembered, so that no rule complains of it a second time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::document::{Refusal, Table, Value};

/// What went wrong while reading.
#[derive(Default)]
pub(super) struct Reading {
    failed: RefCell<BTreeSet<String>>,
}

impl Reading {
    /// The dotted paths of values that have a wrong type.
    pub(super) fn into_failed(self) -> BTreeSet<String> {
        self.failed.into_inner()
    }

    fn read<T: Field>(&self, value: &Value<'_>) -> T {
        T::read(value, self).unwrap_or_else(|| {
            self.failed.borrow_mut().insert(value.path().to_owned());
            T::default()
        })
    }
}

/// A type that a value of the file can have.
pub(super) trait Field: Default {
    /// The value, or nothing after noting why not.
    fn read(value: &Value<'_>, reading: &Reading) -> Option<Self>;
}

impl Field for String {
    fn read(value: &Value<'_>, _: &Reading) -> Option<Self> {
        value.text().map(str::to_owned)
    }
}

impl Field for bool {
    fn read(value: &Value<'_>, _: &Reading) -> Option<Self> {
        value.boolean()
    }
}

/// Why integers have widths.
const WIDTH: &str = "the schema gives this number a fixed width";

impl Field for i32 {
    fn read(value: &Value<'_>, _: &Reading) -> Option<Self> {
        value.integer(i64::from(i32::MIN)..=i64::from(i32::MAX), WIDTH)
    }
}

impl Field for i64 {
    fn read(value: &Value<'_>, _: &Reading) -> Option<Self> {
        value.integer(i64::MIN..=i64::MAX, WIDTH)
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Value<'_>, reading: &Reading) -> Option<Self> {
        T::read(value, reading).map(Some)
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(value: &Value<'_>, reading: &Reading) -> Option<Self> {
        Some(value.items()?.iter().map(|item| reading.read(item)).collect())
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    fn read(value: &Value<'_>, reading: &Reading) -> Option<Self> {
        let entries = value.table()?.entries();
        Some(entries.into_iter().map(|(key, value)| (key.to_owned(), reading.read(&value))).collect())
    }
}

/// `env_file`: one name or a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FileNames(pub(super) Vec<String>);

impl Field for FileNames {
    fn read(value: &Value<'_>, reading: &Reading) -> Option<Self> {
        if let Some(text) = value.as_text() {
            return Some(Self(vec![text.to_owned()]));
        }
        if value.as_items().is_none() {
            value.refuse(Refusal::new(
                format!("must be a string or an array of strings, not {}", value.kind()),
                "each key has one type, and nothing is converted",
                "write one file name or a list of them",
            ));
            return None;
        }
        Vec::read(value, reading).map(Self)
    }
}

/// A key that is known and not built: whatever stands there, it is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Present;

impl Field for Present {
    fn read(_: &Value<'_>, _: &Reading) -> Option<Self> {
        Some(Self)
    }
}

/// Declares a table: its keys, their types, and how it is read.
macro_rules! record {
    ($name:ident { $($field:ident: $kind:ty = $key:literal),* $(,)? }) => {
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub(super) struct $name {
            $(pub(super) $field: $kind,)*
        }

        impl $name {
            fn fields(table: &Table<'_>, reading: &Reading) -> Self {
                table.only_each(&[$($key),*]);
                Self { $($field: table.get($key).map(|value| reading.read(&value)).unwrap_or_default(),)* }
            }
        }

        impl Field for $name {
            fn read(value: &Value<'_>, reading: &Reading) -> Option<Self> {
                value.table().map(|table| Self::fields(&table, reading))
            }
        }
    };
}

/// Reads the whole file.
pub(super) fn read(root: &Table<'_>) -> (RawApplication, BTreeSet<String>) {
    let reading = Reading::default();
    let application = RawApplication::fields(root, &reading);
    (application, reading.into_failed())
}

pub(super) type Map<T> = BTreeMap<String, T>;

record!(RawApplication {
    schema_version: i64 = "schema_version",
    name: String = "name",
    services: Option<Map<RawService>> = "services",
    networks: Map<RawNetwork> = "networks",
    volumes: Map<RawNamedVolume> = "volumes",
    domains: Map<String> = "domains",
    inject_env: Option<bool> = "inject_env",
    env: Map<String> = "env",
    env_file: Option<FileNames> = "env_file",
    secrets: Map<RawSecretRef> = "secrets",
    recovery: Option<RawRecovery> = "recovery",
});
record!(RawRecovery { on_failure: String = "on_failure" });
record!(RawNetwork {
    internal: bool = "internal",
    virtual_network: String = "virtual_network",
    segment: String = "segment",
});
record!(RawNamedVolume {
    size_gib: i64 = "size_gib",
    storage_class: String = "storage_class",
    access_mode: String = "access_mode",
});
record!(RawSecretRef {
    name: String = "ref",
    provider: String = "provider",
    key: String = "key",
    path: String = "path",
});
record!(RawService {
    image: String = "image",
    port: i32 = "port",
    ports: Vec<RawPort> = "ports",
    public: bool = "public",
    public_tcp: Vec<RawPublicTcp> = "public_tcp",
    certificate_mounts: Vec<RawCertificateMount> = "certificate_mounts",
    aws_identity: String = "aws_identity",
    container_daemon: String = "container_daemon",
    size: String = "size",
    resources: RawResources = "resources",
    replicas: i32 = "replicas",
    suspended: bool = "suspended",
    healthcheck: String = "healthcheck",
    startup_timeout_seconds: i64 = "startup_timeout_seconds",
    readiness: Option<RawReadiness> = "readiness",
    update_strategy: String = "update_strategy",
    env: Map<String> = "env",
    env_file: Option<FileNames> = "env_file",
    command: Vec<String> = "command",
    args: Vec<String> = "args",
    depends_on: Vec<String> = "depends_on",
    job: Option<RawJob> = "job",
    files: Map<RawFile> = "files",
    bindings: Map<RawBinding> = "bindings",
    http: Map<RawHttp> = "http",
    ingress_timeout_seconds: i64 = "ingress_timeout_seconds",
    kubernetes: RawKubernetes = "kubernetes",
    backend_http2: bool = "backend_http2",
    custom_hostnames: Option<RawCustomHostnames> = "custom_hostnames",
    networks: Option<Vec<String>> = "networks",
    network_access: Option<RawNetworkAccess> = "network_access",
    autoscaling: Option<RawAutoscaling> = "autoscaling",
    architecture: String = "architecture",
    run_as_user: i64 = "run_as_user",
    run_as_group: i64 = "run_as_group",
    fs_group: i64 = "fs_group",
    read_only_root_filesystem: bool = "read_only_root_filesystem",
    working_dir: String = "working_dir",
    termination_grace_seconds: i64 = "termination_grace_seconds",
    registry_credential: String = "registry_credential",
    secrets: Map<RawSecretRef> = "secrets",
    volume: Option<RawVolume> = "volume",
    mounts: Vec<RawMount> = "mounts",
    temporary_mounts: Vec<RawTemporaryMount> = "temporary_mounts",
    session: Option<RawSession> = "session",
    sidecars: Vec<RawSidecar> = "sidecars",
    gpu: Option<RawGpu> = "gpu",
    tls: Option<RawTls> = "tls",
    restart_nonce: String = "restart_nonce",
    private_egress: Vec<String> = "private_egress",
    node_name: String = "node_name",
    serverless: Option<RawServerless> = "serverless",
    runtime_profile: String = "runtime_profile",
    database_client_profiles: Map<String> = "database_client_profiles",
    actions: Option<Present> = "actions",
});
record!(RawPort {
    name: String = "name",
    port: i32 = "port",
    target_port: i32 = "target_port",
    protocol: String = "protocol",
});
record!(RawPublicTcp {
    port: i32 = "port",
    target_port: i32 = "target_port",
    source_cidrs: Vec<String> = "source_cidrs",
});
record!(RawCertificateMount {
    certificate: String = "certificate",
    source: String = "source",
    hostname: String = "hostname",
    mount_path: String = "mount_path",
});
record!(RawResources {
    cpu_request: String = "cpu_request",
    cpu_limit: String = "cpu_limit",
    memory_request: String = "memory_request",
    memory_limit: String = "memory_limit",
});
record!(RawReadiness {
    protocol: String = "protocol",
    port: i32 = "port",
    tls_server_name: String = "tls_server_name",
    tls_ca_file: String = "tls_ca_file",
    period_seconds: i32 = "period_seconds",
    timeout_seconds: i32 = "timeout_seconds",
    failure_threshold: i32 = "failure_threshold",
});
record!(RawJob {
    timeout_seconds: i64 = "timeout_seconds",
    retries: i32 = "retries",
    schedule: Option<RawSchedule> = "schedule",
    invocation: Option<RawInvocation> = "invocation",
});
record!(RawSchedule { cron: String = "cron", timezone: String = "timezone", history_limit: i32 = "history_limit" });
record!(RawInvocation {
    allowed_identities: Vec<String> = "allowed_identities",
    input_keys: Vec<String> = "input_keys",
    max_input_bytes: i64 = "max_input_bytes",
    queue_limit: i64 = "queue_limit",
});
record!(RawFile {
    mount_path: String = "mount_path",
    content: Option<String> = "content",
    secret: Option<RawSecretRef> = "secret",
    mode: i32 = "mode",
});
record!(RawBinding {
    service: String = "service",
    protocol: String = "protocol",
    database: String = "database",
    username: String = "username",
    password: Option<RawSecretRef> = "password",
});
record!(RawHttp { port: i32 = "port", domain: String = "domain" });
record!(RawKubernetes { deployment: String = "deployment", service: String = "service", ingress: String = "ingress" });
record!(RawCustomHostnames { enabled: bool = "enabled", max: i64 = "max", target: String = "target" });
record!(RawNetworkAccess { from: Vec<String> = "from", from_applications: Vec<String> = "from_applications" });
record!(RawAutoscaling {
    min_replicas: i32 = "min_replicas",
    max_replicas: i32 = "max_replicas",
    target_cpu: i32 = "target_cpu",
});
record!(RawVolume {
    mount_path: String = "mount_path",
    size_gib: i64 = "size_gib",
    storage_class: String = "storage_class",
});
record!(RawMount {
    volume: String = "volume",
    mount_path: String = "mount_path",
    read_only: bool = "read_only",
    sub_path: String = "sub_path",
});
record!(RawTemporaryMount { mount_path: String = "mount_path", size_mib: i64 = "size_mib", memory: bool = "memory" });
record!(RawSession {
    allowed_identities: Vec<String> = "allowed_identities",
    helper_command: Vec<String> = "helper_command",
    ready_command: Vec<String> = "ready_command",
    idle_seconds: i64 = "idle_seconds",
    lifetime_seconds: i64 = "lifetime_seconds",
    egress_proxy: String = "egress_proxy",
});
record!(RawSidecar {
    name: String = "name",
    image: String = "image",
    command: Vec<String> = "command",
    args: Vec<String> = "args",
    env: Map<String> = "env",
    secrets: Map<RawSecretRef> = "secrets",
    size: String = "size",
    resources: RawResources = "resources",
    read_only_root_filesystem: bool = "read_only_root_filesystem",
    working_dir: String = "working_dir",
    mounts: Vec<RawMount> = "mounts",
    temporary_mounts: Vec<RawTemporaryMount> = "temporary_mounts",
});
record!(RawGpu { count: i32 = "count" });
record!(RawTls { certificate: String = "certificate", issuer: String = "issuer", issuer_kind: String = "issuer_kind" });
record!(RawServerless {
    min_replicas: i32 = "min_replicas",
    idle_seconds: i64 = "idle_seconds",
    startup_timeout_seconds: i64 = "startup_timeout_seconds",
    request_timeout_seconds: i64 = "request_timeout_seconds",
    max_concurrency: i64 = "max_concurrency",
});

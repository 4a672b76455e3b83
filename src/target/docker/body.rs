//! A specification as the engine's create request, and an inspected container as a specification.
//!
//! The two directions are each other's inverse: a container made from a specification reads back
//! as the same one, and whatever else was changed on it shows.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, HostConfig, PortBinding, RestartPolicy,
    RestartPolicyNameEnum,
};

use crate::model::Slot;
use crate::model::desired::ContainerSpec;
use crate::render::container::LABEL_PREFIX;

/// Names of the variables that are ours, comma-separated: the engine mixes them with the image's.
const LABEL_VARIABLES: &str = "run.trueup.variables";
/// The image's reference for people: the container itself is made from the pinned id.
const LABEL_IMAGE: &str = "run.trueup.image";
/// The only address that a port is published on.
const LOOPBACK: &str = "127.0.0.1";

/// The engine has signed numbers; what does not fit is far beyond any machine.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The create request. There is no restart policy: a candidate never comes back by itself (ruling 37).
pub(super) fn create(spec: &ContainerSpec) -> ContainerCreateBody {
    let mut labels: HashMap<String, String> = spec.labels.clone().into_iter().collect();
    let variables: Vec<&str> = spec.env.keys().map(String::as_str).collect();
    labels.insert(LABEL_VARIABLES.to_owned(), variables.join(","));
    labels.insert(LABEL_IMAGE.to_owned(), spec.image.clone());
    let image = spec.image_id.as_ref().map_or(spec.image.as_str(), |id| id.as_str());
    ContainerCreateBody {
        image: Some(image.to_owned()),
        user: Some(spec.user.clone()),
        env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        labels: Some(labels),
        exposed_ports: Some(vec![port_key(spec.container_port)]),
        host_config: Some(host_config(spec)),
        ..ContainerCreateBody::default()
    }
}

fn port_key(port: u16) -> String {
    format!("{port}/tcp")
}

fn host_config(spec: &ContainerSpec) -> HostConfig {
    let binding = PortBinding { host_ip: Some(LOOPBACK.to_owned()), host_port: Some(spec.host_port.to_string()) };
    HostConfig {
        memory: Some(signed(spec.memory_bytes)),
        // Equal to `memory`: no swap on top of it.
        memory_swap: Some(signed(spec.memory_bytes)),
        nano_cpus: Some(signed(spec.nano_cpus)),
        pids_limit: Some(i64::from(spec.pids)),
        readonly_rootfs: Some(spec.read_only_root),
        cap_drop: Some(spec.cap_drop.clone()),
        security_opt: Some(spec.security_opt.clone()),
        tmpfs: Some(spec.tmpfs.clone().into_iter().collect()),
        dns: Some(spec.dns.clone()),
        network_mode: Some(spec.network.clone()),
        port_bindings: Some(HashMap::from([(port_key(spec.container_port), Some(vec![binding]))])),
        restart_policy: Some(restart(false)),
        ..HostConfig::default()
    }
}

/// `unless-stopped` or none.
pub(super) fn restart(is_kept: bool) -> RestartPolicy {
    let name = if is_kept { RestartPolicyNameEnum::UNLESS_STOPPED } else { RestartPolicyNameEnum::NO };
    RestartPolicy { name: Some(name), maximum_retry_count: Some(0) }
}

/// Whether the engine starts the container again after a reboot.
pub(super) fn is_kept(inspected: &ContainerInspectResponse) -> bool {
    let policy = inspected.host_config.as_ref().and_then(|host| host.restart_policy.as_ref());
    matches!(
        policy.and_then(|policy| policy.name),
        Some(RestartPolicyNameEnum::UNLESS_STOPPED | RestartPolicyNameEnum::ALWAYS)
    )
}

/// Reads a container back in the words of a specification.
pub(super) fn read(inspected: &ContainerInspectResponse, slot: Slot) -> ContainerSpec {
    let config = inspected.config.clone().unwrap_or_default();
    let host = inspected.host_config.clone().unwrap_or_default();
    let labels = config.labels.clone().unwrap_or_default();
    let (container_port, host_port) = ports(&host);
    ContainerSpec {
        name: inspected.name.clone().unwrap_or_default().trim_start_matches('/').to_owned(),
        slot,
        image: labels.get(LABEL_IMAGE).or(config.image.as_ref()).cloned().unwrap_or_default(),
        image_id: inspected.image.as_deref().and_then(|id| id.parse().ok()),
        user: config.user.clone().unwrap_or_default(),
        env: env(&config, labels.get(LABEL_VARIABLES)),
        labels: our_labels(labels),
        container_port,
        host_port,
        network: networks(inspected, &host),
        memory_bytes: unsigned(host.memory),
        nano_cpus: unsigned(host.nano_cpus),
        pids: u32::try_from(host.pids_limit.unwrap_or(0)).unwrap_or(0),
        tmpfs: host.tmpfs.clone().unwrap_or_default().into_iter().collect(),
        read_only_root: host.readonly_rootfs.unwrap_or(false),
        cap_drop: host.cap_drop.clone().unwrap_or_default(),
        security_opt: security(&host),
        dns: host.dns.clone().unwrap_or_default(),
    }
}

/// Zero and below mean "no limit" in the engine, and never equal a limit of ours.
fn unsigned(value: Option<i64>) -> u64 {
    u64::try_from(value.unwrap_or(0)).unwrap_or(0)
}

/// Our variables: those that the label names. Without the label, all there are.
fn env(config: &ContainerConfig, names: Option<&String>) -> BTreeMap<String, String> {
    let is_ours = |name: &str| names.is_none_or(|names| names.split(',').any(|known| known == name));
    let all = config.env.iter().flatten();
    let pairs = all.map(|line| line.split_once('=').unwrap_or((line, "")));
    pairs.filter(|(name, _)| is_ours(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Labels of the image are none of ours (an image with our prefix is refused).
fn our_labels(labels: HashMap<String, String>) -> BTreeMap<String, String> {
    let is_shown = |name: &str| name.starts_with(LABEL_PREFIX) && name != LABEL_VARIABLES && name != LABEL_IMAGE;
    labels.into_iter().filter(|(name, _)| is_shown(name)).collect()
}

/// The one published port; zeros when it is not exactly one on loopback.
fn ports(host: &HostConfig) -> (u16, u16) {
    let mut bindings = host
        .port_bindings
        .iter()
        .flatten()
        .flat_map(|(inside, outside)| outside.iter().flatten().map(move |binding| (inside.as_str(), binding)));
    let (Some((inside, binding)), None) = (bindings.next(), bindings.next()) else {
        return (0, 0);
    };
    let is_loopback = binding.host_ip.as_deref() == Some(LOOPBACK);
    let inside = inside.strip_suffix("/tcp").and_then(|port| port.parse().ok()).unwrap_or(0);
    let outside = binding.host_port.as_deref().and_then(|port| port.parse().ok()).unwrap_or(0);
    if is_loopback { (inside, outside) } else { (inside, 0) }
}

/// Every network the container is in: one that somebody connected by hand is a way out.
fn networks(inspected: &ContainerInspectResponse, host: &HostConfig) -> String {
    let settings = inspected.network_settings.as_ref();
    let joined = settings.and_then(|settings| settings.networks.as_ref()).into_iter().flatten();
    let mut names: Vec<String> = joined.map(|(name, _)| name.clone()).collect();
    names.extend(host.network_mode.clone());
    names.sort_unstable();
    names.dedup();
    names.join(",")
}

/// The security options, and in the same list whatever a specification of ours never asks for.
fn security(host: &HostConfig) -> Vec<String> {
    let mut options = host.security_opt.clone().unwrap_or_default();
    if host.privileged == Some(true) {
        options.push("privileged".to_owned());
    }
    options.extend(host.cap_add.iter().flatten().map(|name| format!("added capability {name}")));
    options.extend(host.binds.iter().flatten().map(|bind| format!("bind {bind}")));
    let mounts = host.mounts.iter().flatten();
    options.extend(mounts.map(|mount| format!("mount {}", mount.target.as_deref().unwrap_or("?"))));
    let devices = host.devices.iter().flatten();
    options.extend(devices.map(|device| format!("device {}", device.path_on_host.as_deref().unwrap_or("?"))));
    // Minus one is what the engine writes on a kernel that cannot limit swap.
    if let Some(swap) = host.memory_swap.filter(|swap| *swap != -1 && Some(*swap) != host.memory) {
        options.push(format!("memory with swap {swap} bytes"));
    }
    let shared = [("pid", &host.pid_mode), ("ipc", &host.ipc_mode), ("uts", &host.uts_mode)];
    let of_host = shared.iter().filter(|(_, mode)| mode.as_deref() == Some("host"));
    options.extend(of_host.map(|(name, _)| format!("the host's {name} namespace")));
    options
}

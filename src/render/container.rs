//! A slot's container and a target's bridge, as documents; and a container as text for people.
//!
//! Source: app.toml contract, 'How the container runs'; rulings 1–3, 37 and 41. Secrets, data
//! mounts and egress are not part of it yet: a plan that needs them is refused (ruling 11).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::desired::{ContainerSpec, DesiredState, NetworkSpec};
use crate::model::{ReleaseNumber, Slot, TargetName};

/// Every label of ours begins so; an image that carries one is refused (ruling 2).
pub const LABEL_PREFIX: &str = "run.trueup.";
/// `<project>/<target>`.
pub const LABEL_TARGET: &str = "run.trueup.target";
/// The installation that made the object.
pub const LABEL_INSTANCE: &str = "run.trueup.instance";
/// The full sha.
pub const LABEL_REVISION: &str = "run.trueup.revision";
/// Digest of the manifest.
pub const LABEL_MANIFEST: &str = "run.trueup.manifest";
/// Digest of the registry's entries.
pub const LABEL_REGISTRY: &str = "run.trueup.registry";
/// `a` or `b`.
pub const LABEL_SLOT: &str = "run.trueup.slot";
/// The release's number, decimal.
pub const LABEL_RELEASE: &str = "run.trueup.release";

/// Only these addresses are asked for names inside a container, and nothing listens there (ruling 41).
const NO_DNS: &str = "127.0.0.1";
/// Billionths of a CPU in a thousandth of one.
const NANO_PER_MILLI: u64 = 1_000_000;

/// The container of one seat, without a release number.
///
/// `instance` names this installation of trueup; it ends up in a label and proves ownership
/// together with the name (ruling 2).
#[must_use]
pub fn container(desired: &DesiredState, slot: Slot, instance: &str) -> ContainerSpec {
    let limits = &desired.policy.limits;
    let tmp = format!("rw,noexec,nosuid,nodev,size={},mode=1777", limits.tmp_bytes);
    ContainerSpec {
        name: desired.target.container(slot),
        slot,
        image: desired.image.reference.clone(),
        image_id: None,
        user: format!("{0}:{0}", desired.uid),
        env: env(desired, slot),
        labels: labels(desired, slot, instance),
        container_port: desired.port,
        host_port: *slot.of(&desired.policy.slots),
        network: desired.target.network(),
        memory_bytes: limits.memory_bytes,
        nano_cpus: u64::from(limits.cpus_milli) * NANO_PER_MILLI,
        pids: limits.pids,
        tmpfs: BTreeMap::from([("/tmp".to_owned(), tmp)]),
        read_only_root: true,
        cap_drop: vec!["ALL".to_owned()],
        security_opt: vec!["no-new-privileges".to_owned()],
        dns: vec![NO_DNS.to_owned()],
    }
}

/// The registry's variables, then the contract's, which win.
fn env(desired: &DesiredState, slot: Slot) -> BTreeMap<String, String> {
    let mut env = desired.policy.env.clone();
    env.insert("RELEASE_SHA".to_owned(), desired.revision.to_string());
    env.insert("HUTA_PROJECT".to_owned(), desired.target.project.to_string());
    env.insert("HUTA_TARGET".to_owned(), desired.target.target.to_string());
    env.insert("HUTA_SLOT".to_owned(), slot.to_string());
    env
}

fn labels(desired: &DesiredState, slot: Slot, instance: &str) -> BTreeMap<String, String> {
    let mut labels = owner(&desired.target, instance);
    labels.insert(LABEL_REVISION.to_owned(), desired.revision.to_string());
    labels.insert(LABEL_MANIFEST.to_owned(), desired.manifest.to_string());
    labels.insert(LABEL_REGISTRY.to_owned(), desired.registry.to_string());
    labels.insert(LABEL_SLOT.to_owned(), slot.to_string());
    labels
}

/// The two labels that say whose an object is.
#[must_use]
pub fn owner(target: &TargetName, instance: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL_TARGET.to_owned(), target.to_string()), (LABEL_INSTANCE.to_owned(), instance.to_owned())])
}

/// The target's bridge.
#[must_use]
pub fn network(target: &TargetName, instance: &str) -> NetworkSpec {
    NetworkSpec { name: target.network(), bridge: target.bridge(), labels: owner(target, instance) }
}

/// The same container with its release's number in a label, from which an empty store can be
/// rebuilt (ruling 3).
#[must_use]
pub fn with_release(mut spec: ContainerSpec, number: ReleaseNumber) -> ContainerSpec {
    spec.labels.insert(LABEL_RELEASE.to_owned(), number.to_string());
    spec
}

/// One line for each setting, in a fixed order, for unified differences.
///
/// Holds no secret: a specification has none. Control characters are written as escapes, so that
/// a value never makes a second line.
#[must_use]
pub fn text(spec: &ContainerSpec) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a `String` cannot fail.
        writeln!(out, "{name}: {}", one_line(value)).unwrap_or_default();
    };
    line("name", &spec.name);
    line("image", &spec.image);
    line("image id", spec.image_id.as_ref().map_or("not pinned yet", |id| id.as_str()));
    line("user", &spec.user);
    line("read-only root", if spec.read_only_root { "yes" } else { "no" });
    line("capabilities dropped", &spec.cap_drop.join(" "));
    line("security", &spec.security_opt.join(" "));
    line("memory", &format!("{} bytes", spec.memory_bytes));
    line("cpus", &cpus(spec.nano_cpus));
    line("pids", &spec.pids.to_string());
    for (path, options) in &spec.tmpfs {
        line(&format!("tmpfs {}", one_line(path)), options);
    }
    line("network", &spec.network);
    line("dns", &spec.dns.join(" "));
    let port = format!("127.0.0.1:{} to {}/tcp", spec.host_port, spec.container_port);
    line("port", &port);
    for (name, value) in &spec.env {
        line(&format!("env {}", one_line(name)), value);
    }
    for (name, value) in &spec.labels {
        line(&format!("label {}", one_line(name)), value);
    }
    out
}

/// CPUs with as many decimals as are needed, at least none.
fn cpus(nano: u64) -> String {
    let whole = nano / 1_000_000_000;
    let rest = format!("{:09}", nano % 1_000_000_000);
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") }
}

fn one_line(text: &str) -> String {
    let escape = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired() -> DesiredState {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/render/container/desired.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn expected(name: &str) -> String {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/render/container");
        std::fs::read_to_string(format!("{dir}/{name}")).unwrap()
    }

    #[test]
    fn both_seats_are_what_the_contract_says() {
        for slot in Slot::BOTH {
            let spec = container(&desired(), slot, "host-1");
            assert_eq!(text(&spec), expected(&format!("{slot}.txt")));
        }
    }

    #[test]
    fn the_contracts_variables_win_over_the_registrys() {
        let mut desired = desired();
        desired.policy.env.insert("RELEASE_SHA".to_owned(), "mine".to_owned());
        let spec = container(&desired, Slot::A, "host-1");
        assert_eq!(spec.env["RELEASE_SHA"], desired.revision.as_str());
    }

    #[test]
    fn a_release_number_is_one_label_and_nothing_else() {
        let before = container(&desired(), Slot::B, "host-1");
        let mut after = with_release(before.clone(), ReleaseNumber(42));
        assert_eq!(after.labels.remove(LABEL_RELEASE).as_deref(), Some("42"));
        assert_eq!(after, before);
    }

    #[test]
    fn a_value_never_makes_a_second_line() {
        let mut spec = container(&desired(), Slot::A, "host-1");
        spec.env.insert("X".to_owned(), "one\nlabel y: two\u{1b}[31m".to_owned());
        let text = text(&spec);
        assert!(text.contains("env X: one\\nlabel y: two\\u{1b}[31m\n"), "{text}");
    }

    #[test]
    fn the_bridge_is_named_by_the_target_and_labelled_as_ours() {
        let desired = desired();
        let spec = network(&desired.target, "host-1");
        assert_eq!(spec.name, "shop.prod");
        assert!(spec.bridge.starts_with("tu-") && spec.bridge.len() == 13);
        assert_eq!(spec.labels, owner(&desired.target, "host-1"));
    }
}

//! The target's bridge: no NAT, no traffic between its containers, and rules that close the rest.
//!
//! It is not `--internal`, since the engine publishes no ports of such a network (host-facts).

use std::collections::{BTreeMap, HashMap};

use bollard::models::{NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;

use super::DockerTarget;
use super::engine::{READ_DEADLINE, WRITE_DEADLINE, failure, name_taken, optional};
use crate::model::desired::NetworkSpec;
use crate::model::{Class, ReasonCode, TargetName};
use crate::render::container::owner;
use crate::target::TargetError;

/// The option that fixes the interface's name.
const OPTION_BRIDGE: &str = "com.docker.network.bridge.name";
/// Options that keep the bridge from being a way out, and their values.
const CLOSED: [(&str, &str); 2] =
    [("com.docker.network.bridge.enable_ip_masquerade", "false"), ("com.docker.network.bridge.enable_icc", "false")];
/// Every bridge that the rules close begins so.
const BRIDGE_PREFIX: &str = "tu-";

/// A network of the target's name, as read.
#[derive(Debug)]
pub(super) struct Bridge {
    pub(super) spec: NetworkSpec,
    /// What keeps it from being closed, one sentence part each.
    pub(super) wrong_options: Vec<String>,
    id: String,
    containers: usize,
}

/// The network of the target's name, ours or not; none when there is none.
pub(super) async fn read(docker: &DockerTarget, target: &TargetName) -> Result<Option<Bridge>, TargetError> {
    let name = target.network();
    let client = docker.engine.client().await?;
    let call = client.inspect_network(&name, None::<InspectNetworkOptions>);
    let what = format!("inspect network {name}");
    let found = optional(docker.engine.bounded(&what, READ_DEADLINE, call).await)?;
    Ok(found.map(bridge))
}

fn bridge(inspected: NetworkInspect) -> Bridge {
    let options = inspected.options.unwrap_or_default();
    let mut wrong_options: Vec<String> = CLOSED
        .iter()
        .filter(|(name, value)| options.get(*name).map(String::as_str) != Some(*value))
        .map(|(name, value)| format!("the network's option {name} is not {value}"))
        .collect();
    if inspected.driver.as_deref() != Some("bridge") {
        wrong_options.push("the network's driver is not bridge".to_owned());
    }
    if inspected.enable_ipv6 == Some(true) {
        wrong_options.push("the network has IPv6 enabled".to_owned());
    }
    Bridge {
        spec: NetworkSpec {
            name: inspected.name.unwrap_or_default(),
            bridge: options.get(OPTION_BRIDGE).cloned().unwrap_or_default(),
            labels: inspected.labels.unwrap_or_default().into_iter().collect(),
        },
        wrong_options,
        id: inspected.id.unwrap_or_default(),
        containers: inspected.containers.map_or(0, |containers| containers.len()),
    }
}

fn is_ours(docker: &DockerTarget, target: &TargetName, labels: &BTreeMap<String, String>) -> bool {
    owner(target, &docker.instance).iter().all(|(name, value)| labels.get(name) == Some(value))
}

/// Makes the bridge, or finds ours; makes it again when it is ours, wrong, and unused.
pub(super) async fn ensure(docker: &DockerTarget, target: &TargetName, spec: &NetworkSpec) -> Result<(), TargetError> {
    check_names(docker, target, spec)?;
    if let Some(found) = read(docker, target).await? {
        if !is_ours(docker, target, &found.spec.labels) {
            return Err(name_taken("network", &spec.name, &found.id));
        }
        if found.spec == *spec && found.wrong_options.is_empty() {
            return Ok(());
        }
        if found.containers > 0 {
            return Err(in_use(spec, &found));
        }
        delete(docker, &found).await?;
    }
    create(docker, spec).await
}

fn in_use(spec: &NetworkSpec, found: &Bridge) -> TargetError {
    let text = format!(
        "network `{}` was made with other settings ({}), and {} container(s) use it, so it is left as it is. Stop them \
         (`docker network inspect {0}` names them); it is made again at the next try",
        spec.name,
        if found.wrong_options.is_empty() { "other name or labels".to_owned() } else { found.wrong_options.join("; ") },
        found.containers,
    );
    failure(ReasonCode::IsolationUnavailable, Class::Stalled, text)
}

/// A specification that does not fit its target, or that the rules would not close, is our own mistake.
fn check_names(docker: &DockerTarget, target: &TargetName, spec: &NetworkSpec) -> Result<(), TargetError> {
    let is_fitting = spec.name == target.network()
        && spec.bridge.starts_with(BRIDGE_PREFIX)
        && is_ours(docker, target, &spec.labels);
    if is_fitting {
        return Ok(());
    }
    let text = format!(
        "{target}: the plan's network `{}` on `{}` is not this target's; please report this",
        spec.name, spec.bridge
    );
    Err(failure(ReasonCode::Bug, Class::Bug, text))
}

async fn create(docker: &DockerTarget, spec: &NetworkSpec) -> Result<(), TargetError> {
    let client = docker.engine.client().await?;
    let mut options: HashMap<String, String> =
        CLOSED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    options.insert(OPTION_BRIDGE.to_owned(), spec.bridge.clone());
    let request = NetworkCreateRequest {
        name: spec.name.clone(),
        driver: Some("bridge".to_owned()),
        enable_ipv6: Some(false),
        options: Some(options),
        labels: Some(spec.labels.clone().into_iter().collect()),
        ..NetworkCreateRequest::default()
    };
    let what = format!("create network {}", spec.name);
    docker.engine.bounded(&what, WRITE_DEADLINE, client.create_network(request)).await?;
    Ok(())
}

async fn delete(docker: &DockerTarget, bridge: &Bridge) -> Result<(), TargetError> {
    let client = docker.engine.client().await?;
    let what = format!("remove network {}", bridge.spec.name);
    // By id: the name could have passed to somebody else's network since it was read.
    optional(docker.engine.bounded(&what, WRITE_DEADLINE, client.remove_network(&bridge.id)).await)?;
    Ok(())
}

/// Removes the bridge if it is ours.
pub(super) async fn remove(docker: &DockerTarget, target: &TargetName) -> Result<(), TargetError> {
    match read(docker, target).await? {
        None => Ok(()),
        Some(found) if is_ours(docker, target, &found.spec.labels) => delete(docker, &found).await,
        Some(found) => Err(name_taken("network", &found.spec.name, &found.id)),
    }
}

/// Puts the rules in place and proves it by reading them back, and the bridge's options with them.
pub(super) async fn isolate(docker: &DockerTarget, target: &TargetName, spec: &NetworkSpec) -> Result<(), TargetError> {
    check_names(docker, target, spec)?;
    docker.firewall.ensure().await?;
    require(docker, target).await
}

/// Refuses unless the target's bridge is ours and closed: asked again right before each start.
pub(super) async fn require(docker: &DockerTarget, target: &TargetName) -> Result<(), TargetError> {
    let name = target.network();
    let refuse = |why: String| {
        let text = format!(
            "{target} starts nothing: its network `{name}` is not closed to the outside: {why}. The next pass puts the \
             bridge and the rules in place again; check what removes them (a firewall reload, `nft flush ruleset`)"
        );
        failure(ReasonCode::IsolationUnavailable, Class::Transient, text)
    };
    let Some(found) = read(docker, target).await? else {
        return Err(refuse("it does not exist".to_owned()));
    };
    if !is_ours(docker, target, &found.spec.labels) {
        return Err(name_taken("network", &name, &found.id));
    }
    if !found.spec.bridge.starts_with(BRIDGE_PREFIX) {
        return Err(refuse(format!("its bridge is called `{}`, which no rule covers", found.spec.bridge)));
    }
    let mut missing = docker.firewall.missing().await.map_err(TargetError::from)?;
    missing.extend(found.wrong_options);
    if missing.is_empty() { Ok(()) } else { Err(refuse(missing.join("; "))) }
}

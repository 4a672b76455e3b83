//! Reading what runs now: by name and labels, never by writing.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::InspectContainerOptions;

use super::DockerTarget;
use super::body;
use super::engine::{READ_DEADLINE, optional};
use super::network;
use crate::model::live::{LiveContainer, LiveState, RunState, SlotState};
use crate::model::{ReleaseNumber, Slot, TargetName};
use crate::render::container::{LABEL_INSTANCE, LABEL_MANIFEST, LABEL_RELEASE, LABEL_REVISION, LABEL_TARGET};
use crate::target::TargetError;

/// Both seats, the bridge and the isolation.
pub(super) async fn target(docker: &DockerTarget, target: &TargetName) -> Result<LiveState, TargetError> {
    let (a, b, bridge, rules) = tokio::join!(
        seat(docker, target, Slot::A),
        seat(docker, target, Slot::B),
        network::read(docker, target),
        docker.firewall.missing(),
    );
    let bridge = bridge?;
    let mut isolation_missing = match rules {
        Ok(missing) => missing,
        // Not known to be complete is missing, and the step that repairs it says why it cannot.
        Err(error) => vec![format!("the rules cannot be read: {error}")],
    };
    if let Some(bridge) = &bridge {
        isolation_missing.extend(bridge.wrong_options.iter().cloned());
    }
    Ok(LiveState { slots: [a?, b?], network: bridge.map(|bridge| bridge.spec), isolation_missing })
}

/// One seat.
pub(super) async fn seat(docker: &DockerTarget, target: &TargetName, slot: Slot) -> Result<SlotState, TargetError> {
    let name = target.container(slot);
    let Some(inspected) = inspect(docker, &name).await? else {
        return Ok(SlotState::Empty);
    };
    let id = inspected.id.clone().unwrap_or_default();
    if is_ours(docker, target, &inspected) {
        Ok(SlotState::Ours(Box::new(live(&inspected, id, slot))))
    } else {
        Ok(SlotState::Foreign { id })
    }
}

async fn inspect(docker: &DockerTarget, name: &str) -> Result<Option<ContainerInspectResponse>, TargetError> {
    let client = docker.engine.client().await?;
    let call = client.inspect_container(name, None::<InspectContainerOptions>);
    let what = format!("inspect container {name}");
    Ok(optional(docker.engine.bounded(&what, READ_DEADLINE, call).await)?)
}

/// Ours = the labels that we set at creation (ruling 2); the name matched already.
fn is_ours(docker: &DockerTarget, target: &TargetName, inspected: &ContainerInspectResponse) -> bool {
    let labels = inspected.config.as_ref().and_then(|config| config.labels.as_ref());
    let label = |name: &str| labels.and_then(|labels| labels.get(name)).map(String::as_str);
    label(LABEL_TARGET) == Some(target.to_string().as_str()) && label(LABEL_INSTANCE) == Some(docker.instance.as_str())
}

fn live(inspected: &ContainerInspectResponse, id: String, slot: Slot) -> LiveContainer {
    let spec = body::read(inspected, slot);
    let label = |name: &str| spec.labels.get(name);
    LiveContainer {
        id,
        release: label(LABEL_RELEASE).and_then(|number| number.parse().ok()).map(ReleaseNumber),
        revision: label(LABEL_REVISION).and_then(|sha| sha.parse().ok()),
        manifest: label(LABEL_MANIFEST).and_then(|digest| digest.parse().ok()),
        run: run(inspected.state.as_ref()),
        is_kept: body::is_kept(inspected),
        spec,
    }
}

/// A paused container counts as made and not started, since it answers nobody; one that the
/// engine keeps starting again counts as ended.
fn run(state: Option<&ContainerState>) -> RunState {
    use ContainerStateStatusEnum::{CREATED, DEAD, EMPTY, EXITED, PAUSED, REMOVING, RESTARTING, RUNNING, STOPPING};
    let Some(state) = state else {
        return RunState::Created;
    };
    match state.status.unwrap_or(EMPTY) {
        RUNNING | STOPPING => RunState::Running { since: state.started_at.as_deref().and_then(|at| at.parse().ok()) },
        EMPTY | CREATED | PAUSED => RunState::Created,
        RESTARTING | REMOVING | EXITED | DEAD => {
            RunState::Exited { code: state.exit_code.unwrap_or(0), is_out_of_memory: state.oom_killed.unwrap_or(false) }
        }
    }
}

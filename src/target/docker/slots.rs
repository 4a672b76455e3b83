//! Starting, keeping, stopping and removing what sits in a seat. Each of them may run twice.

use std::time::Duration;

use bollard::models::ContainerUpdateBody;
use bollard::query_parameters::{
    CreateContainerOptions, RemoveContainerOptions, StartContainerOptions, StopContainerOptions,
};

use super::engine::{CallError, WRITE_DEADLINE, failure, name_taken, optional};
use super::{DockerTarget, body, network, observe, ports};
use crate::model::desired::ContainerSpec;
use crate::model::live::{LiveContainer, SlotState};
use crate::model::{Class, ReasonCode, Slot, TargetName};
use crate::target::TargetError;

/// A process that is in the middle of a system call can outlive SIGKILL for a moment.
const KILL_MARGIN: Duration = Duration::from_secs(30);
/// Seconds between SIGTERM and SIGKILL for what is replaced before its own start was proven.
const REPLACE_GRACE_SECONDS: u32 = 10;

/// Starts the seat's container: nothing if it runs already, anew if ours is another or has ended.
pub(super) async fn start(docker: &DockerTarget, target: &TargetName, spec: &ContainerSpec) -> Result<(), TargetError> {
    check_names(target, spec)?;
    network::require(docker, target).await?;
    match observe::seat(docker, target, spec.slot).await? {
        SlotState::Foreign { id } => return Err(name_taken("container", &spec.name, &id)),
        SlotState::Ours(live) if live.run.is_running() && is_same(&live.spec, spec) => {
            return Ok(());
        }
        SlotState::Ours(live) => discard(docker, &live, REPLACE_GRACE_SECONDS).await?,
        SlotState::Empty => {}
    }
    let id = create(docker, target, spec).await?;
    run(docker, target, spec.slot, &id).await
}

fn check_names(target: &TargetName, spec: &ContainerSpec) -> Result<(), TargetError> {
    if spec.name == target.container(spec.slot) && spec.network == target.network() {
        return Ok(());
    }
    let text = format!(
        "{target}: the plan's container `{}` on network `{}` is not this target's; please report this",
        spec.name, spec.network
    );
    Err(failure(ReasonCode::Bug, Class::Bug, text))
}

/// Whether what runs is what is asked for; an id that is not pinned yet matches any.
fn is_same(live: &ContainerSpec, wanted: &ContainerSpec) -> bool {
    let mut wanted = wanted.clone();
    if wanted.image_id.is_none() {
        wanted.image_id.clone_from(&live.image_id);
    }
    *live == wanted
}

/// Makes the container and checks that it is of the pinned image.
async fn create(docker: &DockerTarget, target: &TargetName, spec: &ContainerSpec) -> Result<String, TargetError> {
    let client = docker.engine.client().await?;
    let options = CreateContainerOptions { name: Some(spec.name.clone()), ..CreateContainerOptions::default() };
    let call = client.create_container(Some(options), body::create(spec));
    let what = format!("create container {}", spec.name);
    let made = match docker.engine.bounded(&what, WRITE_DEADLINE, call).await {
        Ok(made) => made,
        Err(error) => return Err(create_failed(docker, target, spec, error).await),
    };
    let state = observe::seat(docker, target, spec.slot).await?;
    let live = state.ours().filter(|live| live.id == made.id);
    if live.is_some_and(|live| spec.image_id.is_none() || live.spec.image_id == spec.image_id) {
        return Ok(made.id);
    }
    remove_id(docker, &made.id).await?;
    let text = format!(
        "container `{}` was not made from the pinned image {}: the engine resolved it to another one, so it was removed \
         again. Prepare the image anew (the next try does)",
        spec.name,
        spec.image_id.as_ref().map_or("(none)", |id| id.as_str()),
    );
    Err(failure(ReasonCode::ImageMissing, Class::Transient, text))
}

async fn create_failed(
    docker: &DockerTarget,
    target: &TargetName,
    spec: &ContainerSpec,
    error: CallError,
) -> TargetError {
    if error.status == Some(409) {
        // Somebody took the name between our look and our call.
        if let Ok(SlotState::Foreign { id }) = observe::seat(docker, target, spec.slot).await {
            return name_taken("container", &spec.name, &id);
        }
    }
    if error.is_absent() && error.message.to_ascii_lowercase().contains("no such image") {
        let text = format!(
            "image {} ({}) is not on this host any more, so nothing was started. Build or load it again",
            spec.image,
            spec.image_id.as_ref().map_or("not pinned", |id| id.short()),
        );
        return failure(ReasonCode::ImageMissing, Class::Transient, text);
    }
    if is_about_the_command(&error.message) {
        return command_failed(&error);
    }
    error.into()
}

/// Starts a made or stopped container.
async fn run(docker: &DockerTarget, target: &TargetName, slot: Slot, id: &str) -> Result<(), TargetError> {
    let client = docker.engine.client().await?;
    let what = format!("start container {}", target.container(slot));
    let call = client.start_container(id, None::<StartContainerOptions>);
    match docker.engine.bounded(&what, WRITE_DEADLINE, call).await {
        Ok(()) => Ok(()),
        Err(error) => Err(start_failed(docker, target, slot, error).await),
    }
}

async fn start_failed(docker: &DockerTarget, target: &TargetName, slot: Slot, error: CallError) -> TargetError {
    if ports::is_conflict(&error.message) {
        let port = match observe::seat(docker, target, slot).await {
            Ok(state) => state.ours().map_or(0, |live| live.spec.host_port),
            Err(_unreadable) => 0,
        };
        return ports::taken(docker, target, (slot, port)).await;
    }
    if is_about_the_command(&error.message) {
        return command_failed(&error);
    }
    error.into()
}

/// runc names the program it could not execute; that is the image's fault and not the engine's.
/// The engine's own programs can be missing too, and then there is no container process yet.
fn is_about_the_command(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("no command specified")
        || (message.contains("container process")
            && (message.contains("exec: ") || message.contains("exec format error")))
}

fn command_failed(error: &CallError) -> TargetError {
    let text = format!(
        "the engine cannot run the image's command: {}. Check ENTRYPOINT and CMD, that the file is in the image, \
         executable by any user and built for linux/amd64",
        error.message
    );
    failure(ReasonCode::CrashedAtStart, Class::Stalled, text)
}

/// Starts again what is stopped in the seat (undo of an exclusive replacement).
pub(super) async fn resume(docker: &DockerTarget, target: &TargetName, slot: Slot) -> Result<(), TargetError> {
    network::require(docker, target).await?;
    match observe::seat(docker, target, slot).await? {
        SlotState::Ours(live) if live.run.is_running() => Ok(()),
        SlotState::Ours(live) => run(docker, target, slot, &live.id).await,
        SlotState::Foreign { id } => Err(name_taken("container", &target.container(slot), &id)),
        SlotState::Empty => Err(vanished(target, slot)),
    }
}

fn vanished(target: &TargetName, slot: Slot) -> TargetError {
    let text = format!(
        "container `{}` is gone: something outside trueup removed it while a release ran. The next pass reads what is \
         left and plans anew",
        target.container(slot)
    );
    failure(ReasonCode::EngineUnavailable, Class::Transient, text)
}

/// Sets or lifts the restart policy.
pub(super) async fn keep(
    docker: &DockerTarget,
    target: &TargetName,
    slot: Slot,
    is_kept: bool,
) -> Result<(), TargetError> {
    let live = match observe::seat(docker, target, slot).await? {
        SlotState::Ours(live) if live.is_kept == is_kept => return Ok(()),
        SlotState::Ours(live) => live,
        SlotState::Empty | SlotState::Foreign { .. } if !is_kept => return Ok(()),
        SlotState::Empty => return Err(vanished(target, slot)),
        SlotState::Foreign { id } => {
            return Err(name_taken("container", &target.container(slot), &id));
        }
    };
    let client = docker.engine.client().await?;
    let update = ContainerUpdateBody { restart_policy: Some(body::restart(is_kept)), ..ContainerUpdateBody::default() };
    let what = format!("change the restart policy of container {}", target.container(slot));
    docker.engine.bounded(&what, WRITE_DEADLINE, client.update_container(&live.id, update)).await?;
    Ok(())
}

/// SIGTERM, SIGKILL after the grace; the container stays and can be started again.
pub(super) async fn stop(
    docker: &DockerTarget,
    target: &TargetName,
    slot: Slot,
    grace_seconds: u32,
) -> Result<(), TargetError> {
    let state = observe::seat(docker, target, slot).await?;
    // Nothing of ours there is as stopped as it gets; a foreign one is none of our business.
    let Some(live) = state.ours() else {
        return Ok(());
    };
    end(docker, live, grace_seconds).await
}

/// Stops and removes what is ours in the seat.
pub(super) async fn remove(
    docker: &DockerTarget,
    target: &TargetName,
    slot: Slot,
    grace_seconds: u32,
) -> Result<(), TargetError> {
    let state = observe::seat(docker, target, slot).await?;
    match state.ours() {
        Some(live) => discard(docker, live, grace_seconds).await,
        None => Ok(()),
    }
}

async fn discard(docker: &DockerTarget, live: &LiveContainer, grace_seconds: u32) -> Result<(), TargetError> {
    end(docker, live, grace_seconds).await?;
    remove_id(docker, &live.id).await
}

/// Also for a container that does not run: the engine may be about to start it again.
async fn end(docker: &DockerTarget, live: &LiveContainer, grace_seconds: u32) -> Result<(), TargetError> {
    let client = docker.engine.client().await?;
    let grace = i32::try_from(grace_seconds).unwrap_or(i32::MAX);
    let options = StopContainerOptions { t: Some(grace), ..StopContainerOptions::default() };
    let deadline = Duration::from_secs(u64::from(grace_seconds)) + KILL_MARGIN;
    let what = format!("stop container {}", live.spec.name);
    let call = client.stop_container(&live.id, Some(options));
    optional(docker.engine.bounded(&what, deadline, call).await)?;
    Ok(())
}

async fn remove_id(docker: &DockerTarget, id: &str) -> Result<(), TargetError> {
    let client = docker.engine.client().await?;
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    let what = format!("remove container {id}");
    optional(docker.engine.bounded(&what, WRITE_DEADLINE, client.remove_container(id, Some(options))).await)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_image_asks_to_run_is_the_images_fault() {
        for message in [
            "OCI runtime create failed: container_linux.go:380: starting container process caused: exec: \"/x\": stat /x: no such file or directory: unknown",
            "failed to create task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"x\": executable file not found in $PATH: unknown",
            "No command specified",
        ] {
            assert!(is_about_the_command(message), "{message}");
        }
        for message in [
            "failed to start userland proxy: exec: \"docker-proxy\": executable file not found in $PATH",
            "failed to create shim: OCI runtime create failed: unable to retrieve OCI runtime error: exec: \"runc\": executable file not found",
            "OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: cgroup: no space left on device",
        ] {
            assert!(!is_about_the_command(message), "{message}");
        }
    }
}

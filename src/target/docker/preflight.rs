//! Before anything is changed: room on the disks, and a free port.

use std::io;
use std::path::{Path, PathBuf};

use super::engine::{READ_DEADLINE, failure};
use super::{DockerTarget, observe, ports};
use crate::model::live::SlotState;
use crate::model::{Class, ReasonCode, Slot, TargetName};
use crate::target::TargetError;

/// What must be free on each file system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

/// Checks room and port.
pub(super) async fn check(
    docker: &DockerTarget,
    target: &TargetName,
    seat: (Slot, u16),
    need: Room,
) -> Result<(), TargetError> {
    for (name, path) in places(docker).await? {
        room(name, &path, need)?;
    }
    port(docker, target, seat).await
}

/// The directories whose file systems fill up: the engine's, as it says itself, and ours.
async fn places(docker: &DockerTarget) -> Result<[(&'static str, PathBuf); 2], TargetError> {
    let client = docker.engine.client().await?;
    let info = docker.engine.bounded("say where it keeps its data", READ_DEADLINE, client.info()).await?;
    let root = info.docker_root_dir.unwrap_or_else(|| "/var/lib/docker".to_owned());
    Ok([("the engine's data", PathBuf::from(root)), ("trueup's state", docker.state_dir.clone())])
}

fn room(name: &str, path: &Path, need: Room) -> Result<(), TargetError> {
    let free = free(path).map_err(|error| {
        let text =
            format!("the free space of {name} in {} cannot be read: {error}. Check that it is mounted", path.display());
        failure(ReasonCode::EngineUnavailable, Class::Transient, text)
    })?;
    let lacks = |what: &str, have: u64, need: u64| {
        let text = format!(
            "{} has {have} {what} free for {name}, and a release needs {need}: nothing was changed. Free some \
             (`docker system df` shows what the engine keeps), it is tried again by itself",
            path.display()
        );
        Err(failure(ReasonCode::DiskFull, Class::Transient, text))
    };
    if free.bytes < need.bytes {
        return lacks("bytes", free.bytes, need.bytes);
    }
    if free.inodes < need.inodes {
        return lacks("inodes", free.inodes, need.inodes);
    }
    Ok(())
}

/// What is free on the file system of `path`, or of its nearest parent that exists.
fn free(path: &Path) -> io::Result<Room> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(path);
    let stat = rustix::fs::statvfs(existing)?;
    // File systems that make inodes as they need them say that they have none at all.
    let inodes = if stat.f_files == 0 { u64::MAX } else { stat.f_favail };
    Ok(Room { bytes: stat.f_bavail.saturating_mul(stat.f_frsize), inodes })
}

/// The port must be free, or published by our own container in that very seat.
async fn port(docker: &DockerTarget, target: &TargetName, seat: (Slot, u16)) -> Result<(), TargetError> {
    let (slot, port) = seat;
    match observe::seat(docker, target, slot).await? {
        SlotState::Ours(live) if live.run.is_running() && live.spec.host_port == port => {
            return Ok(());
        }
        SlotState::Ours(_) | SlotState::Empty | SlotState::Foreign { .. } => {}
    }
    match ports::probe(port) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(ports::taken(docker, target, seat).await),
        Err(error) => {
            let text = format!(
                "port 127.0.0.1:{port} of {target} slot {slot} cannot be bound: {error}. Choose another in `slots`"
            );
            Err(failure(ReasonCode::PortTaken, Class::Stalled, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_does_not_exist_yet_is_judged_by_its_parent() {
        let parent = free(Path::new("/tmp")).unwrap();
        let child = free(Path::new("/tmp/not/made/yet")).unwrap();
        assert!(parent.bytes > 0 && child.bytes > 0);
    }

    #[test]
    fn too_few_bytes_or_inodes_are_named_with_what_is_there_and_what_is_needed() {
        let bytes = room("x", Path::new("/tmp"), Room { bytes: u64::MAX, inodes: 0 }).unwrap_err();
        assert_eq!(bytes.reason.code, ReasonCode::DiskFull);
        assert!(bytes.reason.message.contains("bytes free"), "{bytes}");
        let no_limit = free(Path::new("/tmp")).unwrap().inodes == u64::MAX;
        let inodes = room("x", Path::new("/tmp"), Room { bytes: 0, inodes: u64::MAX });
        assert_eq!(inodes.is_ok(), no_limit);
    }
}

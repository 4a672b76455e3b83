//! Loopback ports: whether one is free, and who holds it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use bollard::query_parameters::ListContainersOptions;

use super::DockerTarget;
use super::engine::{READ_DEADLINE, failure};
use crate::model::{Class, ReasonCode, Slot, TargetName};
use crate::target::TargetError;

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Proves by binding that nobody listens on the loopback port. The listener is closed at once.
///
/// # Errors
/// The reason of the system: in use, or no right to bind.
pub(super) fn probe(port: u16) -> io::Result<()> {
    drop(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
    Ok(())
}

/// Whether the engine's answer to a start says that the port is in use.
pub(super) fn is_conflict(message: &str) -> bool {
    message.contains("port is already allocated")
        || message.contains("address already in use")
        || message.contains("failed to bind host port")
}

/// `PortTaken`, with the holder as far as it can be found.
pub(super) async fn taken(docker: &DockerTarget, target: &TargetName, seat: (Slot, u16)) -> TargetError {
    let (slot, port) = seat;
    let holder = match holder_container(docker, port).await {
        Some(name) => format!("container `{name}`"),
        None => holder_process(port).unwrap_or_else(|| "a process that could not be found".to_owned()),
    };
    let text = format!(
        "port 127.0.0.1:{port} of {target} slot {slot} is held by {holder}, so nothing was started there. Stop it, or \
         give the target another port in `slots` of its registry file"
    );
    failure(ReasonCode::PortTaken, Class::Stalled, text)
}

/// The running container that publishes the port.
async fn holder_container(docker: &DockerTarget, port: u16) -> Option<String> {
    let client = docker.engine.client().await.ok()?;
    let call = client.list_containers(None::<ListContainersOptions>);
    let all = docker.engine.bounded("list the containers", READ_DEADLINE, call).await.ok()?;
    let publishes = |ports: &[bollard::models::PortSummary]| ports.iter().any(|known| known.public_port == Some(port));
    let holder = all.into_iter().find(|container| container.ports.as_deref().is_some_and(publishes))?;
    let name = holder.names.and_then(|names| names.into_iter().next());
    name.map(|name| name.trim_start_matches('/').to_owned()).or(holder.id)
}

/// The process of this host that listens on the port.
fn holder_process(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inode = tables.iter().find_map(|path| listener_inode(&fs::read_to_string(path).ok()?, port))?;
    let wanted = format!("socket:[{inode}]");
    let found = fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        has_descriptor(&entry.path(), &wanted).then_some(pid)
    });
    Some(match found {
        Some(pid) => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("process `{}` (pid {pid})", name.trim())
        }
        None => "a process of this host".to_owned(),
    })
}

fn has_descriptor(process: &Path, wanted: &str) -> bool {
    let Ok(entries) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == wanted))
}

/// The inode of the socket that listens on `port`, out of a table in the form of proc(5).
fn listener_inode(table: &str, port: u16) -> Option<String> {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_holder = fields.get(1).is_some_and(|local| local.ends_with(&suffix)) && fields.get(3) == Some(&LISTEN);
        if is_holder { fields.get(9).map(|inode| (*inode).to_owned()) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_of_a_port_is_found_in_the_kernels_table_and_a_mere_connection_is_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:477C 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 20 4 30 10 -1\n\
             1: 0100007F:477C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22 1 0 100 0 0 10 0\n";
        assert_eq!(listener_inode(table, 18300).as_deref(), Some("22"));
        assert_eq!(listener_inode(table, 18301), None);
    }

    #[test]
    fn a_port_that_this_process_holds_is_not_free_and_the_process_is_named() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        assert_eq!(probe(port).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let holder = holder_process(port).unwrap();
        assert!(holder.contains(&format!("(pid {})", std::process::id())), "{holder}");
    }
}

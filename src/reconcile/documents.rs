//! The documents of a target: rendered for what runs now, so that a change of ports never cuts the
//! live one off (ruling 35).

use crate::model::desired::{DesiredState, Documents, Vhost};
use crate::model::live::LiveState;
use crate::model::{Slot, TargetName};
use crate::render::container::{container, network};
use crate::render::vhost::{VhostInput, VhostTls, vhost};

use super::ports::{EdgeTls, Settings};

/// Renders a target's documents.
///
/// The slot that serves keeps the port that it really has; the other gets the registry's.
#[must_use]
pub(super) fn documents(
    desired: &DesiredState,
    live: &LiveState,
    serving: Option<Slot>,
    settings: &Settings,
) -> Documents {
    let containers = Slot::BOTH.map(|slot| container(desired, slot, &settings.instance));
    let ports = Slot::BOTH.map(|slot| port(desired, live, serving, slot));
    Documents {
        containers,
        network: network(&desired.target, &settings.instance),
        vhost: vhost_of(desired, ports, settings),
    }
}

fn port(desired: &DesiredState, live: &LiveState, serving: Option<Slot>, slot: Slot) -> u16 {
    let real = live.slot(slot).ours().map(|container| container.spec.host_port);
    match real {
        Some(port) if serving == Some(slot) && port != 0 => port,
        Some(_) | None => *slot.of(&desired.policy.slots),
    }
}

fn vhost_of(desired: &DesiredState, ports: [u16; 2], settings: &Settings) -> Vhost {
    let state_dir = settings.state_dir.to_string_lossy();
    let access_log = desired
        .policy
        .access_log
        .then(|| settings.access_log_dir.join(format!("{}.{}.log", desired.target.project, desired.target.target)));
    let access_log = access_log.as_ref().map(|path| path.to_string_lossy());
    vhost(&VhostInput {
        target: &desired.target,
        hosts: &desired.policy.hosts,
        ports,
        state_dir: &state_dir,
        tls: tls_of(&desired.target, settings),
        is_cloudflare_only: settings.tls == EdgeTls::OriginCa,
        access_log: access_log.as_deref(),
    })
}

fn tls_of(target: &TargetName, settings: &Settings) -> VhostTls {
    let file = |ending: &str| {
        let name = format!("{}.{}.{ending}", target.project, target.target);
        settings.state_dir.join("certificates").join(name).to_string_lossy().into_owned()
    };
    match settings.tls {
        EdgeTls::OriginCa => VhostTls::OriginCa { certificate: file("pem"), key: file("key") },
        EdgeTls::Internal => VhostTls::Internal,
        EdgeTls::Off => VhostTls::Off,
    }
}

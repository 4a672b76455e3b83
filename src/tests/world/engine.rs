//! The engine: two seats behind one bridge, each call as repeatable as the real adapter's.

use async_trait::async_trait;

use super::fakes::Fakes;
use super::outside::{Host, State};
use crate::model::ReleaseNumber;
use crate::model::desired::ContainerSpec;
use crate::model::live::{LiveContainer, LiveState, RunState, SlotState};
use crate::model::{Class, Reason, ReasonCode, Sha, Slot, TargetName};
use crate::plan::Step;
use crate::render::container::{LABEL_MANIFEST, LABEL_RELEASE, LABEL_REVISION};
use crate::target::{Target, TargetError};

#[async_trait]
impl Target for Fakes {
    async fn observe(&self, target: &TargetName) -> Result<LiveState, TargetError> {
        self.process.alive().await;
        let state = self.outside.state();
        if state.is_engine_down {
            return Err(TargetError { reason: state.down(), class: Class::Transient });
        }
        Ok(state.hosts.get(target).map(|host| host.live.clone()).unwrap_or_default())
    }

    async fn apply(&self, target: &TargetName, step: &Step) -> Result<(), TargetError> {
        let now = self.outside.now();
        let words = words(&self.outside.state(), step);
        let done = self.effect(target, &words, |state| {
            if state.is_engine_down {
                return Err(state.down());
            }
            let is_free = |port: u16, slot: Slot| is_free(state, target, (slot, port));
            let wanted = if let Step::Preflight { slot, port, .. } = step {
                Some((*port, *slot))
            } else if let Step::StartSlot { container } = step {
                Some((container.host_port, container.slot))
            } else {
                None
            };
            if let Some((port, _)) = wanted.filter(|(port, slot)| !is_free(*port, *slot)) {
                return Err(taken(port));
            }
            carry_out(state.hosts.entry(target.clone()).or_default(), step, now)
        });
        done.await.map_err(|(reason, class)| TargetError { reason, class })
    }

    async fn log_tail(&self, _target: &TargetName, _slot: Slot, _lines: u32) -> Result<Vec<String>, TargetError> {
        self.process.alive().await;
        Ok(vec!["a line of the application's".to_owned()])
    }
}

fn taken(port: u16) -> Reason {
    Reason::new(ReasonCode::PortTaken, format!("something else listens on port {port}"))
}

/// Whether nothing but the seat's own container listens there.
fn is_free(state: &State, target: &TargetName, (slot, port): (Slot, u16)) -> bool {
    state.hosts.iter().all(|(name, host)| {
        Slot::BOTH.iter().all(|seat| {
            let is_own = name == target && *seat == slot;
            let holder = host.live.slot(*seat).ours();
            is_own || !holder.is_some_and(|live| live.run.is_running() && live.spec.host_port == port)
        })
    })
}

fn words(state: &State, step: &Step) -> String {
    match step {
        Step::Preflight { slot, .. } => format!("look for room for {slot}"),
        Step::EnsureNetwork { .. } => "make the bridge".to_owned(),
        Step::EnsureIsolation { .. } => "close the bridge".to_owned(),
        Step::RemoveSlot { slot, .. } => format!("remove {slot}"),
        Step::StartSlot { container } => {
            let sha: Option<Sha> = container.labels.get(LABEL_REVISION).and_then(|sha| sha.parse().ok());
            let name = sha.and_then(|sha| state.commits.get(&sha)).map(|commit| commit.name.clone());
            format!("start {} with {}", container.slot, name.unwrap_or_default())
        }
        Step::ResumeSlot { slot } => format!("start {slot} again"),
        Step::KeepSlot { slot, is_kept: true } => format!("keep {slot}"),
        Step::KeepSlot { slot, is_kept: false } => format!("let {slot} go"),
        Step::DrainSlot { slot, .. } => format!("stop {slot} after its drain"),
        Step::StopSlot { slot, .. } => format!("stop {slot}"),
        Step::EnsureVhost { .. }
        | Step::PrepareImage { .. }
        | Step::AwaitHealth { .. }
        | Step::SmokeSlot { .. }
        | Step::Route { .. }
        | Step::Unroute
        | Step::ConfirmEdge { .. }
        | Step::ProvePublic { .. }
        | Step::PruneImages { .. } => panic!("the engine was handed `{step}`"),
    }
}

/// Does a step; says whether anything changed that a record should show.
fn carry_out(host: &mut Host, step: &Step, now: jiff::Timestamp) -> Result<bool, Reason> {
    match step {
        Step::EnsureNetwork { network } => {
            let is_new = host.live.network.as_ref() != Some(network);
            host.live.network = Some(network.clone());
            Ok(is_new)
        }
        Step::EnsureIsolation { .. } => {
            let is_new = !host.live.isolation_missing.is_empty();
            host.live.isolation_missing.clear();
            Ok(is_new)
        }
        Step::RemoveSlot { slot, .. } => Ok(empty(host, *slot)),
        Step::StartSlot { container } => start(host, container, now),
        Step::ResumeSlot { slot } => resume(host, *slot, now),
        Step::KeepSlot { slot, is_kept } => keep(host, *slot, *is_kept),
        Step::DrainSlot { slot, .. } | Step::StopSlot { slot, .. } => Ok(stop(host, *slot)),
        Step::Preflight { .. }
        | Step::EnsureVhost { .. }
        | Step::PrepareImage { .. }
        | Step::AwaitHealth { .. }
        | Step::SmokeSlot { .. }
        | Step::Route { .. }
        | Step::Unroute
        | Step::ConfirmEdge { .. }
        | Step::ProvePublic { .. }
        | Step::PruneImages { .. } => Ok(false),
    }
}

fn index(slot: Slot) -> usize {
    match slot {
        Slot::A => 0,
        Slot::B => 1,
    }
}

fn empty(host: &mut Host, slot: Slot) -> bool {
    let seat = &mut host.live.slots[index(slot)];
    let is_ours = seat.ours().is_some();
    if is_ours {
        *seat = SlotState::Empty;
    }
    is_ours
}

fn stop(host: &mut Host, slot: Slot) -> bool {
    match &mut host.live.slots[index(slot)] {
        SlotState::Ours(container) if container.run.is_running() => {
            container.run = RunState::Exited { code: 0, is_out_of_memory: false };
            true
        }
        SlotState::Ours(_) | SlotState::Empty | SlotState::Foreign { .. } => false,
    }
}

fn start(host: &mut Host, spec: &ContainerSpec, now: jiff::Timestamp) -> Result<bool, Reason> {
    if host.live.network.is_none() {
        return Err(Reason::new(ReasonCode::EngineUnavailable, "there is no such bridge"));
    }
    let label = |name: &str| spec.labels.get(name);
    match host.live.slot(spec.slot) {
        SlotState::Foreign { .. } => return Err(Reason::new(ReasonCode::NameTaken, "a foreign container")),
        SlotState::Ours(live) if live.run.is_running() && live.spec == *spec => return Ok(false),
        SlotState::Ours(_) | SlotState::Empty => {}
    }
    let container = LiveContainer {
        id: format!("{}-{}", spec.name, now.as_millisecond()),
        spec: spec.clone(),
        release: label(LABEL_RELEASE).and_then(|text| text.parse().ok()).map(ReleaseNumber),
        revision: label(LABEL_REVISION).and_then(|text| text.parse().ok()),
        manifest: label(LABEL_MANIFEST).and_then(|text| text.parse().ok()),
        run: RunState::Running { since: Some(now) },
        is_kept: false,
    };
    host.live.slots[index(spec.slot)] = SlotState::Ours(Box::new(container));
    host.started[index(spec.slot)] = Some(now);
    Ok(true)
}

fn resume(host: &mut Host, slot: Slot, now: jiff::Timestamp) -> Result<bool, Reason> {
    let seat = &mut host.live.slots[index(slot)];
    match seat {
        SlotState::Ours(container) if container.run.is_running() => Ok(false),
        SlotState::Ours(container) => {
            container.run = RunState::Running { since: Some(now) };
            host.started[index(slot)] = Some(now);
            Ok(true)
        }
        SlotState::Empty | SlotState::Foreign { .. } => {
            Err(Reason::new(ReasonCode::EngineUnavailable, "the container is gone"))
        }
    }
}

fn keep(host: &mut Host, slot: Slot, is_kept: bool) -> Result<bool, Reason> {
    match &mut host.live.slots[index(slot)] {
        SlotState::Ours(container) if container.is_kept == is_kept => Ok(false),
        SlotState::Ours(container) => {
            container.is_kept = is_kept;
            Ok(true)
        }
        SlotState::Empty | SlotState::Foreign { .. } if !is_kept => Ok(false),
        SlotState::Empty | SlotState::Foreign { .. } => {
            Err(Reason::new(ReasonCode::EngineUnavailable, "the container is gone"))
        }
    }
}

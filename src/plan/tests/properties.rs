//! What holds of every plan, over every case and over generated ones.

use proptest::prelude::*;

use super::case::{Case, World};
use super::{answer, cases};
use crate::model::Slot;
use crate::model::live::{LiveContainer, LiveEdge, LiveState, RunState, SlotState};
use crate::plan::{Plan, Serving, Step};

/// Which slot a step acts upon.
fn acts_on(step: &Step) -> Option<Slot> {
    match step {
        Step::RemoveSlot { slot, .. }
        | Step::ResumeSlot { slot }
        | Step::Route { slot }
        | Step::KeepSlot { slot, .. }
        | Step::DrainSlot { slot, .. }
        | Step::StopSlot { slot, .. } => Some(*slot),
        Step::StartSlot { container } => Some(container.slot),
        Step::Preflight { .. }
        | Step::EnsureNetwork { .. }
        | Step::EnsureIsolation { .. }
        | Step::EnsureVhost { .. }
        | Step::PrepareImage { .. }
        | Step::AwaitHealth { .. }
        | Step::SmokeSlot { .. }
        | Step::Unroute
        | Step::ConfirmEdge { .. }
        | Step::ProvePublic { .. }
        | Step::PruneImages { .. } => None,
    }
}

fn holds(world: &World, plan: &Plan) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {plan:#?}"));
    let touches_serving = plan.converge.iter().any(|step| acts_on(step).is_some() && acts_on(step) == plan.serving);
    let states_outage = plan.held.iter().any(|held| held.starts_with("outage"));
    if touches_serving != states_outage {
        return wrong("the serving slot is touched before the switch exactly when an outage is stated");
    }
    if Some(plan.slot) == plan.serving {
        return wrong("the candidate takes the serving slot");
    }
    let undoes = [&plan.undo_before, &plan.undo_after];
    let removes = |steps: &&Vec<Step>| {
        steps.iter().any(|step| matches!(step, Step::RemoveSlot { slot, .. } if *slot == plan.slot))
    };
    if !undoes.iter().all(removes) {
        return wrong("an undo leaves the candidate");
    }
    let back = plan.serving.map_or(Step::Unroute, |slot| Step::Route { slot });
    if !plan.undo_after.contains(&back) {
        return wrong("the way back does not move the traffic back");
    }
    let route = plan.commit.iter().position(|step| matches!(step, Step::Route { slot } if *slot == plan.slot));
    let proof = plan.commit.iter().position(|step| matches!(step, Step::ProvePublic { .. }));
    let stops_old = plan
        .commit
        .iter()
        .any(|step| matches!(step, Step::StopSlot { .. } | Step::DrainSlot { .. } | Step::RemoveSlot { .. }));
    if route.is_none() || proof <= route || stops_old {
        return wrong("the old slot stays able to serve until the public proof is in");
    }
    if plan.revision != world.desired.revision {
        return wrong("another revision is planned");
    }
    Ok(())
}

/// What a target looks like once the plan is through.
fn applied(world: &World, plan: &Plan) -> World {
    let mut slots = world.live.slots.clone();
    let mut serving = plan.serving;
    for step in plan.converge.iter().chain(&plan.commit).chain(&plan.retire) {
        let seat = acts_on(step).map(|slot| if slot == Slot::A { 0 } else { 1 });
        match (step, seat) {
            (Step::RemoveSlot { .. }, Some(seat)) => slots[seat] = SlotState::Empty,
            (Step::StartSlot { container }, Some(seat)) => {
                slots[seat] = SlotState::Ours(Box::new(LiveContainer {
                    id: "new".to_owned(),
                    spec: (**container).clone(),
                    release: None,
                    revision: Some(plan.revision.clone()),
                    manifest: None,
                    run: RunState::Running { since: None },
                    is_kept: false,
                }));
            }
            (Step::DrainSlot { .. } | Step::StopSlot { .. }, Some(seat)) => {
                if let SlotState::Ours(container) = &mut slots[seat] {
                    container.run = RunState::Exited { code: 0, is_out_of_memory: false };
                }
            }
            (Step::KeepSlot { is_kept, .. }, Some(seat)) => {
                if let SlotState::Ours(container) = &mut slots[seat] {
                    container.is_kept = *is_kept;
                }
            }
            (Step::Route { slot }, _) => serving = Some(*slot),
            _ => {}
        }
    }
    World {
        is_drift: false,
        desired: world.desired.clone(),
        documents: world.documents.clone(),
        live: LiveState { slots, network: None, isolation_missing: Vec::new() },
        edge: LiveEdge { serving, vhost: Some(world.documents.vhost.text.clone()), is_loaded: true },
        serving: Some(Serving {
            number: crate::model::ReleaseNumber(8),
            slot: plan.slot,
            desired: world.desired.clone(),
            kept: Vec::new(),
        }),
    }
}

fn check(world: &World) -> Result<(), String> {
    let first = answer(world);
    if first != answer(world) {
        return Err("two answers to one question".to_owned());
    }
    let Ok(Some(plan)) = first else { return Ok(()) };
    holds(world, &plan)?;
    let after = applied(world, &plan);
    let running: Vec<Slot> = Slot::BOTH
        .into_iter()
        .filter(|slot| after.live.slot(*slot).ours().is_some_and(|live| live.run.is_running()))
        .collect();
    if running != [plan.slot] || after.edge.serving != Some(plan.slot) {
        return Err(format!("{running:?} run after {plan:#?}"));
    }
    let kept = after.live.slot(plan.slot).ours().is_some_and(|live| live.is_kept);
    match (kept, answer(&after)) {
        (true, Ok(None)) => Ok(()),
        (kept, again) => Err(format!("kept: {kept}; a converged target is planned for again: {again:?}")),
    }
}

#[test]
fn every_case_keeps_what_every_plan_promises() {
    for (path, world) in cases() {
        check(&world).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
    }
}

proptest! {
    #[test]
    fn any_target_is_planned_for_safely_and_once(
        seats in (0..4_usize, 0..4_usize),
        serving in 0..3_usize,
        record in 0..3_usize,
        data in (0..3_usize, 0..3_usize, any::<bool>()),
        is_same in any::<bool>(),
    ) {
        let seat = ["", "old running", "old stopped", "older running"];
        let slot = ["", "serving = 'a'\n", "serving = 'b'\n"];
        let flag = ["", "data = false\n", "data = true\n"];
        // What the marker names runs; what it does not name may be anything of ours.
        let (mut a, mut b) = (seat[seats.0], seat[seats.1]);
        match serving {
            1 => (a, b) = ("old running", if seats.1 % 2 == 1 { "old stopped" } else { b }),
            2 => (a, b) = (if seats.0 % 2 == 1 { "old stopped" } else { a }, "old running"),
            _ => (a, b) = (a.trim_end_matches("running"), b.trim_end_matches("running")),
        }
        let (a, b) = (a.trim(), b.trim());
        let named = |text: &str| if text.contains(' ') { text.to_owned() } else { String::new() };
        let commit = if is_same { "old" } else { "new" };
        let recorded = match record {
            1 => format!("[serving]\ncommit = 'old'\nslot = 'a'\n{}", flag[data.1]),
            2 => format!("[serving]\ncommit = 'old'\nslot = 'b'\n{}", flag[data.1]),
            _ => String::new(),
        };
        let case = format!(
            "[desired]\ncommit = '{commit}'\nregistry = 'r2'\nconcurrent = {}\n{}[live]\na = '{}'\nb = '{}'\n[edge]\n{}{recorded}",
            data.2, flag[data.0], named(a), named(b), slot[serving]
        );
        let world = toml::from_str::<Case>(&case).unwrap().world();
        check(&world).map_err(|wrong| TestCaseError::fail(format!("{case}\n{wrong}")))?;
    }
}

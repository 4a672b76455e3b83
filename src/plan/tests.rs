//! The planner over `testdata/plan/`: each `.toml` is answered by the `.snap` beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Cause, Observed, Plan, Step, plan, plan_for};
use crate::model::{Reason, Slot};

mod case;
mod properties;
use case::{Case, World};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/plan")
}

/// The files with this ending, sorted.
fn files(ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|end| end == ending)).collect();
    files.sort();
    files
}

fn cases() -> Vec<(PathBuf, World)> {
    let read = |path: PathBuf| {
        let case: Case = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let world = case.world();
        (path, world)
    };
    files("toml").into_iter().map(read).collect()
}

fn answer(world: &World) -> Result<Option<Plan>, Reason> {
    let observed = Observed { live: &world.live, edge: &world.edge };
    let (desired, documents) = (&world.desired, &world.documents);
    if world.is_drift {
        return plan_for(Cause::Drift, desired, documents, (observed, world.serving.as_ref())).map(Some);
    }
    plan(desired, documents, observed, world.serving.as_ref())
}

/// A line a step, the section before it, as people read plans.
fn text(answer: &Result<Option<Plan>, Reason>) -> String {
    let plan = match answer {
        Err(reason) => return format!("refused      {reason}\n"),
        Ok(None) => return "converged\n".to_owned(),
        Ok(Some(plan)) => plan,
    };
    let serving = plan.serving.map_or("nothing".to_owned(), |slot| slot.to_string());
    let mut out = format!("{}: to {}, {serving} serves\n", plan.cause.as_str(), plan.slot);
    let sections = [
        ("converge", &plan.converge),
        ("commit", &plan.commit),
        ("retire", &plan.retire),
        ("undo_before", &plan.undo_before),
        ("undo_after", &plan.undo_after),
    ];
    for (name, steps) in sections {
        for step in steps {
            out.push_str(&format!("{name:<12} {}\n", words(step)));
        }
    }
    for held in &plan.held {
        out.push_str(&format!("held         {held}\n"));
    }
    out
}

fn words(step: &Step) -> String {
    match step {
        Step::Preflight { slot, port, .. } => format!("room for {slot}, port {port}"),
        Step::EnsureNetwork { .. } => "bridge".to_owned(),
        Step::EnsureIsolation { .. } => "isolation".to_owned(),
        Step::EnsureVhost { vhost } => {
            format!("vhost {} ({})", vhost.hosts.join(" "), vhost.text.lines().next().unwrap())
        }
        Step::PrepareImage { image } => format!("image {}", image.reference),
        Step::RemoveSlot { slot, .. } => format!("remove {slot}"),
        Step::StartSlot { container } => format!("start {} {}", container.slot, container.image),
        Step::ResumeSlot { slot } => format!("start {slot} again"),
        Step::AwaitHealth { slot, port, revision, .. } => format!("health {slot}:{port} {}", revision.short()),
        Step::SmokeSlot { slot, checks, host, .. } => format!("smoke {slot} {host}, {} checks", checks.len()),
        Step::Route { slot } => format!("route {slot}"),
        Step::Unroute => "unroute".to_owned(),
        Step::ConfirmEdge { hosts, revision, .. } => format!("confirm {} on {}", revision.short(), hosts.join(" ")),
        Step::ProvePublic { hosts, revision, .. } => format!("prove {} on {}", revision.short(), hosts.join(" ")),
        Step::KeepSlot { slot, is_kept } => format!("{} {slot}", if *is_kept { "keep" } else { "unkeep" }),
        Step::DrainSlot { slot, drain_seconds, .. } => format!("stop {slot} after {drain_seconds} s"),
        Step::StopSlot { slot, .. } => format!("stop {slot} now"),
        Step::PruneImages { keep, .. } => format!("untag all but {}", keep.join(" ")),
    }
}

/// `TRUEUP_WRITE_SNAPS=1` writes the answers anew, to be read in the difference.
#[test]
fn plans_match_their_cases() {
    let is_writing = std::env::var_os("TRUEUP_WRITE_SNAPS").is_some();
    let mut wrong = Vec::new();
    for (path, world) in cases() {
        let (got, snap) = (text(&answer(&world)), path.with_extension("snap"));
        if is_writing {
            std::fs::write(&snap, &got).unwrap();
        }
        let wanted = std::fs::read_to_string(&snap).unwrap_or_default();
        if got != wanted {
            wrong.push(format!(
                "{}:\n{}",
                path.display(),
                crate::diff::unified(&[crate::diff::Document {
                    name: "plan".to_owned(),
                    before: Some(wanted),
                    after: Some(got),
                }])
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_snapshot_has_its_case_and_every_step_a_case_that_has_it() {
    let stems = |ending: &str| -> BTreeSet<String> {
        files(ending).iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(stems("snap"), stems("toml"));
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (_, world) in cases() {
        let Ok(Some(plan)) = answer(&world) else { continue };
        let all = [plan.converge, plan.commit, plan.retire, plan.undo_before, plan.undo_after];
        let json = all.iter().flatten().map(|step| serde_json::to_value(step).unwrap());
        seen.extend(json.map(|step| step["step"].as_str().unwrap().to_owned()));
    }
    let wanted = [
        "preflight",
        "ensure-network",
        "ensure-isolation",
        "ensure-vhost",
        "prepare-image",
        "remove-slot",
        "start-slot",
        "resume-slot",
        "await-health",
        "smoke-slot",
        "route",
        "unroute",
        "confirm-edge",
        "prove-public",
        "keep-slot",
        "drain-slot",
        "stop-slot",
        "prune-images",
    ];
    assert_eq!(seen, wanted.map(str::to_owned).into());
}

/// Ruling 38: overlap on data needs the old manifest, the new manifest and the registry all to allow it.
#[test]
fn data_is_shared_only_when_the_old_the_new_and_the_registry_allow_it() {
    for bits in 0..8_u8 {
        let [old, new, registry] = [0, 1, 2].map(|bit| bits & (1 << bit) != 0);
        let case = format!(
            "[desired]\ncommit = 'new'\ndata = {new}\nconcurrent = {registry}\n[live]\na = 'old running'\n[edge]\nserving = 'a'\n[serving]\ncommit = 'old'\nslot = 'a'\ndata = {old}\n"
        );
        let world = toml::from_str::<Case>(&case).unwrap().world();
        let plan = answer(&world).unwrap().unwrap();
        let stops_first = plan.converge.iter().any(|step| matches!(step, Step::StopSlot { slot: Slot::A, .. }));
        let is_shared = old && new && registry;
        assert_eq!(stops_first, !is_shared, "old {old}, new {new}, registry {registry}");
        assert_eq!(plan.held.iter().any(|held| held.starts_with("outage")), !is_shared, "an outage is stated");
        let resumes = |steps: &[Step]| steps.iter().any(|step| matches!(step, Step::ResumeSlot { slot: Slot::A }));
        assert_eq!((resumes(&plan.undo_before), resumes(&plan.undo_after)), (!is_shared, !is_shared));
    }
}

/// Ruling 11: each key that is not built yet is named, and nothing else is refused.
#[test]
fn what_is_not_built_yet_is_refused_naming_its_key() {
    use crate::model::desired::{DesiredState, JobRequest};
    use crate::model::policy::{DataPolicy, ImageFrom};
    let plain = || toml::from_str::<Case>("[desired]\ncommit = 'v1'\n").unwrap().world().desired;
    assert_eq!(super::support::unsupported(&plain()), None);
    let data = || DataPolicy { size_bytes: 1 << 30, backup: "daily".to_owned(), concurrent: false };
    let job = || JobRequest {
        name: "rotate".to_owned(),
        cmd: vec!["/rotate".to_owned()],
        schedule: "*-*-* 03:10:00".to_owned(),
        timeout_seconds: 600,
        after_release: false,
    };
    let one = || vec!["one".to_owned()];
    type Edit<'e> = &'e dyn Fn(&mut DesiredState);
    let edits: [(&str, Edit<'_>); 9] = [
        ("data", &|it| it.policy.data = Some(data())),
        ("data", &|it| {
            it.data = toml::from_str::<Case>("[desired]\ncommit = 'v1'\ndata = true\n").unwrap().world().desired.data
        }),
        ("[[jobs]]", &|it| it.jobs.push(job())),
        ("secrets", &|it| it.policy.secrets = one()),
        ("job_secrets", &|it| it.policy.job_secrets.extend([("rotate".to_owned(), one())])),
        ("egress", &|it| it.policy.egress = one()),
        ("upstreams", &|it| it.policy.upstreams = one()),
        ("adopt", &|it| it.policy.adopt = Some("site.caddy".to_owned())),
        ("image.from = \"registry\"", &|it| it.image.policy.from = ImageFrom::Registry),
    ];
    for (key, edit) in edits {
        let mut desired = plain();
        edit(&mut desired);
        let refused = super::support::unsupported(&desired).unwrap();
        assert_eq!(refused.code, crate::model::ReasonCode::NotBuilt);
        assert!(refused.message.starts_with(&format!("`{key}` is set")), "{refused}");
    }
}

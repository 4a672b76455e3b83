//! What must be unique across all files of the registry.
//!
//! Both sides of a clash are refused: a new file must not take a host, port or uid away from the
//! one that has it, whichever comes first by name. Who had it keeps its last good file.

use std::collections::BTreeMap;

use super::Entry;
use crate::model::document::Refusal;
use crate::model::policy::TargetKind;
use crate::model::{Place, Problem, Problems};

/// What is said of a host that another target has too; `other` is where.
pub(super) fn host_refusal(other: &str) -> Refusal {
    Refusal::new(
        format!("is the host at {other} too"),
        "the edge sends a host to one target",
        "give each target hosts of its own",
    )
}

/// What is said of a port that another target has too; `other` is where.
pub(super) fn slot_refusal(other: &str) -> Refusal {
    Refusal::new(
        format!("is the port at {other} too"),
        "a loopback port belongs to one slot of one target",
        "give each target two free ports of its own",
    )
}

fn uid_refusal(other: &str) -> Refusal {
    Refusal::new(
        format!("is also the {other}"),
        "a project's files and processes are kept apart from others by its user",
        "choose a number that no other project has",
    )
}

/// One thing that only one project may have.
struct Claim<'a> {
    file: &'a str,
    path: String,
    place: Option<Place>,
}

/// Finds uids, hosts and slots that two files share. `entries` are the files that were read, each
/// with its name for the reader; a file of its own is no rival to itself (that is found when it is
/// read).
#[must_use]
pub fn cross_check(entries: &[(&str, &Entry)]) -> Vec<Problems> {
    let mut uids: BTreeMap<u32, Vec<Claim<'_>>> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, Vec<Claim<'_>>> = BTreeMap::new();
    let mut slots: BTreeMap<u16, Vec<Claim<'_>>> = BTreeMap::new();
    for (file, entry) in entries {
        let claim = |path: String| Claim { file, place: entry.places.get(&path).copied(), path };
        if let Some(uid) = entry.project.uid {
            uids.entry(uid).or_default().push(claim("uid".to_owned()));
        }
        for (label, target) in &entry.project.targets {
            let TargetKind::Host(policy) = &target.kind else {
                continue;
            };
            for (index, host) in policy.hosts.iter().enumerate() {
                hosts.entry(host).or_default().push(claim(format!("targets.{label}.hosts[{index}]")));
            }
            for (index, slot) in policy.slots.iter().enumerate() {
                slots.entry(*slot).or_default().push(claim(format!("targets.{label}.slots[{index}]")));
            }
        }
    }
    let mut found: BTreeMap<&str, Vec<Problem>> = BTreeMap::new();
    uids.values().for_each(|claims| clashes(claims, uid_refusal, &mut found));
    hosts.values().for_each(|claims| clashes(claims, host_refusal, &mut found));
    slots.values().for_each(|claims| clashes(claims, slot_refusal, &mut found));
    let problems = |(file, mut list): (&str, Vec<Problem>)| {
        list.sort_by_key(|problem| problem.place);
        Problems { file: file.to_owned(), list }
    };
    found.into_iter().map(problems).collect()
}

/// Notes each claim that has a rival in another file.
fn clashes<'a>(claims: &[Claim<'a>], refusal: fn(&str) -> Refusal, found: &mut BTreeMap<&'a str, Vec<Problem>>) {
    for claim in claims {
        let Some(rival) = claims.iter().find(|other| other.file != claim.file) else {
            continue;
        };
        let refusal = refusal(&format!("{} of {}", rival.path, base(rival.file)));
        found.entry(claim.file).or_default().push(Problem {
            place: claim.place,
            key: claim.path.clone(),
            message: format!("{}: {} {}", base(claim.file), claim.path, refusal.what),
            why: refusal.why.into_owned(),
            fix: refusal.fix.into_owned(),
        });
    }
}

/// The last part of a path.
fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

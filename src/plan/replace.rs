//! Replacement of one revision by another on a host target: two slots, or, where data may not be
//! shared, one after the other.

use crate::model::desired::{DesiredState, Documents, Vhost};
use crate::model::live::{LiveEdge, LiveState, SlotState};
use crate::model::{Reason, ReasonCode, ReleaseNumber, Slot};

use super::step::Step;
use super::{Cause, Plan};

/// Seconds for which a candidate may take to say that it is healthy.
///
/// Source: app.toml contract, `/healthz`.
pub const HEALTH_SECONDS: u32 = 30;

/// Seconds between SIGTERM and SIGKILL.
///
/// Source: app.toml contract, 'How the container runs'.
pub const STOP_GRACE_SECONDS: u32 = 10;

/// Seconds for which the edge may take to show a switch that needs no reload: one request, with room
/// for a loaded machine.
pub const CONFIRM_SECONDS: u32 = 10;

/// Seconds for which transport errors on the public path are tried again (ruling 36).
pub const PUBLIC_SECONDS: u32 = 30;

/// Bytes that must be free before anything starts: an image of ordinary size and its build.
pub const FREE_BYTES: u64 = 512 * 1024 * 1024;

/// Inodes that must be free before anything starts.
pub const FREE_INODES: u64 = 10_000;

/// What was read of a target before planning.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The engine's side.
    pub live: &'a LiveState,
    /// The edge's side.
    pub edge: &'a LiveEdge,
}

/// The release that is recorded as live.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Its number.
    pub number: ReleaseNumber,
    /// The slot it took.
    pub slot: Slot,
    /// What it was made from.
    pub desired: DesiredState,
    /// Short shas of the revisions whose images stay, newest first, the live one included.
    pub kept: Vec<String>,
}

/// Decides how to make `desired` live.
///
/// Pure: equal inputs give equal plans. No plan means converged. The serving slot is left alone until
/// `commit`, and the undo is decided here, in calm, not in the middle of a failure.
///
/// # Errors
/// A [`Reason`] when the idle slot holds a container that is not ours.
pub fn plan(
    desired: &DesiredState,
    documents: &Documents,
    observed: Observed<'_>,
    serving: Option<&Serving>,
) -> Result<Option<Plan>, Reason> {
    match cause(desired, serving) {
        None => Ok(None),
        Some(cause) => plan_for(cause, desired, documents, (observed, serving)).map(Some),
    }
}

/// Says whether and why a release is needed.
///
/// A commit whose tree is the live one's is satisfied by it, unless the operator's side changed (ruling 18).
#[must_use]
pub fn cause(desired: &DesiredState, serving: Option<&Serving>) -> Option<Cause> {
    let Some(serving) = serving else { return Some(Cause::FirstRelease) };
    let live = &serving.desired;
    if live.revision != desired.revision && live.tree != desired.tree {
        return Some(Cause::NewRevision);
    }
    (live.registry != desired.registry || live.manifest != desired.manifest).then_some(Cause::RegistryChanged)
}

/// Decides how to make `desired` live although a reason to do so lies outside it: drift that heals,
/// or a person's wish.
///
/// # Errors
/// A [`Reason`] when the idle slot holds a container that is not ours.
pub fn plan_for(
    cause: Cause,
    desired: &DesiredState,
    documents: &Documents,
    (observed, serving): (Observed<'_>, Option<&Serving>),
) -> Result<Plan, Reason> {
    let old = observed.edge.serving;
    let slot = candidate_slot(old, serving);
    refuse_foreign(slot, observed.live, documents)?;
    let before = serving.filter(|serving| Some(serving.slot) == old);
    let moves = Moves { desired, documents, observed, serving, before, old, slot };
    let exclusive = moves.is_exclusive();
    Ok(Plan {
        revision: desired.revision.clone(),
        cause,
        slot,
        serving: old,
        converge: moves.converge(exclusive),
        commit: moves.commit(),
        retire: moves.retire(exclusive),
        undo_before: moves.undo_before(exclusive),
        undo_after: moves.undo_after(exclusive),
        held: moves.held(exclusive),
    })
}

/// The idle seat: not the one that the marker names; without a marker, not the one that the last live
/// release took, so that nothing that may still be used is touched.
fn candidate_slot(old: Option<Slot>, serving: Option<&Serving>) -> Slot {
    match (old, serving) {
        (Some(slot), _) => slot.other(),
        (None, Some(serving)) => serving.slot.other(),
        (None, None) => Slot::A,
    }
}

fn refuse_foreign(slot: Slot, live: &LiveState, documents: &Documents) -> Result<(), Reason> {
    match live.slot(slot) {
        SlotState::Foreign { id } => Err(Reason::new(
            ReasonCode::NameTaken,
            format!(
                "the container `{}` ({}) exists and trueup did not make it: it is left alone; remove or rename it, then `trueup retry`",
                slot.of(&documents.containers).name,
                id.get(..12).unwrap_or(id)
            ),
        )),
        SlotState::Empty | SlotState::Ours(_) => Ok(()),
    }
}

struct Moves<'a> {
    desired: &'a DesiredState,
    documents: &'a Documents,
    observed: Observed<'a>,
    serving: Option<&'a Serving>,
    /// The recorded release, if it is the one that the marker names: only then is it known what serves.
    before: Option<&'a Serving>,
    old: Option<Slot>,
    slot: Slot,
}

impl Moves<'_> {
    /// Overlap on data needs the old manifest, the new manifest and the registry all to allow it (ruling 38).
    fn is_exclusive(&self) -> bool {
        let Some(new) = &self.desired.data else { return false };
        // What serves without a record may use the data too, and nothing says that it can share it.
        let old_shares =
            self.before.is_some_and(|before| before.desired.data.as_ref().is_none_or(|old| old.concurrent_safe));
        let is_allowed = self.desired.policy.data.as_ref().is_some_and(|data| data.concurrent);
        let is_shared = is_allowed && new.concurrent_safe && old_shares;
        self.old.is_some() && !is_shared
    }

    fn port(&self) -> u16 {
        self.slot.of(&self.documents.containers).host_port
    }

    fn await_health(&self) -> Step {
        Step::AwaitHealth {
            slot: self.slot,
            port: self.port(),
            path: self.desired.health.clone(),
            revision: self.desired.revision.clone(),
            within_seconds: HEALTH_SECONDS,
        }
    }

    fn converge(&self, exclusive: bool) -> Vec<Step> {
        let documents = self.documents;
        let mut steps = vec![
            Step::Preflight { slot: self.slot, port: self.port(), free_bytes: FREE_BYTES, free_inodes: FREE_INODES },
            Step::EnsureNetwork { network: documents.network.clone() },
            Step::EnsureIsolation { network: documents.network.clone() },
            Step::EnsureVhost { vhost: documents.vhost.clone() },
            Step::PrepareImage { image: Box::new(self.desired.image.clone()) },
        ];
        if self.observed.live.slot(self.slot).ours().is_some() {
            steps.push(Step::RemoveSlot { slot: self.slot, grace_seconds: STOP_GRACE_SECONDS });
        }
        if let (true, Some(old)) = (exclusive, self.old) {
            steps.push(Step::StopSlot { slot: old, grace_seconds: STOP_GRACE_SECONDS });
        }
        steps.push(Step::StartSlot { container: Box::new(self.slot.of(&documents.containers).clone()) });
        steps.push(self.await_health());
        if !self.desired.smoke.is_empty() {
            steps.push(Step::SmokeSlot {
                slot: self.slot,
                port: self.port(),
                host: self.first_host(),
                checks: self.desired.smoke.clone(),
            });
        }
        steps
    }

    fn first_host(&self) -> String {
        self.desired.policy.hosts.first().cloned().unwrap_or_default()
    }

    fn commit(&self) -> Vec<Step> {
        let hosts = self.desired.policy.hosts.clone();
        let mut steps = vec![
            Step::Route { slot: self.slot },
            Step::ConfirmEdge {
                hosts: hosts.clone(),
                path: self.desired.health.clone(),
                revision: self.desired.revision.clone(),
                within_seconds: CONFIRM_SECONDS,
            },
            Step::ProvePublic {
                hosts,
                path: self.desired.health.clone(),
                revision: self.desired.revision.clone(),
                checks: self.desired.smoke.clone(),
                within_seconds: PUBLIC_SECONDS,
            },
            Step::KeepSlot { slot: self.slot, is_kept: true },
        ];
        if let Some(old) = self.old_container() {
            steps.push(Step::KeepSlot { slot: old, is_kept: false });
        }
        steps
    }

    /// The slot that the candidate replaces, if a container of ours is in it: the one that serves, or,
    /// where the marker names none, the one that was left running beside it.
    fn old_container(&self) -> Option<Slot> {
        let old = self.old.unwrap_or(self.slot.other());
        self.observed.live.slot(old).ours().map(|_| old)
    }

    fn retire(&self, exclusive: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        if let (false, Some(old)) = (exclusive, self.old_container()) {
            steps.push(Step::DrainSlot {
                slot: old,
                drain_seconds: self.desired.policy.drain_seconds,
                grace_seconds: STOP_GRACE_SECONDS,
            });
        }
        if let Some((repository, _)) = self.desired.image.reference.rsplit_once(':') {
            steps.push(Step::PruneImages { repository: repository.to_owned(), keep: self.kept() });
        }
        steps
    }

    /// The tags that stay: this revision, then the newest live ones, `keep_releases` in all.
    fn kept(&self) -> Vec<String> {
        let mut kept = vec![self.desired.revision.short().to_owned()];
        let earlier = self.serving.map(|serving| serving.kept.as_slice()).unwrap_or_default();
        let limit = usize::try_from(self.desired.policy.keep_releases).unwrap_or(usize::MAX);
        for tag in earlier {
            if kept.len() >= limit {
                break;
            }
            if !kept.contains(tag) {
                kept.push(tag.clone());
            }
        }
        kept
    }

    fn remove_candidate(&self) -> Step {
        Step::RemoveSlot { slot: self.slot, grace_seconds: STOP_GRACE_SECONDS }
    }

    fn undo_before(&self, exclusive: bool) -> Vec<Step> {
        let mut steps = vec![self.remove_candidate()];
        if exclusive {
            steps.extend(self.resume_old());
        }
        steps.extend(self.restore_vhost());
        steps
    }

    /// What serves keeps its hosts: a vhost that changes for the candidate goes back with it.
    fn restore_vhost(&self) -> Option<Step> {
        let text = self.observed.edge.vhost.as_ref().filter(|text| **text != self.documents.vhost.text)?;
        let hosts = self.before?.desired.policy.hosts.clone();
        Some(Step::EnsureVhost { vhost: Vhost { file: self.documents.vhost.file.clone(), hosts, text: text.clone() } })
    }

    /// Starts the stopped old slot and waits until it is healthy again.
    fn resume_old(&self) -> Vec<Step> {
        let Some(old) = self.old else { return Vec::new() };
        let mut steps = vec![Step::ResumeSlot { slot: old }];
        if let (Some(serving), Some(container)) = (self.before, self.observed.live.slot(old).ours()) {
            steps.push(Step::AwaitHealth {
                slot: old,
                port: container.spec.host_port,
                path: serving.desired.health.clone(),
                revision: serving.desired.revision.clone(),
                within_seconds: HEALTH_SECONDS,
            });
        }
        steps
    }

    fn undo_after(&self, exclusive: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        if exclusive {
            steps.push(Step::StopSlot { slot: self.slot, grace_seconds: STOP_GRACE_SECONDS });
            steps.extend(self.resume_old());
        }
        match self.old {
            Some(old) => {
                steps.push(Step::Route { slot: old });
                steps.extend(self.restore_vhost());
                if let Some(serving) = self.before {
                    steps.push(Step::ConfirmEdge {
                        hosts: serving.desired.policy.hosts.clone(),
                        path: serving.desired.health.clone(),
                        revision: serving.desired.revision.clone(),
                        within_seconds: CONFIRM_SECONDS,
                    });
                }
                if self.old_container().is_some() {
                    steps.push(Step::KeepSlot { slot: old, is_kept: true });
                }
            }
            None => steps.push(Step::Unroute),
        }
        if !exclusive {
            steps.push(Step::DrainSlot {
                slot: self.slot,
                drain_seconds: self.desired.policy.drain_seconds,
                grace_seconds: STOP_GRACE_SECONDS,
            });
        }
        steps.push(self.remove_candidate());
        steps
    }

    fn held(&self, exclusive: bool) -> Vec<String> {
        let mut held = Vec::new();
        if let (true, Some(old)) = (exclusive, self.old) {
            held.push(format!(
                "outage: slot {old} stops before slot {} starts, because two releases may not use this data at once",
                self.slot
            ));
            held.push("data is never reverted: what the new release wrote stays".to_owned());
        }
        if let (false, Some(old)) = (exclusive, self.old_container()) {
            held.push(format!(
                "slot {old} is stopped after {} s and kept: it can be started again",
                self.desired.policy.drain_seconds
            ));
        }
        held.push(format!("images beyond keep_releases = {} are untagged", self.desired.policy.keep_releases));
        held
    }
}

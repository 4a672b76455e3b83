//! Looks for drift: what was released, rendered again, against what runs.

use crate::diff::drift::{Drift, Expected, Texts, drift};
use crate::model::TargetName;
use crate::model::desired::{DesiredState, NetworkSpec, Vhost};
use crate::model::policy::DriftPolicy;
use crate::plan::{Plan, Step};
use crate::render;
use crate::store::record::{Condition, DriftFinding, ReleaseRecord};

use super::documents::documents;
use super::ports::{Halt, Ports, StepError};

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nothing is released, or its record is of another kind: there is nothing to compare with.
    NothingReleased,
    /// A release is under way, so nothing can be said.
    Busy,
    /// Compared; empty when everything is as it was released.
    Compared(Drift),
}

/// Looks, records what was found, and gives it.
///
/// # Errors
/// [`Halt`] when the store fails; the inner error when engine or edge do not answer: that is no drift (P7).
pub async fn look(ports: &Ports, target: &TargetName) -> Result<Result<Look, StepError>, Halt> {
    let newest = ports.store.releases(target, 1).await?.into_iter().next();
    if newest.is_some_and(|newest| newest.outcome().is_none()) {
        return Ok(Ok(Look::Busy));
    }
    let Some(record) = ports.store.live_release(target).await? else { return Ok(Ok(Look::NothingReleased)) };
    let written = written_vhost(ports, &record).await?;
    match compare(ports, target, (&record, written)).await {
        Ok(Some(found)) => {
            remember(ports, target, &record, &found).await?;
            Ok(Ok(Look::Compared(found)))
        }
        Ok(None) => Ok(Ok(Look::NothingReleased)),
        Err(error) => Ok(Err(error)),
    }
}

/// Whether a target's drift is looked for, and whether it is put right.
#[must_use]
pub fn policy(ports: &Ports, target: &TargetName) -> DriftPolicy {
    ports.catalog.borrow().find(target).map_or(DriftPolicy::Report, |(_, policy)| policy.drift)
}

/// The vhost as the release wrote it: one slot's port in it may be older than the registry (ruling 35).
async fn written_vhost(ports: &Ports, record: &ReleaseRecord) -> Result<Option<Vhost>, Halt> {
    let Some(id) = &record.new.plan_id else { return Ok(None) };
    let Some(stored) = ports.store.plan(id).await? else { return Ok(None) };
    let Ok(plan) = serde_json::from_value::<Plan>(stored.plan) else { return Ok(None) };
    Ok(plan
        .converge
        .into_iter()
        .find_map(|step| if let Step::EnsureVhost { vhost } = step { Some(vhost) } else { None }))
}

async fn compare(
    ports: &Ports,
    target: &TargetName,
    (record, written): (&ReleaseRecord, Option<Vhost>),
) -> Result<Option<Drift>, StepError> {
    let desired = record.new.desired.clone().map(serde_json::from_value::<DesiredState>);
    let (Some(Ok(desired)), Some(slot)) = (desired, record.new.slot) else { return Ok(None) };
    let live = ports.target.observe(target).await?;
    let edge = ports.edge.observe(target, &render::vhost::vhost_file(target)).await?;
    let documents = documents(&desired, &live, Some(slot), &ports.settings);
    let mut container = render::container::with_release(slot.of(&documents.containers).clone(), record.number);
    container.image_id = record.image_id.as_deref().and_then(|id| id.parse().ok());
    if let Some(real) = live.slot(slot).ours() {
        // The port of the live slot is what it was started with (ruling 35).
        container.host_port = real.spec.host_port;
    }
    let expected = Expected { slot, container, network: documents.network, vhost: written.unwrap_or(documents.vhost) };
    let texts = Texts { container: render::container::text, network: network_text };
    Ok(Some(drift(&expected, &live, &edge, texts)))
}

fn network_text(network: &NetworkSpec) -> String {
    let labels: String = network.labels.iter().map(|(name, value)| format!("label {name}: {value}\n")).collect();
    format!("name: {}\nbridge: {}\n{labels}", network.name, network.bridge)
}

async fn remember(ports: &Ports, target: &TargetName, record: &ReleaseRecord, found: &Drift) -> Result<(), Halt> {
    let now = ports.clock.now();
    let finding = (!found.is_empty()).then(|| DriftFinding {
        revision: record.new.revision.clone(),
        difference: found.difference.clone(),
        summary: found.summary.clone(),
        since: now,
        looked_at: now,
    });
    ports.store.put_drift(target, finding.as_ref()).await?;
    let condition = Condition {
        kind: "Drifted".to_owned(),
        is_true: !found.is_empty(),
        reason: if found.is_empty() { "AsReleased" } else { "Different" }.to_owned(),
        message: if found.is_empty() {
            format!("everything is as release {} made it", record.number)
        } else {
            found.summary.join("; ")
        },
        since: now,
    };
    ports.store.put_condition(target, &condition).await?;
    Ok(())
}

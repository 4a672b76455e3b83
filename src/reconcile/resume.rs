//! After a crash: every unfinished release goes on from its journal, and is finished or undone.

use crate::model::{Reason, ReasonCode, TargetName};
use crate::release::Event;
use crate::store::record::ReleaseRecord;

use super::ports::{Halt, Interrupts, Ports};
use super::run::Run;

/// Drives every unfinished release of one target to its outcome, oldest first.
///
/// # Errors
/// [`Halt`] when a release could not go on.
pub async fn resume(ports: &Ports, target: &TargetName, interrupts: Interrupts) -> Result<(), Halt> {
    for record in ports.store.unfinished().await? {
        if record.new.target == *target {
            one(ports, record, interrupts.clone()).await?;
        }
    }
    Ok(())
}

async fn one(ports: &Ports, record: ReleaseRecord, interrupts: Interrupts) -> Result<(), Halt> {
    let Some(id) = record.new.plan_id.clone() else { return refuse(ports, &record).await };
    let broken = |detail: String| Halt::Plan { id: id.clone(), detail };
    let plan = ports.store.plan(&id).await?.ok_or_else(|| broken("it is not in the store".to_owned()))?;
    let plan = serde_json::from_value(plan.plan).map_err(|error| broken(error.to_string()))?;
    let journal = ports.store.journal_of(&record.new.target, record.number).await?;
    tracing::info!(target = %record.new.target, release = %record.number, phase = %record.phase, "going on after a stop");
    let run = Run::new(ports.clone(), record, plan, (&journal, interrupts))?;
    let record = run.drive().await?;
    tracing::info!(target = %record.new.target, release = %record.number, phase = %record.phase, "finished after a stop");
    Ok(())
}

/// A release without a plan was about to be refused: that is all it can become. The next pass refuses
/// the revision again, with the reason that was lost.
async fn refuse(ports: &Ports, record: &ReleaseRecord) -> Result<(), Halt> {
    let reason = Reason::new(ReasonCode::Interrupted, "the daemon was stopped while it refused this revision");
    let phase = record.phase.clone().on(Event::Refused(reason))?;
    Ok(ports.store.put_phase(&record.new.target, record.number, &phase, ports.clock.now()).await?)
}

//! What a release would do, without doing it.

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::model::{Reason, Sha, TargetName};
use crate::plan::Plan;

use super::pass::{Memory, Pass, Stop};
use super::ports::{Halt, Interrupt, Ports};
use super::queue::Wake;

/// A plan for people: what `trueup plan` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The target.
    pub target: TargetName,
    /// The commit it is for, once known.
    pub revision: Option<Sha>,
    /// The plan's id: what `approve` takes; none when nothing is to be done.
    pub id: Option<String>,
    /// Its steps; none when nothing is to be done, or nothing can be planned.
    pub plan: Option<Plan>,
    /// The steps in words, section by section.
    pub steps: Vec<String>,
    /// The unified difference of manifest, container and vhost against what is live.
    pub difference: String,
    /// Why it would not run now; none when it would.
    pub held: Option<Reason>,
    /// In one sentence.
    pub summary: String,
}

/// Plans for a target: for its wanted revision, or for `sha`.
///
/// # Errors
/// [`Halt`] when the store fails.
pub async fn preview(ports: &Ports, target: &TargetName, sha: Option<&Sha>) -> Result<Preview, Halt> {
    let (_keep, interrupts) = watch::channel(Interrupt::None);
    let mut memory = Memory::default();
    let mut pass = Pass { ports, target, wake: Wake::PERSON, interrupts, memory: &mut memory, is_preview: true };
    match pass.planned(sha).await {
        Ok(preview) => Ok(preview),
        Err(Stop::Halt(halt)) => Err(halt),
        Err(Stop::Converged { revision, message, .. }) => {
            Ok(Preview { revision: Some(revision), ..empty(target, None, format!("nothing to do: {message}")) })
        }
        Err(Stop::Held { reason, .. } | Stop::Failed { reason, .. } | Stop::Denied(reason)) => {
            let summary = format!("no plan: {reason}");
            Ok(Preview { revision: sha.cloned(), ..empty(target, Some(reason), summary) })
        }
    }
}

fn empty(target: &TargetName, held: Option<Reason>, summary: String) -> Preview {
    Preview {
        target: target.clone(),
        revision: None,
        id: None,
        plan: None,
        steps: Vec::new(),
        difference: String::new(),
        held,
        summary,
    }
}

impl Pass<'_> {
    async fn planned(&mut self, sha: Option<&Sha>) -> Result<Preview, Stop> {
        let subject = self.subject().await?;
        let tip = self.look(&subject).await?;
        let wanted = sha.cloned().unwrap_or(tip);
        self.is_converged(&subject, &wanted)?;
        let facts = self.fetch(&subject, &wanted).await?;
        self.is_satisfied(&subject, &wanted, &facts)?;
        let (desired, manifest) = self.desired(&subject, &wanted, &facts).await?;
        if let Some(reason) = crate::plan::support::unsupported(&desired) {
            return Err(Stop::Denied(reason));
        }
        let prepared = self.prepare(&subject, desired, &manifest).await?;
        let difference = self.ports.store.plan(&prepared.id).await?.map(|plan| plan.difference).unwrap_or_default();
        let held = self.would_hold(&subject, &wanted, &prepared).await?;
        let summary = format!(
            "{} steps make {} live on slot {} ({})",
            prepared.plan.converge.len() + prepared.plan.commit.len() + prepared.plan.retire.len(),
            wanted.short(),
            prepared.plan.slot,
            prepared.plan.cause.as_str()
        );
        Ok(Preview {
            target: self.target.clone(),
            revision: Some(wanted),
            id: Some(prepared.id),
            steps: words(&prepared.plan),
            plan: Some(prepared.plan),
            difference,
            held,
            summary,
        })
    }

    async fn would_hold(
        &self,
        subject: &super::pass::Subject,
        wanted: &Sha,
        prepared: &super::pass::Prepared,
    ) -> Result<Option<Reason>, Stop> {
        let gate = match self.admit(subject, wanted).await {
            Ok(_) => self.consent(subject, prepared).await,
            Err(stop) => Err(stop),
        };
        match gate {
            Ok(()) => Ok(None),
            Err(Stop::Held { reason, .. } | Stop::Failed { reason, .. } | Stop::Denied(reason)) => Ok(Some(reason)),
            Err(stop @ (Stop::Halt(_) | Stop::Converged { .. })) => Err(stop),
        }
    }
}

fn words(plan: &Plan) -> Vec<String> {
    let sections = [
        ("converge", &plan.converge),
        ("commit", &plan.commit),
        ("retire", &plan.retire),
        ("undo before the switch", &plan.undo_before),
        ("undo after the switch", &plan.undo_after),
    ];
    let steps =
        sections.into_iter().flat_map(|(section, steps)| steps.iter().map(move |step| format!("{section}: {step}")));
    steps.chain(plan.held.iter().map(|held| format!("note: {held}"))).collect()
}

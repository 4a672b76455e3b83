//! From a desired state to a plan that waits for consent.

use crate::diff::{Document, unified};
use crate::gate::{self, Consent};
use crate::model::desired::{DesiredState, Documents};
use crate::model::live::{LiveEdge, LiveState};
use crate::model::policy::{ImageFrom, TargetKind};
use crate::model::{Class, ImageId, Reason, ReasonCode, TargetName};
use crate::plan::{self, Binding, Cause, Observed, Plan, Serving, Step};
use crate::render;
use crate::store::record::{ManifestRecord, PlanRecord};

use super::documents::documents;
use super::history::{HISTORY, live_tags, serving};
use super::pass::{Pass, Prepared, Stop, Subject};
use super::ports::StepError;

impl Pass<'_> {
    /// Reads what is live, plans, and stores the plan with its difference.
    pub(super) async fn prepare(
        &self,
        subject: &Subject,
        desired: DesiredState,
        manifest: &ManifestRecord,
    ) -> Result<Prepared, Stop> {
        let live = self.ports.target.observe(self.target).await.map_err(StepError::from)?;
        let vhost_file = render::vhost::vhost_file(self.target);
        let edge = self.ports.edge.observe(self.target, &vhost_file).await.map_err(StepError::from)?;
        let documents = documents(&desired, &live, edge.serving, &self.ports.settings);
        let history = self.ports.store.releases(self.target, HISTORY).await?;
        let serving = subject.serving.as_ref().and_then(|record| serving(record, &history));
        let observed = Observed { live: &live, edge: &edge };
        let mut plan = self.plan(&desired, &documents, (observed, serving.as_ref()))?;
        plan.keep_images(&self.kept_elsewhere(subject).await?);
        let image = self.find_image(&desired).await?;
        self.preflight(&plan).await?;
        let tree = format!("tree:{}", desired.tree);
        let binding = Binding {
            revision: &desired.revision,
            manifest: &desired.manifest,
            registry: &desired.registry,
            image: image.as_ref().map_or(tree.as_str(), ImageId::as_str),
            live_release: serving.as_ref().map(|serving| serving.number),
            plan: &plan,
        };
        let id = binding.hash().map_err(|error| StepError::bug(format!("a plan cannot be written: {error}")))?;
        let difference = self.difference(subject, (&plan, manifest), (&documents, &live, &edge)).await?;
        let record = PlanRecord {
            id: id.to_string(),
            target: self.target.clone(),
            revision: desired.revision.clone(),
            at: self.ports.clock.now(),
            plan: serde_json::to_value(&plan)
                .map_err(|error| StepError::bug(format!("a plan cannot be written: {error}")))?,
            difference,
        };
        self.ports.store.put_plan(&record).await?;
        Ok(Prepared { id: record.id, desired, plan })
    }

    /// The plan; where drift is to heal, also for what is live already.
    fn plan(
        &self,
        desired: &DesiredState,
        documents: &Documents,
        (observed, serving): (Observed<'_>, Option<&Serving>),
    ) -> Result<Plan, Stop> {
        let refused = |reason: Reason| Stop::Failed { reason, class: Class::Stalled };
        match plan::plan(desired, documents, observed, serving).map_err(refused)? {
            Some(plan) => Ok(plan),
            None => plan::plan_for(Cause::Drift, desired, documents, (observed, serving)).map_err(refused),
        }
    }

    /// The tags that the project's other targets keep: all of them share one image repository (ruling 40).
    async fn kept_elsewhere(&self, subject: &Subject) -> Result<Vec<String>, Stop> {
        let mut kept = Vec::new();
        for (label, policy) in &subject.project.targets {
            let TargetKind::Host(host) = &policy.kind else { continue };
            if *label == self.target.target {
                continue;
            }
            let name = TargetName::new(subject.project.name.clone(), label.clone());
            let history = self.ports.store.releases(&name, HISTORY).await?;
            let limit = usize::try_from(host.keep_releases).unwrap_or(usize::MAX);
            kept.extend(live_tags(&history).into_iter().take(limit));
        }
        Ok(kept)
    }

    /// An image that only others can bring is waited for before anything is begun.
    async fn find_image(&self, desired: &DesiredState) -> Result<Option<ImageId>, Stop> {
        let found = match self.ports.images.find(&desired.image).await {
            Ok(found) => found,
            // What breaks a rule ends as a release that says so: the rule is checked again there.
            Err(error) if error.reason.code == ReasonCode::ImageRefused => return Ok(None),
            Err(error) => return Err(StepError::from(error).into()),
        };
        if found.is_none() && desired.image.policy.from == ImageFrom::Local {
            let message = format!(
                "the image {} is not on this host yet: build it there with the two labels, or set `[image] from = \"build\"`",
                desired.image.reference
            );
            return Err(Stop::Failed {
                reason: Reason::new(ReasonCode::ImageMissing, message),
                class: Class::Transient,
            });
        }
        Ok(found)
    }

    /// Room and port, before a release gets a number: what the surroundings lack is held, not failed.
    async fn preflight(&self, plan: &Plan) -> Result<(), Stop> {
        if self.is_preview {
            return Ok(());
        }
        for step in plan.converge.iter().filter(|step| matches!(step, Step::Preflight { .. })) {
            self.ports.target.apply(self.target, step).await.map_err(StepError::from)?;
        }
        Ok(())
    }

    async fn difference(
        &self,
        subject: &Subject,
        (plan, manifest): (&Plan, &ManifestRecord),
        (documents, live, edge): (&Documents, &LiveState, &LiveEdge),
    ) -> Result<String, Stop> {
        let old_manifest = match subject.serving.as_ref().and_then(|live| live.new.manifest.clone()) {
            Some(digest) => self.ports.store.manifest(digest.as_str()).await?.map(|record| record.text),
            None => None,
        };
        let old_container = plan.serving.and_then(|slot| live.slot(slot).ours());
        let new_container = plan.slot.of(&documents.containers);
        let texts = [
            Document { name: manifest.path.clone(), before: old_manifest, after: Some(manifest.text.clone()) },
            Document {
                name: format!("container {}", self.target.network()),
                before: old_container.map(|container| render::container::text(&container.spec)),
                after: Some(render::container::text(new_container)),
            },
            Document {
                name: format!("vhost {}", documents.vhost.file),
                before: edge.vhost.clone(),
                after: Some(documents.vhost.text.clone()),
            },
        ];
        Ok(unified(&texts))
    }

    /// A person's consent, bound to exactly this plan.
    pub(super) async fn consent(&self, subject: &Subject, prepared: &Prepared) -> Result<(), Stop> {
        if subject.is_rollback {
            return Ok(());
        }
        let decision = self.ports.store.approval(self.target, &prepared.id).await?;
        let decisions: Vec<gate::Approval> = decision
            .into_iter()
            .map(|approval| gate::Approval {
                plan: approval.plan_hash,
                is_approved: approval.is_approved,
                by: approval.by,
                at: approval.at,
            })
            .collect();
        match gate::consent(subject.policy.approve, &prepared.id, &decisions) {
            Consent::Given(_) => Ok(()),
            Consent::Held { reason } => Err(Stop::Held { reason, until: None, plan: Some(prepared.id.clone()) }),
            Consent::Denied { reason } => Err(Stop::Denied(reason)),
        }
    }
}

//! An empty store is rebuilt from what runs: labels and marker carry enough, and nothing restarts
//! because a store was lost (ruling 3).

use crate::manifest::{self, Commit, apptoml};
use crate::model::live::LiveContainer;
use crate::model::{Digest, Slot};
use crate::render;
use crate::store::record::{ManifestRecord, NewRelease, ReleaseRecord};

use super::pass::{MANIFEST_LIMIT, Pass, Stop, Subject};
use super::ports::StepError;

impl Pass<'_> {
    /// Records the release that serves, when the store has never heard of any release of this target.
    ///
    /// A container whose commit or manifest cannot be read any more, or whose manifest is another one,
    /// is left as it is: the next release replaces it like any other.
    pub(super) async fn rebuilt(&self, subject: &Subject) -> Result<Option<ReleaseRecord>, Stop> {
        if self.is_preview || !self.ports.store.releases(self.target, 1).await?.is_empty() {
            return Ok(None);
        }
        let edge = self.ports.edge.observe(self.target, &render::vhost::vhost_file(self.target)).await;
        let Some(slot) = edge.map_err(StepError::from)?.serving else { return Ok(None) };
        let live = self.ports.target.observe(self.target).await.map_err(StepError::from)?;
        let Some(container) = live.slot(slot).ours().filter(|container| container.run.is_running()) else {
            return Ok(None);
        };
        self.recorded(subject, slot, container).await
    }

    async fn recorded(
        &self,
        subject: &Subject,
        slot: Slot,
        container: &LiveContainer,
    ) -> Result<Option<ReleaseRecord>, Stop> {
        let (Some(number), Some(revision), Some(digest)) =
            (container.release, container.revision.clone(), container.manifest.clone())
        else {
            return Ok(None);
        };
        let (repo, branch) = (&subject.project.repo, self.branch(subject));
        let facts = self.ports.source.fetch(repo, branch, &revision).await.map_err(StepError::from)?;
        let path = &subject.project.app_toml;
        let bytes = self.ports.source.read(repo, &revision, path, MANIFEST_LIMIT).await.map_err(StepError::from)?;
        let commit = Commit { revision: revision.clone(), tree: facts.tree };
        let desired = apptoml::parse(&bytes, "app.toml", Some(&subject.project.name))
            .and_then(|app| manifest::desired(&app, &subject.project, &self.target.target, &commit));
        let Some(desired) = desired.ok().filter(|desired| desired.manifest == digest) else { return Ok(None) };
        let label = container.spec.labels.get(render::container::LABEL_REGISTRY);
        let registry = label.and_then(|label| label.parse().ok()).unwrap_or_else(|| Digest::of(b""));
        let manifest =
            ManifestRecord { digest, path: path.to_string(), text: String::from_utf8_lossy(&bytes).into_owned() };
        self.ports.store.put_manifest(&manifest).await?;
        let new = NewRelease {
            target: self.target.clone(),
            revision: revision.clone(),
            slot: Some(slot),
            plan_id: None,
            manifest: Some(manifest.digest),
            registry,
            desired: serde_json::to_value(&desired).ok(),
            trigger: "rebuilt".to_owned(),
            at: self.ports.clock.now(),
        };
        let image = container.spec.image_id.as_ref().map(crate::model::ImageId::as_str);
        let record = self.ports.store.restore_release(&new, number, image).await?;
        let message = format!(
            "the store knew no release: release {number} of {} was recorded from what runs in slot {slot}",
            revision.short()
        );
        self.audit("release-rebuilt", &message, (Some(&revision), Some(number))).await?;
        Ok(Some(record))
    }
}

//! One step becomes one call of an effect. Nothing is chosen here.

use crate::image::BuildContext;
use crate::model::desired::{ContainerSpec, ImageRequest};
use crate::model::policy::ImageFrom;
use crate::model::{Reason, ReasonCode, Slot};
use crate::plan::Step;
use crate::render::container::with_release;
use crate::source::Export;
use crate::store::record::Section;

use super::ports::{Halt, StepError};
use super::progress::Progress;
use super::run::{Run, WAS_DARK};

type Done = Result<Result<Option<String>, StepError>, Halt>;

impl Run {
    pub(super) async fn perform(&mut self, section: Section, step: &Step) -> Done {
        let target = self.target().clone();
        match step {
            Step::Preflight { .. }
            | Step::EnsureNetwork { .. }
            | Step::EnsureIsolation { .. }
            | Step::RemoveSlot { .. }
            | Step::ResumeSlot { .. }
            | Step::KeepSlot { .. }
            | Step::StopSlot { .. } => Ok(by_engine(self.ports.target.apply(&target, step).await)),
            Step::StartSlot { container } => {
                let step = Step::StartSlot { container: Box::new(self.pinned(container)) };
                Ok(by_engine(self.ports.target.apply(&target, &step).await))
            }
            Step::EnsureVhost { vhost } => {
                Ok(self.ports.edge.ensure_vhost(&target, vhost).await.map(|()| None).map_err(StepError::from))
            }
            Step::PrepareImage { image } => self.prepare_image(image).await,
            Step::AwaitHealth { slot, .. } => self.await_health(step, *slot, section).await,
            Step::SmokeSlot { .. } => Ok(self.smoke_slot(step).await),
            Step::Route { slot } => Ok(self.route(section, *slot).await),
            Step::Unroute => {
                Ok(self.ports.edge.route_back(&target, None).await.map(|()| None).map_err(StepError::from))
            }
            Step::ConfirmEdge { .. } => self.confirm_edge(step).await,
            Step::ProvePublic { .. } => self.prove_public(step).await,
            Step::DrainSlot { drain_seconds, .. } => {
                self.wait_for_drain(section, *drain_seconds).await?;
                Ok(by_engine(self.ports.target.apply(&target, step).await))
            }
            Step::PruneImages { repository, keep } => {
                let removed = self.ports.images.prune(repository, keep).await;
                Ok(removed.map(note_removed).map_err(StepError::from))
            }
        }
    }

    /// The container with what only this release knows: the pinned image and the release's number.
    fn pinned(&self, container: &ContainerSpec) -> ContainerSpec {
        let mut container = with_release(container.clone(), self.record.number);
        container.image_id.clone_from(&self.image);
        container
    }

    async fn route(&self, section: Section, slot: Slot) -> Result<Option<String>, StepError> {
        let target = self.target();
        let is_undo = matches!(section, Section::UndoBefore | Section::UndoAfter);
        if is_undo {
            self.ports.edge.route_back(target, Some(slot)).await?;
            return Ok(None);
        }
        let Some(proof) = &self.proof else {
            return Err(StepError::bug("traffic was about to move without a proof"));
        };
        self.ports.edge.route(target, slot, proof).await?;
        Ok((self.was_public_good == Some(false)).then(|| WAS_DARK.to_owned()))
    }

    async fn prepare_image(&mut self, image: &ImageRequest) -> Done {
        let context = match self.build_context(image).await {
            Ok(context) => context,
            Err(error) => return Ok(Err(error)),
        };
        let (watchers, target) = (self.ports.teller.clone(), self.target().clone());
        let progress = move |line: &str| {
            watchers.tell(Progress::Line { target: target.clone(), text: line.to_owned() });
        };
        let prepared = self.ports.images.prepare(image, context.as_ref(), &progress).await;
        if let Some(context) = context {
            drop(tokio::fs::remove_file(&context.archive).await);
        }
        let id = match prepared {
            Ok(id) => id,
            Err(error) => return Ok(Err(error.into())),
        };
        self.ports.store.put_image(&self.record.new.target, self.record.number, id.as_str()).await?;
        self.record.image_id = Some(id.to_string());
        let note = id.to_string();
        self.image = Some(id);
        Ok(Ok(Some(note)))
    }

    /// The commit's tree as an archive, when the image is built here and is not there yet.
    async fn build_context(&self, image: &ImageRequest) -> Result<Option<BuildContext>, StepError> {
        if image.policy.from != ImageFrom::Build || self.ports.images.find(image).await?.is_some() {
            return Ok(None);
        }
        let Some(dockerfile) = inside(image) else {
            return Err(StepError::stalled(Reason::new(
                ReasonCode::BuildFailed,
                format!(
                    "the Dockerfile `{}` is not inside the build context `{}`: move it there, or widen `context`",
                    image.dockerfile, image.context
                ),
            )));
        };
        let directory = self.ports.settings.state_dir.join("tmp");
        let name = format!("{}.{}.{}.tar", self.target().project, self.target().target, self.record.number);
        let archive = directory.join(name);
        prepare_private(&directory, &archive).await?;
        let export = Export { context: &image.context, to: &archive, limit: image.policy.build.context_limit_bytes };
        let repo = &self.ports.repository(self.target()).ok_or_else(|| {
            StepError::stalled(Reason::new(ReasonCode::Orphaned, "the target is no longer in the registry"))
        })?;
        let archive = self.ports.source.export(repo, &image.revision, &export).await?;
        Ok(Some(BuildContext { archive, dockerfile }))
    }

    /// Waits until the drain is over: `drain` seconds after the switch for the old slot, and after the
    /// way back for a candidate that had traffic until then (ruling 39).
    async fn wait_for_drain(&mut self, section: Section, drain_seconds: u32) -> Result<(), Halt> {
        let since = match (section, self.record.switched_at) {
            (Section::Retire, Some(switched_at)) => switched_at,
            _ => {
                let now = self.now();
                *self.draining_since.get_or_insert(now)
            }
        };
        let drain_ms = u64::from(drain_seconds) * 1000;
        let left = drain_ms.saturating_sub(super::millis_between(since, self.now()));
        let mut interrupts = self.interrupts.clone();
        tokio::select! {
            () = self.ports.clock.sleep(std::time::Duration::from_millis(left)) => Ok(()),
            _ = interrupts.wait_for(|interrupt| *interrupt == super::ports::Interrupt::Shutdown) => Err(Halt::Shutdown),
        }
    }
}

fn by_engine(result: Result<(), crate::target::TargetError>) -> Result<Option<String>, StepError> {
    result.map(|()| None).map_err(StepError::from)
}

fn note_removed(removed: Vec<String>) -> Option<String> {
    (!removed.is_empty()).then(|| format!("untagged {}", removed.join(", ")))
}

/// The Dockerfile's path relative to the context.
fn inside(image: &ImageRequest) -> Option<String> {
    if image.context.is_root() {
        return Some(image.dockerfile.to_string());
    }
    let rest = image.dockerfile.as_str().strip_prefix(image.context.as_str())?;
    rest.strip_prefix('/').map(str::to_owned)
}

/// Makes the private directory of build contexts, and removes what an earlier try left there.
async fn prepare_private(directory: &std::path::Path, archive: &std::path::Path) -> Result<(), StepError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: std::io::Error| {
        let message = format!("`{}` cannot be used for build contexts: {error}", directory.display());
        StepError { reason: Reason::new(ReasonCode::DiskFull, message), class: crate::model::Class::Transient }
    };
    tokio::fs::create_dir_all(directory).await.map_err(failed)?;
    tokio::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700)).await.map_err(failed)?;
    match tokio::fs::remove_file(archive).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

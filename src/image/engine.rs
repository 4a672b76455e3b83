//! Images of this host's engine: found by their reference, or built there by its own builder.
//!
//! What it refuses to do: use an image that breaks a rule of the contract, build without bounds
//! (ruling 43), touch a tag outside `huta-build/<project>` (ruling 40), pull from a registry (not
//! built yet).

mod build;
mod client;
mod prune;

use std::path::PathBuf;

use async_trait::async_trait;
use bollard::models::ImageInspect;

use self::client::{Client, READ_DEADLINE, optional};
use super::rules::{self, ImageFacts};
use super::{BuildContext, ImageError, Images, Progress};
use crate::model::desired::ImageRequest;
use crate::model::policy::ImageFrom;
use crate::model::{Class, ImageId, Reason, ReasonCode};

/// Finds, builds, checks and prunes images.
#[derive(Debug)]
pub struct EngineImages {
    client: Client,
}

impl EngineImages {
    /// Makes the adapter for the engine behind `socket`. Connects to nothing yet.
    #[must_use]
    pub fn new(socket: PathBuf) -> Self {
        Self { client: Client::new(socket) }
    }

    /// The image of a reference or id, as the engine has it; none when it is not there.
    async fn inspect(&self, reference: &str) -> Result<Option<ImageInspect>, ImageError> {
        let docker = self.client.docker().await?;
        let what = format!("inspect image {reference}");
        Ok(optional(self.client.bounded(&what, READ_DEADLINE, docker.inspect_image(reference)).await)?)
    }

    /// The id of the image behind the request's reference, once it keeps every rule.
    async fn checked(&self, request: &ImageRequest) -> Result<Option<ImageId>, ImageError> {
        let Some(image) = self.inspect(&request.reference).await? else {
            return Ok(None);
        };
        judge(request, &image).map(Some)
    }
}

/// Checks the rules and gives the id to pin.
fn judge(request: &ImageRequest, image: &ImageInspect) -> Result<ImageId, ImageError> {
    let broken = rules::broken(request, &facts(image));
    if !broken.is_empty() {
        let text = format!(
            "image {} is refused, and what serves now keeps serving: {}. Push a commit whose image keeps the rules",
            request.reference,
            broken.join("; ")
        );
        return Err(failure(ReasonCode::ImageRefused, Class::Stalled, text));
    }
    let id = image.id.clone().unwrap_or_default();
    id.parse().map_err(|error| {
        let text =
            format!("the engine gave image {} an id that is none: {error}; please report this", request.reference);
        failure(ReasonCode::Bug, Class::Bug, text)
    })
}

fn facts(image: &ImageInspect) -> ImageFacts {
    let config = image.config.clone().unwrap_or_default();
    ImageFacts {
        labels: config.labels.unwrap_or_default().into_iter().collect(),
        user: config.user.unwrap_or_default(),
        os: image.os.clone().unwrap_or_default(),
        architecture: image.architecture.clone().unwrap_or_default(),
        volumes: config.volumes.unwrap_or_default(),
    }
}

/// An error with its reason.
fn failure(code: ReasonCode, class: Class, message: impl Into<String>) -> ImageError {
    ImageError { reason: Reason::new(code, message), class }
}

fn registry_is_not_built() -> ImageError {
    let text = "`[image] from = \"registry\"` is not built yet, so nothing is planned with it. Use `from = \"build\"`, or \
                `from = \"local\"` with an image that is put on this host";
    failure(ReasonCode::NotBuilt, Class::Stalled, text)
}

fn missing(request: &ImageRequest) -> ImageError {
    let text = format!(
        "image {} is not on this host: `from = \"local\"` expects that somebody puts it here. Load it \
         (`docker save {0} | ssh HOST docker load`), or set `[image] from = \"build\"`; it is looked for again by itself",
        request.reference
    );
    failure(ReasonCode::ImageMissing, Class::Transient, text)
}

#[async_trait]
impl Images for EngineImages {
    async fn find(&self, request: &ImageRequest) -> Result<Option<ImageId>, ImageError> {
        match request.policy.from {
            ImageFrom::Local | ImageFrom::Build => self.checked(request).await,
            ImageFrom::Registry => Err(registry_is_not_built()),
        }
    }

    async fn prepare(
        &self,
        request: &ImageRequest,
        context: Option<&BuildContext>,
        progress: Progress<'_>,
    ) -> Result<ImageId, ImageError> {
        if let Some(id) = self.find(request).await? {
            progress(&format!("image {} is here as {}", request.reference, id.short()));
            return Ok(id);
        }
        match (request.policy.from, context) {
            (ImageFrom::Build, Some(context)) => build::build(self, request, context, progress).await,
            (ImageFrom::Build, None) => Err(failure(
                ReasonCode::Bug,
                Class::Bug,
                format!("image {} was to be built without a context; please report this", request.reference),
            )),
            (ImageFrom::Local, _) => Err(missing(request)),
            (ImageFrom::Registry, _) => Err(registry_is_not_built()),
        }
    }

    async fn prune(&self, repository: &str, keep: &[String]) -> Result<Vec<String>, ImageError> {
        prune::prune(&self.client, repository, keep).await
    }
}

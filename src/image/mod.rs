//! Images: a commit's image, found, built or pulled, checked and pinned.

pub mod engine;
mod rules;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use async_trait::async_trait;

use crate::model::desired::ImageRequest;
use crate::model::{Class, ImageId, Reason};

/// A commit's tree (or the part below the build context) as a tar archive in a private file.
#[derive(Debug, Clone)]
pub struct BuildContext {
    /// The archive; removed by whoever made it.
    pub archive: PathBuf,
    /// Path of the Dockerfile inside the archive.
    pub dockerfile: String,
}

/// A sink for one line of progress at a time, already free of secrets.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Where images come from. Every call may be repeated.
#[async_trait]
pub trait Images: Send + Sync {
    /// Looks whether the image is already here, without making it: its id if it is there and
    /// keeps every rule, none if it is not there.
    ///
    /// # Errors
    /// [`ImageError`] when it breaks a rule or the engine does not answer.
    async fn find(&self, request: &ImageRequest) -> Result<Option<ImageId>, ImageError>;

    /// Makes the image be here: found as it is, or built from `context` when the request says so;
    /// then checks the contract's rules and gives the id that everything after it uses.
    ///
    /// # Errors
    /// [`ImageError`] with the reason that the release gets.
    async fn prepare(
        &self,
        request: &ImageRequest,
        context: Option<&BuildContext>,
        progress: Progress<'_>,
    ) -> Result<ImageId, ImageError>;

    /// Untags `repository:<tag>` for every tag that is not in `keep` and that no container uses;
    /// gives the tags removed. Touches no other repository.
    ///
    /// # Errors
    /// [`ImageError`] when the engine does not answer.
    async fn prune(&self, repository: &str, keep: &[String]) -> Result<Vec<String>, ImageError>;
}

/// Why there is no image.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct ImageError {
    /// What the release records.
    pub reason: Reason,
    /// What the loop does next.
    pub class: Class,
}

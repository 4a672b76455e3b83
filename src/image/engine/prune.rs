//! Untagging what no release needs any more (ruling 40).

use std::collections::{BTreeSet, HashMap};

use bollard::models::{ContainerSummary, ImageSummary};
use bollard::query_parameters::{ListContainersOptions, ListImagesOptions, RemoveImageOptions};

use super::client::{Client, READ_DEADLINE, WRITE_DEADLINE, optional};
use super::failure;
use crate::image::ImageError;
use crate::model::name::is_label;
use crate::model::{Class, ReasonCode};

/// Only repositories of this form are ever touched.
const PREFIX: &str = "huta-build/";

/// Untags; gives the tags removed, sorted.
pub(super) async fn prune(client: &Client, repository: &str, keep: &[String]) -> Result<Vec<String>, ImageError> {
    if !repository.strip_prefix(PREFIX).is_some_and(is_label) {
        let text = format!("`{repository}` was to be pruned, and only `{PREFIX}<project>` ever is; please report this");
        return Err(failure(ReasonCode::Bug, Class::Bug, text));
    }
    let docker = client.docker().await?;
    let filters = HashMap::from([("reference".to_owned(), vec![repository.to_owned()])]);
    let options = ListImagesOptions { filters: Some(filters), ..ListImagesOptions::default() };
    let images = client.bounded("list the images", READ_DEADLINE, docker.list_images(Some(options))).await?;
    let options = ListContainersOptions { all: true, ..ListContainersOptions::default() };
    let containers =
        client.bounded("list the containers", READ_DEADLINE, docker.list_containers(Some(options))).await?;
    let mut removed = Vec::new();
    for tag in superfluous(repository, keep, &images, &containers) {
        let reference = format!("{repository}:{tag}");
        let what = format!("untag {reference}");
        let call = docker.remove_image(&reference, None::<RemoveImageOptions>, None);
        match optional(client.bounded(&what, WRITE_DEADLINE, call).await) {
            Ok(_gone) => removed.push(tag),
            // A container began to use it since we looked: it stays.
            Err(error) if error.status == Some(409) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(removed)
}

/// Tags of the repository that are not kept and that no container uses, stopped ones included.
fn superfluous(
    repository: &str,
    keep: &[String],
    images: &[ImageSummary],
    containers: &[ContainerSummary],
) -> BTreeSet<String> {
    let used: BTreeSet<&str> = containers
        .iter()
        .flat_map(|container| [container.image_id.as_deref(), container.image.as_deref()])
        .flatten()
        .collect();
    images
        .iter()
        .filter(|image| !used.contains(image.id.as_str()))
        .flat_map(|image| &image.repo_tags)
        .filter(|reference| !used.contains(reference.as_str()))
        .filter_map(|reference| reference.strip_prefix(repository)?.strip_prefix(':'))
        .filter(|tag| !keep.iter().any(|kept| kept == tag))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: &str, tags: &[&str]) -> ImageSummary {
        let repo_tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        ImageSummary { id: id.to_owned(), repo_tags, ..ImageSummary::default() }
    }

    #[test]
    fn only_tags_of_the_repository_that_are_neither_kept_nor_used_go() {
        let images = [
            image("sha256:1", &["huta-build/shop:old"]),
            image("sha256:2", &["huta-build/shop:kept", "other:x"]),
            image("sha256:3", &["huta-build/shop:running"]),
            image("sha256:4", &["huta-build/shop:running-by-name"]),
            image("sha256:5", &["huta-build/shop2:old", "huta-build/shop:twice"]),
            image("sha256:6", &[]),
        ];
        let by_id = ContainerSummary { image_id: Some("sha256:3".to_owned()), ..ContainerSummary::default() };
        let by_name = ContainerSummary {
            image: Some("huta-build/shop:running-by-name".to_owned()),
            ..ContainerSummary::default()
        };
        let gone = superfluous("huta-build/shop", &["kept".to_owned()], &images, &[by_id, by_name]);
        assert_eq!(gone.into_iter().collect::<Vec<_>>(), ["old", "twice"]);
    }
}

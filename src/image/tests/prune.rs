//! Live: untagging.

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, RemoveContainerOptions, RemoveImageOptions, TagImageOptions};

use super::*;

/// A container of the image that never started.
async fn use_image(docker: &Docker, id: &ImageId) -> String {
    let body = ContainerCreateBody { image: Some(id.to_string()), ..ContainerCreateBody::default() };
    docker.create_container(None::<CreateContainerOptions>, body).await.unwrap().id
}

#[tokio::test]
async fn pruning_untags_what_is_neither_kept_nor_used_and_nothing_else() {
    let mut bench = Bench::new();
    let mut tags = Vec::new();
    for page in ["used", "kept", "old"] {
        bench.sha = app::unique_sha();
        let id = bench.build(&AppSpec::page(page)).await.unwrap();
        tags.push((bench.sha[..12].to_owned(), id));
    }
    let [(used, used_id), (kept, _), (old, old_id)] = tags.try_into().unwrap();
    let docker = docker().await;
    let container = use_image(&docker, &used_id).await;
    let other = app::unique("other-");
    let options = TagImageOptions { repo: Some(other.clone()), tag: Some("x".to_owned()) };
    docker.tag_image(old_id.as_str(), Some(options)).await.unwrap();

    let repository = format!("huta-build/{}", bench.project);
    let removed = bench.images.prune(&repository, std::slice::from_ref(&kept)).await.unwrap();
    let again = bench.images.prune(&repository, std::slice::from_ref(&kept)).await.unwrap();
    let is_there = async |reference: String| docker.inspect_image(&reference).await.is_ok();
    let mut seen = Vec::new();
    for tag in [&used, &kept, &old] {
        seen.push(is_there(format!("{repository}:{tag}")).await);
    }
    seen.push(is_there(format!("{other}:x")).await);

    docker.remove_container(&container, None::<RemoveContainerOptions>).await.unwrap();
    docker.remove_image(&format!("{other}:x"), None::<RemoveImageOptions>, None).await.unwrap();
    assert_eq!(removed, [old]);
    assert_eq!(again, Vec::<String>::new());
    assert_eq!(seen, [true, true, false, true], "used, kept, old, and the old one's tag elsewhere");
}

#[tokio::test]
async fn pruning_refuses_every_other_repository() {
    let images = EngineImages::new(app::SOCKET.into());
    for repository in ["", "huta-build", "huta-build/", "nginx", "huta-build/a/b", "huta-build/*"] {
        let error = images.prune(repository, &[]).await.unwrap_err();
        assert_eq!(error.class, Class::Bug, "{repository}");
    }
}

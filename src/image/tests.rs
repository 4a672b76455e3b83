//! Live: images on the real engine.

use std::sync::Mutex;

use bollard::Docker;

use super::engine::EngineImages;
use super::{BuildContext, ImageError, Images as _};
use crate::model::desired::ImageRequest;
use crate::model::policy::ImageFrom;
use crate::model::{Class, Fault, ImageId, ReasonCode};
use crate::tests::app::{self, AppSpec};

mod prune;

/// A project of its own, forgotten at the end.
struct Bench {
    project: String,
    sha: String,
    images: EngineImages,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        app::require_engine();
        Self {
            project: app::unique("img-"),
            sha: app::unique_sha(),
            images: EngineImages::new(app::SOCKET.into()),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn request(&self, from: ImageFrom) -> ImageRequest {
        app::request(&self.project, &self.sha, from)
    }

    fn context(&self, spec: &AppSpec) -> BuildContext {
        app::archive(&app::context(spec), self.directory.path())
    }

    async fn build(&self, spec: &AppSpec) -> Result<ImageId, ImageError> {
        let request = self.request(ImageFrom::Build);
        self.images.prepare(&request, Some(&self.context(spec)), &|_line| {}).await
    }

    async fn refused(&self, spec: &AppSpec) -> String {
        let error = self.build(spec).await.unwrap_err();
        assert_eq!(error.reason.code, ReasonCode::ImageRefused, "{error}");
        assert_eq!(error.reason.code.fault(), Fault::Commit);
        let found = self.images.find(&self.request(ImageFrom::Build)).await.unwrap();
        assert_eq!(found, None, "a refused build is not found again");
        error.reason.message
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let project = self.project.clone();
        app::block_on(async move { app::forget_images(&project).await });
    }
}

fn with_line(line: &str) -> AppSpec {
    AppSpec { dockerfile: vec![line.to_owned()], ..AppSpec::default() }
}

async fn docker() -> Docker {
    Docker::connect_with_unix(app::SOCKET, 60, bollard::API_DEFAULT_VERSION).unwrap().negotiate_version().await.unwrap()
}

#[tokio::test]
async fn a_built_image_keeps_the_rules_is_pinned_by_id_and_found_again() {
    let bench = Bench::new();
    let lines = Mutex::new(Vec::new());
    let request = bench.request(ImageFrom::Build);
    let context = bench.context(&AppSpec::default());
    let progress = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let id = bench.images.prepare(&request, Some(&context), &progress).await.unwrap();
    assert!(lines.lock().unwrap().iter().any(|line| line.contains("FROM scratch")), "{lines:?}");
    assert_eq!(bench.images.find(&request).await.unwrap(), Some(id.clone()));
    assert_eq!(bench.images.find(&bench.request(ImageFrom::Local)).await.unwrap(), Some(id.clone()));
    // A second time nothing is built.
    lines.lock().unwrap().clear();
    let again = bench.images.prepare(&request, Some(&context), &progress).await.unwrap();
    assert_eq!(again, id);
    assert_eq!(lines.lock().unwrap().len(), 1, "{lines:?}");
}

#[tokio::test]
async fn the_build_argument_carries_the_commit() {
    let bench = Bench::new();
    let spec = AppSpec {
        dockerfile: vec!["ARG RELEASE_SHA".to_owned(), "ENV STAMP=$RELEASE_SHA".to_owned()],
        ..AppSpec::default()
    };
    let id = bench.build(&spec).await.unwrap();
    let image = docker().await.inspect_image(id.as_str()).await.unwrap();
    let env = image.config.unwrap().env.unwrap();
    assert!(env.contains(&format!("STAMP={}", bench.sha)), "{env:?}");
}

#[tokio::test]
async fn an_image_that_nobody_put_here_is_the_surroundings_fault() {
    let bench = Bench::new();
    let request = bench.request(ImageFrom::Local);
    assert_eq!(bench.images.find(&request).await.unwrap(), None);
    let error = bench.images.prepare(&request, None, &|_line| {}).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::ImageMissing, Class::Transient));
    assert_eq!(error.reason.code.fault(), Fault::Surroundings);
}

#[tokio::test]
async fn images_that_break_a_rule_are_refused_and_untagged() {
    let bench = Bench::new();
    let no_user = bench.refused(&AppSpec { user: None, ..AppSpec::default() }).await;
    assert!(no_user.contains("which is root"), "{no_user}");
    let root = bench.refused(&AppSpec { user: Some("00:20001".to_owned()), ..AppSpec::default() }).await;
    assert!(root.contains("`00:20001`"), "{root}");
    let volume = bench.refused(&with_line("VOLUME /data")).await;
    assert!(volume.contains("VOLUME /data"), "{volume}");
    let label = bench.refused(&with_line("LABEL run.trueup.target=shop/prod")).await;
    assert!(label.contains("`run.trueup.target`"), "{label}");
}

#[tokio::test]
async fn the_labels_of_the_dockerfile_cannot_claim_another_commit() {
    let bench = Bench::new();
    let line = format!("LABEL org.opencontainers.image.revision={}", "b".repeat(40));
    bench.build(&with_line(&line)).await.unwrap();
}

#[tokio::test]
async fn an_image_of_another_commit_under_this_commits_tag_is_refused() {
    let bench = Bench::new();
    bench.build(&AppSpec::default()).await.unwrap();
    let mut request = bench.request(ImageFrom::Local);
    let other = format!("{}{}", request.revision.short(), "0".repeat(28));
    request.revision = other.parse().unwrap();
    let error = bench.images.find(&request).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::ImageRefused);
}

#[tokio::test]
async fn a_build_that_fails_is_the_commits_fault_and_shows_its_last_lines() {
    let bench = Bench::new();
    let error = bench.build(&with_line("RUN [\"/server\", \"nonsense\"]")).await.unwrap_err();
    assert_eq!((error.reason.code, error.reason.code.fault()), (ReasonCode::BuildFailed, Fault::Commit));
    let evidence = error.reason.evidence.unwrap();
    assert!(evidence.contains("unknown arguments [\"nonsense\"]"), "{evidence}");
    let error = bench.build(&with_line("FRMO nothing")).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::BuildFailed, "{error}");
}

#[tokio::test]
async fn a_build_has_no_network() {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let bench = Bench::new();
    let line = format!("RUN [\"/server\", \"probe\", \"tcp\", \"172.17.0.1\", \"{port}\"]");
    let error = bench.build(&with_line(&line)).await.unwrap_err();
    let evidence = error.reason.evidence.unwrap();
    assert!(evidence.contains("NetworkUnreachable"), "{evidence}");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_build_ends_at_its_time_limit_and_leaves_no_container() {
    let bench = Bench::new();
    let mut request = bench.request(ImageFrom::Build);
    request.policy.build.timeout_seconds = 3;
    let marker = app::unique("never-ends-");
    let spec = with_line(&format!("ENV MARKER={marker}\nRUN [\"/server\"]"));
    let error = bench.images.prepare(&request, Some(&bench.context(&spec)), &|_line| {}).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::BuildFailed);
    assert!(error.reason.message.contains("not built within 3 s"), "{error}");
    assert!(error.reason.evidence.unwrap().contains("RUN"));
    app::eventually("the build's container is gone", async || {
        let docker = docker().await;
        for container in docker.list_containers(None).await.unwrap() {
            let inspected = docker.inspect_container(&container.id.unwrap(), None).await;
            let env = inspected.ok().and_then(|found| found.config).and_then(|config| config.env).unwrap_or_default();
            if env.contains(&format!("MARKER={marker}")) {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn a_build_runs_within_its_memory_and_cpu() {
    let bench = Bench::new();
    let mut request = bench.request(ImageFrom::Build);
    request.policy.build.memory_bytes = 3 << 30;
    request.policy.build.cpus_milli = 1500;
    request.policy.build.timeout_seconds = 20;
    let marker = app::unique("bounded-");
    let spec = with_line(&format!("ENV MARKER={marker}\nRUN [\"/server\"]"));
    let context = bench.context(&spec);
    let building = bench.images.prepare(&request, Some(&context), &|_line| {});
    let found = Mutex::new(None);
    let look = app::eventually("the build's container is there", async || {
        let docker = docker().await;
        for container in docker.list_containers(None).await.unwrap() {
            let Ok(inspected) = docker.inspect_container(&container.id.unwrap(), None).await else {
                continue;
            };
            let env = inspected.config.as_ref().and_then(|config| config.env.clone()).unwrap_or_default();
            if env.contains(&format!("MARKER={marker}")) {
                *found.lock().unwrap() = inspected.host_config;
                return true;
            }
        }
        false
    });
    tokio::select! {
        built = building => panic!("it cannot end: {built:?}"),
        () = look => {}
    }
    let host = found.lock().unwrap().take().unwrap();
    assert_eq!((host.memory, host.memory_swap), (Some(3 << 30), Some(3 << 30)));
    assert_eq!((host.cpu_period, host.cpu_quota), (Some(100_000), Some(150_000)));
    assert_eq!(host.network_mode.as_deref(), Some("none"));
}

#[tokio::test]
async fn a_context_beyond_its_limit_is_not_even_sent() {
    let bench = Bench::new();
    let mut request = bench.request(ImageFrom::Build);
    request.policy.build.context_limit_bytes = 1000;
    let context = bench.context(&AppSpec::default());
    let error = bench.images.prepare(&request, Some(&context), &|line| panic!("{line}")).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::BuildFailed);
    assert!(error.reason.message.contains("build_context_limit"), "{error}");
}

#[tokio::test]
async fn pulling_from_a_registry_is_refused_by_name() {
    let bench = Bench::new();
    let error = bench.images.find(&bench.request(ImageFrom::Registry)).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::NotBuilt);
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_an_error_and_not_a_missing_image() {
    let images = EngineImages::new("/nonexistent/docker.sock".into());
    let request = app::request("shop", &"a".repeat(40), ImageFrom::Local);
    let error = images.find(&request).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::EngineUnavailable, Class::Transient));
    let error = images.prune("huta-build/shop", &[]).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::EngineUnavailable);
}

//! Building a commit's image with the engine's own (first generation) builder.
//!
//! A build runs the repository's code: it happens only after consent, without a network unless the
//! registry says otherwise, and within bounds of CPU, memory, time and context size (ruling 43).
//! The first-generation builder is the one that takes a plain tar archive; BuildKit needs a session.

mod output;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{BuildImageOptions, BuilderVersion, RemoveImageOptions};
use bollard::{Docker, body_try_stream};
use futures_util::StreamExt as _;
use hyper::Uri;
use tokio_util::io::ReaderStream;

use self::output::{Output, with_output};
use super::client::{WRITE_DEADLINE, optional};
use super::{EngineImages, failure, judge};
use crate::image::rules::{LABEL_PROJECT, LABEL_REVISION};
use crate::image::{BuildContext, ImageError, Progress};
use crate::model::desired::ImageRequest;
use crate::model::policy::BuildPolicy;
use crate::model::{Class, ImageId, ReasonCode};

/// The scheduler's period that the CPU bound is a share of, in microseconds: the kernel's default.
const CPU_PERIOD_MICROS: i32 = 100_000;

/// How often one build is begun.
const BUILD_TRIES: u32 = 3;

/// Builds, checks and pins.
pub(super) async fn build(
    images: &EngineImages,
    request: &ImageRequest,
    context: &BuildContext,
    progress: Progress<'_>,
) -> Result<ImageId, ImageError> {
    let policy = &request.policy.build;
    check_bounds(policy, context).await?;
    let mut output = Output::new(progress);
    let deadline = Duration::from_secs(u64::from(policy.timeout_seconds));
    match tokio::time::timeout(deadline, tries(images, request, context, &mut output)).await {
        Ok(result) => result?,
        Err(_elapsed) => {
            let text = format!(
                "image {} was not built within {} s, and the build was stopped. Make it faster, or raise \
                 `[image] build_timeout` in the registry file",
                request.reference, policy.timeout_seconds
            );
            return Err(with_output(failure(ReasonCode::BuildFailed, Class::Stalled, text), &output));
        }
    }
    finish(images, request, &output).await
}

/// Reads back what was made; an image that breaks a rule is untagged again, so that another try
/// builds anew instead of finding it.
async fn finish(images: &EngineImages, request: &ImageRequest, output: &Output<'_>) -> Result<ImageId, ImageError> {
    let Some(image) = images.inspect(&request.reference).await? else {
        let text =
            format!("the engine said that it built {}, and has no such image; it is built again", request.reference);
        return Err(with_output(failure(ReasonCode::EngineUnavailable, Class::Transient, text), output));
    };
    let judged = judge(request, &image);
    if judged.is_err() {
        let docker = images.client.docker().await?;
        let call = docker.remove_image(&request.reference, None::<RemoveImageOptions>, None);
        optional(images.client.bounded("untag a refused image", WRITE_DEADLINE, call).await)?;
    }
    judged
}

async fn check_bounds(policy: &BuildPolicy, context: &BuildContext) -> Result<(), ImageError> {
    if !is_inside(&context.dockerfile) {
        let text = format!(
            "Dockerfile `{}` is not a path inside the build context; name one without `..`",
            context.dockerfile
        );
        return Err(failure(ReasonCode::BuildFailed, Class::Stalled, text));
    }
    if policy.network != "none" && policy.network != "default" {
        let text = format!("`[image] build_network` is `{}`; use `none` or `default`", policy.network);
        return Err(failure(ReasonCode::ConfigInvalid, Class::Stalled, text));
    }
    let size = tokio::fs::metadata(&context.archive).await.map_err(|error| unreadable(&context.archive, &error))?.len();
    if size > policy.context_limit_bytes {
        let text = format!(
            "the build context has {size} bytes, and `[image] build_context_limit` allows {}. Keep large files out of \
             the repository, or narrow `context`",
            policy.context_limit_bytes
        );
        return Err(failure(ReasonCode::BuildFailed, Class::Stalled, text));
    }
    Ok(())
}

/// Relative, and never above its own root.
fn is_inside(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

fn unreadable(path: &Path, error: &std::io::Error) -> ImageError {
    let text =
        format!("the build context {} cannot be read: {error}; it is made again at the next try", path.display());
    failure(ReasonCode::StoreUnavailable, Class::Transient, text)
}

/// Builds again at once when the engine itself failed: it loses cached layers to whatever is
/// untagged at the same moment, here or by hand, and finds its way the next time.
async fn tries(
    images: &EngineImages,
    request: &ImageRequest,
    context: &BuildContext,
    output: &mut Output<'_>,
) -> Result<(), ImageError> {
    for _again in 1..BUILD_TRIES {
        match run_once(images, request, context, output).await {
            Err(error) if error.reason.code == ReasonCode::EngineUnavailable => {
                output.note(&format!("{}; building again", error.reason.message));
            }
            done => return done,
        }
    }
    run_once(images, request, context, output).await
}

/// Sends the archive and follows the output to its end.
async fn run_once(
    images: &EngineImages,
    request: &ImageRequest,
    context: &BuildContext,
    output: &mut Output<'_>,
) -> Result<(), ImageError> {
    let docker = bounded_memory(images.client.docker().await?, request.policy.build.memory_bytes);
    let file = tokio::fs::File::open(&context.archive).await.map_err(|error| unreadable(&context.archive, &error))?;
    let body = body_try_stream(ReaderStream::new(file));
    let mut stream = std::pin::pin!(docker.build_image(options(request, context), None, Some(body)));
    while let Some(part) = stream.next().await {
        match part {
            Ok(info) => output.take(info),
            Err(error) => {
                output.flush();
                return Err(with_output(build_failed(images, request, error), output));
            }
        }
    }
    output.flush();
    Ok(())
}

fn options(request: &ImageRequest, context: &BuildContext) -> BuildImageOptions {
    let policy = &request.policy.build;
    let revision = request.revision.to_string();
    let quota = i64::from(policy.cpus_milli) * i64::from(CPU_PERIOD_MICROS) / 1000;
    BuildImageOptions {
        dockerfile: context.dockerfile.clone(),
        t: Some(request.reference.clone()),
        rm: true,
        forcerm: true,
        cpuperiod: Some(CPU_PERIOD_MICROS),
        cpuquota: Some(i32::try_from(quota).unwrap_or(i32::MAX)),
        buildargs: Some(HashMap::from([("RELEASE_SHA".to_owned(), revision.clone())])),
        labels: Some(HashMap::from([
            (LABEL_REVISION.to_owned(), revision),
            (LABEL_PROJECT.to_owned(), request.project.clone()),
        ])),
        networkmode: Some(policy.network.clone()),
        version: BuilderVersion::BuilderV1,
        ..BuildImageOptions::default()
    }
}

/// Adds the memory bound to the query: bollard's own option has 32 bits and ends below 2 GiB.
fn bounded_memory(docker: Docker, memory_bytes: u64) -> Docker {
    docker.with_request_modifier(move |mut request| {
        let bound = format!("{}&memory={memory_bytes}&memswap={memory_bytes}", request.uri());
        if request.uri().query().is_some()
            && let Ok(uri) = bound.parse::<Uri>()
        {
            *request.uri_mut() = uri;
        }
        request
    })
}

/// Whose fault a failed build is: the engine's words decide between the commit and its surroundings.
fn build_failed(images: &EngineImages, request: &ImageRequest, error: Error) -> ImageError {
    let (message, is_output) = if let Error::DockerStreamError { error } = error {
        (error, true)
    } else {
        let call = images.client.failed(&format!("build {}", request.reference), error);
        if call.status.is_none() {
            return call.into();
        }
        // The engine reads the Dockerfile before it starts the output, and refuses a broken one so.
        (call.message.clone(), call.status == Some(400))
    };
    let reference = &request.reference;
    match kind(&message) {
        Kind::NoBuilder => failure(
            ReasonCode::NotBuilt,
            Class::Stalled,
            format!(
                "this engine has no first-generation builder any more ({message}), and building with BuildKit is not \
                 built yet. Build {reference} elsewhere and use `[image] from = \"local\"`"
            ),
        ),
        Kind::DiskFull => failure(
            ReasonCode::DiskFull,
            Class::Transient,
            format!(
                "image {reference} was not built: {message}. Free some space (`docker system df`), it is tried again by itself"
            ),
        ),
        Kind::BaseImage => failure(
            ReasonCode::ImageMissing,
            Class::Transient,
            format!(
                "image {reference} was not built, since a base image could not be pulled: {message}. Check the \
                 registry and this host's network, it is tried again by itself"
            ),
        ),
        Kind::Commit if is_output => failure(
            ReasonCode::BuildFailed,
            Class::Stalled,
            format!(
                "image {reference} was not built: {message}. Push a commit that builds; what serves now keeps serving"
            ),
        ),
        Kind::Engine | Kind::Commit => failure(
            ReasonCode::EngineUnavailable,
            Class::Transient,
            format!("the engine did not build {reference}: {message}. It is asked again by itself; its log says more"),
        ),
    }
}

/// The engine's words for layers and images that went away while it built on them. (measured)
const ENGINE_LOST: &[&str] =
    &["failed to get digest", "layer does not exist", "no such image: sha256:", "unknown parent image"];

/// What a builder's error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    NoBuilder,
    DiskFull,
    BaseImage,
    Engine,
    Commit,
}

fn kind(message: &str) -> Kind {
    let text = message.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    // What a RUN line did is the commit's own, whatever words it printed.
    if text.starts_with("the command ") {
        Kind::Commit
    } else if has(&["legacy builder", "classic builder", "builder version 1 is not", "unsupported builder"]) {
        Kind::NoBuilder
    } else if has(ENGINE_LOST) {
        Kind::Engine
    } else if has(&["no space left on device", "disk quota exceeded"]) {
        Kind::DiskFull
    } else if has(&["toomanyrequests", "dial tcp", "i/o timeout", "tls handshake", "get \"https://", "head \"https://"])
    {
        Kind::BaseImage
    } else {
        Kind::Commit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_words_say_whose_fault_a_failed_build_is() {
        for (message, expected) in [
            ("The command '/bin/sh -c make' returned a non-zero code: 2", Kind::Commit),
            ("The command '/bin/sh -c echo no space left on device; false' returned a non-zero code: 1", Kind::Commit),
            ("dockerfile parse error line 1: unknown instruction: FRMO", Kind::Commit),
            ("the --mount option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/", Kind::Commit),
            ("write /var/lib/docker/tmp/x: no space left on device", Kind::DiskFull),
            (
                "Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io: no such host",
                Kind::BaseImage,
            ),
            ("toomanyrequests: You have reached your pull rate limit", Kind::BaseImage),
            (
                "failed to get digest sha256:614c: open /var/lib/docker/image/overlay2/imagedb/content/sha256/614c: no such file",
                Kind::Engine,
            ),
            ("the legacy builder was removed", Kind::NoBuilder),
        ] {
            assert_eq!(kind(message), expected, "{message}");
        }
    }

    #[test]
    fn a_dockerfile_outside_of_the_context_is_refused() {
        for path in ["", "/etc/Dockerfile", "../Dockerfile", "a/../../b"] {
            assert!(!is_inside(path), "`{path}`");
        }
        assert!(is_inside("Dockerfile") && is_inside("deploy/Dockerfile.web") && is_inside("a..b"));
    }
}

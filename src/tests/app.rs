//! The app that live tests release: a static binary, and a repository's files around it.
//!
//! `testdata/app/server.rs` says what it can be told. An [`AppSpec`] becomes repository files
//! ([`context`]), which a test commits, or an image in the engine ([`image`]).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::image::engine::EngineImages;
use crate::image::{BuildContext, Images as _};
use crate::model::desired::ImageRequest;
use crate::model::policy::{BuildPolicy, ImageFrom, ImagePolicy};
use crate::model::{Digest, ImageId};

/// Where the engine of the live tests listens.
pub(crate) const SOCKET: &str = "/var/run/docker.sock";

/// What the app does. The default is a healthy page on port 8080 that drains at SIGTERM.
#[derive(Debug, Clone)]
pub(crate) struct AppSpec {
    /// Lines of `/behaviour.conf`, see `testdata/app/server.rs`.
    pub(crate) behaviour: Vec<String>,
    /// The `USER` line's value; none leaves the line out.
    pub(crate) user: Option<String>,
    /// More lines of the Dockerfile, before its `CMD`.
    pub(crate) dockerfile: Vec<String>,
    /// The `CMD`, by default the server itself.
    pub(crate) command: Vec<String>,
}

impl Default for AppSpec {
    fn default() -> Self {
        Self {
            behaviour: Vec::new(),
            user: Some("20001:20001".to_owned()),
            dockerfile: Vec::new(),
            command: vec!["/server".to_owned()],
        }
    }
}

impl AppSpec {
    /// An app whose `/` answers `page`.
    pub(crate) fn page(page: &str) -> Self {
        Self::default().with("page", page)
    }

    /// One more line of behaviour.
    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        self.behaviour.push(format!("{key} {value}"));
        self
    }
}

/// One file of a repository.
#[derive(Debug, Clone)]
pub(crate) struct RepoFile {
    /// Relative path.
    pub(crate) path: String,
    /// Content.
    pub(crate) bytes: Vec<u8>,
    /// `0o755` or `0o644`.
    pub(crate) mode: u32,
}

/// `Dockerfile`, `server` and `behaviour.conf`: all that the image needs, at the root of a repository.
pub(crate) fn context(spec: &AppSpec) -> Vec<RepoFile> {
    let mut lines = vec!["FROM scratch".to_owned(), "COPY server behaviour.conf /".to_owned()];
    lines.extend(spec.user.iter().map(|user| format!("USER {user}")));
    lines.extend(spec.dockerfile.iter().cloned());
    lines.push(format!("CMD {}", serde_json::to_string(&spec.command).unwrap()));
    let file = |path: &str, bytes: Vec<u8>, mode: u32| RepoFile { path: path.to_owned(), bytes, mode };
    vec![
        file("Dockerfile", format!("{}\n", lines.join("\n")).into_bytes(), 0o644),
        file("behaviour.conf", format!("{}\n", spec.behaviour.join("\n")).into_bytes(), 0o644),
        file("server", binary().to_vec(), 0o755),
    ]
}

/// The files as a tar archive in a private file of `directory`.
pub(crate) fn archive(files: &[RepoFile], directory: &Path) -> BuildContext {
    let archive = directory.join(unique("context"));
    let mut builder = tar::Builder::new(std::fs::File::create_new(&archive).unwrap());
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(file.bytes.len()).unwrap());
        header.set_mode(file.mode);
        builder.append_data(&mut header, &file.path, file.bytes.as_slice()).unwrap();
    }
    builder.finish().unwrap();
    BuildContext { archive, dockerfile: "Dockerfile".to_owned() }
}

/// A request for an image of this project and commit.
pub(crate) fn request(project: &str, sha: &str, from: ImageFrom) -> ImageRequest {
    let build = BuildPolicy {
        network: "none".to_owned(),
        cpus_milli: 1000,
        memory_bytes: 1 << 30,
        timeout_seconds: 300,
        context_limit_bytes: 1 << 30,
    };
    let revision: crate::model::Sha = sha.parse().unwrap();
    ImageRequest {
        reference: format!("huta-build/{project}:{}", revision.short()),
        revision,
        project: project.to_owned(),
        policy: ImagePolicy { from, repository: None, credential: None, build },
        dockerfile: "Dockerfile".parse().unwrap(),
        context: ".".parse().unwrap(),
    }
}

/// Builds the app's image; gives its id. The caller removes it with [`forget_images`].
pub(crate) async fn image(spec: &AppSpec, project: &str, sha: &str) -> ImageId {
    require_engine();
    let directory = tempfile::tempdir().unwrap();
    let context = archive(&context(spec), directory.path());
    let images = EngineImages::new(SOCKET.into());
    images.prepare(&request(project, sha, ImageFrom::Build), Some(&context), &|_line| {}).await.unwrap()
}

/// Removes every tag of the project's images that no container uses.
pub(crate) async fn forget_images(project: &str) {
    EngineImages::new(SOCKET.into()).prune(&format!("huta-build/{project}"), &[]).await.unwrap();
}

/// Fails with what to do when there is no engine.
pub(crate) fn require_engine() {
    let is_there = std::os::unix::net::UnixStream::connect(SOCKET).is_ok();
    assert!(
        is_there,
        "no Docker engine answers at {SOCKET}: `deploy/test.sh` installs and starts what live tests need"
    );
}

/// Runs a future to its end on a thread and runtime of its own: for cleaning up in `Drop`.
pub(crate) fn block_on(work: impl Future<Output = ()> + Send + 'static) {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    let done = std::thread::spawn(run).join();
    if !std::thread::panicking() {
        done.unwrap();
    }
}

/// Waits until `is_so` says so; fails after a minute, naming `what`.
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "not within a minute: {what}");
}

/// A name that no other test or run uses: `prefix`, then lower-case letters and digits.
pub(crate) fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let seed = tempfile::Builder::new().tempfile().unwrap().path().to_string_lossy().into_owned();
    let hash = Digest::of(format!("{seed} {} {count}", std::process::id()).as_bytes());
    format!("{prefix}{}", hash.prefix(8))
}

/// Two loopback ports that were free a moment ago.
pub(crate) fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

/// A sha that no other test uses, as the engine keeps images by it.
pub(crate) fn unique_sha() -> String {
    Digest::of(unique("sha").as_bytes()).prefix(40).to_owned()
}

/// The compiled server, statically linked, compiled once for each version of its source.
pub(crate) fn binary() -> &'static [u8] {
    static BINARY: OnceLock<Vec<u8>> = OnceLock::new();
    BINARY.get_or_init(|| std::fs::read(compiled()).unwrap())
}

/// Its path below the target directory.
pub(crate) fn compiled() -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/app/server.rs");
    let digest = Digest::of(&std::fs::read(source).unwrap());
    // The test binary lies in `<target>/<profile>/deps`.
    let this = std::env::current_exe().unwrap();
    let directory = this.parent().and_then(Path::parent).unwrap().join("test-app");
    let done = directory.join(format!("server-{}", digest.prefix(16)));
    if !done.exists() {
        std::fs::create_dir_all(&directory).unwrap();
        let partial = directory.join(unique("partial-"));
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"])
            .arg(&partial)
            .arg(source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Another test run may have made it meanwhile: the content is the same.
        std::fs::rename(partial, &done).unwrap();
    }
    done
}

#[test]
fn the_app_is_compiled_once_and_its_context_has_what_its_dockerfile_copies() {
    assert_eq!(compiled(), compiled());
    let files = context(&AppSpec::page("hello").with("health", "unhealthy"));
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, ["Dockerfile", "behaviour.conf", "server"]);
    assert_eq!(files[1].bytes, b"page hello\nhealth unhealthy\n");
    assert_eq!(files[2].mode, 0o755);
}

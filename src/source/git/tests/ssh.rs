//! `ssh://` against a real `sshd` on a loopback port, with keys made for the test.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::model::Class;

/// An `sshd` in the foreground, ended when dropped.
struct Sshd {
    child: Child,
    port: u16,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn keygen(file: &Path) {
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", "dev@example.org", "-f"];
    let status =
        Command::new("ssh-keygen").args(arguments).arg(file).status().expect("install the package openssh-client");
    assert!(status.success());
}

/// Who runs this test, as the account to log in to.
fn account() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Sshd {
    /// Starts it with the keys `host` and `client` of `dir`; `more` goes into its configuration.
    fn start(dir: &Path, more: &str) -> Self {
        std::fs::create_dir_all("/run/sshd").ok();
        std::fs::copy(dir.join("client.pub"), dir.join("authorized")).unwrap();
        // A listener of our own finds a free port; if another program takes it in between, the next one is tried.
        (0..20).find_map(|_| Self::try_start(dir, more)).expect("install the package openssh-server")
    }

    fn try_start(dir: &Path, more: &str) -> Option<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\nPidFile none\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nStrictModes no\nLogLevel INFO\n{more}\n",
            dir.display()
        );
        std::fs::write(dir.join("sshd_config"), config).unwrap();
        let mut child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(dir.join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("install the package openssh-server");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let is_up = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Server listening"));
        // What it says later is read too, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        let sshd = Self { child, port };
        is_up.then_some(sshd)
    }

    /// The line for the file of known hosts.
    fn known(&self, dir: &Path) -> String {
        let key = std::fs::read_to_string(dir.join("host.pub")).unwrap();
        format!("[127.0.0.1]:{} {key}", self.port)
    }
}

struct SshWorld {
    dir: TempDir,
    origin: GitRepo,
    sshd: Sshd,
    source: GitSource,
    repo: Repository,
}

impl SshWorld {
    fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let origin = GitRepo::new(dir.path(), "shop");
        keygen(&dir.path().join("host"));
        keygen(&dir.path().join("client"));
        let sshd = Sshd::start(dir.path(), more);
        let repo = Repository::Url(format!("ssh://{}@127.0.0.1:{}{}", account(), sshd.port, origin.bare.display()));
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut settings = settings(&dir.path().join("state"), "https://github.com", None);
        settings.identity_files.insert(repo.clone(), dir.path().join("client"));
        let source = GitSource::open(settings).unwrap();
        let world = Self { dir, origin, sshd, source, repo };
        world.pin(&world.sshd.known(world.dir.path()));
        world
    }

    fn pin(&self, text: &str) {
        std::fs::write(self.dir.path().join("state/ssh/known_hosts"), text).unwrap();
    }

    async fn refused(&self) -> SourceError {
        self.source.look(&self.repo, &main_branch()).await.unwrap_err()
    }
}

#[tokio::test]
async fn a_repository_is_read_over_ssh_with_its_own_key_whatever_protocol_the_server_lets_through() {
    for more in ["AcceptEnv GIT_PROTOCOL", ""] {
        let world = SshWorld::new(more);
        assert_eq!(world.source.look(&world.repo, &main_branch()).await.unwrap(), Look::Gone);
        let first = world.origin.release("v1");
        let sha = world.origin.release("v2");
        assert_eq!(world.source.look(&world.repo, &main_branch()).await.unwrap(), Look::At(sha.clone()), "{more}");
        world.source.fetch(&world.repo, &main_branch(), &sha).await.unwrap();
        let read = world.source.read(&world.repo, &sha, &path("deploy/app.toml"), LIMIT).await.unwrap();
        assert_eq!(read, b"v2");
        let third = world.origin.release("v3");
        world.source.fetch(&world.repo, &main_branch(), &third).await.unwrap();
        let older = world.source.fetch(&world.repo, &main_branch(), &first).await;
        match more {
            "" => assert!(older.unwrap_err().reason.message.contains("AcceptEnv GIT_PROTOCOL")),
            _ => assert_eq!(older.unwrap().subject, "v1"),
        }
        let order = world.source.ancestry(&world.repo, &main_branch(), (&first, &third)).await.unwrap();
        assert_eq!(order, crate::source::Ancestry::Ancestor);
    }
}

#[tokio::test]
async fn a_changed_host_key_is_refused_with_both_fingerprints_field_report_28() {
    let world = SshWorld::new("");
    world.origin.release("v1");
    keygen(&world.dir.path().join("other"));
    let key = std::fs::read_to_string(world.dir.path().join("other.pub")).unwrap();
    let other = format!("[127.0.0.1]:{} {key}", world.sshd.port);
    world.pin(&other);
    let error = world.refused().await;
    assert_eq!((code(&error), error.class), (ReasonCode::GitUnavailable, Class::Stalled));
    assert!(error.reason.message.contains("the host key changed"), "{error}");
    for file in ["host.pub", "other.pub"] {
        let output = Command::new("ssh-keygen").arg("-lf").arg(world.dir.path().join(file)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let print = text.split_whitespace().find(|word| word.starts_with("SHA256:")).unwrap();
        assert!(error.reason.message.contains(print), "{print}: {error}");
    }
    world.pin(&format!("{other}{}", world.sshd.known(world.dir.path())));
    assert!(world.source.look(&world.repo, &main_branch()).await.is_ok(), "several keys may be pinned for one host");
}

#[tokio::test]
async fn an_unknown_host_is_never_trusted() {
    let world = SshWorld::new("");
    world.origin.release("v1");
    world.pin("");
    let error = world.refused().await;
    assert!(error.reason.message.contains("the host's key is not in"), "{error}");
    assert_eq!(std::fs::read_to_string(world.dir.path().join("state/ssh/known_hosts")).unwrap(), "");
}

#[tokio::test]
async fn a_key_that_the_host_does_not_know_and_a_path_that_is_not_there_are_told_apart() {
    let world = SshWorld::new("");
    std::fs::write(world.dir.path().join("authorized"), "").unwrap();
    let error = world.refused().await;
    assert!(error.reason.message.contains("the host refused our key"), "{error}");
    std::fs::copy(world.dir.path().join("client.pub"), world.dir.path().join("authorized")).unwrap();
    std::fs::remove_dir_all(&world.origin.bare).unwrap();
    let error = world.refused().await;
    assert!(error.reason.message.contains("does not appear to be a git repository"), "{error}");
    assert!(!error.reason.message.contains('@'), "{error}");
    let mode = std::fs::metadata(world.dir.path().join("state/ssh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

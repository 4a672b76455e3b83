//! A project of its own: a repository, a Caddy, the daemon, and what it makes in the engine.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use trueup::model::{Sha, TargetName};
use trueup::target::docker::{DockerConfig, DockerTarget};

use super::app::{AppSpec, SOCKET, block_on, context, forget_images, free_ports, require_engine, unique};
use super::caddy::Caddy;
use super::daemon::Daemon;
use super::git_repo::GitRepo;

/// How long a release may take.
const RELEASE_BOUND: Duration = Duration::from_secs(120);

/// Everything of it ends and goes when it is dropped.
pub(crate) struct Shop {
    pub(crate) daemon: Daemon,
    pub(crate) repo: GitRepo,
    project: String,
    // Dropped in this order: the daemon before what it uses.
    _caddy: Caddy,
    dir: TempDir,
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.daemon.end();
        for slot in ["a", "b"] {
            let url = format!("http://localhost/containers/{}.prod.{slot}?force=true", self.project);
            let mut delete = Command::new("curl");
            delete.args(["-sS", "--noproxy", "*", "--unix-socket", SOCKET, "-X", "DELETE", &url]);
            drop(delete.stdin(Stdio::null()).stdout(Stdio::null()).status());
        }
        let state_dir = self.dir.path().join("state");
        let instance = std::fs::read_to_string(state_dir.join("instance")).unwrap_or_default();
        let docker = DockerConfig { socket: SOCKET.into(), state_dir, instance: instance.trim().to_owned() };
        let (project, target) = (self.project.clone(), self.target());
        block_on(async move {
            forget_images(&project).await;
            DockerTarget::new(docker).remove_network(&target).await.unwrap();
        });
    }
}

impl Shop {
    /// Starts Caddy and the daemon; nothing is released yet.
    pub(crate) fn start(approve: &str) -> Self {
        require_engine();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let caddy = Caddy::start(path);
        let project = unique("bench-");
        let repo = GitRepo::new(path, "shop");
        let config = path.join("config");
        std::fs::create_dir_all(config.join("projects.d")).unwrap();
        let host = format!(
            "schema = 1\n\n[platform]\nstate_dir = \"{0}/state\"\n\n[server]\nsocket = \"{0}/trueup.sock\"\n\n[edge]\nadmin = \"http://{1}\"\nsites = \"{0}/sites\"\ncaddyfile = \"{0}/Caddyfile\"\npublic_checks = \"direct\"\ntls = \"off\"\n",
            path.display(),
            caddy.admin
        );
        std::fs::write(config.join("huta.toml"), host).unwrap();
        let [a, b] = free_ports();
        let registry = format!(
            "schema = 1\nproject = \"{project}\"\nrepo = \"file://{}\"\napp_toml = \"deploy/app.toml\"\nuid = 20001\n\n[image]\nfrom = \"build\"\n\n[targets.prod]\nhosts = [\"{project}.localhost\"]\nslots = [{a}, {b}]\nlimits = {{ memory = \"64m\", cpus = 1, pids = 64 }}\napprove = \"{approve}\"\nrequire_ci = false\ndrain = 1\n",
            repo.bare.display()
        );
        std::fs::write(config.join(format!("projects.d/{project}.toml")), registry).unwrap();
        let daemon = Daemon::start(&config);
        Self { daemon, repo, project, _caddy: caddy, dir }
    }

    fn target(&self) -> TargetName {
        format!("{}/prod", self.project).parse().unwrap()
    }

    /// Commits and pushes an app that behaves so; says when the push had ended.
    pub(crate) fn push(&self, spec: &AppSpec) -> (Sha, Instant) {
        for file in context(spec) {
            self.repo.write(&file.path, &file.bytes);
            let path = self.repo.work.join(&file.path);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(file.mode)).unwrap();
        }
        self.repo.write(
            "deploy/app.toml",
            format!(
                "schema = 1\nproject = \"{}\"\norder = [\"web\"]\n\n[images.web]\ndockerfile = \"Dockerfile\"\n\n[components.web]\nimage = \"web\"\nport = 8080\nhealth = \"/healthz\"\n\n[[smoke]]\npath = \"/\"\nstatus = 200\ncontains = \"page\"\n",
                self.project
            ),
        );
        let sha = self.repo.commit("a change");
        self.repo.push("main");
        (sha, Instant::now())
    }

    /// Waits until this commit's release has ended as `state`, and gives its journal.
    pub(crate) fn journal(&mut self, sha: &Sha, state: &str) -> Vec<serde_json::Value> {
        let project = self.project.clone();
        let newest = |daemon: &Daemon| daemon.ask(&["releases", &project, "prod", "--limit", "1"]).unwrap()[0].clone();
        self.daemon.until("the release ends", RELEASE_BOUND, |daemon| {
            let newest = newest(daemon);
            let is_it = newest["revision"] == sha.as_str() && !newest["ended_at"].is_null();
            assert!(!is_it || newest["state"] == state, "not {state}: {newest}");
            is_it
        });
        let log = self.daemon.ask(&["log", &project, "prod"]).unwrap();
        log["journal"].as_array().unwrap().clone()
    }

    /// What the daemon says of the target now.
    pub(crate) fn status(daemon: &Daemon, project: &str) -> Option<serde_json::Value> {
        daemon.get(&format!("/api/v1/targets/{project}/prod"))
    }

    pub(crate) fn project(&self) -> String {
        self.project.clone()
    }
}

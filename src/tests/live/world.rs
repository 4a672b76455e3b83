//! A private world for one test: a repository, a Caddy, a daemon, and names and ports that nobody else has.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::app::{self, AppSpec};
use super::engine::Engine;
use super::git_repo::GitRepo;
use super::http::{self, Answer};
use super::process::Process;

/// The only target of each project.
pub(crate) const TARGET: &str = "prod";

/// The bound of most waits. Health alone may take 30 s, and other tests use the machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(60);

/// What the operator's files say.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The registry's `repo`; the world's own repository when absent.
    pub(crate) repo: Option<String>,
    pub(crate) approve: &'static str,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) keep_releases: u32,
    /// More lines of the target's table.
    pub(crate) target_lines: Vec<String>,
    /// More lines of `huta.toml`.
    pub(crate) host_lines: Vec<String>,
    pub(crate) engine: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            repo: None,
            approve: "never",
            env: BTreeMap::new(),
            keep_releases: 5,
            target_lines: vec!["require_ci = false".to_owned()],
            host_lines: Vec::new(),
            engine: PathBuf::from(app::SOCKET),
        }
    }
}

/// Where a site is reached: through Caddy.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) port: u16,
    pub(crate) host: String,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

/// The world; everything in it ends with it.
pub(crate) struct World {
    dir: tempfile::TempDir,
    pub(crate) project: String,
    pub(crate) repo: GitRepo,
    pub(crate) slots: [u16; 2],
    pub(crate) options: Options,
    http_port: u16,
    admin_port: u16,
    caddy: Option<Process>,
    daemon: Option<Process>,
}

impl World {
    /// A world with a running Caddy and daemon, and an empty repository.
    pub(crate) fn start() -> Self {
        Self::with(Options::default())
    }

    /// The same, with other words in the operator's files.
    pub(crate) fn with(options: Options) -> Self {
        Self::prepared(options, |_dir, _options| {})
    }

    /// The same; `prepare` may put something into the directory first, and name it in the options.
    pub(crate) fn prepared(mut options: Options, prepare: impl FnOnce(&Path, &mut Options)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["config/projects.d", "sites", "state", "caddy"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        prepare(dir.path(), &mut options);
        let [a, b, http_port, admin_port] = [(); 4].map(|()| free_port());
        let repo = GitRepo::new(dir.path(), "shop");
        let project = app::unique("live-");
        let slots = [a, b];
        let mut world = Self { dir, project, repo, slots, options, http_port, admin_port, caddy: None, daemon: None };
        assert!(world.engine().is_there(), "no engine at {}: run deploy/test.sh", world.options.engine.display());
        world.write_caddyfile();
        world.write_host();
        world.write_registry();
        world.start_caddy();
        world.start_daemon();
        world
    }

    // The operator's files.

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write_caddyfile(&self) {
        let (admin, http, dir) = (self.admin_port, self.http_port, self.dir.path().display());
        let text = format!(
            "{{\n\tadmin 127.0.0.1:{admin}\n\thttp_port {http}\n\tdefault_bind 127.0.0.1\n\tauto_https off\n\
             \tskip_install_trust\n}}\nimport {dir}/sites/*.caddy\n"
        );
        std::fs::write(self.path("Caddyfile"), text).unwrap();
    }

    fn write_host(&self) {
        let dir = self.dir.path().display();
        let text = format!(
            "schema = 1\n[platform]\nstate_dir = \"{dir}/state\"\n[server]\nsocket = \"{dir}/trueup.sock\"\n\
             [poll]\nevery = \"1s\"\n[docker]\nsocket = \"{engine}\"\n[edge]\nadmin = \"http://127.0.0.1:{admin}\"\n\
             sites = \"{dir}/sites\"\ncaddyfile = \"{dir}/Caddyfile\"\npublic_checks = \"direct\"\ntls = \"off\"\n{more}\n",
            engine = self.options.engine.display(),
            admin = self.admin_port,
            more = self.options.host_lines.join("\n"),
        );
        replace(&self.path("config/huta.toml"), &text);
    }

    /// The registry's file of the project.
    pub(crate) fn registry_file(&self) -> PathBuf {
        self.path(&format!("config/projects.d/{}.toml", self.project))
    }

    /// Writes the registry as the options say.
    pub(crate) fn write_registry(&self) {
        let options = &self.options;
        let repo = options.repo.clone().unwrap_or_else(|| format!("file://{}", self.repo.bare.display()));
        let env: Vec<String> = options.env.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let [a, b] = self.slots;
        let text = format!(
            "schema = 1\nproject = \"{project}\"\nrepo = \"{repo}\"\napp_toml = \"deploy/app.toml\"\nuid = 20001\n\
             [image]\nfrom = \"build\"\n[targets.{TARGET}]\nhosts = [\"{host}\"]\nslots = [{a}, {b}]\n\
             limits = {{ memory = \"64m\", cpus = 1, pids = 64 }}\napprove = \"{approve}\"\ndrain = 1\n\
             keep_releases = {keep}\nenv = {{ {env} }}\n{more}\n",
            project = self.project,
            host = self.site().host,
            approve = options.approve,
            keep = options.keep_releases,
            env = env.join(", "),
            more = options.target_lines.join("\n"),
        );
        replace(&self.registry_file(), &text);
    }

    /// Sets a variable of the target in the registry.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.options.env.insert(name.to_owned(), value.to_owned());
        self.write_registry();
    }

    // Processes.

    pub(crate) fn start_caddy(&mut self) {
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(self.path("Caddyfile"));
        command.env("XDG_DATA_HOME", self.path("caddy")).env("XDG_CONFIG_HOME", self.path("caddy"));
        self.caddy = Some(Process::start(command, &self.path("caddy.log")));
        let port = self.admin_port;
        let host = format!("127.0.0.1:{port}");
        let answers = || http::get(port, &host, "/config/").ok().filter(|answer| answer.status == 200);
        self.until("Caddy answers", answers);
    }

    pub(crate) fn kill_caddy(&mut self) {
        self.caddy.take().unwrap().kill();
    }

    pub(crate) fn start_daemon(&mut self) {
        self.launch_daemon();
        self.until("the daemon answers", || (self.trueup(&["status"]).code == 0).then_some(()));
    }

    /// Starts the daemon and does not wait for it.
    pub(crate) fn launch_daemon(&mut self) {
        let mut command = self.command(&["serve"]);
        command.env("RUST_BACKTRACE", "1");
        self.daemon = Some(Process::start(command, &self.path("trueup.log")));
    }

    pub(crate) fn daemon(&self) -> &Process {
        self.daemon.as_ref().unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill_daemon(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// SIGTERM, and its end.
    pub(crate) fn stop_daemon(&mut self) -> ExitStatus {
        self.daemon.take().unwrap().terminate(Duration::from_secs(30))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trueup"));
        command.args(arguments).arg("--config").arg(self.path("config")).env("NO_COLOR", "1");
        command
    }

    /// Runs one command to its end.
    pub(crate) fn trueup(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The same for a command about the target: `about("why", &[sha])`.
    pub(crate) fn about(&self, command: &str, more: &[&str]) -> Ran {
        let mut arguments = vec![command, &self.project, TARGET];
        arguments.extend(more);
        self.trueup(&arguments)
    }

    // The repository.

    /// Writes an app into the work tree, commits and pushes it; gives the sha.
    pub(crate) fn push(&self, spec: &AppSpec) -> String {
        self.commit(spec);
        self.repo.push("main");
        self.head()
    }

    /// The same, without the push.
    pub(crate) fn commit(&self, spec: &AppSpec) -> String {
        for file in app::context(spec) {
            self.repo.write(&file.path, &file.bytes);
            let mode = std::fs::Permissions::from_mode(file.mode);
            std::fs::set_permissions(self.repo.work.join(&file.path), mode).unwrap();
        }
        let manifest = format!(
            "schema = 1\nproject = \"{}\"\norder = [\"web\"]\n[images.web]\ndockerfile = \"Dockerfile\"\n\
             [components.web]\nimage = \"web\"\nport = 8080\nhealth = \"/healthz\"\n\
             [[smoke]]\npath = \"/\"\ncontains = \"shop\"\n",
            self.project
        );
        self.repo.write("deploy/app.toml", manifest);
        self.repo.commit(&spec.behaviour.join("; ")).to_string()
    }

    pub(crate) fn head(&self) -> String {
        self.repo.head().to_string()
    }

    // What is seen.

    pub(crate) fn engine(&self) -> Engine {
        Engine::at(&self.options.engine)
    }

    /// The name of a slot's container.
    pub(crate) fn container(&self, slot: &str) -> String {
        format!("{}.{TARGET}.{slot}", self.project)
    }

    pub(crate) fn site(&self) -> Site {
        Site { port: self.http_port, host: format!("{}.test", self.project) }
    }

    /// One question through Caddy.
    pub(crate) fn ask(&self, path: &str) -> std::io::Result<Answer> {
        let site = self.site();
        http::get(site.port, &site.host, path)
    }

    /// What the site says at `/`; fails when it does not answer.
    #[track_caller]
    pub(crate) fn page(&self) -> String {
        let answer = self.ask("/").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Whether this commit answers through Caddy.
    pub(crate) fn serves(&self, sha: &str) -> bool {
        self.ask("/healthz").is_ok_and(|answer| answer.status == 200 && answer.body.contains(sha))
    }

    pub(crate) fn status(&self) -> Value {
        self.about("status", &["--json"]).ended(0).json()
    }

    /// All releases, newest first.
    pub(crate) fn releases(&self) -> Vec<Value> {
        let all = self.about("releases", &["--json", "--limit", "1000"]).ended(0).json();
        all.as_array().unwrap().clone()
    }

    /// How many releases this commit had.
    pub(crate) fn tries(&self, sha: &str) -> usize {
        self.releases().iter().filter(|release| release["revision"] == sha).count()
    }

    /// Waits until a look gives something; fails after [`PATIENCE`], saying what the daemon says.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if began.elapsed() > PATIENCE {
                let status = self.about("status", &["--offline"]);
                let releases = self.about("releases", &["--offline"]);
                panic!("not within {PATIENCE:?}: {what}\n{}{}\n{}", status.stdout, status.stderr, releases.stdout);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until the newest release of a commit has its outcome, and fails if it is another word.
    #[track_caller]
    pub(crate) fn ended(&self, sha: &str, outcome: &str) -> Value {
        let release = self.until(&format!("a release of {sha} ends {outcome}"), || {
            let mut releases = self.releases().into_iter();
            releases.find(|release| release["revision"] == sha && !release["ended_at"].is_null())
        });
        assert_eq!(release["state"], outcome, "{release:#}");
        release
    }

    /// Pushes an app and waits until it is live.
    #[track_caller]
    pub(crate) fn release(&self, spec: &AppSpec) -> String {
        let sha = self.push(spec);
        self.ended(&sha, "live");
        assert!(self.serves(&sha));
        sha
    }

    /// Waits until the target is held with this reason; gives `held`.
    #[track_caller]
    pub(crate) fn held(&self, reason: &str) -> Value {
        self.until(&format!("held: {reason}"), || {
            let held = self.status()["held"].clone();
            (held["reason"] == reason).then_some(held)
        })
    }

    /// Waits until nothing holds the target and no release is under way; gives its status.
    #[track_caller]
    pub(crate) fn settled(&self, live: &str) -> Value {
        self.until(&format!("{live} is live and nothing is held"), || {
            let status = self.status();
            (status["state"] == "live" && status["live"]["revision"] == live).then_some(status)
        })
    }

    /// Waits until the newest release's journal has a step that begins with these words.
    #[track_caller]
    pub(crate) fn reached(&self, sha: &str, step: &str) {
        self.until(&format!("{sha} reaches `{step}`"), || {
            let log = self.about("log", &["--json"]);
            let log: Value = (log.code == 0).then(|| log.json())?;
            let journal = log["journal"].as_array()?.iter();
            let is_there = log["release"]["revision"] == sha
                && journal.clone().any(|line| line["step"].as_str().is_some_and(|text| text.starts_with(step)));
            is_there.then_some(())
        });
    }

    /// The port of the slot that a release of this commit took, once it has one.
    pub(crate) fn slot_port(&self, sha: &str) -> u16 {
        let releases = self.releases();
        let release = releases.iter().find(|release| release["revision"] == sha).unwrap();
        self.slots[usize::from(release["slot"] == "b")]
    }

    /// Tells a candidate on its own port how to behave from now on; waits until it listens.
    #[track_caller]
    pub(crate) fn tell(&self, port: u16, behaviour: &str) {
        self.until("the candidate listens", || {
            http::get(port, "127.0.0.1", &format!("/set?{behaviour}")).ok().filter(|answer| answer.status == 200)
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (name, process) in [("trueup", &self.daemon), ("caddy", &self.caddy)] {
                let log = process.as_ref().map_or("not running".to_owned(), Process::log);
                eprintln!("---- {name} of {}\n{log}", self.project);
            }
        }
        self.daemon = None;
        self.engine().forget(&self.project, TARGET);
    }
}

/// Writes a file in one go, as an editor does: beside it, then renamed.
pub(crate) fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

/// A port that is free, below those that the system gives to connections.
fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let first = u16::try_from(std::process::id() % 150).unwrap() * 100 + 14_000;
    let next = NEXT.get_or_init(|| AtomicU16::new(first));
    loop {
        let port = next.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

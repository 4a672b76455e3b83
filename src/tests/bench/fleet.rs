//! A thousand targets whose wanted commit is live, as a store of some weeks has them.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use trueup::clock;
use trueup::manifest::{self, Commit, apptoml};
use trueup::model::policy::Project;
use trueup::model::{Slot, TargetName};
use trueup::reconcile::ports::Catalog;
use trueup::release::Phase;
use trueup::store::Store as _;
use trueup::store::record::NewRelease;
use trueup::store::sqlite::SqliteStore;
use trueup::trigger::config_dir;

use super::git_repo::{GitRepo, git};

/// Repositories; every project has one of them.
pub(crate) const REPOSITORIES: usize = 4;
const PROJECTS: usize = 250;
const LABELS: [&str; 4] = ["prod", "staging", "beta", "demo"];
/// How many targets that makes.
pub(crate) const TARGETS: usize = PROJECTS * LABELS.len();

/// The configuration, the repositories and the state directory, below one private directory.
pub(crate) struct Fleet {
    pub(crate) dir: TempDir,
}

impl Fleet {
    /// Writes everything; `host` is what `huta.toml` says besides its places.
    pub(crate) async fn prepare(targets: usize, host: &str) -> Self {
        let fleet = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(fleet.config().join("projects.d")).unwrap();
        std::fs::write(fleet.config().join("huta.toml"), fleet.host_file(host)).unwrap();
        let repositories: Vec<GitRepo> = (0..REPOSITORIES).map(|number| repository(fleet.path(), number)).collect();
        for number in 0..targets / LABELS.len() {
            let repository = &repositories[number % REPOSITORIES];
            std::fs::write(
                fleet.config().join(format!("projects.d/{}.toml", project_name(number))),
                registry(number, &repository.bare),
            )
            .unwrap();
        }
        fleet.release_all(&repositories).await;
        fleet
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("config")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The registry, as the daemon reads it.
    pub(crate) fn catalog(&self) -> Catalog {
        let loaded = config_dir::load(&self.config());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        Catalog { projects: loaded.projects }
    }

    fn host_file(&self, more: &str) -> String {
        let path = self.path().display();
        format!(
            "schema = 1\n\n[platform]\nstate_dir = \"{path}/state\"\n\n[server]\nsocket = \"{path}/trueup.sock\"\n\n[edge]\nadmin = \"{path}/admin.sock\"\nsites = \"{path}/sites\"\ncaddyfile = \"{path}/Caddyfile\"\npublic_checks = \"direct\"\ntls = \"off\"\n\n{more}"
        )
    }

    /// Records, for every target, that its repository's tip is live, with all that a release keeps.
    async fn release_all(&self, repositories: &[GitRepo]) {
        let store = SqliteStore::open(&self.state()).await.unwrap();
        let catalog = self.catalog();
        for (number, project) in catalog.projects.values().enumerate() {
            let repository = &repositories[number % REPOSITORIES];
            for label in project.targets.keys() {
                let target = TargetName::new(project.name.clone(), label.clone());
                release(&store, project, &target, repository).await;
            }
        }
        store.close().await;
    }
}

async fn release(store: &SqliteStore, project: &Project, target: &TargetName, repository: &GitRepo) {
    let commit = Commit { revision: repository.head(), tree: tree(repository).parse().unwrap() };
    let app = apptoml::parse(manifest(project.name.as_str()).as_bytes(), "app.toml", None).unwrap();
    let desired = manifest::desired(&app, project, &target.target, &commit).unwrap();
    let new = NewRelease {
        target: target.clone(),
        revision: commit.revision,
        slot: Some(Slot::A),
        plan_id: None,
        manifest: Some(desired.manifest.clone()),
        registry: project.release_digest(&target.target),
        desired: Some(serde_json::to_value(&desired).unwrap()),
        trigger: "commit".to_owned(),
        at: clock::now(),
    };
    let number = store.begin_release(&new).await.unwrap().number;
    store.put_phase(target, number, &Phase::Live, clock::now()).await.unwrap();
    store.put_retired(target, number, clock::now()).await.unwrap();
}

fn project_name(number: usize) -> String {
    format!("app-{number:03}")
}

fn repository(dir: &Path, number: usize) -> GitRepo {
    let repository = GitRepo::new(dir, &format!("repo-{number}"));
    repository.release(&manifest("app-000"));
    repository
}

fn tree(repository: &GitRepo) -> String {
    git(&repository.work, &["rev-parse", "HEAD^{tree}"])
}

fn manifest(project: &str) -> String {
    format!(
        "schema = 1\nproject = \"{project}\"\norder = [\"web\"]\n\n[images.web]\ndockerfile = \"Dockerfile\"\n\n[components.web]\nimage = \"web\"\nport = 8080\nhealth = \"/healthz\"\n\n[[smoke]]\npath = \"/\"\nstatus = 200\ncontains = \"<title>shop</title>\"\n"
    )
}

/// Drift is not looked for: that asks the engine and Caddy, and has an interval of its own.
fn registry(number: usize, bare: &Path) -> String {
    let name = project_name(number);
    let mut text = format!(
        "schema = 1\nproject = \"{name}\"\nrepo = \"file://{}\"\napp_toml = \"deploy/app.toml\"\nuid = {}\n\n[image]\nfrom = \"build\"\n",
        bare.display(),
        20_000 + number
    );
    for (place, label) in LABELS.iter().enumerate() {
        let slot = 30_000 + 2 * (number * LABELS.len() + place);
        text.push_str(&format!(
            "\n[targets.{label}]\nhosts = [\"{label}.{name}.example.org\"]\nslots = [{slot}, {}]\nlimits = {{ memory = \"64m\", cpus = 1, pids = 64 }}\napprove = \"never\"\nrequire_ci = false\ndrift = \"off\"\n",
            slot + 1
        ));
    }
    text
}

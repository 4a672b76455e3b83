//! Wiring: the one place that names concrete adapters, and sets up tracing.

mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::SystemClock;
use crate::config::host::{self, HostConfig};
use crate::edge::caddy::{AdminAddress, CaddyEdge, CaddySettings};
use crate::image::engine::EngineImages;
use crate::model::{Secret, TargetName};
use crate::probe::http::HttpProbeClient;
use crate::reconcile::ports::{Catalog, EdgeTls, Ports, PublicChecks, Settings};
use crate::reconcile::progress::Teller;
use crate::reconcile::queue::Wake;
use crate::reconcile::reporting::Reporter;
use crate::reconcile::worker::Workers;
use crate::report::github::GithubReport;
use crate::server::api::{Api, router};
use crate::server::socket::{self, SocketError};
use crate::server::webhook::refusals::Refusals;
use crate::server::webhook::rules::SecretFileError;
use crate::source::git::{GitSettings, GitSource};
use crate::source::joined::Joined;
use crate::source::shared::SharedLooks;
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, StoreError};
use crate::target::docker::{DockerConfig, DockerTarget};
use crate::trigger::config_dir::{self, LoadedConfig};
use crate::trigger::follow::{self, Configuration};

use hub::Hub;

pub(crate) mod hub;

/// How long running steps may take to reach a safe point when the daemon stops.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// The wait before the engine's events are asked for again.
const EVENTS_RETRY: Duration = Duration::from_secs(5);

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// `huta.toml` is broken.
    #[error("the host file is refused: {problems}")]
    Config {
        /// All that is wrong with it.
        problems: String,
    },
    /// A file with a secret cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    SecretFile {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A webhook's secret is of no use.
    #[error(transparent)]
    WebhookSecret(#[from] SecretFileError),
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
    /// The mirrors or GitHub's client cannot be set up.
    #[error("{reason}")]
    Source {
        /// Why.
        reason: crate::model::Reason,
    },
    /// `[edge] admin` is no address.
    #[error("`[edge] admin` is refused: {0}")]
    Admin(String),
    /// The socket cannot be listened on.
    #[error("nobody could ask this daemon")]
    Socket(#[from] SocketError),
    /// The system refuses something that every daemon needs.
    #[error("{what} failed")]
    System {
        /// What.
        what: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl AppError {
    /// What to do, in one sentence.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Config { .. } => "`trueup check host FILE` shows each place; the daemon starts with a good file only",
            Self::SecretFile { .. } => "make the file readable for the daemon's user alone, or take the key out",
            Self::WebhookSecret(_) => {
                "write the hook's secret into the file, readable for the daemon's user alone, or take it out of `webhook_secret_files`"
            }
            Self::Store(_) => "check that no other daemon runs and that the disk of the state directory has room",
            Self::Source { .. } => "check the state directory and `[github]` in huta.toml",
            Self::Admin(_) => "write `http://127.0.0.1:2019` or `unix//run/caddy/admin.sock`",
            Self::Socket(_) => "look at who holds the path, or set another `[server] socket`",
            Self::System { .. } => "look at the limits of this process (files, memory, threads)",
        }
    }
}

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// [`AppError`] when it cannot start.
pub fn serve(config: &Path, is_json: bool) -> Result<(), AppError> {
    start_tracing(is_json);
    // One TLS provider for every client of the process; a second call only finds the first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| AppError::System { what: "starting the event loop", source })?;
    let result = runtime.block_on(run(config));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Opens the store for reading alone (ruling 27).
///
/// # Errors
/// [`StoreError`] when there is none, or it cannot be read.
pub async fn open_offline(state_dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(SqliteStore::open_read_only(state_dir).await?))
}

fn start_tracing(is_json: bool) {
    use std::io::IsTerminal as _;
    let filter = tracing_subscriber::EnvFilter::try_from_env("TRUEUP_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second subscriber in one process (tests) is no harm.
    let started = if is_json { builder.json().try_init() } else { builder.try_init() };
    drop(started);
}

async fn run(config: &Path) -> Result<(), AppError> {
    let loaded = config_dir::load(config);
    let host = host_of(&loaded)?;
    follow::report(&loaded);
    let (catalog, catalogs) = watch::channel(Arc::new(Catalog { projects: loaded.projects.clone() }));
    let hub = Hub::of(&host)?;
    let ports = ports((&host, &hub), catalogs).await?;
    let workers = Arc::new(Workers::new(ports.clone()));
    let listener = socket::listen(Path::new(&host.server.socket)).await?;
    let (github, githubs) = watch::channel(host.github.clone());
    let refusals = Arc::new(Refusals::default());
    let intake = webhooks::start(&host, &workers, (githubs, &refusals)).await?;
    let config_watch = Configuration { dir: config.to_owned(), catalog, workers: Arc::clone(&workers), github };
    config_watch.remember(&loaded).await;
    workers.wake_all(Wake::CONFIG);
    workers.wake_unfinished().await;
    let tasks = [
        tokio::spawn(config_watch.follow()),
        tokio::spawn(follow::repositories(Arc::clone(&workers))),
        tokio::spawn(follow_engine(PathBuf::from(&host.docker.socket), Arc::clone(&workers))),
    ];
    if host.github.report {
        let forge: Arc<dyn crate::source::Forge> = hub.checks.clone();
        let reporter = Reporter::new(ports.clone(), Arc::new(GithubReport::new(forge)));
        tokio::spawn(reporter.follow());
    }
    tracing::info!(socket = %host.server.socket, targets = workers.count(), "trueup serves");
    let api = Api { workers: Arc::clone(&workers), refusals };
    tokio::select! {
        result = socket::serve(listener, router(api)) => result.map_err(|source| AppError::System { what: "serving the socket", source })?,
        () = stop_signal() => {}
    }
    tracing::info!("stopping; sites keep serving, unfinished releases go on at the next start");
    for task in tasks.into_iter().chain(intake) {
        task.abort();
    }
    workers.stop(STOP_PATIENCE).await;
    webhooks::tidy(&host);
    drop(std::fs::remove_file(&host.server.socket));
    Ok(())
}

/// The host file must be good at a start; a missing one means the defaults.
fn host_of(loaded: &LoadedConfig) -> Result<HostConfig, AppError> {
    match &loaded.host {
        Some(host) => Ok(host.clone()),
        None => {
            let problems = loaded.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Err(AppError::Config { problems })
        }
    }
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn ports((host, hub): (&HostConfig, &Hub), catalog: watch::Receiver<Arc<Catalog>>) -> Result<Ports, AppError> {
    let state_dir = PathBuf::from(&host.platform.state_dir);
    let store = SqliteStore::open(&state_dir).await?;
    let instance = instance(&state_dir, &store).await?;
    let settings_of_git = GitSettings {
        state_dir: state_dir.clone(),
        git_url: host.github.git_url.clone(),
        token: hub.git_token.clone(),
        identity_files: hub::identities(host, &catalog.borrow().projects),
    };
    let git = GitSource::open_trusting(settings_of_git, &hub.roots)
        .map_err(|error| AppError::Source { reason: error.reason })?;
    tokio::spawn(follow_credentials(git.clone(), host.clone(), catalog.clone()));
    let tokens = hub.tokens.clone().map(|tokens| {
        let tokens: Arc<dyn crate::source::Tokens> = tokens;
        tokens
    });
    let source = Joined { git, github: hub.reverts(), tokens };
    let docker = DockerConfig {
        socket: PathBuf::from(&host.docker.socket),
        state_dir: state_dir.clone(),
        instance: instance.clone(),
    };
    let edge = CaddyEdge::new(CaddySettings {
        admin: admin_address(&host.edge.admin)?,
        sites: PathBuf::from(&host.edge.sites),
        caddyfile: PathBuf::from(&host.edge.caddyfile),
        state_dir: state_dir.clone(),
    });
    Ok(Ports {
        source: Arc::new(SharedLooks::new(Arc::new(source))),
        checks: hub.checks.clone(),
        images: Arc::new(EngineImages::new(PathBuf::from(&host.docker.socket))),
        target: Arc::new(DockerTarget::new(docker)),
        edge: Arc::new(edge),
        probe: Arc::new(HttpProbeClient::new()),
        store: Arc::new(store),
        clock: Arc::new(SystemClock),
        teller: Teller::new(),
        settings: Arc::new(settings(host, instance, state_dir)),
        catalog,
    })
}

/// Has Git use the deploy keys that the registry names now.
async fn follow_credentials(git: GitSource, host: HostConfig, mut catalog: watch::Receiver<Arc<Catalog>>) {
    while catalog.changed().await.is_ok() {
        let projects = catalog.borrow_and_update().projects.clone();
        git.identify(hub::identities(&host, &projects));
    }
}

/// The lines of a Caddyfile whose `import` is not anchored: such a load unloads every site (ruling 31).
#[must_use]
pub fn unanchored_imports(caddyfile: &str) -> Vec<(usize, String)> {
    crate::edge::caddy::unanchored_imports(caddyfile)
}

fn settings(host: &HostConfig, instance: String, state_dir: PathBuf) -> Settings {
    Settings {
        instance,
        access_log_dir: PathBuf::from("/var/log/caddy"),
        state_dir,
        tls: match host.edge.tls {
            host::EdgeTls::OriginCa => EdgeTls::OriginCa,
            host::EdgeTls::Internal => EdgeTls::Internal,
            host::EdgeTls::Off => EdgeTls::Off,
        },
        public_checks: match host.edge.public_checks {
            host::PublicChecks::Public => PublicChecks::Public,
            host::PublicChecks::Direct => PublicChecks::Direct,
        },
        poll_every: Duration::from_secs(u64::from(host.poll.every_seconds)),
        drift_every: Duration::from_secs(u64::from(host.drift.every_seconds)),
    }
}

fn admin_address(admin: &host::Admin) -> Result<AdminAddress, AppError> {
    let text = match admin {
        host::Admin::Http(url) => url.clone(),
        host::Admin::Unix(path) => path.clone(),
    };
    text.parse().map_err(|error: crate::edge::caddy::AdminAddressError| AppError::Admin(error.to_string()))
}

/// A secret from its file, without the line's end.
fn secret_file(path: &str) -> Result<Secret, AppError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| AppError::SecretFile { path: path.to_owned(), source })?;
    Ok(Secret::new(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The installation's name in labels: kept in a file beside the store, so that a lost store does not
/// make strangers of what runs (ruling 3).
async fn instance(state_dir: &Path, store: &SqliteStore) -> Result<String, AppError> {
    let path = state_dir.join("instance");
    let failed = |source| AppError::System { what: "reading the installation's name", source };
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let name = store.instance().await?;
    let fresh = state_dir.join("instance.new");
    std::fs::write(&fresh, &name).and_then(|()| std::fs::rename(&fresh, &path)).map_err(failed)?;
    Ok(name)
}

/// Follows the engine's events about our containers and networks.
async fn follow_engine(socket: PathBuf, workers: Arc<Workers>) {
    loop {
        let on_event = |name: TargetName| {
            workers.wake(&name, Wake::ENGINE);
        };
        if let Err(error) = crate::target::docker::events::follow(&socket, on_event).await {
            tracing::warn!(reason = %error.reason, "the engine's events ended");
        }
        tokio::time::sleep(EVENTS_RETRY).await;
        workers.wake_all(Wake::ENGINE);
    }
}

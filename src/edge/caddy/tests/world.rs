//! A Caddy of our own, and applications behind it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::model::sample::SilenceKind;
use crate::render::vhost::{VhostInput, vhost};

/// Each look has a second of its own.
const START_LOOKS: usize = 30;
/// How long a certificate may take to be made.
const ANSWER_BOUND: Duration = Duration::from_secs(30);
/// Starts before a test gives up.
const STARTS: usize = 4;

pub(super) struct World {
    pub(super) dir: TempDir,
    pub(super) edge: CaddyEdge,
    pub(super) target: TargetName,
    pub(super) https_port: u16,
    hosts: [String; 2],
    http: HttpProbeClient,
    caddy: Child,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}

impl World {
    pub(super) async fn start() -> Self {
        Self::start_at(|dir| format!("unix/{}", dir.join("admin.sock").display())).await
    }

    pub(super) async fn start_with_tcp_admin() -> Self {
        Self::start_at(|_| format!("127.0.0.1:{}", free_port())).await
    }

    /// A port that was free may be taken by the time Caddy asks for it; then it starts again with others.
    async fn start_at(admin: impl Fn(&Path) -> String) -> Self {
        let mut last = String::new();
        for _ in 0..STARTS {
            let mut world = Self::spawn(&admin);
            for _ in 0..START_LOOKS {
                if world.edge.admin.config_after_load().await.is_ok() {
                    return world;
                }
                if world.caddy.try_wait().unwrap().is_some() {
                    break;
                }
            }
            last = world.log();
        }
        panic!("caddy did not come up: {last}");
    }

    fn spawn(admin: &impl Fn(&Path) -> String) -> Self {
        // Every test installs the same one; only the first call does anything.
        drop(rustls::crypto::ring::default_provider().install_default());
        let dir = tempfile::tempdir().unwrap();
        let (admin, https_port) = (admin(dir.path()), free_port());
        let sites = dir.path().join("sites");
        fs::create_dir(&sites).unwrap();
        let caddyfile = dir.path().join("Caddyfile");
        let text = format!(
            "{{\n\tadmin {admin}\n\thttp_port {}\n\thttps_port {https_port}\n\tdefault_bind 127.0.0.1\n\tskip_install_trust\n}}\n\nhttp://foreign.example.org {{\n\trespond \"foreign\"\n}}\n\nimport {}/*.caddy\n",
            free_port(),
            sites.display()
        );
        fs::write(&caddyfile, text).unwrap();
        let log = fs::File::create(dir.path().join("caddy.log")).unwrap();
        let caddy = Command::new("caddy")
            .args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"])
            .current_dir(dir.path())
            .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, dir.path())))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("caddy does not start; `deploy/test.sh` installs what the live tests need");
        let settings =
            CaddySettings { admin: admin.parse().unwrap(), sites, caddyfile, state_dir: dir.path().join("state") };
        Self {
            edge: CaddyEdge::new(settings),
            target: "shop/prod".parse().unwrap(),
            https_port,
            hosts: ["shop.example.org".to_owned(), "www.shop.example.org".to_owned()],
            http: HttpProbeClient::new(),
            caddy,
            dir,
        }
    }

    /// Ends the Caddy that this world started.
    pub(super) fn stop(&mut self) {
        drop(self.caddy.kill());
        drop(self.caddy.wait());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("caddy.log")).unwrap()
    }

    /// How often a load was asked for, by anybody.
    pub(super) fn loads(&self) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains("received request") && line.contains("\"uri\":\"/load\""))
            .count()
    }

    pub(super) fn caddyfile(&self) -> String {
        fs::read_to_string(self.dir.path().join("Caddyfile")).unwrap()
    }

    pub(super) fn caddyfile_without_import(&self) -> String {
        self.caddyfile().lines().filter(|line| !line.starts_with("import")).map(|line| format!("{line}\n")).collect()
    }

    pub(super) fn edit_caddyfile(&self, edit: impl FnOnce(String) -> String) {
        fs::write(self.dir.path().join("Caddyfile"), edit(self.caddyfile())).unwrap();
    }

    /// What an operator's own reload does.
    pub(super) async fn load_directly(&self, text: &str) {
        self.edge.admin.load(text).await.unwrap().unwrap();
        self.edge.admin.config_after_load().await.unwrap();
    }

    pub(super) fn sites(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("sites")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(super) fn site_text(&self) -> String {
        fs::read_to_string(self.dir.path().join("sites/shop.prod.caddy")).unwrap()
    }

    pub(super) fn vhost(&self, ports: [u16; 2], tls: VhostTls) -> Vhost {
        self.vhost_with(ports, tls, None)
    }

    pub(super) fn vhost_with(&self, ports: [u16; 2], tls: VhostTls, access_log: Option<&str>) -> Vhost {
        let state_dir = self.state_dir();
        vhost(&VhostInput { ports, tls, access_log, ..self.input(&state_dir) })
    }

    pub(super) fn vhost_for_cloudflare(&self, ports: [u16; 2], is_cloudflare_only: bool) -> Vhost {
        let state_dir = self.state_dir();
        vhost(&VhostInput { ports, is_cloudflare_only, ..self.input(&state_dir) })
    }

    fn state_dir(&self) -> String {
        self.dir.path().join("state").display().to_string()
    }

    fn input<'input>(&'input self, state_dir: &'input str) -> VhostInput<'input> {
        VhostInput {
            target: &self.target,
            hosts: &self.hosts,
            ports: [1, 2],
            state_dir,
            tls: VhostTls::Off,
            is_cloudflare_only: false,
            access_log: None,
        }
    }

    /// A certificate that no public root signed: the one that this Caddy's own authority made for our host.
    pub(super) async fn own_certificate(&self) -> VhostTls {
        let site = self.dir.path().join("caddy/certificates/local/shop.example.org/shop.example.org");
        // The handshake waits until there is one.
        self.body("shop.example.org").await;
        let (from_crt, from_key) = (site.with_extension("org.crt"), site.with_extension("org.key"));
        let to = |name: &str| self.dir.path().join(name);
        fs::copy(from_crt, to("own.pem")).unwrap();
        fs::copy(from_key, to("own.key")).unwrap();
        VhostTls::OriginCa {
            certificate: to("own.pem").display().to_string(),
            key: to("own.key").display().to_string(),
        }
    }

    /// A certificate that is not the vhost's.
    pub(super) fn other_certificate(&self) -> Trust {
        Trust::Exactly(fs::read_to_string(self.dir.path().join("caddy/pki/authorities/local/root.crt")).unwrap())
    }

    /// Status and body of `/` on a host, through the edge. A certificate of Caddy's own authority is made after the
    /// load has answered, so TLS is asked for until it is there.
    pub(super) async fn body(&self, host: &str) -> String {
        let path = self.edge.path(host).await.unwrap();
        let answered = async {
            loop {
                match self.probe(host, &path).await {
                    Sample::Answer(answer) => return answer,
                    Sample::Silence { kind: SilenceKind::Tls, .. } => {}
                    silence @ Sample::Silence { .. } => panic!("{silence:?}"),
                }
            }
        };
        let answer = tokio::time::timeout(ANSWER_BOUND, answered).await.expect("TLS with the path's trust");
        format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))
    }

    pub(super) async fn probe(&self, host: &str, path: &EdgePath) -> Sample {
        let probe = HttpProbe {
            url: format!("{}://{host}/", path.scheme),
            connect: Some(path.socket),
            headers: Default::default(),
            trust: path.trust.clone(),
            timeout: Duration::from_secs(30),
            body_limit: 4096,
        };
        self.http.get(&probe).await
    }
}

/// An error in one line.
pub(super) fn told(error: &EdgeError) -> String {
    format!("{} {:?}: {}", error.reason.code, error.class, error.reason.message)
}

/// A port that is free now and was given to no other test; Caddy's configuration needs a number.
fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if GIVEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}

/// An application in one slot: answers its name, its request's headers, or a stream that the test feeds.
pub(super) struct Backend {
    pub(super) port: u16,
    /// What `/stream` still sends; dropping it ends the stream.
    pub(super) stream: Option<mpsc::Sender<Bytes>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Backend {
    pub(super) async fn start(name: &'static str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, receiver) = mpsc::channel(1);
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(Some(receiver)));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let receiver = receiver.clone();
                let service = service_fn(move |request| {
                    let body = respond(name, &request, &receiver);
                    async move {
                        Ok::<_, Infallible>(
                            Response::builder().header("Content-Type", "text/plain").body(body).unwrap(),
                        )
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { port, stream: Some(sender), task }
    }
}

type Feed = std::sync::Arc<std::sync::Mutex<Option<mpsc::Receiver<Bytes>>>>;

fn respond(name: &str, request: &Request<Incoming>, feed: &Feed) -> BoxBody<Bytes, Infallible> {
    match request.uri().path() {
        "/headers" => {
            let line = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
                format!("{name}: {}\n", value.to_str().unwrap())
            };
            Full::new(Bytes::from(request.headers().iter().map(line).collect::<String>())).boxed()
        }
        "/stream" => {
            let receiver = feed.lock().unwrap().take().unwrap();
            let frames = futures_util::stream::unfold(receiver, |mut receiver| async {
                let bytes = receiver.recv().await?;
                Some((Ok::<_, Infallible>(Frame::data(bytes)), receiver))
            });
            StreamBody::new(Box::pin(frames)).boxed()
        }
        _ => Full::new(Bytes::from(name.to_owned())).boxed(),
    }
}

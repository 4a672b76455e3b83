//! Webhook deliveries: verified, stored and answered, beside Debian's `webhook` server, which stores nothing.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use trueup::clock::SystemClock;
use trueup::config::host::Listen;
use trueup::config::registry;
use trueup::model::policy::Repository;
use trueup::model::{Secret, TargetName};
use trueup::reconcile::ports::Catalog;
use trueup::server::listen;
use trueup::server::webhook::body::Budget;
use trueup::server::webhook::pace::Waker;
use trueup::server::webhook::refusals::Refusals;
use trueup::server::webhook::rules::Rules;
use trueup::server::webhook::verify::{Keys, sign};
use trueup::server::webhook::{Parts, Webhooks, router};
use trueup::store::sqlite::SqliteStore;

use super::app::free_ports;
use super::table::{Figure, millis};

const SECRET: &str = "the secret of the hook that is measured";
/// Connections that are kept, each with one delivery under way.
const CONNECTIONS: u32 = 16;
/// Deliveries of one connection, at each server.
const EACH: u32 = 2500;
/// Bytes of a body: a push of a few commits.
const BODY_BYTES: usize = 4600;
/// Targets of the registry, each with a repository of its own.
const TARGETS: u32 = 10_000;

pub(crate) fn run() -> Vec<Figure> {
    super::runtime().block_on(measure())
}

/// Who was woken how often.
#[derive(Default)]
struct Count(AtomicU64);

impl Waker for Count {
    fn wake(&self, _: &TargetName) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn measure() -> Vec<Figure> {
    let directory = tempfile::tempdir().unwrap();
    let body = body();
    let peer = peer(directory.path(), &body).await;
    let (wakes, before, after, ours) = ours(directory.path(), &body).await;
    let total = CONNECTIONS * EACH;
    let work = format!("one of {total} deliveries verified, stored and answered, {CONNECTIONS} connections");
    let who = "webhook 2.8, verified and answered only";
    vec![
        Figure::new(work, ours.each_micros(), "µs").beside(who, peer.each_micros()).noting(format!(
            "{}; {who}: {}; both with their load generator on the same cores",
            ours.told(),
            peer.told()
        )),
        Figure::new("99th percentile of the same", ours.p99(), "ms").beside(who, peer.p99()),
        Figure::new(format!("wakes by {total} deliveries of one ref"), wakes, "wakes")
            .noting(format!("one at once and one for each second that the storm lasts, {:.1} s here", ours.seconds)),
        Figure::new(format!("memory that the storm leaves, {TARGETS} targets registered"), after - before, "MiB")
            .noting(format!("VmRSS of the whole process {before:.1} MiB before, {after:.1} MiB after")),
    ]
}

/// A push to `acme/r7`, padded to its size.
fn body() -> Vec<u8> {
    let message = |filler: &str| {
        format!(
            r#"{{"ref":"refs/heads/main","before":"{a}","after":"{b}","created":false,"deleted":false,"forced":false,
            "repository":{{"id":41,"full_name":"acme/r7","clone_url":"https://github.com/acme/r7.git"}},
            "commits":[{{"id":"{b}","message":"{filler}","added":[],"removed":[],"modified":["src/cart.rs"]}}]}}"#,
            a = "a1".repeat(20),
            b = "b2".repeat(20),
        )
    };
    let bare = message("").len();
    message(&"x".repeat(BODY_BYTES - bare)).into_bytes()
}

fn crowd() -> Catalog {
    let text = "schema = 1\nproject = \"blog\"\nrepo = \"acme/blog\"\napp_toml = \"deploy/app.toml\"\nuid = 20001\n\
        [targets.prod]\nhosts = [\"blog.acme.example\"]\nslots = [8300, 8301]\n\
        limits = { memory = \"64m\", cpus = 1, pids = 64 }\n";
    let blog = registry::parse_project(text.as_bytes(), "blog", None).unwrap();
    let mut crowd = Catalog::default();
    for number in 0..TARGETS {
        let mut project = blog.clone();
        project.name = format!("p{number}").parse().unwrap();
        project.repo = Repository::GitHub { owner: "acme".to_owned(), name: format!("r{number}") };
        crowd.projects.insert(project.name.clone(), project);
    }
    crowd
}

async fn ours(directory: &Path, body: &[u8]) -> (f64, f64, f64, Outcome) {
    let wakes = Arc::new(Count::default());
    let keys = Keys::new(&[Secret::new(SECRET.to_owned())]);
    let (_rules, rules) = watch::channel(Arc::new(Rules { keys, cap: 5 << 20 }));
    let (_catalog, catalog) = watch::channel(Arc::new(crowd()));
    let parts = Parts {
        store: Arc::new(SqliteStore::open(&directory.join("state")).await.unwrap()),
        waker: wakes.clone(),
        clock: Arc::new(SystemClock),
        catalog,
        rules,
        refusals: Arc::new(Refusals::default()),
        budget: Budget::default(),
    };
    let webhooks = Webhooks::start(parts).await.unwrap();
    let listening = listen::bind(&Listen::Tcp("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let port = listening.address().unwrap().port();
    let serving = tokio::spawn(listening.serve(router(webhooks)));
    let before = mib();
    let outcome = storm(port, "/webhooks/github", body).await;
    let after = mib();
    serving.abort();
    let count = u32::try_from(wakes.0.load(Ordering::Relaxed)).unwrap();
    (f64::from(count), before, after, outcome)
}

/// The peer's process; it ends when dropped.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The peer checks the signature, and then a rule that never holds: so it answers without starting a program.
async fn peer(directory: &Path, body: &[u8]) -> Outcome {
    let hooks = directory.join("hooks.json");
    let rules = serde_json::json!([{
        "id": "github",
        "execute-command": "/bin/true",
        "trigger-rule-mismatch-http-response-code": 202,
        "trigger-rule": { "and": [
            { "match": { "type": "payload-hmac-sha256", "secret": SECRET,
                "parameter": { "source": "header", "name": "X-Hub-Signature-256" } } },
            { "match": { "type": "value", "value": "never",
                "parameter": { "source": "header", "name": "X-GitHub-Event" } } },
        ] },
    }]);
    std::fs::write(&hooks, rules.to_string()).unwrap();
    let [port, _] = free_ports();
    let child = Command::new("webhook")
        .arg("-hooks")
        .arg(&hooks)
        .args(["-ip", "127.0.0.1", "-port", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("install the package webhook");
    let _peer = Peer(child);
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "webhook does not answer");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    storm(port, "/hooks/github", body).await
}

/// What came of a storm.
struct Outcome {
    seconds: f64,
    times: Vec<Duration>,
}

impl Outcome {
    fn each_micros(&self) -> f64 {
        self.seconds * 1e6 / f64::from(u32::try_from(self.times.len()).unwrap())
    }

    fn at(&self, percent: usize) -> f64 {
        millis(self.times[(self.times.len() - 1) * percent / 100])
    }

    fn p99(&self) -> f64 {
        self.at(99)
    }

    fn told(&self) -> String {
        format!("{:.0} a second, p50 {:.1} ms, p99 {:.1} ms", 1e6 / self.each_micros(), self.at(50), self.p99())
    }
}

async fn storm(port: u16, path: &'static str, body: &[u8]) -> Outcome {
    let signature = sign(&Secret::new(SECRET.to_owned()), body).header();
    let body = Bytes::copy_from_slice(body);
    let times = Arc::new(Mutex::new(Vec::new()));
    let began = Instant::now();
    let senders = (0..CONNECTIONS).map(|connection| {
        let (body, signature, times) = (body.clone(), signature.clone(), Arc::clone(&times));
        tokio::spawn(async move {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(driver);
            let mut own = Vec::new();
            for number in 0..EACH {
                let request = Request::post(path)
                    .header("host", "deploy")
                    .header("content-type", "application/json")
                    .header("x-github-event", "push")
                    .header("x-github-hook-id", "12")
                    .header("x-github-delivery", format!("{connection:08x}-cc78-11e3-81ab-{number:012x}"))
                    .header("x-hub-signature-256", &signature)
                    .body(Full::new(body.clone()))
                    .unwrap();
                let asked = Instant::now();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(response.status(), 202);
                drop(response.into_body().collect().await.unwrap());
                own.push(asked.elapsed());
            }
            times.lock().unwrap().extend(own);
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut times = std::mem::take(&mut *times.lock().unwrap());
    times.sort_unstable();
    Outcome { seconds, times }
}

/// `VmRSS` of this process in MiB. Source: proc_pid_status(5).
fn mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    value.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

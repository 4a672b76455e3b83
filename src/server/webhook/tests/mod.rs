//! Deliveries from the socket to the store and the wakes, over a real store and a real socket.

mod decided;
mod intake;
mod kept;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};

use super::body::Budget;
use super::pace::Waker;
use super::refusals::Refusals;
use super::rules::Rules;
use super::verify::{Keys, sign};
use super::{Parts, Webhooks, router};
use crate::clock::Clock;
use crate::config::host::Listen;
use crate::config::registry;
use crate::model::{Secret, TargetName};
use crate::reconcile::ports::Catalog;
use crate::server::listen;
use crate::store::Store as _;
use crate::store::deliveries::DeliveryRecord;
use crate::store::sqlite::SqliteStore;
use crate::tests::app::eventually;

/// The secret of every hook in these tests.
pub(super) const SECRET: &str = "the secret of the hook in tests";

/// `shop` follows `main` twice and `stage` once; `blog` is a plain remote.
pub(super) fn catalog() -> Catalog {
    let shop = r#"
        schema = 1
        project = "shop"
        repo = "acme/shop"
        app_toml = "deploy/app.toml"
        uid = 20001
        [targets.prod]
        hosts = ["shop.acme.example"]
        slots = [8300, 8301]
        limits = { memory = "64m", cpus = 1, pids = 64 }
        [targets.twin]
        hosts = ["twin.acme.example"]
        slots = [8302, 8303]
        limits = { memory = "64m", cpus = 1, pids = 64 }
        [targets.stage]
        hosts = ["stage.acme.example"]
        slots = [8304, 8305]
        limits = { memory = "64m", cpus = 1, pids = 64 }
        branch = "stage"
    "#;
    let blog = r#"
        schema = 1
        project = "blog"
        repo = "https://git.acme.example/acme/blog.git"
        app_toml = "deploy/app.toml"
        uid = 20002
        [targets.prod]
        hosts = ["blog.acme.example"]
        slots = [8310, 8311]
        limits = { memory = "64m", cpus = 1, pids = 64 }
        require_ci = false
    "#;
    let projects = [("shop", shop), ("blog", blog)].map(|(stem, text)| {
        let project = registry::parse_project(text.as_bytes(), stem, None).unwrap();
        (project.name.clone(), project)
    });
    Catalog { projects: projects.into_iter().collect() }
}

pub(super) fn testdata(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/webhook").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Time stands still; a sleep lasts until a test lets it end.
#[derive(Default)]
pub(super) struct StillClock {
    ends: Option<Semaphore>,
}

#[async_trait]
impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_790_000_000).unwrap()
    }

    async fn sleep(&self, _: Duration) {
        match &self.ends {
            Some(ends) => ends.acquire().await.unwrap().forget(),
            None => std::future::pending().await,
        }
    }
}

/// Who was woken, in order.
#[derive(Default)]
pub(super) struct Wakes(Mutex<Vec<String>>);

impl Waker for Wakes {
    fn wake(&self, target: &TargetName) {
        self.0.lock().unwrap().push(target.to_string());
    }
}

impl Wakes {
    pub(super) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An intake behind a socket of its own.
pub(super) struct Intake {
    pub(super) store: Arc<SqliteStore>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) refusals: Arc<Refusals>,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    pub(super) rules: watch::Sender<Arc<Rules>>,
    pub(super) socket: PathBuf,
    directory: tempfile::TempDir,
    serving: tokio::task::JoinHandle<()>,
}

impl Intake {
    pub(super) async fn start() -> Self {
        Self::with(Budget::default()).await
    }

    pub(super) async fn with(budget: Budget) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::in_directory(directory, budget).await
    }

    async fn in_directory(directory: tempfile::TempDir, budget: Budget) -> Self {
        let store = Arc::new(SqliteStore::open(&directory.path().join("state")).await.unwrap());
        let keys = Keys::new(&[Secret::new(SECRET.to_owned())]);
        let (rules, rules_now) = watch::channel(Arc::new(Rules { keys, cap: 5 * 1024 * 1024 }));
        let (catalog, catalogs) = watch::channel(Arc::new(catalog()));
        let (wakes, refusals) = (Arc::new(Wakes::default()), Arc::new(Refusals::default()));
        let webhooks = Webhooks::start(Parts {
            store: store.clone(),
            waker: wakes.clone(),
            clock: Arc::new(StillClock::default()),
            catalog: catalogs,
            rules: rules_now,
            refusals: Arc::clone(&refusals),
            budget,
        })
        .await
        .unwrap();
        let socket = directory.path().join("hooks.sock");
        let listening = listen::bind(&Listen::Unix(socket.display().to_string())).await.unwrap();
        let serving = tokio::spawn(listening.serve(router(webhooks)));
        Self { store, wakes, refusals, catalog, rules, socket, directory, serving }
    }

    /// Stops, and starts again over the same store.
    pub(super) async fn restarted(self) -> Self {
        let Self { store, directory, serving, .. } = self;
        serving.abort();
        // The lock on the directory goes with the last owner of the store.
        eventually("the intake lets go of the store", async || Arc::strong_count(&store) == 1).await;
        Arc::into_inner(store).unwrap().close().await;
        Self::in_directory(directory, Budget::default()).await
    }

    pub(super) async fn records(&self, id: &str) -> Vec<DeliveryRecord> {
        self.store.deliveries().unwrap().deliveries_by_id(id).await.unwrap()
    }

    pub(super) async fn count(&self) -> usize {
        self.store.deliveries().unwrap().recent_deliveries(100_000).await.unwrap().len()
    }

    pub(super) async fn send(&self, delivery: &Delivery) -> (StatusCode, String) {
        let request = delivery.request().body(Full::new(Bytes::from(delivery.body.clone()))).unwrap();
        self.exchange(request).await
    }

    /// Sends any request on a connection of its own.
    pub(super) async fn exchange<B>(&self, request: Request<B>) -> (StatusCode, String)
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync,
    {
        let stream = UnixStream::connect(&self.socket).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

/// A delivery as a sender makes it: well signed, unless a test changes that.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) event: String,
    pub(super) id: String,
    pub(super) hook: String,
    pub(super) body: Vec<u8>,
    pub(super) signature: Option<String>,
    pub(super) content_type: &'static str,
}

impl Delivery {
    /// An event with a payload of `testdata/webhook`.
    pub(super) fn of(event: &str, payload: &str, id: &str) -> Self {
        Self::raw(event, testdata(&format!("{payload}.json")), id)
    }

    /// An event with any bytes.
    pub(super) fn raw(event: &str, body: Vec<u8>, id: &str) -> Self {
        let signature = Some(sign(&Secret::new(SECRET.to_owned()), &body).header());
        let (event, id, hook) = (event.to_owned(), id.to_owned(), "12".to_owned());
        Self { event, id, hook, body, signature, content_type: "application/json" }
    }

    pub(super) fn signed_with(mut self, secret: &str) -> Self {
        self.signature = Some(sign(&Secret::new(secret.to_owned()), &self.body).header());
        self
    }

    pub(super) fn request(&self) -> hyper::http::request::Builder {
        let mut request = Request::builder().method("POST").uri("/webhooks/github").header("host", "deploy");
        for (name, value) in [
            ("x-github-event", &self.event),
            ("x-github-delivery", &self.id),
            ("x-github-hook-id", &self.hook),
            ("x-hub-signature-256", self.signature.as_ref().unwrap_or(&String::new())),
        ] {
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        request.header("content-type", self.content_type).header("user-agent", "GitHub-Hookshot/1a2b3c")
    }
}

/// A body whose length is not announced, in pieces.
pub(super) fn streamed(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
) -> impl hyper::body::Body<Data = Bytes, Error = std::io::Error> + Send {
    StreamBody::new(futures_util::stream::iter(pieces.map(|piece| Ok(Frame::data(piece)))))
}

//! Two backends, and clients that never stop asking: each request must be answered in full.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Clients that keep their connection.
const KEPT: usize = 4;
/// Clients that open a connection for each request.
const PLAIN: usize = 4;
/// Clients that read streams.
const STREAMS: usize = 4;
/// The wait of a plain client, so that no run uses up the ports of loopback.
const BETWEEN_CONNECTIONS: Duration = Duration::from_millis(5);
/// A stream's pieces, and the wait before each.
const PIECES: usize = 10;
const BETWEEN_PIECES: Duration = Duration::from_millis(20);
/// A request that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts a backend that answers its name; gives its port.
pub(crate) async fn backend(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            let service = service_fn(move |request: Request<Incoming>| async move {
                let is_stream = request.uri().path() == "/stream";
                let body = if is_stream { streamed(name) } else { Full::new(Bytes::from(name)).boxed() };
                Ok::<_, Infallible>(Response::new(body))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    port
}

fn streamed(name: &'static str) -> BoxBody<Bytes, Infallible> {
    let pieces = stream::unfold(0, move |sent| async move {
        if sent == PIECES {
            return None;
        }
        tokio::time::sleep(BETWEEN_PIECES).await;
        Some((Ok(Frame::data(Bytes::from(name))), sent + 1))
    });
    StreamBody::new(Box::pin(pieces)).boxed()
}

/// What one kind of client has seen.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    answered: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    fn count(&self, is_answered: bool) {
        let counter = if is_answered { &self.answered } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self) -> f64 {
        number(&self.answered)
    }

    pub(crate) fn lost(&self) -> f64 {
        number(&self.lost)
    }
}

fn number(counter: &AtomicU64) -> f64 {
    f64::from(u32::try_from(counter.load(Ordering::Relaxed)).unwrap())
}

#[derive(Debug, Default)]
struct Shared {
    kept: Tally,
    plain: Tally,
    streams: Tally,
    is_over: AtomicBool,
}

/// Clients that ask until [`Load::end`].
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: JoinSet<()>,
    began: Instant,
}

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// Kept connections, a connection for each request, streams.
    pub(crate) tallies: [(&'static str, f64, f64); 3],
}

impl Outcome {
    pub(crate) fn lost(&self) -> f64 {
        self.tallies.iter().map(|(_, _, lost)| lost).sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.tallies.iter().map(|(_, answered, _)| answered).sum::<f64>() / self.seconds
    }

    pub(crate) fn told(&self) -> String {
        let each = self.tallies.map(|(kind, answered, lost)| format!("{kind} {answered:.0} answered, {lost:.0} lost"));
        format!("{:.0} requests/s ({}) in {:.1} s", self.per_second(), each.join("; "), self.seconds)
    }
}

impl Load {
    /// Begins to ask `host` at the edge.
    pub(crate) fn begin(edge: SocketAddr, host: &'static str) -> Self {
        let shared = Arc::new(Shared::default());
        let mut clients = JoinSet::new();
        for _ in 0..KEPT {
            clients.spawn(kept(Arc::clone(&shared), edge, host));
        }
        for _ in 0..PLAIN {
            clients.spawn(plain(Arc::clone(&shared), edge, host));
        }
        for _ in 0..STREAMS {
            clients.spawn(streaming(Arc::clone(&shared), edge, host));
        }
        Self { shared, clients, began: Instant::now() }
    }

    /// Lets every request that is under way end, and counts.
    pub(crate) async fn end(mut self) -> Outcome {
        self.shared.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        let of = |kind, tally: &Tally| (kind, tally.answered(), tally.lost());
        Outcome {
            seconds: self.began.elapsed().as_secs_f64(),
            tallies: [
                of("kept connections", &self.shared.kept),
                of("a connection each", &self.shared.plain),
                of("streams", &self.shared.streams),
            ],
        }
    }
}

type Sender = SendRequest<Empty<Bytes>>;

async fn connect(edge: SocketAddr) -> Option<Sender> {
    let stream = TcpStream::connect(edge).await.ok()?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(async move { drop(connection.await) });
    Some(sender)
}

/// One request: the body, if the answer is 200 and whole.
async fn ask(sender: &mut Sender, host: &str, path: &str) -> Option<Bytes> {
    let request = Request::get(path).header("host", host).body(Empty::new()).unwrap();
    let answered = async {
        let answer = sender.send_request(request).await.ok()?;
        let is_good = answer.status() == 200;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        is_good.then_some(body)
    };
    tokio::time::timeout(PATIENCE, answered).await.ok().flatten()
}

/// One request over a connection of its own.
pub(crate) async fn once(edge: SocketAddr, host: &str, path: &str) -> Option<Bytes> {
    let mut sender = connect(edge).await?;
    ask(&mut sender, host, path).await
}

async fn kept(shared: Arc<Shared>, edge: SocketAddr, host: &'static str) {
    let mut open: Option<Sender> = None;
    while !shared.is_over.load(Ordering::Relaxed) {
        let mut sender = match open.take() {
            Some(sender) => sender,
            None => match connect(edge).await {
                Some(sender) => sender,
                None => {
                    shared.kept.count(false);
                    continue;
                }
            },
        };
        // A connection that the server has closed in good order, before anything was asked, loses nothing.
        if sender.ready().await.is_err() {
            continue;
        }
        let answer = ask(&mut sender, host, "/").await;
        shared.kept.count(answer.is_some_and(|body| body == "a" || body == "b"));
        open = Some(sender);
    }
}

async fn plain(shared: Arc<Shared>, edge: SocketAddr, host: &'static str) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let answer = once(edge, host, "/").await;
        shared.plain.count(answer.is_some_and(|body| body == "a" || body == "b"));
        tokio::time::sleep(BETWEEN_CONNECTIONS).await;
    }
}

/// A stream must come from one backend, from its beginning to its end.
async fn streaming(shared: Arc<Shared>, edge: SocketAddr, host: &'static str) {
    let whole = ["a", "b"].map(|name| name.repeat(PIECES));
    while !shared.is_over.load(Ordering::Relaxed) {
        let answer = once(edge, host, "/stream").await;
        shared.streams.count(answer.is_some_and(|body| whole.iter().any(|text| body == text.as_bytes())));
    }
}

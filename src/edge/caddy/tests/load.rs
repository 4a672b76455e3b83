//! Switches under load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::*;

const CLIENTS: usize = 16;
const SWITCHES: usize = 400;

async fn connect(socket: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(socket).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::builder().uri(path).header("Host", "shop.example.org").body(Empty::new()).unwrap()
}

/// One answer over a kept connection: hyper wants to be waited for between two requests.
async fn ask(sender: &mut SendRequest<Empty<Bytes>>) -> hyper::Result<(u16, Bytes)> {
    sender.ready().await?;
    let response = sender.send_request(request("/")).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// Asks over one kept connection until told to stop; gives the answers of each slot and everything else.
async fn client(socket: SocketAddr, is_over: Arc<AtomicBool>) -> ([usize; 2], Vec<String>) {
    let (mut slots, mut lost) = ([0, 0], Vec::new());
    let mut sender = connect(socket).await;
    while !is_over.load(Ordering::Relaxed) {
        match ask(&mut sender).await {
            Ok((200, body)) if body == "a" => slots[0] += 1,
            Ok((200, body)) if body == "b" => slots[1] += 1,
            Ok((status, body)) => lost.push(format!("{status} {body:?}")),
            Err(error) => {
                lost.push(error.to_string());
                sender = connect(socket).await;
            }
        }
    }
    (slots, lost)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_hundred_switches_under_load_lose_no_request() {
    let world = World::start().await;
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    let vhost = world.vhost([a.port, b.port], VhostTls::Off);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    world.edge.route(&world.target, Slot::B, &proof()).await.unwrap();
    let socket = world.edge.path("shop.example.org").await.unwrap().socket;
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client(socket, is_over.clone()))).collect();
    let proof = proof();
    let mut sender = connect(socket).await;
    for count in 0..SWITCHES {
        let slot = if count % 2 == 0 { Slot::A } else { Slot::B };
        world.edge.route(&world.target, slot, &proof).await.unwrap();
        // The very next request has the new slot: a marker is looked at per request.
        let (_, body) = ask(&mut sender).await.unwrap();
        assert_eq!(body, slot.as_str(), "switch {count}");
    }
    is_over.store(true, Ordering::Relaxed);
    let (mut slots, mut lost) = ([0, 0], Vec::new());
    for client in clients {
        let (answers, missing) = client.await.unwrap();
        slots = [slots[0] + answers[0], slots[1] + answers[1]];
        lost.extend(missing);
    }
    assert_eq!(lost, Vec::<String>::new(), "of {} and {}", slots[0], slots[1]);
    assert!(slots[0] > 0 && slots[1] > 0, "both slots had traffic: {slots:?}");
    assert_eq!(world.loads(), 1);
}

#[tokio::test]
async fn a_stream_flows_at_once_and_outlives_the_switch() {
    // Short and long first parts: compression begins only with what is worth it.
    for (encoding, first) in [("identity", 4), ("gzip", 4), ("gzip", 4000)] {
        let world = World::start().await;
        let (mut a, b) = (Backend::start("a").await, Backend::start("b").await);
        let vhost = world.vhost([a.port, b.port], VhostTls::Off);
        world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
        world.edge.route(&world.target, Slot::A, &proof()).await.unwrap();
        let socket = world.edge.path("shop.example.org").await.unwrap().socket;
        let feed = a.stream.take().unwrap();
        feed.send(Bytes::from(vec![b'1'; first])).await.unwrap();
        let mut asked = request("/stream");
        asked.headers_mut().insert("Accept-Encoding", encoding.parse().unwrap());
        let mut body = connect(socket).await.send_request(asked).await.unwrap().into_body();
        // Nothing more was sent yet, and this is here.
        assert!(!body.frame().await.unwrap().unwrap().into_data().unwrap().is_empty());
        world.edge.route(&world.target, Slot::B, &proof()).await.unwrap();
        assert_eq!(world.body("shop.example.org").await, "200 b");
        feed.send(Bytes::from_static(b"two")).await.unwrap();
        drop(feed);
        let rest = body.collect().await.unwrap().to_bytes();
        assert!(encoding == "gzip" || rest == "two", "the old slot ends what it began: {rest:?}");
    }
}

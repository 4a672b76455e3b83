//! Requests lost while the traffic is moved to and fro under load: by the marker, and, as the peer, by
//! loading another configuration into the same Caddy.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use trueup::edge::Edge as _;
use trueup::edge::caddy::{CaddyEdge, CaddySettings};
use trueup::model::sample::{Answer, Sample};
use trueup::model::{Slot, TargetName};
use trueup::render::vhost::{VhostInput, VhostTls, vhost};
use trueup::verify::{Expectation, HEALTH_BOUND, Verdict, Verified, health, verified};

use super::caddy::Caddy;
use super::load::{Load, Outcome, backend, once};
use super::table::{Figure, median, millis};

/// Switches of each kind.
const SWITCHES: usize = 200;
/// Between the end of a switch and the next one.
const BETWEEN: Duration = Duration::from_millis(50);
/// A peer that is slower makes fewer switches.
const BOUND: Duration = Duration::from_secs(60);
const HOST: &str = "shop.example.org";

pub(crate) fn run() -> Vec<Figure> {
    super::runtime().block_on(both())
}

async fn both() -> Vec<Figure> {
    let ports = [backend("a").await, backend("b").await];
    let (ours, our_times) = by_marker(ports).await;
    let (peer, peer_times) = by_reload(ports).await;
    let note = format!("ours: {}; {} reloads: {}", ours.told(), peer_times.len(), peer.told());
    vec![
        Figure::new("requests lost over 200 switches under load", ours.lost(), "lost")
            .at_most(0.0)
            .beside(format!("Caddy, {} loads", peer_times.len()), peer.lost())
            .noting(note),
        Figure::new("one switch under this load, durable when it returns (median)", median(&our_times), "ms")
            .beside("Caddy POST /load", median(&peer_times)),
        Figure::new("time for one answer under these switches", 1e6 / ours.per_second(), "us")
            .beside("Caddy POST /load", 1e6 / peer.per_second()),
    ]
}

fn proof() -> Verified {
    let revision = "a".repeat(40);
    let body = format!("{{\"ok\":true,\"sha\":\"{revision}\"}}").into_bytes();
    let sample = Sample::Answer(Answer { status: 200, headers: Vec::new(), body, is_truncated: false });
    let expectation =
        Expectation { revision: revision.parse().unwrap(), elapsed: Duration::ZERO, within: HEALTH_BOUND };
    let Verdict::Passed(healthy) = health(&sample, &expectation, None) else { panic!("not healthy") };
    verified(healthy, &[], &[]).unwrap()
}

fn at(caddy: &Caddy) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], caddy.http_port))
}

async fn by_marker(ports: [u16; 2]) -> (Outcome, Vec<f64>) {
    let dir = tempfile::tempdir().unwrap();
    let caddy = Caddy::start(dir.path());
    let state_dir = dir.path().join("state");
    let edge = CaddyEdge::new(CaddySettings {
        admin: format!("http://{}", caddy.admin).parse().unwrap(),
        sites: caddy.sites.clone(),
        caddyfile: caddy.caddyfile.clone(),
        state_dir: state_dir.clone(),
    });
    let target: TargetName = "shop/prod".parse().unwrap();
    let site = vhost(&VhostInput {
        target: &target,
        hosts: &[HOST.to_owned()],
        ports,
        state_dir: &state_dir.display().to_string(),
        tls: VhostTls::Off,
        is_cloudflare_only: false,
        access_log: None,
    });
    edge.ensure_vhost(&target, &site).await.unwrap();
    edge.route(&target, Slot::A, &proof()).await.unwrap();
    let load = Load::begin(at(&caddy), HOST);
    let mut times = Vec::new();
    for number in 0..SWITCHES {
        let (slot, name) = if number % 2 == 0 { (Slot::B, "b") } else { (Slot::A, "a") };
        let began = Instant::now();
        edge.route(&target, slot, &proof()).await.unwrap();
        times.push(millis(began.elapsed()));
        assert_eq!(once(at(&caddy), HOST, "/").await.as_deref(), Some(name.as_bytes()), "the next request goes there");
        tokio::time::sleep(BETWEEN).await;
    }
    (load.end().await, times)
}

async fn by_reload(ports: [u16; 2]) -> (Outcome, Vec<f64>) {
    let dir = tempfile::tempdir().unwrap();
    let caddy = Caddy::start(dir.path());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let texts = ports.map(|port| {
        let options = Caddy::options(&caddy.admin, caddy.http_port);
        format!("{options}http://{HOST} {{\n\tencode zstd gzip\n\treverse_proxy 127.0.0.1:{port}\n}}\n")
    });
    let load_text = async |text: &str| {
        let request = client.post(format!("http://{}/load", caddy.admin)).header("content-type", "text/caddyfile");
        let answer = request.body(text.to_owned()).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    };
    load_text(&texts[0]).await;
    let load = Load::begin(at(&caddy), HOST);
    let (began_all, mut times) = (Instant::now(), Vec::new());
    for number in 0..SWITCHES {
        if began_all.elapsed() > BOUND {
            break;
        }
        let began = Instant::now();
        load_text(&texts[(number + 1) % 2]).await;
        times.push(millis(began.elapsed()));
        tokio::time::sleep(BETWEEN).await;
    }
    (load.end().await, times)
}

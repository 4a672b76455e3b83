//! The real Caddy, on ports and in directories of its own.

use std::time::Duration;

use world::{Backend, World, told};

use super::*;
use crate::model::desired::NOT_RELEASED_YET;
use crate::model::sample::{Answer, Sample};
use crate::probe::http::HttpProbeClient;
use crate::probe::{HttpProbe, Probe as _};
use crate::render::vhost::VhostTls;
use crate::verify::{Expectation, HEALTH_BOUND, Verdict, health, verified};

mod guarded;
mod load;
mod world;

/// The permission to move traffic, as a healthy slot without smoke checks earns it.
fn proof() -> Verified {
    let revision = "a".repeat(40);
    let body = format!("{{\"ok\":true,\"sha\":\"{revision}\"}}").into_bytes();
    let sample = Sample::Answer(Answer { status: 200, headers: Vec::new(), body, is_truncated: false });
    let expectation =
        Expectation { revision: revision.parse().unwrap(), elapsed: Duration::ZERO, within: HEALTH_BOUND };
    let Verdict::Passed(healthy) = health(&sample, &expectation, None) else { panic!("not healthy") };
    verified(healthy, &[], &[]).unwrap()
}

#[tokio::test]
async fn before_the_first_release_a_site_answers_503_and_then_each_slot_in_turn() {
    let world = World::start().await;
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    let vhost = world.vhost([a.port, b.port], VhostTls::Off);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    assert_eq!(world.body("shop.example.org").await, format!("503 {NOT_RELEASED_YET}"));
    let live = world.edge.observe(&world.target, &vhost.file).await.unwrap();
    assert_eq!(live, LiveEdge { serving: None, vhost: Some(vhost.text.clone()), is_loaded: true });
    for (slot, answer) in [(Slot::B, "200 b"), (Slot::A, "200 a"), (Slot::A, "200 a"), (Slot::B, "200 b")] {
        world.edge.route(&world.target, slot, &proof()).await.unwrap();
        assert_eq!(world.body("shop.example.org").await, answer);
        let live = world.edge.observe(&world.target, &vhost.file).await.unwrap();
        assert_eq!(live.serving, Some(slot));
    }
    world.edge.route_back(&world.target, None).await.unwrap();
    assert_eq!(world.body("www.shop.example.org").await, format!("503 {NOT_RELEASED_YET}"));
    assert_eq!(world.loads(), 1, "no switch loads anything");
}

#[tokio::test]
async fn a_text_that_is_loaded_is_not_loaded_again_until_caddy_forgets_it() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    for _ in 0..3 {
        world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    }
    assert_eq!(world.loads(), 1);
    // Somebody loads a configuration without our site, past the files.
    world.load_directly(&world.caddyfile_without_import()).await;
    let live = world.edge.observe(&world.target, &vhost.file).await.unwrap();
    assert!(!live.is_loaded);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    assert!(world.edge.observe(&world.target, &vhost.file).await.unwrap().is_loaded);
    assert_eq!(world.loads(), 3);
}

#[tokio::test]
async fn without_caddy_nothing_is_written_and_nothing_is_taken_for_absent() {
    let mut world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    world.stop();
    let mut changed = vhost.clone();
    changed.text.push_str("# more\n");
    let ensured = world.edge.ensure_vhost(&world.target, &changed).await.unwrap_err();
    let observed = world.edge.observe(&world.target, &vhost.file).await.unwrap_err();
    let asked = world.edge.path("shop.example.org").await.unwrap_err();
    for error in [ensured, observed, asked] {
        assert_eq!((error.reason.code, error.class), (ReasonCode::EdgeUnavailable, Class::Transient));
        assert!(told(&error).contains("is Caddy running?"), "{}", told(&error));
    }
    assert_eq!(world.site_text(), vhost.text);
    // The way back needs no Caddy: a marker moves while it is down, and is served when it returns.
    world.edge.route(&world.target, Slot::B, &proof()).await.unwrap();
}

#[tokio::test]
async fn a_marker_that_cannot_be_read_is_an_error_and_not_an_unreleased_site() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    let nothing = world.edge.observe(&world.target, &vhost.file).await.unwrap();
    assert_eq!(nothing, LiveEdge::default());
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    world.edge.route(&world.target, Slot::B, &proof()).await.unwrap();
    let edge = world.dir.path().join("state/edge");
    let away = world.dir.path().join("away");
    std::fs::rename(&edge, &away).unwrap();
    let error = world.edge.observe(&world.target, &vhost.file).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::EdgeUnavailable, "{}", told(&error));
    assert!(world.edge.route(&world.target, Slot::A, &proof()).await.is_err());
    std::fs::rename(&away, &edge).unwrap();
    assert_eq!(world.edge.observe(&world.target, &vhost.file).await.unwrap().serving, Some(Slot::B));
}

#[tokio::test]
async fn a_host_is_reached_with_the_certificate_that_caddy_shows_for_it() {
    let world = World::start_with_tcp_admin().await;
    let vhost = world.vhost([1, 2], VhostTls::Internal);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    let path = world.edge.path("shop.example.org").await.unwrap();
    assert!(matches!(path.trust, Trust::AlsoRoots(_)), "{:?}", path.trust);
    assert_eq!((path.scheme, path.socket.port()), ("https", world.https_port));
    assert_eq!(world.body("shop.example.org").await, format!("503 {NOT_RELEASED_YET}"));

    let certificate = world.own_certificate().await;
    let vhost = world.vhost([1, 2], certificate);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    let exact = world.edge.path("shop.example.org").await.unwrap();
    assert!(matches!(exact.trust, Trust::Exactly(_)), "{:?}", exact.trust);
    assert_eq!(world.body("shop.example.org").await, format!("503 {NOT_RELEASED_YET}"));
}

#[tokio::test]
async fn another_certificate_than_the_trusted_one_is_silence_and_not_an_answer() {
    let world = World::start().await;
    let internal = world.vhost([1, 2], VhostTls::Internal);
    world.edge.ensure_vhost(&world.target, &internal).await.unwrap();
    let vhost = world.vhost([1, 2], world.own_certificate().await);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    let exact = world.edge.path("shop.example.org").await.unwrap();
    let other = world.probe("shop.example.org", &EdgePath { trust: world.other_certificate(), ..exact.clone() }).await;
    assert!(matches!(other, Sample::Silence { kind: crate::model::sample::SilenceKind::Tls, .. }), "{other:?}");
    let public = world.probe("shop.example.org", &EdgePath { trust: Trust::System, ..exact }).await;
    assert!(matches!(public, Sample::Silence { kind: crate::model::sample::SilenceKind::Tls, .. }), "{public:?}");
}

#[tokio::test]
async fn what_a_visitor_writes_into_forwarded_headers_never_arrives() {
    let world = World::start().await;
    let a = Backend::start("a").await;
    for is_cloudflare_only in [false, true] {
        let vhost = world.vhost_for_cloudflare([a.port, 2], is_cloudflare_only);
        world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
        world.edge.route(&world.target, Slot::A, &proof()).await.unwrap();
        let path = world.edge.path("shop.example.org").await.unwrap();
        let names =
            ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "CF-Connecting-IP", "Forwarded"];
        let headers = names.into_iter().map(|name| (name.to_owned(), "spoofed".to_owned())).collect();
        let probe = HttpProbe {
            url: "http://shop.example.org/headers".into(),
            connect: Some(path.socket),
            headers,
            trust: Trust::System,
            timeout: Duration::from_secs(10),
            body_limit: 4096,
        };
        let Sample::Answer(answer) = HttpProbeClient::new().get(&probe).await else { panic!("no answer") };
        let seen = String::from_utf8(answer.body).unwrap();
        assert!(!seen.contains("spoofed"), "{seen}");
        for line in [
            "host: shop.example.org",
            "x-forwarded-for: 127.0.0.1",
            "x-real-ip: 127.0.0.1",
            "x-forwarded-proto: http",
            "x-forwarded-host: shop.example.org",
        ] {
            assert!(seen.lines().any(|known| known == line), "{line} in {seen}");
        }
    }
}

#[tokio::test]
async fn only_the_direct_peer_opens_the_cloudflare_filter() {
    let world = World::start().await;
    let mut vhost = world.vhost_for_cloudflare([1, 2], true);
    // So that this machine is outside.
    vhost.text = vhost.text.replace("not remote_ip 127.0.0.0/8 ::1/128 ", "not remote_ip ");
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    let path = world.edge.path("shop.example.org").await.unwrap();
    let headers = ["X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP"];
    let probe = HttpProbe {
        url: "http://shop.example.org/".into(),
        connect: Some(path.socket),
        headers: headers.into_iter().map(|name| (name.to_owned(), "173.245.48.1".to_owned())).collect(),
        trust: Trust::System,
        timeout: Duration::from_secs(10),
        body_limit: 4096,
    };
    let Sample::Answer(answer) = HttpProbeClient::new().get(&probe).await else { panic!("no answer") };
    assert_eq!(answer.status, 403);
}

//! The real Caddy, on ports and in directories of its own.

use std::time::Duration;

use world::{Backend, World, told};

use super::*;
use crate::model::desired::NOT_RELEASED_YET;
use crate::model::sample::Sample;
use crate::probe::http::HttpProbeClient;
use crate::probe::{HttpProbe, Probe as _};
use crate::render::vhost::VhostTls;
use crate::verify::Healthy;

mod load;
mod world;

/// The permission to move traffic, as a healthy slot without smoke checks earns it.
fn proof() -> Verified {
    crate::verify::verified(Healthy::for_tests(), &[], &[]).unwrap()
}

#[tokio::test]
async fn before_the_first_release_a_site_answers_503_and_then_each_slot_in_turn() {
    let world = World::start().await;
    let (a, b) = (Backend::start("a").await, Backend::start("b").await);
    let vhost = world.vhost([a.port, b.port], VhostTls::Off);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    assert_eq!(
        world.body("shop.example.org").await,
        format!("503 {NOT_RELEASED_YET}")
    );
    let live = world
        .edge
        .observe(&world.target, &vhost.file)
        .await
        .unwrap();
    assert_eq!(
        live,
        LiveEdge {
            serving: None,
            vhost: Some(vhost.text.clone()),
            is_loaded: true
        }
    );
    for (slot, answer) in [
        (Slot::B, "200 b"),
        (Slot::A, "200 a"),
        (Slot::A, "200 a"),
        (Slot::B, "200 b"),
    ] {
        world
            .edge
            .route(&world.target, slot, &proof())
            .await
            .unwrap();
        assert_eq!(world.body("shop.example.org").await, answer);
        let live = world
            .edge
            .observe(&world.target, &vhost.file)
            .await
            .unwrap();
        assert_eq!(live.serving, Some(slot));
    }
    world.edge.route_back(&world.target, None).await.unwrap();
    assert_eq!(
        world.body("www.shop.example.org").await,
        format!("503 {NOT_RELEASED_YET}")
    );
    assert_eq!(world.loads(), 1, "no switch loads anything");
}

#[tokio::test]
async fn a_text_that_is_loaded_is_not_loaded_again_until_caddy_forgets_it() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    for _ in 0..3 {
        world
            .edge
            .ensure_vhost(&world.target, &vhost)
            .await
            .unwrap();
    }
    assert_eq!(world.loads(), 1);
    // Somebody loads a configuration without our site, past the files.
    world.load_directly(&world.caddyfile_without_import()).await;
    let live = world
        .edge
        .observe(&world.target, &vhost.file)
        .await
        .unwrap();
    assert!(!live.is_loaded);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    assert!(
        world
            .edge
            .observe(&world.target, &vhost.file)
            .await
            .unwrap()
            .is_loaded
    );
    assert_eq!(world.loads(), 3);
}

#[tokio::test]
async fn a_vhost_that_caddy_does_not_accept_leaves_file_and_configuration_as_they_were() {
    let world = World::start().await;
    let a = Backend::start("a").await;
    let good = world.vhost([a.port, 2], VhostTls::Off);
    let mut bad = good.clone();
    bad.text
        .push_str("http://shop.example.org {\n\tno_such_directive\n}\n");
    let refused = world
        .edge
        .ensure_vhost(&world.target, &bad)
        .await
        .unwrap_err();
    assert!(
        told(&refused).starts_with("EdgeRefused Stalled: Caddy does not accept"),
        "{}",
        told(&refused)
    );
    assert_eq!(
        world.sites(),
        Vec::<String>::new(),
        "no file before, no file after"
    );
    world.edge.ensure_vhost(&world.target, &good).await.unwrap();
    world
        .edge
        .route(&world.target, Slot::A, &proof())
        .await
        .unwrap();
    world
        .edge
        .ensure_vhost(&world.target, &bad)
        .await
        .unwrap_err();
    assert_eq!(world.site_text(), good.text);
    assert_eq!(world.sites(), ["shop.prod.caddy"]);
    assert_eq!(world.body("shop.example.org").await, "200 a");
    assert!(
        world
            .edge
            .observe(&world.target, &good.file)
            .await
            .unwrap()
            .is_loaded
    );
}

/// Caddy answers such a load with status 200 and the error at the end of the body.
#[tokio::test]
async fn a_load_that_fails_with_status_200_is_seen_and_undone() {
    let world = World::start().await;
    let good = world.vhost([1, 2], VhostTls::Off);
    world.edge.ensure_vhost(&world.target, &good).await.unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bad = good.clone();
    let port = taken.local_addr().unwrap().port();
    // Not as `caddy fmt` writes it, so that there is a warning before the error.
    bad.text.push_str(&format!(
        "http://shop.example.org:{port} {{\n  respond x\n}}\n"
    ));
    let refused = world
        .edge
        .ensure_vhost(&world.target, &bad)
        .await
        .unwrap_err();
    assert!(
        told(&refused).contains("address already in use"),
        "{}",
        told(&refused)
    );
    assert_eq!(refused.reason.code, ReasonCode::EdgeRefused);
    assert_eq!(world.site_text(), good.text);
    assert!(
        world
            .edge
            .observe(&world.target, &good.file)
            .await
            .unwrap()
            .is_loaded
    );
}

#[tokio::test]
async fn a_foreign_site_keeps_answering_and_its_pending_edits_are_never_loaded_for_it() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Internal);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    assert_eq!(world.body("foreign.example.org").await, "200 foreign");
    let mut changed = vhost.clone();
    changed.text = changed.text.replace("not released yet", "soon");
    // Its owner takes the site out, and has not reloaded yet.
    world.edit_caddyfile(|text| {
        text.replace("http://foreign.example.org", "http://other.example.org")
    });
    let refused = world
        .edge
        .ensure_vhost(&world.target, &changed)
        .await
        .unwrap_err();
    assert!(
        told(&refused).contains("would stop serving foreign.example.org"),
        "{}",
        told(&refused)
    );
    // Its owner changes what it answers.
    world.edit_caddyfile(|text| {
        text.replace("http://other.example.org", "http://foreign.example.org")
            .replace("\"foreign\"", "\"new\"")
    });
    let refused = world
        .edge
        .ensure_vhost(&world.target, &changed)
        .await
        .unwrap_err();
    assert!(
        told(&refused).contains("change what is not ours: site foreign.example.org"),
        "{}",
        told(&refused)
    );
    assert_eq!(world.body("foreign.example.org").await, "200 foreign");
    assert_eq!(world.site_text(), vhost.text);
    assert_eq!(world.loads(), 1);
}

#[tokio::test]
async fn sites_with_logs_and_policies_of_their_own_do_not_stand_in_the_way() {
    let world = World::start().await;
    let log = world.dir.path().join("foreign.log");
    world.edit_caddyfile(|text| {
        format!(
            "{text}\nf1.example.org {{\n\ttls internal\n\tlog {{\n\t\toutput file {}\n\t}}\n\thandle /a* {{\n\t\trespond a\n\t}}\n\thandle {{\n\t\trespond b\n\t}}\n}}\nzz.example.org {{\n\ttls internal\n\tlog\n\thandle /a* {{\n\t\trespond a\n\t}}\n\thandle {{\n\t\trespond b\n\t}}\n}}\n",
            log.display()
        )
    });
    world.load_directly(&world.caddyfile()).await;
    let log = world.dir.path().join("shop.log").display().to_string();
    let first = world.vhost_with([1, 2], VhostTls::Internal, Some(log.as_str()));
    world
        .edge
        .ensure_vhost(&world.target, &first)
        .await
        .unwrap();
    for (tls, access_log) in [
        (VhostTls::Off, Some(log.as_str())),
        (world.own_certificate().await, Some(log.as_str())),
        (VhostTls::Internal, None),
    ] {
        let vhost = world.vhost_with([1, 2], tls, access_log);
        world
            .edge
            .ensure_vhost(&world.target, &vhost)
            .await
            .unwrap();
        assert!(
            world
                .edge
                .observe(&world.target, &vhost.file)
                .await
                .unwrap()
                .is_loaded
        );
    }
    // A host that leaves the registry leaves Caddy with its vhost.
    let mut fewer = world.vhost([1, 2], VhostTls::Internal);
    fewer.hosts.pop();
    fewer.text = fewer.text.replace(", www.shop.example.org", "");
    world
        .edge
        .ensure_vhost(&world.target, &fewer)
        .await
        .unwrap();
    assert!(world.edge.path("www.shop.example.org").await.is_err());
}

#[tokio::test]
async fn a_caddyfile_that_a_load_could_not_keep_is_refused_by_name() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world.edit_caddyfile(|text| format!("{text}\nimport other/*.caddy\n"));
    let refused = world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap_err();
    assert!(
        told(&refused).contains("`import other/*.caddy` is not absolute"),
        "{}",
        told(&refused)
    );
    world.edit_caddyfile(|_| world.caddyfile_without_import());
    let refused = world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap_err();
    let line = format!(
        "add the line `import {}/*.caddy`",
        world.dir.path().join("sites").display()
    );
    assert!(told(&refused).contains(&line), "{}", told(&refused));
    assert_eq!(
        (refused.class, world.loads(), world.sites().len()),
        (Class::Stalled, 0, 0)
    );
}

#[tokio::test]
async fn without_caddy_nothing_is_written_and_nothing_is_taken_for_absent() {
    let mut world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    world.stop();
    let mut changed = vhost.clone();
    changed.text.push_str("# more\n");
    let ensured = world
        .edge
        .ensure_vhost(&world.target, &changed)
        .await
        .unwrap_err();
    let observed = world
        .edge
        .observe(&world.target, &vhost.file)
        .await
        .unwrap_err();
    let asked = world.edge.path("shop.example.org").await.unwrap_err();
    for error in [ensured, observed, asked] {
        assert_eq!(
            (error.reason.code, error.class),
            (ReasonCode::EdgeUnavailable, Class::Transient)
        );
        assert!(
            told(&error).contains("is Caddy running?"),
            "{}",
            told(&error)
        );
    }
    assert_eq!(world.site_text(), vhost.text);
    // The way back needs no Caddy: a marker moves while it is down, and is served when it returns.
    world
        .edge
        .route(&world.target, Slot::B, &proof())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_marker_that_cannot_be_read_is_an_error_and_not_an_unreleased_site() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    let nothing = world
        .edge
        .observe(&world.target, &vhost.file)
        .await
        .unwrap();
    assert_eq!(nothing, LiveEdge::default());
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    world
        .edge
        .route(&world.target, Slot::B, &proof())
        .await
        .unwrap();
    let edge = world.dir.path().join("state/edge");
    let away = world.dir.path().join("away");
    std::fs::rename(&edge, &away).unwrap();
    let error = world
        .edge
        .observe(&world.target, &vhost.file)
        .await
        .unwrap_err();
    assert_eq!(
        error.reason.code,
        ReasonCode::EdgeUnavailable,
        "{}",
        told(&error)
    );
    assert!(
        world
            .edge
            .route(&world.target, Slot::A, &proof())
            .await
            .is_err()
    );
    std::fs::rename(&away, &edge).unwrap();
    assert_eq!(
        world
            .edge
            .observe(&world.target, &vhost.file)
            .await
            .unwrap()
            .serving,
        Some(Slot::B)
    );
}

#[tokio::test]
async fn a_load_that_was_cut_off_is_finished_by_the_next_one() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    let mut changed = vhost.clone();
    changed.text = changed.text.replace("not released yet", "soon");
    // As a crash between the write and the load leaves it.
    SiteFile::new(&world.dir.path().join("sites"), &vhost.file)
        .replace(&changed.text)
        .unwrap();
    assert!(
        !world
            .edge
            .observe(&world.target, &vhost.file)
            .await
            .unwrap()
            .is_loaded
    );
    world
        .edge
        .ensure_vhost(&world.target, &changed)
        .await
        .unwrap();
    assert_eq!(world.body("shop.example.org").await, "503 soon");
    assert_eq!(
        (world.sites(), world.loads()),
        (vec!["shop.prod.caddy".to_owned()], 2)
    );
    assert!(
        world
            .edge
            .observe(&world.target, &vhost.file)
            .await
            .unwrap()
            .is_loaded
    );
}

#[tokio::test]
async fn a_host_is_reached_with_the_certificate_that_caddy_shows_for_it() {
    let world = World::start_with_tcp_admin().await;
    let vhost = world.vhost([1, 2], VhostTls::Internal);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    let path = world.edge.path("shop.example.org").await.unwrap();
    assert!(
        matches!(path.trust, Trust::AlsoRoots(_)),
        "{:?}",
        path.trust
    );
    assert_eq!(
        (path.scheme, path.socket.port()),
        ("https", world.https_port)
    );
    assert_eq!(
        world.body("shop.example.org").await,
        format!("503 {NOT_RELEASED_YET}")
    );

    let certificate = world.own_certificate().await;
    let vhost = world.vhost([1, 2], certificate);
    world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap();
    let exact = world.edge.path("shop.example.org").await.unwrap();
    assert!(
        matches!(exact.trust, Trust::Exactly(_)),
        "{:?}",
        exact.trust
    );
    assert_eq!(
        world.body("shop.example.org").await,
        format!("503 {NOT_RELEASED_YET}")
    );

    // Another certificate than the one that is trusted is silence, not an answer.
    let www = world
        .probe(
            "shop.example.org",
            &EdgePath {
                trust: world.other_certificate(),
                ..exact.clone()
            },
        )
        .await;
    assert!(
        matches!(
            www,
            Sample::Silence {
                kind: crate::model::sample::SilenceKind::Tls,
                ..
            }
        ),
        "{www:?}"
    );
    let public = world
        .probe(
            "shop.example.org",
            &EdgePath {
                trust: Trust::System,
                ..exact
            },
        )
        .await;
    assert!(
        matches!(
            public,
            Sample::Silence {
                kind: crate::model::sample::SilenceKind::Tls,
                ..
            }
        ),
        "{public:?}"
    );
}

#[tokio::test]
async fn a_certificate_that_is_not_there_is_named_before_caddy_trips_over_it() {
    let world = World::start().await;
    let missing = world.dir.path().join("missing.pem").display().to_string();
    let vhost = world.vhost(
        [1, 2],
        VhostTls::OriginCa {
            certificate: missing.clone(),
            key: missing.clone(),
        },
    );
    let error = world
        .edge
        .ensure_vhost(&world.target, &vhost)
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason.code, error.class),
        (ReasonCode::CertificateMissing, Class::Stalled)
    );
    assert!(told(&error).contains(&missing));
    assert_eq!((world.loads(), world.sites().len()), (0, 0));
}

#[tokio::test]
async fn what_a_visitor_writes_into_forwarded_headers_never_arrives() {
    let world = World::start().await;
    let a = Backend::start("a").await;
    for is_cloudflare_only in [false, true] {
        let vhost = world.vhost_for_cloudflare([a.port, 2], is_cloudflare_only);
        world
            .edge
            .ensure_vhost(&world.target, &vhost)
            .await
            .unwrap();
        world
            .edge
            .route(&world.target, Slot::A, &proof())
            .await
            .unwrap();
        let path = world.edge.path("shop.example.org").await.unwrap();
        let names = [
            "X-Forwarded-For",
            "X-Forwarded-Proto",
            "X-Forwarded-Host",
            "X-Real-IP",
            "CF-Connecting-IP",
            "Forwarded",
        ];
        let headers = names
            .into_iter()
            .map(|name| (name.to_owned(), "spoofed".to_owned()))
            .collect();
        let probe = HttpProbe {
            url: "http://shop.example.org/headers".into(),
            connect: Some(path.socket),
            headers,
            trust: Trust::System,
            timeout: Duration::from_secs(10),
            body_limit: 4096,
        };
        let Sample::Answer(answer) = HttpProbeClient::new().get(&probe).await else {
            panic!("no answer")
        };
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

//! Loads that must not happen, fail, or are cut off.

use super::*;

#[tokio::test]
async fn a_vhost_that_caddy_does_not_accept_leaves_file_and_configuration_as_they_were() {
    let world = World::start().await;
    let a = Backend::start("a").await;
    let good = world.vhost([a.port, 2], VhostTls::Off);
    let mut bad = good.clone();
    bad.text.push_str("http://shop.example.org {\n\tno_such_directive\n}\n");
    let refused = world.edge.ensure_vhost(&world.target, &bad).await.unwrap_err();
    assert!(told(&refused).starts_with("EdgeRefused Stalled: Caddy does not accept"), "{}", told(&refused));
    assert_eq!(world.sites(), Vec::<String>::new(), "no file before, no file after");
    world.edge.ensure_vhost(&world.target, &good).await.unwrap();
    world.edge.route(&world.target, Slot::A, &proof()).await.unwrap();
    world.edge.ensure_vhost(&world.target, &bad).await.unwrap_err();
    assert_eq!(world.site_text(), good.text);
    assert_eq!(world.sites(), ["shop.prod.caddy"]);
    assert_eq!(world.body("shop.example.org").await, "200 a");
    assert!(world.edge.observe(&world.target, &good.file).await.unwrap().is_loaded);
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
    bad.text.push_str(&format!("http://shop.example.org:{port} {{\n  respond x\n}}\n"));
    let refused = world.edge.ensure_vhost(&world.target, &bad).await.unwrap_err();
    assert!(told(&refused).contains("address already in use"), "{}", told(&refused));
    assert_eq!(refused.reason.code, ReasonCode::EdgeRefused);
    assert_eq!(world.site_text(), good.text);
    assert!(world.edge.observe(&world.target, &good.file).await.unwrap().is_loaded);
}

#[tokio::test]
async fn a_foreign_site_keeps_answering_and_its_pending_edits_are_never_loaded_for_it() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Internal);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    assert_eq!(world.body("foreign.example.org").await, "200 foreign");
    let mut changed = vhost.clone();
    changed.text = changed.text.replace("not released yet", "soon");
    // Its owner takes the site out, and has not reloaded yet.
    world.edit_caddyfile(|text| text.replace("http://foreign.example.org", "http://other.example.org"));
    let refused = world.edge.ensure_vhost(&world.target, &changed).await.unwrap_err();
    assert!(told(&refused).contains("would stop serving foreign.example.org"), "{}", told(&refused));
    // Its owner changes what it answers.
    world.edit_caddyfile(|text| {
        text.replace("http://other.example.org", "http://foreign.example.org").replace("\"foreign\"", "\"new\"")
    });
    let refused = world.edge.ensure_vhost(&world.target, &changed).await.unwrap_err();
    assert!(told(&refused).contains("change what is not ours: site foreign.example.org"), "{}", told(&refused));
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
    world.edge.ensure_vhost(&world.target, &first).await.unwrap();
    for (tls, access_log) in [
        (VhostTls::Off, Some(log.as_str())),
        (world.own_certificate().await, Some(log.as_str())),
        (VhostTls::Internal, None),
    ] {
        let vhost = world.vhost_with([1, 2], tls, access_log);
        world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
        assert!(world.edge.observe(&world.target, &vhost.file).await.unwrap().is_loaded);
    }
    // A host that leaves the registry leaves Caddy with its vhost.
    let mut fewer = world.vhost([1, 2], VhostTls::Internal);
    fewer.hosts.pop();
    fewer.text = fewer.text.replace(", www.shop.example.org", "");
    world.edge.ensure_vhost(&world.target, &fewer).await.unwrap();
    assert!(world.edge.path("www.shop.example.org").await.is_err());
}

#[tokio::test]
async fn a_caddyfile_that_a_load_could_not_keep_is_refused_by_name() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world.edit_caddyfile(|text| format!("{text}\nimport other/*.caddy\n"));
    let refused = world.edge.ensure_vhost(&world.target, &vhost).await.unwrap_err();
    assert!(told(&refused).contains("`import other/*.caddy` is not absolute"), "{}", told(&refused));
    world.edit_caddyfile(|_| world.caddyfile_without_import());
    let refused = world.edge.ensure_vhost(&world.target, &vhost).await.unwrap_err();
    let line = format!("add the line `import {}/*.caddy`", world.dir.path().join("sites").display());
    assert!(told(&refused).contains(&line), "{}", told(&refused));
    assert_eq!((refused.class, world.loads(), world.sites().len()), (Class::Stalled, 0, 0));
}

#[tokio::test]
async fn a_load_that_was_cut_off_is_finished_by_the_next_one() {
    let world = World::start().await;
    let vhost = world.vhost([1, 2], VhostTls::Off);
    world.edge.ensure_vhost(&world.target, &vhost).await.unwrap();
    let mut changed = vhost.clone();
    changed.text = changed.text.replace("not released yet", "soon");
    // As a crash between the write and the load leaves it.
    SiteFile::new(&world.dir.path().join("sites"), &vhost.file).replace(&changed.text).unwrap();
    assert!(!world.edge.observe(&world.target, &vhost.file).await.unwrap().is_loaded);
    world.edge.ensure_vhost(&world.target, &changed).await.unwrap();
    assert_eq!(world.body("shop.example.org").await, "503 soon");
    assert_eq!((world.sites(), world.loads()), (vec!["shop.prod.caddy".to_owned()], 2));
    assert!(world.edge.observe(&world.target, &vhost.file).await.unwrap().is_loaded);
}

#[tokio::test]
async fn a_certificate_that_is_not_there_is_named_before_caddy_trips_over_it() {
    let world = World::start().await;
    let missing = world.dir.path().join("missing.pem").display().to_string();
    let vhost = world.vhost([1, 2], VhostTls::OriginCa { certificate: missing.clone(), key: missing.clone() });
    let error = world.edge.ensure_vhost(&world.target, &vhost).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::CertificateMissing, Class::Stalled));
    assert!(told(&error).contains(&missing));
    assert_eq!((world.loads(), world.sites().len()), (0, 0));
}

/// Adapted only, not loaded: no certificate is asked for. Caddy joins and splits policies as sites come.
#[tokio::test]
async fn our_site_beside_sites_with_public_certificates_changes_nothing_of_theirs() {
    let world = World::start().await;
    let paths = world.dir.path().join("c.pem").display().to_string();
    let origin = VhostTls::OriginCa { certificate: paths.clone(), key: paths.clone() };
    let plain = "a.example.org {\n\trespond a\n}\n*.wild.example.org {\n\ttls /w.pem /w.key\n\trespond w\n}\n";
    let shared = format!("b.example.org {{\n\ttls {paths} {paths}\n\tlog\n\trespond b\n}}\n");
    let others = [
        plain.to_owned(),
        format!("{{\n\temail a@example.org\n}}\n{plain}"),
        format!("{{\n\tlocal_certs\n}}\n{plain}"),
        format!("{plain}{shared}"),
        format!(
            "{plain}c.example.org {{\n\ttls internal\n\trespond c\n}}\nhttp://d.example.org:8080 {{\n\trespond d\n}}\n:9090 {{\n\trespond e\n}}\n"
        ),
    ];
    let log = world.dir.path().join("shop.log").display().to_string();
    for foreign in others {
        for tls in [origin.clone(), VhostTls::Internal, VhostTls::Off] {
            let vhost = world.vhost_with([1, 2], tls.clone(), Some(&log));
            let adapt = async |text: String| world.edge.admin.adapt(&text).await.unwrap().unwrap();
            let (without, with) = (adapt(foreign.clone()).await, adapt(format!("{foreign}{}", vhost.text)).await);
            let ours: guard::Hosts = vhost.hosts.iter().cloned().collect();
            assert_eq!(guard::objection(&without, &with, &ours), None, "{foreign} with {tls:?}");
            assert_eq!(guard::objection(&with, &without, &ours), None, "{foreign} without {tls:?}");
        }
    }
}

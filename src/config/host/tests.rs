use proptest::prelude::*;

use super::{Admin, EdgeTls, HostConfig, parse};
use crate::tests::edits;

#[test]
fn every_rule_has_its_edit() {
    edits::run("config/host", |bytes| parse(bytes, "huta.toml"));
}

#[test]
fn a_file_with_nothing_but_its_schema_has_every_default() {
    let config = parse(b"schema = 1\n", "huta.toml").unwrap();
    assert_eq!(config, HostConfig::default());
    assert_eq!(config.platform.state_dir, "/var/lib/trueup");
    assert_eq!(config.server.socket, "/run/trueup.sock");
    assert_eq!((config.poll.every_seconds, config.drift.every_seconds), (60, 300));
    assert_eq!(config.docker.socket, "/var/run/docker.sock");
    assert_eq!(config.edge.admin, Admin::Http("http://127.0.0.1:2019".to_owned()));
    assert_eq!(config.edge.tls, EdgeTls::OriginCa);
    assert_eq!(config.github.api_url, "https://api.github.com");
    assert_eq!(config.backup, None);
}

#[test]
fn an_empty_section_has_its_defaults() {
    let config = parse(b"schema = 1\n[backup]\n[edge]\n[upstreams.vpn-exit]\n", "huta.toml").unwrap();
    assert_eq!(config.backup.map(|backup| backup.dir), Some("/var/backups/trueup".to_owned()));
    assert!(config.upstreams.contains_key("vpn-exit"));
}

#[test]
fn no_message_shows_a_value() {
    let base = edits::text("config/host/base.toml");
    for edited in crate::manifest::apptoml::tests::with_canaries(&base, "Canary s3cr3t:value@x") {
        let Err(problems) = parse(edited.as_bytes(), "huta.toml") else {
            continue;
        };
        let shown = serde_json::to_string(&problems).unwrap().to_lowercase();
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
}

proptest! {
    #[test]
    fn no_changed_file_panics(at in 0_usize..2500, put in "\\PC{0,6}|[\\[\\]\"'=.\\n{},]{0,4}", cut in 0_usize..8) {
        let base: Vec<char> = edits::text("config/host/base.toml").chars().collect();
        let at = at % base.len();
        let edited: String = base[..at].iter().copied().chain(put.chars()).chain(base[at..].iter().skip(cut).copied()).collect();
        let _read = parse(edited.as_bytes(), "huta.toml");
    }
}

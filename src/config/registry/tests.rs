use proptest::prelude::*;
use serde::Deserialize;

use super::super::host::{self, HostConfig};
use super::{cross_check, parse_project, read, unchecked};
use crate::model::policy::{Project, Repository, TargetKind};
use crate::model::{Problems, TargetLabel};
use crate::tests::edits;

#[derive(Debug, Deserialize)]
struct CorpusCase {
    id: String,
    kind: String,
    toml: String,
    project: String,
    expect: String,
}

fn corpus() -> Vec<CorpusCase> {
    let text = edits::text("manifest/apptoml/cases.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    cases.filter(|case: &CorpusCase| case.kind == "registry").collect()
}

fn host() -> HostConfig {
    host::parse(edits::text("config/host/base.toml").as_bytes(), "huta.toml").unwrap()
}

fn base() -> String {
    edits::text("config/registry/base.toml")
}

fn shop(text: &str, host: Option<&HostConfig>) -> Result<Project, Problems> {
    parse_project(text.as_bytes(), "shop", host)
}

fn prod() -> TargetLabel {
    "prod".parse().unwrap()
}

#[test]
fn the_contract_s_cases_are_accepted_and_refused_as_it_says() {
    let host = host();
    for case in corpus() {
        for host in [Some(&host), None] {
            let read = parse_project(case.toml.as_bytes(), &case.project, host);
            assert_eq!(read.is_ok(), case.expect == "accept", "{}: {read:?}", case.id);
        }
    }
}

#[test]
fn every_rule_has_its_edit() {
    let host = host();
    edits::run("config/registry", |bytes| parse_project(bytes, "shop", Some(&host)));
}

#[test]
fn a_short_file_has_the_contract_s_defaults() {
    let project = shop(&edits::text("config/registry/minimal.toml"), None).unwrap();
    assert_eq!((project.branch.as_str(), project.boxes.len(), project.uid), ("main", 0, Some(20001)));
    let target = &project.targets[&prod()];
    assert!(target.require_ci);
    let TargetKind::Host(policy) = &target.kind else { panic!("a host target") };
    let limits = &policy.limits;
    assert_eq!(
        (limits.memory_bytes, limits.cpus_milli, limits.pids, limits.tmp_bytes),
        (256 << 20, 1000, 128, 16 << 20)
    );
    assert_eq!((policy.keep_releases, policy.drain_seconds, policy.access_log), (5, 10, true));
    assert!(policy.egress.is_empty() && policy.env.is_empty() && policy.secrets.is_empty());
}

#[test]
fn a_plain_remote_is_taken_without_ci_and_without_secrets_in_it() {
    let minimal = edits::text("config/registry/minimal.toml");
    let with = |repo: &str| {
        shop(
            &minimal.replace("example/shop", repo).replace("[targets.prod]", "[targets.prod]\nrequire_ci = false"),
            None,
        )
    };
    for repo in [
        "file:///srv/git/shop.git",
        "https://git.example.org/shop.git",
        "https://git.example.org:8443/a/b",
        "http://127.0.0.1:3000/shop.git",
        "ssh://git@git.example.org/shop.git",
        "ssh://git.example.org:2222/shop.git",
        "https://[::1]:80/x",
    ] {
        assert_eq!(with(repo).unwrap().repo, Repository::Url(repo.to_owned()));
    }
    for repo in [
        "https://user:password@git.example.org/x",
        "https://token@git.example.org/x",
        "http://git.example.org/x",
        "ssh://git:password@h.example/x",
        "git://git.example.org/x",
        "ext::sh -c x",
        "file://host/x",
        "file://",
        "https://git.example.org",
        "https:///x",
        "ssh://-oProxyCommand=x/y",
        "https://git.example.org/x?token=y",
        "https://git.example.org/x#y",
        "ftp://h.example/x",
        "https://h.example:99999/x",
        "file:///a/../b",
    ] {
        assert!(with(repo).is_err(), "{repo}");
    }
}

#[test]
fn a_plain_remote_says_that_ci_is_on_by_default() {
    let text = edits::text("config/registry/minimal.toml").replace("example/shop", "file:///srv/git/shop.git");
    let problems = shop(&text, None).unwrap_err();
    assert_eq!(problems.list[0].message, "shop.toml: targets.prod.require_ci is true by default, and cannot be here");
    assert_eq!(problems.list[0].fix, "set `require_ci = false`");
}

#[test]
fn a_cluster_project_needs_neither_uid_nor_app_toml() {
    let text = "schema = 1\nproject = \"shop\"\nrepo = \"a/b\"\n[targets.prod]\ncluster = \"main\"\nenvironment = \"production\"\n";
    let project = shop(text, Some(&host())).unwrap();
    assert_eq!(project.hakopod_toml.unwrap().as_str(), "hakopod.toml");
    assert_eq!(project.uid, None);
}

#[test]
fn without_a_host_file_its_rules_pass_and_are_listed() {
    let text = base().replace("shop.example.org\"]", "shop.example.edu\"]").replace("vpn-exit", "other");
    assert!(shop(&text, Some(&host())).is_err());
    let lines = unchecked(&shop(&text, None).unwrap());
    for rule in ["targets.prod.hosts", "targets.prod.upstreams", "targets.prod.data", "targets.cloud.cluster"] {
        assert!(lines.iter().any(|line| line.starts_with(rule)), "{rule}: {lines:?}");
    }
}

#[test]
fn data_needs_the_host_s_backup() {
    let host = HostConfig { backup: None, ..host() };
    let problems = shop(&base(), Some(&host)).unwrap_err();
    assert!(problems.list[0].message.contains("targets.prod.data needs [backup]"), "{problems:?}");
}

#[test]
fn outside_of_cloudflare_any_host_name_is_taken() {
    let mut host = host();
    host.edge.tls = host::EdgeTls::Internal;
    for name in ["localhost", "shop.internal"] {
        assert!(shop(&base().replace("[\"shop.example.org\"]", &format!("[\"{name}\"]")), Some(&host)).is_ok());
    }
}

#[test]
fn files_that_share_a_uid_host_or_port_are_refused_on_both_sides() {
    let one = edits::text("config/registry/minimal.toml");
    let two = one.replace("\"shop\"", "\"cafe\"");
    let three = one
        .replace("\"shop\"", "\"club\"")
        .replace("20001", "20002")
        .replace("shop.example.org", "club.example.org")
        .replace("[18300, 18301]", "[18400, 18401]");
    let entry = |text: &str, stem: &str| read(text.as_bytes(), &format!("{stem}.toml"), stem, None).unwrap();
    let (one, two, three) = (entry(&one, "shop"), entry(&two, "cafe"), entry(&three, "club"));
    let found = cross_check(&[("cafe.toml", &two), ("club.toml", &three), ("shop.toml", &one)]);
    let files: Vec<&str> = found.iter().map(|problems| problems.file.as_str()).collect();
    assert_eq!(files, ["cafe.toml", "shop.toml"]);
    let keys: Vec<&str> = found[1].list.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["uid", "targets.prod.hosts[0]", "targets.prod.slots[0]", "targets.prod.slots[1]"]);
    assert_eq!(found[1].list[0].message, "shop.toml: uid is also the uid of cafe.toml");
    assert!(found[1].list.iter().all(|problem| problem.place.is_some()));
}

#[test]
fn a_release_s_digest_follows_what_runs_and_nothing_else() {
    let digest = |text: &str| shop(text, Some(&host())).unwrap().release_digest(&prod());
    let base = base();
    let first = digest(&base);
    for (from, to) in [
        ("boxes = [\"mybox\"]", "boxes = []"),
        ("approve = \"always\"", "approve = \"never\""),
        ("require_ci = true", "require_ci = false"),
        ("keep_releases = 5", "keep_releases = 6"),
        ("drain = 10", "drain = 11"),
        ("drift = \"heal\"", "drift = \"off\""),
        ("branch = \"release\"", "branch = \"main\""),
    ] {
        assert!(base.contains(from), "{from}");
        assert_eq!(digest(&base.replace(from, to)), first, "{from}");
    }
    for (from, to) in [
        ("uid = 20001", "uid = 20002"),
        ("[18300, 18301]", "[18300, 18302]"),
        ("pids = 128", "pids = 129"),
        ("access_log = true", "access_log = false"),
        ("size = \"2g\"", "size = \"3g\""),
        ("[\"API_TOKEN\"]", "[\"API_KEY\"]"),
        ("api.example.com:443", "api.example.com:444"),
        ("\"https://shop.example.org\"", "\"x\""),
    ] {
        assert!(base.contains(from), "{from}");
        assert_ne!(digest(&base.replace(from, to)), first, "{from}");
    }
}

#[test]
fn no_message_shows_a_value() {
    let host = host();
    for canary in ["Canary s3cr3t:value@x", "s3cr3t-canary", "https://u:s3cr3t@h.example/x", "a/s3cr3t/b.caddy"] {
        for edited in crate::manifest::apptoml::tests::with_canaries(&base(), canary) {
            let Err(problems) = shop(&edited, Some(&host)) else {
                continue;
            };
            let shown = serde_json::to_string(&problems).unwrap().to_lowercase();
            assert!(!shown.contains("s3cr3t"), "{shown}\n{edited}");
        }
    }
}

proptest! {
    #[test]
    fn no_changed_file_panics(at in 0_usize..2500, put in "\\PC{0,6}|[\\[\\]\"'=.\\n{},]{0,4}", cut in 0_usize..8) {
        let base: Vec<char> = base().chars().collect();
        let at = at % base.len();
        let edited: String = base[..at].iter().copied().chain(put.chars()).chain(base[at..].iter().skip(cut).copied()).collect();
        let _read = shop(&edited, None);
    }
}

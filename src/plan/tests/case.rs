//! One case in a compact form, and everything that it stands for.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::Serving;
use crate::model::desired::{DataRequest, DesiredState, Documents, ImageRequest, SmokeCheck, Vhost};
use crate::model::live::{LiveContainer, LiveEdge, LiveState, RunState, SlotState};
use crate::model::policy::{BuildPolicy, DataPolicy, HostPolicy, ImageFrom, ImagePolicy, Limits};
use crate::model::{Digest, ReleaseNumber, Sha, Slot, TargetName};
use crate::render::container::{container, network};

/// `testdata/plan/*.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(default)]
    drift: bool,
    desired: Wanted,
    #[serde(default)]
    live: Seats,
    #[serde(default)]
    edge: EdgeCase,
    serving: Option<Recorded>,
}

/// What a commit and the registry ask for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    commit: String,
    /// Defaults to the commit's own.
    tree: Option<String>,
    #[serde(default = "one")]
    registry: String,
    #[serde(default = "hosts")]
    hosts: Vec<String>,
    #[serde(default = "ports")]
    slots: [u16; 2],
    #[serde(default)]
    smoke: usize,
    /// Whether two releases may share the data; absent = no data.
    data: Option<bool>,
    #[serde(default)]
    concurrent: bool,
    #[serde(default = "three")]
    keep_releases: u32,
}

/// `"v1 running"`, `"v1 stopped"`, `"foreign"` or `""`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Seats {
    #[serde(default)]
    a: String,
    #[serde(default)]
    b: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct EdgeCase {
    serving: Option<Slot>,
    /// Another text than the one that is wanted.
    vhost: Option<String>,
}

/// The release that is recorded as live.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    commit: String,
    slot: Slot,
    #[serde(default = "one")]
    registry: String,
    #[serde(default = "hosts")]
    hosts: Vec<String>,
    data: Option<bool>,
    #[serde(default)]
    kept: Vec<String>,
}

fn one() -> String {
    "r1".to_owned()
}

fn hosts() -> Vec<String> {
    vec!["shop.example".to_owned()]
}

fn ports() -> [u16; 2] {
    [20_000, 20_001]
}

fn three() -> u32 {
    3
}

/// A case, expanded.
pub(super) struct World {
    pub(super) is_drift: bool,
    pub(super) desired: DesiredState,
    pub(super) documents: Documents,
    pub(super) live: LiveState,
    pub(super) edge: LiveEdge,
    pub(super) serving: Option<Serving>,
}

fn sha(name: &str) -> Sha {
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex:0<40}").parse().unwrap()
}

/// The tag of a commit's image.
pub(super) fn tag(name: &str) -> String {
    sha(name).short().to_owned()
}

impl Case {
    pub(super) fn world(&self) -> World {
        let desired = desired(&self.desired);
        let documents = documents(&desired);
        let live = LiveState {
            slots: [seat(&self.live.a, Slot::A), seat(&self.live.b, Slot::B)],
            network: None,
            isolation_missing: Vec::new(),
        };
        let serving = self.serving.as_ref().map(|recorded| Serving {
            number: ReleaseNumber(7),
            slot: recorded.slot,
            desired: self::desired(&Wanted {
                commit: recorded.commit.clone(),
                tree: None,
                registry: recorded.registry.clone(),
                hosts: recorded.hosts.clone(),
                slots: ports(),
                smoke: 0,
                data: recorded.data,
                concurrent: false,
                keep_releases: 3,
            }),
            kept: recorded.kept.iter().map(|name| tag(name)).collect(),
        });
        let edge = LiveEdge {
            serving: self.edge.serving,
            vhost: self.edge.vhost.clone().or_else(|| self.edge.serving.map(|_| documents.vhost.text.clone())),
            is_loaded: self.edge.serving.is_some(),
        };
        World { is_drift: self.drift, desired, documents, live, edge, serving }
    }
}

pub(super) fn documents(desired: &DesiredState) -> Documents {
    let [a, b] = desired.policy.slots;
    Documents {
        containers: Slot::BOTH.map(|slot| container(desired, slot, "here")),
        network: network(&desired.target, "here"),
        vhost: Vhost {
            file: "shop.prod.caddy".to_owned(),
            hosts: desired.policy.hosts.clone(),
            text: format!("{} at {a} {b}", desired.policy.hosts.join(" ")),
        },
    }
}

fn seat(text: &str, slot: Slot) -> SlotState {
    let (name, run) = match text.split_once(' ') {
        None if text.is_empty() => return SlotState::Empty,
        None => return SlotState::Foreign { id: "0123456789abcdef".to_owned() },
        Some((name, "running")) => (name, RunState::Running { since: None }),
        Some((name, _)) => (name, RunState::Exited { code: 0, is_out_of_memory: false }),
    };
    let wanted = Wanted {
        commit: name.to_owned(),
        tree: None,
        registry: one(),
        hosts: hosts(),
        slots: ports(),
        smoke: 0,
        data: None,
        concurrent: false,
        keep_releases: 3,
    };
    SlotState::Ours(Box::new(LiveContainer {
        id: "id".to_owned(),
        spec: container(&desired(&wanted), slot, "here"),
        release: None,
        revision: Some(sha(name)),
        manifest: None,
        is_kept: run.is_running(),
        run,
    }))
}

fn desired(wanted: &Wanted) -> DesiredState {
    let target: TargetName = "shop/prod".parse().unwrap();
    let revision = sha(&wanted.commit);
    let tree =
        sha(&format!("tree {}", wanted.tree.as_ref().unwrap_or(&wanted.commit)).chars().take(20).collect::<String>());
    let check = SmokeCheck {
        path: "/".to_owned(),
        status: 200,
        contains: None,
        headers: BTreeMap::new(),
        headers_absent: Vec::new(),
        request_headers: BTreeMap::new(),
    };
    let build = BuildPolicy {
        network: "none".to_owned(),
        cpus_milli: 1000,
        memory_bytes: 1 << 30,
        timeout_seconds: 900,
        context_limit_bytes: 1 << 30,
    };
    DesiredState {
        image: ImageRequest {
            reference: format!("huta-build/shop:{}", revision.short()),
            revision: revision.clone(),
            project: "shop".to_owned(),
            policy: ImagePolicy { from: ImageFrom::Local, repository: None, credential: None, build },
            dockerfile: "Dockerfile".parse().unwrap(),
            context: ".".parse().unwrap(),
        },
        target,
        revision,
        tree,
        manifest: Digest::of(b"manifest"),
        registry: Digest::of(wanted.registry.as_bytes()),
        port: 8080,
        health: "/healthz".to_owned(),
        smoke: vec![check; wanted.smoke],
        data: wanted.data.map(|concurrent_safe| DataRequest { mount: "/data".to_owned(), concurrent_safe }),
        jobs: Vec::new(),
        uid: 20001,
        policy: policy(wanted),
    }
}

fn policy(wanted: &Wanted) -> HostPolicy {
    HostPolicy {
        hosts: wanted.hosts.clone(),
        slots: wanted.slots,
        limits: Limits { memory_bytes: 256 << 20, cpus_milli: 1000, pids: 128, tmp_bytes: 16 << 20 },
        keep_releases: wanted.keep_releases,
        drain_seconds: 10,
        env: BTreeMap::new(),
        secrets: Vec::new(),
        job_secrets: BTreeMap::new(),
        egress: Vec::new(),
        upstreams: Vec::new(),
        data: wanted.data.map(|_| DataPolicy {
            size_bytes: 1 << 30,
            backup: "daily".to_owned(),
            concurrent: wanted.concurrent,
        }),
        access_log: false,
        adopt: None,
    }
}

use std::collections::BTreeMap;

use serde::Deserialize;

use super::drift::{Drift, Expected, Texts, drift};
use super::{Document, unified};
use crate::model::Slot;
use crate::model::desired::{ContainerSpec, NetworkSpec, Vhost};
use crate::model::live::{LiveContainer, LiveEdge, LiveState, RunState, SlotState};

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    before: Option<String>,
    after: Option<String>,
    diff: String,
}

#[test]
fn differences_read_as_diff_u_writes_them() {
    let table: Table = toml::from_str(include_str!("../../testdata/diff/unified.toml")).unwrap();
    for Case { name, before, after, diff } in table.case {
        assert_eq!(unified(&[Document { name: "file".to_owned(), before, after }]), diff, "{name}");
    }
}

fn container() -> ContainerSpec {
    ContainerSpec {
        name: "shop.prod.a".to_owned(),
        slot: Slot::A,
        image: "huta-build/shop:v1".to_owned(),
        image_id: None,
        user: "20001:20001".to_owned(),
        env: BTreeMap::new(),
        labels: BTreeMap::new(),
        container_port: 8080,
        host_port: 20_000,
        network: "shop.prod".to_owned(),
        memory_bytes: 1 << 28,
        nano_cpus: 1_000_000_000,
        pids: 128,
        tmpfs: BTreeMap::new(),
        read_only_root: true,
        cap_drop: vec!["ALL".to_owned()],
        security_opt: vec!["no-new-privileges".to_owned()],
        dns: vec!["127.0.0.1".to_owned()],
    }
}

fn network() -> NetworkSpec {
    NetworkSpec { name: "shop.prod".to_owned(), bridge: "tu-0123456789".to_owned(), labels: BTreeMap::new() }
}

/// A target as it was released.
fn released() -> (LiveState, LiveEdge) {
    let live = LiveContainer {
        id: "id".to_owned(),
        spec: container(),
        release: None,
        revision: None,
        manifest: None,
        run: RunState::Running { since: None },
        is_kept: true,
    };
    let slots = [SlotState::Ours(Box::new(live)), SlotState::Empty];
    let edge = LiveEdge { serving: Some(Slot::A), vhost: Some("site\n".to_owned()), is_loaded: true };
    (LiveState { slots, network: Some(network()), isolation_missing: Vec::new() }, edge)
}

fn compared(live: &LiveState, edge: &LiveEdge) -> Drift {
    let vhost =
        Vhost { file: "shop.prod.caddy".to_owned(), hosts: vec!["shop.example".to_owned()], text: "site\n".to_owned() };
    let expected = Expected { slot: Slot::A, container: container(), network: network(), vhost };
    let texts = Texts {
        container: |spec| format!("user: {}\nmemory: {}\n", spec.user, spec.memory_bytes),
        network: |network| format!("bridge: {}\n", network.bridge),
    };
    drift(&expected, live, edge, texts)
}

fn ours(live: &mut LiveState) -> &mut LiveContainer {
    match &mut live.slots[0] {
        SlotState::Ours(container) => container,
        SlotState::Empty | SlotState::Foreign { .. } => panic!("released above"),
    }
}

#[test]
fn a_target_as_it_was_released_has_no_drift() {
    let (live, edge) = released();
    assert_eq!(compared(&live, &edge), Drift::default());
}

type Edit = fn(&mut LiveState, &mut LiveEdge);

/// One change at a time: the document that is named, and a line that shows it.
#[test]
fn each_kind_of_drift_is_named_and_shown() {
    let cases: [(Edit, &str, &str); 14] = [
        (|live, _| live.slots[0] = SlotState::Empty, "container shop.prod.a is gone", "-state: running"),
        (|live, _| ours(live).spec.memory_bytes = 1, "container shop.prod.a differs", "+memory: 1"),
        (|live, _| ours(live).run = RunState::Created, "container shop.prod.a differs", "+state: not running"),
        (|live, _| ours(live).is_kept = false, "container shop.prod.a differs", "+starts after a reboot: false"),
        (
            |live, _| live.slots[0] = SlotState::Foreign { id: "0123".to_owned() },
            "container shop.prod.a differs",
            "+a container that trueup did not make: 0123",
        ),
        (|live, _| live.network = None, "network shop.prod is gone", "-bridge: tu-0123456789"),
        (
            |live, _| live.network.as_mut().unwrap().bridge = "br0".to_owned(),
            "network shop.prod differs",
            "+bridge: br0",
        ),
        (|live, _| live.isolation_missing.push("drop".to_owned()), "isolation tu-0123456789 differs", "+missing: drop"),
        (|_, edge| edge.vhost = None, "vhost shop.prod.caddy is gone", "-site"),
        (|_, edge| edge.vhost = Some("other\n".to_owned()), "vhost shop.prod.caddy differs", "+other"),
        (|_, edge| edge.is_loaded = false, "edge shop.example differs", "+not served by Caddy"),
        (|_, edge| edge.serving = Some(Slot::B), "marker differs", "+traffic goes to slot b"),
        (|_, edge| edge.serving = None, "marker differs", "+traffic goes nowhere"),
        (|live, _| live.slots[1] = SlotState::Foreign { id: "b".to_owned() }, "", ""),
    ];
    for (edit, summary, line) in cases {
        let (mut live, mut edge) = released();
        edit(&mut live, &mut edge);
        let found = compared(&live, &edge);
        // What sits in the idle seat is no part of what was released (promise P9).
        let wanted: Vec<&str> = if summary.is_empty() { Vec::new() } else { vec![summary] };
        assert_eq!(found.summary, wanted);
        assert!(found.difference.contains(line), "{summary}: {}", found.difference);
        assert_eq!(found.is_empty(), summary.is_empty());
    }
}

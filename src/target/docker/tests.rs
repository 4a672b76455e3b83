//! Live: seats, bridges and rules on the real engine and the real kernel.

use std::net::{TcpListener, TcpStream};

use super::isolation::Firewall;
use super::{DockerConfig, DockerTarget};
use crate::model::desired::{ContainerSpec, DesiredState};
use crate::model::live::{LiveContainer, RunState, SlotState};
use crate::model::{Class, Fault, ImageId, ReasonCode, ReleaseNumber, Slot, TargetName};
use crate::plan::Step;
use crate::render::container;
use crate::target::{Target as _, TargetError};
use crate::tests::app::{self, AppSpec};

mod bench;
mod isolation;
mod slots;

use bench::Bench;

fn running(live: &LiveContainer) -> bool {
    live.run.is_running()
}

#[tokio::test]
// Field report 58.
async fn a_started_container_reads_back_as_exactly_what_was_asked_for() {
    let bench = Bench::new(AppSpec::default()).await;
    let before = bench.docker.observe(&bench.target).await.unwrap();
    assert_eq!((before.slots, before.network), (Default::default(), None));
    bench.network().await;
    let spec = bench.spec(Slot::B, 7);
    bench.start(&spec).await.unwrap();
    let live = bench.live(Slot::B).await;
    assert_eq!(live.spec, spec);
    assert_eq!(container::text(&live.spec), container::text(&spec));
    assert_eq!(live.release, Some(ReleaseNumber(7)));
    assert_eq!(live.revision.as_ref().map(|sha| sha.as_str()), Some(bench.sha.as_str()));
    assert_eq!(live.manifest, Some(bench.desired().manifest));
    assert!(!live.is_kept && matches!(live.run, RunState::Running { since: Some(_) }), "{live:?}");
    let state = bench.docker.observe(&bench.target).await.unwrap();
    assert_eq!(state.network, Some(container::network(&bench.target, &bench.instance)));
    assert_eq!(state.isolation_missing, Vec::<String>::new());
    assert_eq!(state.slots[0], SlotState::Empty);
}

#[tokio::test]
// Field report 42.
async fn variables_and_labels_of_the_image_are_no_drift_even_when_the_image_sets_the_same() {
    let lines = ["ENV PATH=/bin EXTRA=yes HUTA_SLOT=a", "LABEL maintainer=somebody"];
    let spec = AppSpec { dockerfile: lines.map(str::to_owned).to_vec(), ..AppSpec::default() };
    let bench = Bench::new(spec).await;
    bench.network().await;
    let spec = bench.spec(Slot::A, 1);
    bench.start(&spec).await.unwrap();
    assert_eq!(bench.live(Slot::A).await.spec, spec);
    bench.serving(Slot::A).await;
    assert!(bench.get("/env").contains("EXTRA=yes\n"));
}

#[tokio::test]
async fn the_container_runs_as_the_contract_says() {
    let bench = Bench::new(AppSpec { user: Some("9999".to_owned()), ..AppSpec::default() }).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    bench.serving(Slot::A).await;
    let env = bench.get("/env");
    for line in [
        format!("RELEASE_SHA={}", bench.sha),
        format!("HUTA_PROJECT={}", bench.target.project),
        format!("HUTA_TARGET={}", bench.target.target),
        "HUTA_SLOT=a".to_owned(),
        "PUBLIC_ORIGIN=https://shop.example.org".to_owned(),
    ] {
        assert!(env.lines().any(|found| found == line), "{line} in {env}");
    }
    let name = bench.target.container(Slot::A);
    assert!(bench.exec(&name, &["probe", "write", "/x"]).await.contains("ReadOnlyFilesystem"));
    assert_eq!(bench.exec(&name, &["probe", "write", "/tmp/x"]).await, "written");
    let status = bench.process_status(&name).await;
    for (key, value) in [
        ("Uid", "20001\t20001\t20001\t20001"),
        ("Gid", "20001\t20001\t20001\t20001"),
        ("CapBnd", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("NoNewPrivs", "1"),
    ] {
        let found = status.lines().find_map(|line| line.strip_prefix(&format!("{key}:")));
        assert_eq!(found.map(str::trim), Some(value), "{key}");
    }
}

#[tokio::test]
// Field report 65.
async fn a_container_of_that_name_that_is_not_ours_is_never_touched() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let name = bench.target.container(Slot::A);
    // Labels of the image prove nothing, and neither does another installation's label.
    let labels = container::owner(&bench.target, "another-installation");
    let id = bench.foreign_container(&name, labels).await;
    let state = bench.docker.observe(&bench.target).await.unwrap();
    assert_eq!(state.slots[0], SlotState::Foreign { id: id.clone() });
    let error = bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::NameTaken);
    assert!(error.reason.message.contains(&id), "{error}");
    bench.apply(Step::RemoveSlot { slot: Slot::A, grace_seconds: 1 }).await.unwrap();
    bench.apply(Step::StopSlot { slot: Slot::A, grace_seconds: 1 }).await.unwrap();
    bench.apply(Step::KeepSlot { slot: Slot::A, is_kept: false }).await.unwrap();
    for step in [Step::KeepSlot { slot: Slot::A, is_kept: true }, Step::ResumeSlot { slot: Slot::A }] {
        assert_eq!(bench.apply(step).await.unwrap_err().reason.code, ReasonCode::NameTaken);
    }
    assert_eq!(bench.docker.log_tail(&bench.target, Slot::A, 5).await.unwrap(), Vec::<String>::new());
    let inspected = bench.client.inspect_container(&name, None).await.unwrap();
    assert_eq!((inspected.id, inspected.state.unwrap().running), (Some(id), Some(true)));
}

#[tokio::test]
async fn a_network_of_that_name_that_is_not_ours_is_never_touched() {
    let bench = Bench::new(AppSpec::default()).await;
    let id = bench.foreign_network().await;
    let network = container::network(&bench.target, &bench.instance);
    let error = bench.apply(Step::EnsureNetwork { network: network.clone() }).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::NameTaken);
    assert!(error.reason.message.contains(&id), "{error}");
    let seen = bench.docker.observe(&bench.target).await.unwrap().network.unwrap();
    assert_ne!(seen, network);
    for error in [
        bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err(),
        bench.apply(Step::EnsureIsolation { network }).await.unwrap_err(),
        bench.docker.remove_network(&bench.target).await.unwrap_err(),
    ] {
        assert_eq!(error.reason.code, ReasonCode::NameTaken);
    }
    assert!(bench.client.inspect_network(&id, None).await.is_ok());
}

#[tokio::test]
async fn an_unused_network_of_ours_with_open_options_is_made_again_and_reported_before() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.open_network_with_our_labels().await;
    let seen = bench.docker.observe(&bench.target).await.unwrap();
    assert!(seen.isolation_missing.iter().any(|what| what.contains("enable_ip_masquerade is not false")), "{seen:?}");
    let error = bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::IsolationUnavailable);
    bench.network().await;
    let seen = bench.docker.observe(&bench.target).await.unwrap();
    assert_eq!(seen.isolation_missing, Vec::<String>::new());
    // Once more changes nothing.
    let id = bench.client.inspect_network(&bench.target.network(), None).await.unwrap().id;
    bench.network().await;
    assert_eq!(bench.client.inspect_network(&bench.target.network(), None).await.unwrap().id, id);
}

#[tokio::test]
async fn what_somebody_changes_on_a_container_shows_as_drift() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let spec = bench.spec(Slot::A, 1);
    bench.start(&spec).await.unwrap();
    bench.widen(&bench.target.container(Slot::A)).await;
    let live = bench.live(Slot::A).await.spec;
    assert_eq!(live.memory_bytes, spec.memory_bytes * 2);
    assert_eq!(live.network, format!("bridge,{}", spec.network));
    assert_eq!(live.pids, 999);
    // The start step would replace it.
    bench.start(&spec).await.unwrap();
    assert_eq!(bench.live(Slot::A).await.spec, spec);
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_an_error_and_never_empty() {
    let config = DockerConfig {
        socket: "/nonexistent/docker.sock".into(),
        state_dir: "/tmp".into(),
        instance: "nobody".to_owned(),
    };
    let docker = DockerTarget::new(config);
    let target: TargetName = "shop/prod".parse().unwrap();
    let observed = docker.observe(&target).await.map(|_state| ()).unwrap_err();
    let logs = docker.log_tail(&target, Slot::A, 1).await.unwrap_err();
    let removed = docker.apply(&target, &Step::RemoveSlot { slot: Slot::A, grace_seconds: 1 }).await.unwrap_err();
    for error in [observed, logs, removed] {
        assert_eq!((error.reason.code, error.class), (ReasonCode::EngineUnavailable, Class::Transient));
        assert!(error.reason.message.contains("/nonexistent/docker.sock"), "{error}");
    }
}

#[tokio::test]
async fn steps_and_names_that_are_not_this_targets_are_our_own_mistake() {
    let bench = Bench::new(AppSpec::default()).await;
    let mut spec = bench.spec(Slot::A, 1);
    spec.name = "somebody-elses".to_owned();
    let mut network = container::network(&bench.target, &bench.instance);
    network.bridge = "docker0".to_owned();
    for step in [
        Step::Unroute,
        Step::Route { slot: Slot::A },
        Step::StartSlot { container: Box::new(spec) },
        Step::EnsureNetwork { network: network.clone() },
        Step::EnsureIsolation { network },
    ] {
        let error = bench.apply(step).await.unwrap_err();
        assert_eq!((error.reason.code, error.class), (ReasonCode::Bug, Class::Bug));
    }
}

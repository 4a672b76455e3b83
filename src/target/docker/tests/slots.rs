//! Live: what starts, serves, ends and is refused in a seat.

use super::*;

#[tokio::test]
async fn starting_twice_changes_nothing_and_another_release_replaces_it() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let spec = bench.spec(Slot::A, 1);
    bench.start(&spec).await.unwrap();
    let first = bench.live(Slot::A).await;
    bench.start(&spec).await.unwrap();
    assert_eq!(bench.live(Slot::A).await, first);
    bench.start(&bench.spec(Slot::A, 2)).await.unwrap();
    let second = bench.live(Slot::A).await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.release, Some(ReleaseNumber(2)));
    // One that has ended is made anew as well.
    bench.apply(Step::StopSlot { slot: Slot::A, grace_seconds: 5 }).await.unwrap();
    bench.start(&bench.spec(Slot::A, 2)).await.unwrap();
    let third = bench.live(Slot::A).await;
    assert!(running(&third) && third.id != second.id);
}

#[tokio::test]
async fn nothing_starts_without_the_bridge() {
    let bench = Bench::new(AppSpec::default()).await;
    let error = bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::IsolationUnavailable);
    assert!(error.reason.message.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn a_port_held_by_a_process_is_named_before_and_at_the_start() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let spec = bench.spec(Slot::A, 1);
    let preflight = bench.preflight(Slot::A);
    bench.apply(preflight.clone()).await.unwrap();
    let held = TcpListener::bind(("127.0.0.1", spec.host_port)).unwrap();
    for error in [bench.apply(preflight.clone()).await.unwrap_err(), bench.start(&spec).await.unwrap_err()] {
        assert_eq!(error.reason.code, ReasonCode::PortTaken, "{error}");
        assert_eq!(error.reason.code.fault(), Fault::Surroundings);
        assert!(error.reason.message.contains(&format!("(pid {})", std::process::id())), "{error}");
    }
    drop(held);
    bench.start(&spec).await.unwrap();
    // Held by our own container in that very seat it is as good as free.
    bench.apply(preflight).await.unwrap();
}

#[tokio::test]
// Field report 66.
async fn a_port_held_by_another_container_names_it() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    let mut spec = bench.spec(Slot::B, 2);
    spec.host_port = bench.spec(Slot::A, 1).host_port;
    let Step::Preflight { free_bytes, free_inodes, .. } = bench.preflight(Slot::B) else { panic!() };
    let preflight = Step::Preflight { slot: Slot::B, port: spec.host_port, free_bytes, free_inodes };
    for error in [bench.apply(preflight).await.unwrap_err(), bench.start(&spec).await.unwrap_err()] {
        assert_eq!(error.reason.code, ReasonCode::PortTaken, "{error}");
        assert!(error.reason.message.contains(&format!("container `{}`", bench.target.container(Slot::A))), "{error}");
    }
}

#[tokio::test]
// Field report 67.
async fn a_full_disk_is_named_before_anything_changes() {
    let bench = Bench::new(AppSpec::default()).await;
    for (free_bytes, free_inodes) in [(u64::MAX, 1), (1, u64::MAX)] {
        let port = bench.spec(Slot::A, 1).host_port;
        let step = Step::Preflight { slot: Slot::A, port, free_bytes, free_inodes };
        let error = bench.apply(step).await.unwrap_err();
        assert_eq!((error.reason.code, error.class), (ReasonCode::DiskFull, Class::Transient));
    }
}

#[tokio::test]
// Field report 40.
async fn a_crash_at_the_start_is_seen_with_its_code_and_its_last_words() {
    let bench = Bench::new(AppSpec::default().with("print", "\x1b[31mred\tflag").with("start", "crash 7")).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    app::eventually("the container has ended", async || !running(&bench.live(Slot::A).await)).await;
    assert_eq!(bench.live(Slot::A).await.run, RunState::Exited { code: 7, is_out_of_memory: false });
    let lines = bench.docker.log_tail(&bench.target, Slot::A, 10).await.unwrap();
    assert_eq!(lines, ["[31mred flag", "crashing as told with code 7"]);
    assert_eq!(bench.docker.log_tail(&bench.target, Slot::A, 1).await.unwrap(), &lines[1..]);
    assert_eq!(bench.docker.log_tail(&bench.target, Slot::B, 1).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_command_that_is_not_in_the_image_is_the_commits_fault() {
    let bench = Bench::new(AppSpec { command: vec!["/nowhere".to_owned()], ..AppSpec::default() }).await;
    bench.network().await;
    let error = bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err();
    assert_eq!((error.reason.code, error.reason.code.fault()), (ReasonCode::CrashedAtStart, Fault::Commit), "{error}");
    bench.apply(Step::RemoveSlot { slot: Slot::A, grace_seconds: 1 }).await.unwrap();
}

#[tokio::test]
async fn an_image_that_is_gone_is_the_surroundings_fault() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let mut spec = bench.spec(Slot::A, 1);
    spec.image_id = Some(format!("sha256:{}", "0".repeat(64)).parse().unwrap());
    let error = bench.start(&spec).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::ImageMissing, Class::Transient), "{error}");
}

#[tokio::test]
async fn a_seat_is_kept_drained_resumed_and_removed_and_each_may_happen_twice() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    bench.serving(Slot::A).await;
    let slot = Slot::A;
    for is_kept in [true, false] {
        bench.twice(Step::KeepSlot { slot, is_kept }).await;
        assert_eq!(bench.live(slot).await.is_kept, is_kept);
    }
    bench.twice(Step::DrainSlot { slot, drain_seconds: 300, grace_seconds: 10 }).await;
    assert_eq!(bench.live(slot).await.run, RunState::Exited { code: 0, is_out_of_memory: false });
    let lines = bench.docker.log_tail(&bench.target, slot, 1).await.unwrap();
    assert_eq!(lines, ["got SIGTERM"]);
    bench.twice(Step::ResumeSlot { slot }).await;
    bench.serving(slot).await;
    bench.twice(Step::RemoveSlot { slot, grace_seconds: 10 }).await;
    let state = bench.docker.observe(&bench.target).await.unwrap();
    assert_eq!(state.slots[0], SlotState::Empty);
    let error = bench.apply(Step::ResumeSlot { slot }).await.unwrap_err();
    assert_eq!((error.reason.code, error.class), (ReasonCode::EngineUnavailable, Class::Transient));
}

#[tokio::test]
async fn what_ignores_the_signal_is_killed_after_its_grace() {
    let bench = Bench::new(AppSpec::default().with("term", "ignore")).await;
    bench.network().await;
    bench.start(&bench.spec(Slot::A, 1)).await.unwrap();
    bench.serving(Slot::A).await;
    bench.apply(Step::StopSlot { slot: Slot::A, grace_seconds: 1 }).await.unwrap();
    assert_eq!(bench.live(Slot::A).await.run, RunState::Exited { code: 137, is_out_of_memory: false });
}

#[tokio::test]
async fn an_image_without_a_command_is_the_commits_fault() {
    let bench = Bench::new(AppSpec { command: Vec::new(), ..AppSpec::default() }).await;
    bench.network().await;
    let error = bench.start(&bench.spec(Slot::A, 1)).await.unwrap_err();
    assert_eq!(error.reason.code, ReasonCode::CrashedAtStart, "{error}");
}

#[tokio::test]
async fn a_paused_container_does_not_count_as_running_and_is_replaced() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let spec = bench.spec(Slot::A, 1);
    bench.start(&spec).await.unwrap();
    let paused = bench.live(Slot::A).await;
    bench.client.pause_container(&paused.id).await.unwrap();
    assert_eq!(bench.live(Slot::A).await.run, RunState::Created);
    bench.start(&spec).await.unwrap();
    bench.serving(Slot::A).await;
    assert_ne!(bench.live(Slot::A).await.id, paused.id);
}

#[tokio::test]
async fn what_the_kernel_ends_for_memory_says_so() {
    let bench = Bench::new(AppSpec::default()).await;
    bench.network().await;
    let mut spec = bench.spec(Slot::A, 1);
    spec.memory_bytes = 32 << 20;
    spec.tmpfs = [("/tmp".to_owned(), "rw,size=67108864,mode=1777".to_owned())].into();
    bench.start(&spec).await.unwrap();
    bench.serving(Slot::A).await;
    let reply = super::bench::get(spec.host_port, "/fill?mib=60");
    assert_eq!(reply, None);
    app::eventually("the container has ended", async || !running(&bench.live(Slot::A).await)).await;
    assert_eq!(bench.live(Slot::A).await.run, RunState::Exited { code: 137, is_out_of_memory: true });
}

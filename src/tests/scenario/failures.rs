//! Each way in which a release fails, and that visitors never notice.

use crate::model::{Class, ReasonCode};
use crate::reconcile::ports::PublicChecks;
use crate::tests::world::{Behaviour, Fault, World};

const BAD: [(&str, Behaviour); 6] = [
    ("never healthy", Behaviour::NeverHealthy),
    ("crashes", Behaviour::Crashes(3)),
    ("another sha", Behaviour::WrongSha),
    ("smoke", Behaviour::SmokeFails),
    ("public smoke", Behaviour::FailsInPublic),
    ("refuses hosts", Behaviour::RefusesHosts),
];

#[tokio::test(start_paused = true)]
async fn a_bad_commit_ends_by_its_own_reason_and_the_old_one_serves() {
    let mut lines = Vec::new();
    for (name, behaviour) in BAD {
        let world = World::serving("v1").await;
        world.push("v2").behaves(behaviour);
        world.settle().await;
        assert_eq!(world.traffic(), "v1", "{name}");
        lines.push(format!("{name}: {}", world.history().await));
        world.assert_sound();
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    never healthy: 1 v1 live, 2 v2 nothing-activated NeverHealthy
    crashes: 1 v1 live, 2 v2 nothing-activated CrashedAtStart
    another sha: 1 v1 live, 2 v2 nothing-activated WrongSha
    smoke: 1 v1 live, 2 v2 nothing-activated SmokeFailed
    public smoke: 1 v1 live, 2 v2 reverted PublicProofFailed
    refuses hosts: 1 v1 live, 2 v2 reverted PublicProofFailed
    ");
}

#[tokio::test(start_paused = true)]
async fn a_bad_first_commit_leaves_the_site_not_released_yet() {
    let mut lines = Vec::new();
    for (name, behaviour) in BAD {
        let world = World::empty().await;
        world.push("v1").behaves(behaviour);
        world.settle().await;
        lines.push(format!("{name}: {} {}", world.traffic(), world.history().await));
        world.outside(|state| assert_eq!(state.running(&world.target), 0, "{name}"));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    never healthy: 503 1 v1 nothing-activated NeverHealthy
    crashes: 503 1 v1 nothing-activated CrashedAtStart
    another sha: 503 1 v1 nothing-activated WrongSha
    smoke: 503 1 v1 nothing-activated SmokeFailed
    public smoke: 503 1 v1 reverted PublicProofFailed
    refuses hosts: 503 1 v1 reverted PublicProofFailed
    ");
}

#[tokio::test(start_paused = true)]
// Field report 59.
async fn a_release_that_never_turns_healthy_is_undone_while_the_old_slot_serves() {
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.settle().await;
    assert_eq!(world.traffic(), "v1");
    insta::assert_snapshot!(world.effects(), @r"
    pin the image of v2
    start b with v2
    remove b
    ");
    insta::assert_snapshot!(world.remains().await, @r"
    a v1 running, kept; b empty; traffic: a
    live: v1; quarantined: v2 NeverHealthy; unfinished: 0
    ");
}

#[tokio::test(start_paused = true)]
// Field report 50.
async fn a_release_that_fails_in_public_is_put_back_while_the_old_slot_serves() {
    let world = World::serving("v1").await;
    world.push("v2").behaves(Behaviour::FailsInPublic);
    world.settle().await;
    assert_eq!(world.traffic(), "v1");
    insta::assert_snapshot!(world.effects(), @r"
    pin the image of v2
    start b with v2
    route to b
    route to a
    stop b after its drain
    remove b
    ");
    insta::assert_snapshot!(world.remains().await, @r"
    a v1 running, kept; b empty; traffic: a
    live: v1; quarantined: v2 PublicProofFailed; unfinished: 0
    ");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_says_another_commit_never_gets_traffic() {
    let world = World::serving("v1").await;
    world.push("v2").behaves(Behaviour::WrongSha);
    world.settle().await;
    assert!(!world.effects().contains("route"), "{}", world.effects());
    assert_eq!(world.history().await, "1 v1 live, 2 v2 nothing-activated WrongSha");
}

/// Every effect of a release, made to fail for good: the release goes back, and visitors never notice.
#[tokio::test(start_paused = true)]
// Field report 55.
async fn whatever_step_fails_the_old_slot_serves_in_the_end() {
    let steps = [
        "look for room for b",
        "close the bridge",
        "pin the image of v2",
        "start b with v2",
        "route to b",
        "keep b",
        "let a go",
    ];
    let mut lines = Vec::new();
    for step in steps {
        let world = World::serving("v1").await;
        world.fail(step, 1, Fault::Error(ReasonCode::EngineUnavailable, Class::Stalled));
        world.push("v2");
        world.settle().await;
        lines.push(format!("{step}: {} {}; {}", world.traffic(), world.history().await, world.held().await));
        world.assert_sound();
        // What failed was the surroundings: the same commit is tried again by itself.
        world.wait(120).await;
        world.settle().await;
        assert_eq!(world.traffic(), "v2", "{step}: {}", world.history().await);
        world.assert_sound();
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    look for room for b: v1 1 v1 live; EngineUnavailable
    close the bridge: v1 1 v1 live, 2 v2 nothing-activated EngineUnavailable; EngineUnavailable
    pin the image of v2: v1 1 v1 live, 2 v2 nothing-activated EngineUnavailable; EngineUnavailable
    start b with v2: v1 1 v1 live, 2 v2 nothing-activated EngineUnavailable; EngineUnavailable
    route to b: v1 1 v1 live, 2 v2 reverted EngineUnavailable; EngineUnavailable
    keep b: v1 1 v1 live, 2 v2 reverted EngineUnavailable; EngineUnavailable
    let a go: v1 1 v1 live, 2 v2 reverted EngineUnavailable; EngineUnavailable
    ");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_away_for_some_seconds_is_waited_for() {
    for step in ["start b with v2", "route to b", "keep b", "let a go", "stop a"] {
        let world = World::serving("v1").await;
        world.fail(step, 10, Fault::Error(ReasonCode::EngineUnavailable, Class::Transient));
        world.push("v2");
        world.settle().await;
        assert_eq!(world.history().await, "1 v1 live, 2 v2 live", "{step}");
        world.assert_sound();
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_retired_takes_nothing_from_a_release() {
    let world = World::serving("v1").await;
    world.fail("stop a", 9999, Fault::Error(ReasonCode::EngineUnavailable, Class::Transient));
    world.push("v2");
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live");
    world.outside(|state| state.faults.clear());
    world.push("v3");
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live, 3 v3 live");
    world.assert_sound();
}

/// An undo has patience of its own; beyond it a person must look, and until then nothing is begun.
#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_is_stuck_and_holds_everything_until_retry() {
    let mut world = World::serving("v1").await;
    world.fail("remove b", 9999, Fault::Error(ReasonCode::EngineUnavailable, Class::Transient));
    world.push("v2").never_healthy();
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 stuck EngineUnavailable");
    assert_eq!(world.traffic(), "v1");
    world.outside(|state| state.faults.clear());
    world.push("v3");
    world.settle().await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 stuck EngineUnavailable", "also after a restart");
    world.retry().await;
    world.settle().await;
    assert_eq!(world.traffic(), "v3");
    world.assert_sound();
}

/// Ruling 39 with the longest drain: the engine is away just when the drain is over.
#[tokio::test(start_paused = true)]
async fn an_undo_with_a_long_drain_still_waits_for_an_engine_that_is_away() {
    let world = World::serving("v1").await;
    world.policy(|policy| {
        let crate::model::policy::TargetKind::Host(host) = &mut policy.kind else { return };
        host.drain_seconds = 300;
    });
    world.fail("stop b", 10, Fault::Error(ReasonCode::EngineUnavailable, Class::Transient));
    world.push("v2").behaves(Behaviour::FailsInPublic);
    let before = world.now();
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 reverted PublicProofFailed");
    assert!(world.now().duration_since(before).as_secs() < 400, "the drain was waited for once");
    world.assert_sound();
}

/// Ruling 36: whose fault a silent public path is depends on whether it was silent before.
#[tokio::test(start_paused = true)]
async fn a_public_path_that_was_silent_before_leaves_the_release_live_and_unproven() {
    let mut world = World::serving("v1").await;
    world.restart_with(|settings| settings.public_checks = PublicChecks::Public).await;
    world.push("v2");
    world.settle().await;
    assert_eq!(world.traffic(), "v2", "an open path proves it");
    world.outside(|state| state.public = crate::tests::world::PublicPath::Silent);
    world.push("v3");
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live, 3 v3 live");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_public_path_that_falls_silent_with_the_switch_puts_the_old_one_back_without_quarantine() {
    let mut world = World::serving("v1").await;
    world.restart_with(|settings| settings.public_checks = PublicChecks::Public).await;
    world.push("v2");
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.outside(|state| state.is_silent_after_switch = true);
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 reverted PublicUnproven");
    assert_eq!(world.traffic(), "v1");
    assert!(world.remains().await.contains("quarantined: ;"), "{}", world.remains().await);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn the_look_in_public_before_the_switch_survives_a_crash_after_it() {
    let mut world = World::serving("v1").await;
    world.restart_with(|settings| settings.public_checks = PublicChecks::Public).await;
    world.outside(|state| state.public = crate::tests::world::PublicPath::Silent);
    world.push("v2");
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("route to b").await;
    world.wait(5).await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live");
    world.assert_sound();
}

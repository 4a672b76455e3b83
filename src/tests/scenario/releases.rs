//! Releases that go well, and what comes in between.

use crate::model::policy::Repository;
use crate::tests::world::{Ci, World};

#[tokio::test(start_paused = true)]
// Field report 57.
async fn a_first_release_goes_live_and_the_next_one_takes_the_other_slot() {
    let world = World::empty().await;
    world.push("v1");
    world.settle().await;
    assert_eq!(world.traffic(), "v1");
    insta::assert_snapshot!(world.effects(), @r"
    make the bridge
    load the vhost for shop.example www.shop.example
    pin the image of v1
    start a with v1
    route to a
    keep a
    ");
    world.forget_effects();
    world.push("v2");
    world.settle().await;
    insta::assert_snapshot!(world.effects(), @r"
    pin the image of v2
    start b with v2
    route to b
    keep b
    let a go
    stop a after its drain
    ");
    insta::assert_snapshot!(world.remains().await, @r"
    a v1 stopped; b v2 running, kept; traffic: b
    live: v2; quarantined: ; unfinished: 0
    ");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
// Field report 61.
async fn the_old_slot_is_stopped_only_after_its_drain() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("route to b").await;
    world.wait(9).await;
    assert!(!world.effects().contains("stop a"), "{}", world.effects());
    world.until_effect("stop a after its drain").await;
    assert!(world.effects().contains("keep b"), "the proof is in before");
    world.assert_sound();
}

/// Field report 39.
#[tokio::test(start_paused = true)]
async fn a_newer_commit_supersedes_one_that_waits() {
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    let before = world.now();
    world.push("v3");
    world.settle().await;
    assert!(world.now().duration_since(before).as_secs() < 20, "it waited for the health of v2");
    assert_eq!(world.traffic(), "v3");
    assert_eq!(world.history().await, "1 v1 live, 2 v2 superseded Superseded, 3 v3 live");
    world.assert_sound();
}

/// The watch beside a release looks once for each wake, also after it has seen a newer commit.
#[tokio::test(start_paused = true)]
async fn a_newer_commit_is_looked_for_without_hammering_the_remote() {
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    let looks = world.outside(|state| state.looks);
    for _ in 0..10_000 {
        world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    }
    world.wait(5).await;
    let after = world.outside(|state| state.looks);
    assert!(after - looks <= 6, "{} looks for ten thousand wakes", after - looks);
    world.push("v3");
    world.settle().await;
    let settled = world.outside(|state| state.looks);
    assert!(settled - after <= 6, "{} looks", settled - after);
}

/// A look beside the release that never returns does not stop the release's own steps.
#[tokio::test(start_paused = true)]
async fn a_remote_that_hangs_does_not_hold_up_a_release_under_way() {
    let world = World::serving("v1").await;
    world.push("v2").healthy_after(20);
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    world.outside(|state| state.remotes_down.insert("shop".to_owned(), crate::tests::world::Fault::Hangs));
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("stop a after its drain").await;
    assert_eq!(world.traffic(), "v2");
    world.assert_sound();
}

/// Field report 9.
#[tokio::test(start_paused = true)]
async fn a_commit_that_arrives_while_a_pass_is_finishing_is_not_lost() {
    for effect in ["route to b", "keep b", "let a go", "stop a after its drain"] {
        let world = World::serving("v1").await;
        world.push("v2");
        world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
        world.until_effect(effect).await;
        world.push("v3");
        world.settle().await;
        assert_eq!(world.traffic(), "v3", "pushed after `{effect}`");
        assert_eq!(world.history().await, "1 v1 live, 2 v2 live, 3 v3 live");
        world.assert_sound();
    }
}

#[tokio::test(start_paused = true)]
async fn a_revert_whose_tree_is_live_needs_no_release_and_one_to_a_kept_tree_starts_that_release_again() {
    let world = World::serving("v1").await;
    let v1 = world.sha("v1");
    world.push("empty commit").with_tree_of(&v1);
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live");
    world.push("v2");
    world.settle().await;
    world.push("revert of v2").with_tree_of(&v1);
    world.settle().await;
    // The kept release of that tree starts again, under its own commit (ruling 18).
    assert_eq!(world.traffic(), "v1");
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live, 3 v1 live");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn ci_is_waited_for_and_a_red_run_that_is_made_green_goes_live() {
    let world = World::empty().await;
    world.registry(|project| {
        project.repo = Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() };
    });
    world.policy(|policy| policy.require_ci = true);
    let mut held = Vec::new();
    world.push("v1");
    for ci in [Ci::Nothing, Ci::Pending, Ci::Red, Ci::Green] {
        world.commit("v1").ci(ci);
        world.settle().await;
        held.push(format!("{ci:?}: {} {}", world.held().await, world.traffic()));
    }
    insta::assert_snapshot!(held.join("\n"), @r"
    Nothing: CiPending no site
    Pending: CiPending no site
    Red: CiRed no site
    Green:  v1
    ");
    // What is live stays live, whatever CI says of it later.
    world.commit("v1").ci(Ci::Red);
    world.settle().await;
    world.wait(600).await;
    assert_eq!(world.traffic(), "v1");
    assert_eq!(world.history().await, "1 v1 live");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_never_gets_a_run_is_held_as_missing_after_the_grace_time() {
    let world = World::empty().await;
    world.registry(|project| {
        project.repo = Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() };
    });
    world.policy(|policy| policy.require_ci = true);
    world.push("v1");
    world.settle().await;
    assert_eq!(world.held().await, "CiPending");
    world.wait(180).await;
    assert_eq!(world.held().await, "CiMissing");
}

//! Branches that move in every way, and remotes that do not answer.

use crate::model::{Class, ReasonCode};
use crate::store::Store as _;
use crate::tests::world::{Fault, World};

const DOWN: Fault = Fault::Error(ReasonCode::GitUnavailable, Class::Transient);

fn down(world: &World) {
    world.outside(|state| state.remotes_down.insert("shop".to_owned(), DOWN));
}

/// Promise P7.
#[tokio::test(start_paused = true)]
async fn a_remote_that_cannot_be_read_never_becomes_a_deletion() {
    let mut world = World::serving("v1").await;
    down(&world);
    world.settle().await;
    world.restart().await;
    world.wait(7200).await;
    assert_eq!((world.traffic(), world.effects()), ("v1".to_owned(), String::new()));
    world.outside(|state| state.remotes_down.clear());
    world.push("v2");
    world.settle().await;
    assert_eq!(world.traffic(), "v2");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_remote_that_does_not_answer_a_first_release_holds_it_with_growing_waits() {
    let world = World::empty().await;
    world.push("v1");
    down(&world);
    world.settle().await;
    assert_eq!(world.held().await, "GitUnavailable");
    let looks = world.outside(|state| state.looks);
    world.wait(3600).await;
    let more = world.outside(|state| state.looks) - looks;
    assert!((12..40).contains(&more), "{more} looks within an hour");
}

/// Field report 23.
#[tokio::test(start_paused = true)]
async fn a_branch_that_is_gone_keeps_what_runs_and_is_taken_up_again_when_it_returns() {
    let world = World::serving("v1").await;
    world.move_branch(None);
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("BranchGone", "v1"));
    world.wait(3600).await;
    assert_eq!(world.effects(), "");
    world.move_branch(Some("v1"));
    world.push("v2");
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("", "v2"));
    world.assert_sound();
}

/// Ruling 10, field reports 21, 22 and 25.
#[tokio::test(start_paused = true)]
async fn a_forced_push_is_acted_on_after_a_second_look() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.settle().await;
    world.forget_effects();
    let before = world.now();
    world.outside(|state| state.force_push("shop", ("v2 amended", Some("v1"))));
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("NonFastForward", "v2"));
    world.until_effect("start a with v2 amended").await;
    assert!((10..14).contains(&world.now().duration_since(before).as_secs()));
    world.settle().await;
    assert_eq!(world.traffic(), "v2 amended");
    // Back to an older tip is such a move too.
    world.move_branch(Some("v1"));
    world.settle().await;
    assert_eq!(world.held().await, "NonFastForward");
    world.wait(60).await;
    world.settle().await;
    assert_eq!(world.traffic(), "v1");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_lagging_replica_that_shows_an_older_tip_once_changes_nothing() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.settle().await;
    world.forget_effects();
    world.move_branch(Some("v1"));
    world.settle().await;
    world.move_branch(Some("v2"));
    world.settle().await;
    world.wait(600).await;
    assert_eq!((world.effects(), world.held().await), (String::new(), String::new()));
}

/// Field report 24.
#[tokio::test(start_paused = true)]
async fn people_can_pause_and_resume_when_history_is_gone() {
    let world = World::serving("v1").await;
    world.outside(|state| {
        state.commits.clear();
        state.branches.insert("shop".to_owned(), None);
    });
    world.pause(true).await;
    world.settle().await;
    assert!(world.store.pause(&world.target).await.unwrap().is_some());
    world.pause(false).await;
    world.settle().await;
    assert_eq!(world.held().await, "BranchGone");
    assert_eq!(world.effects(), "");
}

/// Invariant I5: order is the order of observation, and what was overtaken stays behind.
#[tokio::test(start_paused = true)]
async fn an_older_commit_never_replaces_a_newer_one() {
    let mut world = World::serving("v1").await;
    // A release of v2 is left in the middle by a store that cannot be written.
    world.push("v2").healthy_after(5);
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    world.fail_writes("journal", 1);
    world.wait(6).await;
    world.push("v3");
    world.settle().await;
    assert_eq!(world.traffic(), "v3", "{}", world.history().await);
    world.restart().await;
    world.settle().await;
    assert_eq!(world.traffic(), "v3", "{}", world.history().await);
    assert!(world.remains().await.ends_with("unfinished: 0"), "{}", world.remains().await);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn an_older_release_that_a_crash_left_behind_gives_way_to_the_newer_commit() {
    let mut world = World::serving("v1").await;
    world.push("v2").healthy_after(20);
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    world.push("v3");
    world.restart().await;
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 superseded Superseded, 3 v3 live");
    world.assert_sound();
}

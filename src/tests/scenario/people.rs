//! What people decide: pauses, pins, consent, another try.

use crate::model::policy::Approve;
use crate::reconcile::queue::Wake;
use crate::store::Store as _;
use crate::store::record::Approval;
use crate::tests::world::World;

async fn approve(world: &World, plan: &str) {
    let approval = Approval {
        target: world.target.clone(),
        plan_hash: plan.to_owned(),
        is_approved: true,
        by: "uid 0".to_owned(),
        at: world.now(),
    };
    world.store.put_approval(&approval).await.unwrap();
}

/// Field report 19: every trigger meets the pause, and also one that comes while the plan is made.
#[tokio::test(start_paused = true)]
async fn a_pause_is_seen_at_the_last_moment_whatever_woke_the_target() {
    for wake in [Wake::TIMER, Wake::SOURCE, Wake::CONFIG, Wake::ENGINE, Wake::PERSON] {
        let world = World::serving("v1").await;
        world.pause(true).await;
        world.push("v2");
        world.settled(wake).await;
        assert_eq!((world.held().await.as_str(), world.effects().as_str()), ("Paused", ""), "{wake:?}");
        world.pause(false).await;
        world.settle().await;
        assert_eq!(world.traffic(), "v2");
    }
    let world = World::serving("v1").await;
    world.push("v2");
    // The plan is stored; the pause comes before the release begins.
    world.pause_after_write("put_plan");
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.effects().as_str()), ("Paused", ""));
}

#[tokio::test(start_paused = true)]
async fn consent_is_bound_to_one_plan_and_a_changed_plan_waits_again() {
    let world = World::serving("v1").await;
    world.policy(|policy| policy.approve = Approve::Always);
    world.push("v2");
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("NeedsApproval", "v1"));
    let first = world.store.latest_plan(&world.target).await.unwrap().unwrap().id;
    // The registry changes before the person decides: what they saw is no longer what would be done.
    world.host(|host| host.limits.memory_bytes *= 2);
    approve(&world, &first).await;
    world.settled(Wake::PERSON).await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("NeedsApproval", "v1"));
    let second = world.store.latest_plan(&world.target).await.unwrap().unwrap().id;
    assert_ne!(first, second);
    approve(&world, &second).await;
    world.settled(Wake::PERSON).await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("", "v2"));
    // The consent is used up: another commit needs its own.
    world.push("v3");
    world.settle().await;
    assert_eq!(world.held().await, "NeedsApproval");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn an_asked_for_revision_holds_until_the_branch_moves() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.settle().await;
    world.pin("v1", Some("v2")).await;
    world.settle().await;
    assert_eq!(world.traffic(), "v1");
    world.wait(3600).await;
    assert_eq!(world.traffic(), "v1");
    world.push("v3");
    world.settle().await;
    assert_eq!(world.traffic(), "v3");
    assert!(world.store.pin(&world.target).await.unwrap().is_none());
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_pin_that_comes_while_another_commit_waits_is_wanted_at_once() {
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.workers.wake(&world.target, Wake::SOURCE);
    world.until_effect("start b with v2").await;
    let before = world.now();
    world.pin("v1", Some("v2")).await;
    world.settle().await;
    assert!(world.now().duration_since(before).as_secs() < 20);
    assert_eq!(world.history().await, "1 v1 live, 2 v2 superseded Superseded");
    world.assert_sound();
}

/// Promise P5, field reports 49 and 54.
#[tokio::test(start_paused = true)]
async fn a_sha_that_failed_is_not_tried_again() {
    let mut world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.settle().await;
    world.restart().await;
    world.settle().await;
    world.wait(24 * 3600).await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 nothing-activated NeverHealthy");
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("Quarantined", "v1"));
}

/// Field report 56, ruling 7.
#[tokio::test(start_paused = true)]
async fn a_newer_commit_a_person_or_the_registry_once_lifts_a_quarantine() {
    let failed = "1 v1 live, 2 v2 nothing-activated NeverHealthy";
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.settle().await;
    world.retry().await;
    world.settle().await;
    assert_eq!(world.history().await, format!("{failed}, 3 v2 nothing-activated NeverHealthy"));
    // The registry changes: one more try, and going back to what failed before gets none.
    world.host(|host| host.limits.memory_bytes *= 2);
    world.settle().await;
    assert_eq!(world.releases().await.len(), 4, "{}", world.history().await);
    world.host(|host| host.limits.memory_bytes *= 2);
    world.settle().await;
    assert_eq!(world.releases().await.len(), 5);
    world.push("v3");
    world.settle().await;
    assert_eq!(world.traffic(), "v3");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_breaks_a_rule_is_refused_once_and_quarantined() {
    let world = World::serving("v1").await;
    world.push("v2").with_manifest("schema = 1\nproject = \"other\"\n");
    world.settle().await;
    world.wait(3600).await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 refused ManifestInvalid");
    assert_eq!((world.held().await.as_str(), world.effects().as_str()), ("Quarantined", ""));
}

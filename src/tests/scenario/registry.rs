//! What the operator changes: a new generation of what is live, ports, hosts, and targets that go.

use crate::model::Slot;
use crate::reconcile::queue::Wake;
use crate::store::Store as _;
use crate::tests::world::{Behaviour, World};

/// Ruling 12.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_registry_is_a_new_generation_through_the_idle_slot() {
    let world = World::serving("v1").await;
    world.host(|host| {
        host.env.insert("GREETING".to_owned(), "hello".to_owned());
    });
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v1 live");
    insta::assert_snapshot!(world.effects(), @r"
    pin the image of v1
    start b with v1
    route to b
    keep b
    let a go
    stop a after its drain
    ");
    world.assert_sound();
}

/// Ruling 35.
#[tokio::test(start_paused = true)]
async fn new_slot_ports_keep_the_live_one_until_the_new_slot_is_proven() {
    let world = World::serving("v1").await;
    world.host(|host| host.slots = [30_000, 30_001]);
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v1 live");
    assert_eq!(world.ports(), [20_000, 30_001], "a was live until now");
    world.assert_sound();
    // What the release wrote is no drift.
    world.wait(3600).await;
    assert!(world.store.drift(&world.target).await.unwrap().is_none());
    world.push("v2");
    world.settle().await;
    assert_eq!(world.ports(), [30_000, 30_001]);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_taken_away_is_given_back_when_the_new_generation_fails() {
    for behaviour in [Behaviour::NeverHealthy, Behaviour::FailsInPublic] {
        let world = World::serving("v1").await;
        world.push("v2").behaves(behaviour);
        world.host(|host| host.hosts = vec!["shop.example".to_owned(), "new.example".to_owned()]);
        world.settle().await;
        assert_eq!(world.traffic(), "v1", "{}", world.history().await);
        let hosts = world.outside(|state| state.sites[&world.target].hosts.clone());
        assert_eq!(hosts, ["shop.example", "www.shop.example"], "{behaviour:?}: {}", world.effects());
        assert!(!world.history().await.contains("stuck"), "{}", world.history().await);
        world.wait(600).await;
        assert!(world.store.drift(&world.target).await.unwrap().is_none());
        world.assert_sound();
    }
}

/// Ruling 4.
#[tokio::test(start_paused = true)]
async fn a_target_that_left_the_registry_keeps_serving() {
    let mut world = World::serving("v1").await;
    world.forget_target();
    world.settle().await;
    world.push("v2");
    world.restart().await;
    world.settle().await;
    world.wait(3600).await;
    assert_eq!((world.held().await.as_str(), world.traffic().as_str()), ("Orphaned", "v1"));
    assert_eq!(world.effects(), "");
}

#[tokio::test(start_paused = true)]
async fn the_unfinished_release_of_a_target_that_left_the_registry_is_still_finished() {
    for effect in ["start b with v2", "route to b"] {
        let mut world = World::serving("v1").await;
        world.push("v2");
        world.workers.wake(&world.target, Wake::SOURCE);
        world.until_effect(effect).await;
        world.forget_target();
        world.restart().await;
        world.settle().await;
        assert_eq!(world.history().await, "1 v1 live, 2 v2 live", "after `{effect}`");
        assert!(world.remains().await.ends_with("unfinished: 0"));
        world.assert_sound();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_built_yet_is_refused_before_anything_is_done() {
    let world = World::serving("v1").await;
    world.host(|host| host.secrets = vec!["TOKEN".to_owned()]);
    world.push("v2");
    world.settle().await;
    world.wait(3600).await;
    assert_eq!(world.history().await, "1 v1 live, 2 v2 refused NotBuilt");
    assert_eq!((world.traffic().as_str(), world.effects().as_str()), ("v1", ""));
    // It is no fault of the commit's: once the key is gone, the commit goes live.
    world.host(|host| host.secrets.clear());
    world.settle().await;
    assert_eq!(world.traffic(), "v2");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_container_in_the_idle_seat_is_left_alone() {
    let world = World::serving("v1").await;
    world.seat(Slot::B, crate::model::live::SlotState::Foreign { id: "0123456789abcdef".to_owned() });
    world.push("v2");
    world.settle().await;
    assert_eq!((world.held().await.as_str(), world.effects().as_str()), ("NameTaken", ""));
    world.seat(Slot::B, crate::model::live::SlotState::Empty);
    world.wait(600).await;
    assert_eq!(world.traffic(), "v2");
    world.assert_sound();
}

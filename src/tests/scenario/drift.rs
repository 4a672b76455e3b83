//! Drift: found, shown, put right, and left alone when putting right does not help.

use crate::model::Slot;
use crate::model::live::SlotState;
use crate::model::policy::DriftPolicy;
use crate::reconcile::queue::Wake;
use crate::store::Store as _;
use crate::tests::world::World;

async fn drifted(world: &World) -> String {
    let found = world.store.drift(&world.target).await.unwrap();
    found.map(|found| found.summary.join("; ")).unwrap_or_default()
}

/// Field report 46.
#[tokio::test(start_paused = true)]
async fn drift_is_reported_and_not_healed_unless_the_operator_says_so() {
    let world = World::serving("v1").await;
    world.host_state(|host| host.live.isolation_missing = vec!["a rule".to_owned()]);
    world.wait(301).await;
    assert!(drifted(&world).await.starts_with("isolation tu-"), "{}", drifted(&world).await);
    assert_eq!((world.effects().as_str(), world.traffic().as_str()), ("", "v1"));
    world.host_state(|host| host.live.isolation_missing.clear());
    world.wait(301).await;
    assert_eq!(drifted(&world).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_engine_tells_of_is_seen_within_seconds_and_healed() {
    let world = World::serving("v1").await;
    world.policy(|policy| policy.drift = DriftPolicy::Heal);
    world.settle().await;
    world.forget_effects();
    world.seat(Slot::A, SlotState::Empty);
    world.workers.wake(&world.target, Wake::ENGINE);
    world.until_effect("route to b").await;
    assert_eq!(world.traffic(), "v1");
    world.settle().await;
    assert_eq!(world.history().await, "1 v1 live, 2 v1 live");
    world.wait(600).await;
    assert_eq!(drifted(&world).await, "");
    assert_eq!(world.releases().await.len(), 2, "once is enough");
}

/// Field report 44.
#[tokio::test(start_paused = true)]
async fn drift_that_comes_back_three_times_is_left_to_a_person() {
    let world = World::serving("v1").await;
    world.policy(|policy| policy.drift = DriftPolicy::Heal);
    world.settle().await;
    for _ in 0..6 {
        world.host_state(|host| host.live.isolation_missing = vec!["a rule".to_owned()]);
        world.workers.wake(&world.target, Wake::ENGINE);
        world.wait(120).await;
    }
    assert_eq!(world.history().await, "1 v1 live, 2 v1 live, 3 v1 live, 4 v1 live");
    let conditions = world.store.conditions(&world.target).await.unwrap();
    let healing = conditions.iter().find(|condition| condition.kind == "Healing").unwrap();
    assert_eq!((healing.is_true, healing.reason.as_str()), (false, "Oscillating"));
    world.retry().await;
    world.wait(120).await;
    assert_eq!(world.releases().await.len(), 5, "a person lets it try again");
    world.assert_sound();
}

/// An engine that is away is no drift (promise P7).
#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_no_drift() {
    let world = World::serving("v1").await;
    world.policy(|policy| policy.drift = DriftPolicy::Heal);
    world.settle().await;
    world.outside(|state| state.is_engine_down = true);
    world.workers.wake(&world.target, Wake::ENGINE);
    world.wait(3600).await;
    assert_eq!((drifted(&world).await.as_str(), world.history().await.as_str()), ("", "1 v1 live"));
}

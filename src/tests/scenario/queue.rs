//! Wakes, workers, and that nobody waits for somebody else's target.

use crate::reconcile::queue::Wake;
use crate::tests::world::{Fault, World};

/// Field report 5.
#[tokio::test(start_paused = true)]
async fn ten_thousand_wakes_are_one_pass() {
    let world = World::serving("v1").await;
    let looks = world.outside(|state| state.looks);
    for _ in 0..10_000 {
        world.workers.wake(&world.target, Wake::SOURCE);
    }
    world.settle().await;
    world.wait(30).await;
    let more = world.outside(|state| state.looks) - looks;
    assert!(more <= 2, "{more} looks");
}

/// Invariant I8, field report 8.
#[tokio::test(start_paused = true)]
async fn two_passes_of_one_target_never_overlap() {
    let world = World::serving("v1").await;
    world.push("v2").healthy_after(3);
    for round in 0..40 {
        world.workers.wake(&world.target, [Wake::SOURCE, Wake::CONFIG, Wake::ENGINE, Wake::PERSON][round % 4]);
        world.workers.wake_all(Wake::TIMER);
        world.workers.wake_unfinished().await;
        world.wait(1).await;
    }
    world.settle().await;
    assert_eq!(world.workers.count(), 1);
    assert_eq!(world.history().await, "1 v1 live, 2 v2 live");
    // Every step of the second release once, in the plan's order.
    insta::assert_snapshot!(world.effects(), @r"
    pin the image of v2
    start b with v2
    route to b
    keep b
    let a go
    stop a after its drain
    ");
    world.assert_sound();
}

/// Field report 41.
#[tokio::test(start_paused = true)]
async fn fifty_targets_that_hang_do_not_slow_another_down() {
    let names: Vec<String> = (0..50).map(|number| format!("slow{number}")).collect();
    let mut all = vec!["shop"];
    all.extend(names.iter().map(String::as_str));
    let world = World::with_projects(&all).await;
    for (place, name) in names.iter().enumerate() {
        world.push_to(name, "v1").never_healthy();
        if place % 2 == 0 {
            world.outside(|state| state.remotes_down.insert(name.clone(), Fault::Hangs));
        }
    }
    world.workers.wake_all(Wake::TIMER);
    world.push("v1");
    let before = world.now();
    world.settle().await;
    let took = world.now().duration_since(before).as_secs();
    assert_eq!(world.traffic(), "v1");
    assert!(took <= 2, "{took} s beside fifty that hang");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_of_the_engine_while_nothing_changes() {
    let world = World::serving("v1").await;
    world.wait(24 * 3600).await;
    assert_eq!((world.effects(), world.history().await.as_str()), (String::new(), "1 v1 live"));
}

//! Failures of the surroundings: never the commit's fault, tried again with growing waits.

use crate::model::{Class, ReasonCode};
use crate::reconcile::queue::Wake;
use crate::store::Store as _;
use crate::tests::world::{Fault, World};

const FULL: Fault = Fault::Error(ReasonCode::DiskFull, Class::Transient);

#[tokio::test(start_paused = true)]
// Field report 53.
async fn failures_of_the_surroundings_are_held_with_growing_waits_and_never_quarantined() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.fail("look for room", 9999, FULL);
    world.settle().await;
    assert_eq!(world.held().await, "DiskFull");
    let tries = |world: &World| 9999 - world.outside(|state| state.faults[0].1);
    let mut counts = Vec::new();
    for _ in 0..4 {
        world.wait(600).await;
        counts.push(tries(&world));
    }
    assert!(counts[0] < 12 && counts[3] < 20, "{counts:?} tries after each ten minutes");
    assert_eq!(world.history().await, "1 v1 live", "nothing was begun");
    world.outside(|state| state.faults.clear());
    world.wait(330).await;
    assert_eq!(world.traffic(), "v2", "by itself");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_person_or_a_newer_commit_waits_for_no_back_off() {
    for is_person in [true, false] {
        let world = World::serving("v1").await;
        world.push("v2").without_image();
        world.settle().await;
        world.wait(1800).await;
        assert_eq!(world.held().await, "ImageMissing");
        let before = world.now();
        if is_person {
            world.outside(|state| state.commits.values_mut().for_each(|commit| commit.has_image = true));
            world.settled(Wake::PERSON).await;
            assert_eq!(world.traffic(), "v2");
        } else {
            world.push("v3");
            world.settle().await;
            assert_eq!(world.traffic(), "v3");
        }
        assert!(world.now().duration_since(before).as_secs() < 30);
        world.assert_sound();
    }
}

/// Something removes the candidate again and again: no release follows upon the next at once.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_something_removes_is_not_tried_again_at_once() {
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.outside(|state| state.removes_candidates = true);
    world.settle().await;
    world.wait(60).await;
    let tries = world.releases().await.len() - 1;
    assert!(tries <= 5, "{tries} releases in a minute");
    assert_eq!(world.traffic(), "v1");
    assert!(world.history().await.contains("2 v2 nothing-activated Interrupted"), "{}", world.history().await);
}

/// Promise P6: what could not be written was not done, and what was left is taken up without a restart.
#[tokio::test(start_paused = true)]
async fn a_write_that_fails_before_a_step_means_that_the_step_is_not_done() {
    for method in ["put_plan", "begin_release", "journal", "put_phase", "put_image", "audit", "put_retired"] {
        let world = World::serving("v1").await;
        world.fail_writes(method, 1);
        world.push("v2");
        world.workers.wake(&world.target, Wake::SOURCE);
        world.wait(1).await;
        assert_eq!(world.traffic(), "v1", "{method}");
        world.wait(60).await;
        world.settle().await;
        assert_eq!(world.traffic(), "v2", "{method}: {}", world.history().await);
        assert_eq!(world.history().await, "1 v1 live, 2 v2 live", "{method}");
        assert!(world.remains().await.ends_with("unfinished: 0"), "{method}");
        world.assert_sound();
    }
    // Intent first: while the journal cannot be written, nothing is touched.
    let world = World::serving("v1").await;
    world.fail_writes("journal", 9999);
    world.push("v2");
    world.workers.wake(&world.target, Wake::SOURCE);
    world.wait(600).await;
    assert_eq!((world.effects().as_str(), world.traffic().as_str()), ("", "v1"));
}

/// Invariant I2.
#[tokio::test(start_paused = true)]
async fn a_plan_is_stored_before_its_first_step() {
    let world = World::empty().await;
    world.push("v1");
    world.fail_writes("put_plan", 1);
    world.workers.wake(&world.target, Wake::SOURCE);
    world.wait(1).await;
    assert_eq!((world.effects().as_str(), world.releases().await.len()), ("", 0));
    world.settle().await;
    for release in world.releases().await {
        let plan = world.store.plan(release.new.plan_id.as_deref().unwrap()).await.unwrap().unwrap();
        let journal = world.store.journal_of(&world.target, release.number).await.unwrap();
        assert!(plan.at <= journal.first().unwrap().at);
    }
    assert_eq!(world.traffic(), "v1");
}

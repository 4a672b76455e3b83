//! `kill -9` after every single effect and write.

use crate::tests::world::{Behaviour, World};

/// A story's end: what remains and what a visitor sees.
async fn end(world: &World) -> String {
    format!("{}\ntraffic: {}", world.remains().await, world.traffic())
}

async fn begin(is_first: bool) -> World {
    if is_first { World::empty().await } else { World::serving("v1").await }
}

/// Runs a release to its end without a stop: its end, and how many effects and writes it takes.
async fn unhindered(is_first: bool, behaviour: Behaviour) -> (String, usize) {
    let world = begin(is_first).await;
    world.push("v2").behaves(behaviour);
    let before = world.touches();
    world.settle().await;
    world.assert_sound();
    (end(&world).await, world.touches() - before)
}

/// Stops the daemon dead after each of them in turn, starts another one, and compares.
async fn killed_everywhere(is_first: bool, behaviour: Behaviour) {
    let (wanted, touches) = unhindered(is_first, behaviour).await;
    for touch in 1..=touches {
        let mut world = begin(is_first).await;
        world.push("v2").behaves(behaviour);
        world.stop_after(touch);
        world.settle().await;
        let Some(stop) = world.stop() else { break };
        world.start().await;
        world.settle().await;
        let story = format!("stopped after {touch}, `{stop}`:\n{}\n{}", world.effects(), world.history().await);
        assert_eq!(end(&world).await, wanted, "{story}");
        world.assert_sound();
    }
}

macro_rules! killed {
    ($($name:ident: $is_first:literal, $behaviour:expr;)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            killed_everywhere($is_first, $behaviour).await;
        })*
    };
}

/// Promise P6. The good release; the bad ones follow, each a test of its own so that they run side by side.
#[tokio::test(start_paused = true)]
async fn a_release_killed_after_any_effect_is_finished_or_undone() {
    killed_everywhere(false, Behaviour::Good).await;
}

killed! {
    a_first_release_killed_after_any_effect_is_finished: true, Behaviour::Good;
    one_that_is_never_healthy_killed_after_any_effect_is_undone: false, Behaviour::NeverHealthy;
    one_that_crashes_killed_after_any_effect_is_undone: false, Behaviour::Crashes(3);
    one_that_says_another_sha_killed_after_any_effect_is_undone: false, Behaviour::WrongSha;
    one_whose_smoke_fails_killed_after_any_effect_is_undone: false, Behaviour::SmokeFails;
    one_that_fails_in_public_killed_after_any_effect_is_reverted: false, Behaviour::FailsInPublic;
    one_that_refuses_its_hosts_killed_after_any_effect_is_reverted: false, Behaviour::RefusesHosts;
    a_first_one_that_fails_in_public_killed_after_any_effect_is_reverted: true, Behaviour::FailsInPublic;
}

/// A manifest that is refused, killed after each write of the refusal.
#[tokio::test(start_paused = true)]
async fn a_refusal_killed_after_any_write_is_repeated_and_blocks_nothing() {
    for touch in 1..40 {
        let mut world = World::serving("v1").await;
        world.push("v2").with_manifest("schema = 2\n");
        world.stop_after(touch);
        world.settle().await;
        let is_over = world.stop().is_none();
        world.start().await;
        world.settle().await;
        // The pass that refuses says why; from the next one on it is quarantined.
        world.settle().await;
        assert_eq!(world.held().await, "Quarantined", "stopped after {touch}: {}", world.history().await);
        world.push("v3");
        world.settle().await;
        assert_eq!(world.traffic(), "v3", "stopped after {touch}");
        if is_over {
            return;
        }
    }
    panic!("a refusal takes more writes than that");
}

/// Invariant I4.
#[tokio::test(start_paused = true)]
async fn every_step_may_run_twice() {
    for behaviour in [Behaviour::Good, Behaviour::NeverHealthy, Behaviour::SmokeFails, Behaviour::FailsInPublic] {
        for is_first in [true, false] {
            let (wanted, _) = unhindered(is_first, behaviour).await;
            let world = begin(is_first).await;
            world.everything_twice();
            world.push("v2").behaves(behaviour);
            world.settle().await;
            assert_eq!(end(&world).await, wanted, "{behaviour:?}");
            world.assert_sound();
        }
    }
}

/// Field report 63: the first pass after a start finds nothing in the middle.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_killed_again_and_again_still_gets_there() {
    let mut world = World::serving("v1").await;
    world.push("v2");
    for _ in 0..200 {
        world.stop_after(4);
        world.settle().await;
        if world.stop().is_none() {
            break;
        }
        world.start().await;
    }
    world.settle().await;
    assert_eq!(world.traffic(), "v2", "{}", world.history().await);
    world.assert_sound();
}

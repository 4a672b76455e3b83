//! What is changed by hand is seen, and, where the registry says so, put right.

use super::app::AppSpec;
use super::world::{Options, World, replace};

/// Looks now: there must be drift, told in unified form, and `status` must know of it.
#[track_caller]
fn differs(world: &World, words: &str) {
    let drift = world.about("drift", &[]).ended(3).stdout;
    assert!(drift.contains("--- ") && drift.contains("+++ ") && drift.contains("@@"), "{drift}");
    assert!(drift.contains(words), "`{words}` is not in {drift}");
    let seen = world.status()["drift"].clone();
    assert!(seen["since"].is_string() && seen["difference"].as_str().unwrap().contains("@@"), "{seen:#}");
    let json = world.about("drift", &["--json"]).ended(3).json();
    assert!(!json[0]["summary"].as_array().unwrap().is_empty(), "{json:#}");
}

#[track_caller]
fn is_as_released(world: &World) {
    let drift = world.about("drift", &[]).ended(0).stdout;
    assert!(drift.contains("no drift"), "{drift}");
    assert!(world.status()["drift"].is_null());
}

#[test]
fn what_is_changed_by_hand_is_reported_and_left() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    world.settled(&first);
    is_as_released(&world);

    let container = world.container("a");
    world.engine().stop(&container);
    // Noticed by itself, from the engine's events.
    world.until("status says that the container is stopped", || (!world.status()["drift"].is_null()).then_some(()));
    differs(&world, &container);
    world.engine().start(&container);
    world.until("it serves again", || world.serves(&first).then_some(()));
    is_as_released(&world);

    let file = std::fs::read_dir(world.path("sites")).unwrap().next().unwrap().unwrap().path();
    let vhost = std::fs::read_to_string(&file).unwrap();
    replace(&file, &format!("{vhost}# a note by hand\n"));
    differs(&world, "a note by hand");
    replace(&file, &vhost);
    is_as_released(&world);

    let marker = world.path(&format!("state/edge/{}/prod", world.project));
    std::fs::rename(marker.join("b.off"), marker.join("b")).unwrap();
    differs(&world, "slot");
    std::fs::rename(marker.join("b"), marker.join("b.off")).unwrap();
    is_as_released(&world);

    world.engine().remove(&container);
    differs(&world, &container);
    // Reported, and left: the registry did not say `heal`.
    assert!(world.engine().container(&container).is_none());
    // The next release is unaffected by it.
    let second = world.release(&AppSpec::page("shop two"));
    world.settled(&second);
    is_as_released(&world);
}

#[test]
fn a_container_that_somebody_removed_comes_back_where_drift_is_healed() {
    let mut options = Options::default();
    options.target_lines.push("drift = \"heal\"".to_owned());
    let world = World::with(options);
    let first = world.release(&AppSpec::page("shop one"));
    world.settled(&first);
    world.engine().remove(&world.container("a"));
    world.until("it is served again", || world.serves(&first).then_some(()));
    world.settled(&first);
    let releases = world.releases();
    assert_eq!((&releases[0]["trigger"], &releases[0]["revision"]), (&"drift".into(), &first.into()));
    is_as_released(&world);
}

//! How a branch can move, and what follows.

use super::app::AppSpec;
use super::client::Client;
use super::world::World;

#[test]
fn a_branch_that_was_rewritten_is_followed_after_a_second_look() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    let second = world.release(&AppSpec::page("shop two"));
    let client = Client::start(world.site());

    // Another history in the place of the second commit.
    world.repo.git(&["reset", "--quiet", "--hard", &first]);
    let other = world.push(&AppSpec::page("shop other"));
    let held = world.held("NonFastForward");
    assert!(held["message"].as_str().unwrap().contains("second look"), "{held:#}");
    assert!(world.serves(&second));
    world.settled(&other);
    assert_eq!(world.page(), "shop other");

    // And back to the older commit: what was asked for last is wanted, whatever its age.
    world.repo.git(&["reset", "--quiet", "--hard", &first]);
    world.repo.push("main");
    world.held("NonFastForward");
    assert!(world.serves(&other));
    world.settled(&first);
    assert_eq!(world.page(), "shop one");
    client.assert_never_failed("a branch that was rewritten");
    let why = world.about("why", &[&second]).ended(0).stdout;
    assert!(why.contains("was live as release 2 and was replaced"), "{why}");
}

#[test]
// Field report 37.
fn a_branch_that_is_deleted_keeps_serving_and_is_taken_up_again_when_it_returns() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    world.repo.git(&["push", "--quiet", "origin", ":main"]);
    world.held("BranchGone");
    assert!(world.serves(&first));
    assert!(world.engine().is_running(&world.container("a")));
    world.about("sync", &[]).ended(5);
    assert!(world.serves(&first));

    world.repo.push("main");
    world.settled(&first);
    assert_eq!(world.releases().len(), 1);
    world.repo.git(&["push", "--quiet", "origin", ":main"]);
    world.held("BranchGone");
    let second = world.push(&AppSpec::page("shop two"));
    world.settled(&second);
    assert_eq!(world.page(), "shop two");
}

#[test]
fn a_newer_commit_supersedes_one_that_waits() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let waiting = world.push(&AppSpec::page("shop two").with("health", "unhealthy"));
    world.reached(&waiting, "wait at most");
    let newer = world.push(&AppSpec::page("shop three"));
    world.ended(&newer, "live");
    let release = world.ended(&waiting, "superseded");
    assert_eq!(release["reason"]["code"], "Superseded", "{release:#}");
    assert_eq!(world.page(), "shop three");
    client.assert_never_failed("a commit that was superseded");
    let why = world.about("why", &["--json", &waiting]).ended(0).json();
    assert!(why["quarantine"].is_null(), "{why:#}");
    assert_eq!(why["reason"], "Superseded");
    assert!(!world.serves(&first));
}

#[test]
fn a_fix_that_is_pushed_while_the_broken_commit_is_released_goes_live() {
    let world = World::start();
    world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let bad = world.push(&AppSpec::page("shop two").with("edge-page", "closed").with("delay", "300"));
    world.reached(&bad, "route the traffic");
    let fix = world.push(&AppSpec::page("shop three"));
    world.ended(&bad, "reverted");
    world.ended(&fix, "live");
    world.settled(&fix);
    assert_eq!(world.page(), "shop three");
    client.assert_never_failed("a fix during a failing release");
}

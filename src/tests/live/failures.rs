//! Commits that fail, at each place where one can: the old one serves on, and nobody notices.

use super::app::AppSpec;
use super::client::Client;
use super::world::World;

/// Pushes a commit that must fail before the switch, and looks at everything that must hold then.
#[track_caller]
fn fails(world: &World, (spec, reason, words): (&AppSpec, &str, &str), old: &str) {
    let sha = world.push(spec);
    let release = world.ended(&sha, "nothing-activated");
    assert_eq!(release["reason"]["code"], reason, "{release:#}");
    let text = format!("{} {}", release["reason"]["message"], release["reason"]["evidence"]);
    assert!(text.contains(words), "`{words}` is not in {text}");
    assert!(world.serves(old), "{reason}");
    let status = world.status();
    assert_eq!(status["live"]["revision"], old, "{status:#}");
    let idle = world.container(if status["live"]["slot"] == "a" { "b" } else { "a" });
    assert!(!world.engine().is_running(&idle), "{reason}: the candidate still runs");
    let why = world.about("why", &["--json", &sha]).ended(0).json();
    assert_eq!((&why["reason"], why["quarantine"].is_null()), (&reason.into(), false), "{why:#}");
    assert_eq!(world.held("Quarantined")["reason"], "Quarantined");
    assert_eq!(world.tries(&sha), 1);
}

#[test]
fn a_commit_that_fails_at_any_step_before_the_switch_changes_nothing() {
    let world = World::start();
    let old = world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let good = AppSpec::page("shop two");
    let other = "0123456789abcdef0123456789abcdef01234567";
    let with_line = |line: &str| AppSpec { dockerfile: vec![line.to_owned()], ..good.clone() };
    let cases = [
        (with_line("VOLUME /data"), "ImageRefused", "VOLUME"),
        (AppSpec { user: Some("0:0".to_owned()), ..good.clone() }, "ImageRefused", "is root"),
        (with_line("COPY nothing /"), "BuildFailed", "nothing"),
        (good.clone().with("start", "crash 7"), "CrashedAtStart", "crashing as told with code 7"),
        (AppSpec { command: vec!["/absent".to_owned()], ..good.clone() }, "CrashedAtStart", "/absent"),
        (good.clone().with("health", &format!("wrong-sha {other}")), "WrongSha", "0123456789ab"),
        (AppSpec::page("closed"), "SmokeFailed", "shop"),
    ];
    for (spec, reason, words) in &cases {
        fails(&world, (spec, reason, words), &old);
        client.assert_never_failed(reason);
    }
    // A good commit on top of all that goes live.
    let next = world.release(&good);
    world.settled(&next);
    client.assert_never_failed("the next good commit");
}

#[test]
// Field report 52.
fn a_candidate_that_is_never_healthy_ends_after_thirty_seconds() {
    let world = World::start();
    let old = world.release(&AppSpec::page("shop one"));
    let spec = AppSpec::page("shop two").with("health", "unhealthy");
    fails(&world, (&spec, "NeverHealthy", "30 s"), &old);
}

#[test]
fn a_candidate_that_says_another_commit_never_gets_traffic() {
    let world = World::start();
    let other = "0123456789abcdef0123456789abcdef01234567";
    let sha = world.push(&AppSpec::page("shop one").with("health", &format!("wrong-sha {other}")));
    world.ended(&sha, "nothing-activated");
    // Nothing was ever released: the site says so.
    assert_eq!(world.ask("/").unwrap().status, 503);
    let good = world.release(&AppSpec::page("shop two"));
    world.settled(&good);
}

#[test]
fn a_release_that_fails_in_public_is_put_back_while_the_old_slot_serves() {
    let world = World::start();
    let old = world.release(&AppSpec::page("shop one"));
    let client = Client::start(world.site());
    let bad = world.push(&AppSpec::page("shop two").with("edge-page", "closed"));
    let release = world.ended(&bad, "reverted");
    assert_eq!(release["reason"]["code"], "PublicProofFailed", "{release:#}");
    assert!(world.serves(&old));
    assert_eq!(world.page(), "shop one");
    client.assert_never_failed("a release that failed in public");
    let why = world.about("why", &[&bad]).ended(0).stdout;
    assert!(why.contains("PublicProofFailed") && why.contains("quarantined"), "{why}");
    assert!(why.contains("git revert"), "{why}");

    // The tree of the revert is the one that runs: nothing is to be done.
    world.repo.git(&["revert", "--no-edit", "HEAD"]);
    world.repo.push("main");
    let revert = world.head();
    let status = world.until("the revert is seen", || {
        let status = world.settled(&old);
        (status["tip"] == revert.as_str()).then_some(status)
    });
    assert!(status["held"].is_null(), "{status:#}");
    assert_eq!((world.tries(&revert), world.tries(&bad)), (0, 1));
    let why = world.about("why", &["--json"]).ended(0).json();
    assert!(why["answer"].as_str().unwrap().contains("satisfied by release 1"), "{why:#}");
    client.assert_never_failed("a revert");
}

#[test]
fn a_sha_that_failed_is_not_tried_again() {
    let mut world = World::start();
    let old = world.release(&AppSpec::page("shop one"));
    let bad = world.push(&AppSpec::page("closed"));
    world.ended(&bad, "nothing-activated");
    world.held("Quarantined");
    // Neither because somebody asks, nor because the daemon starts anew.
    let sync = world.about("sync", &[]);
    assert!(matches!(sync.code, 1 | 5), "{sync:#?}");
    assert!(sync.stdout.contains("Quarantined"), "{sync:#?}");
    assert!(world.stop_daemon().success());
    world.start_daemon();
    world.about("sync", &[]);
    assert_eq!(world.tries(&bad), 1);
    // A person's word is another matter, and a change of the registry another try.
    world.about("retry", &[]).ended(0);
    world.until("a second try", || (world.tries(&bad) == 2).then_some(()));
    world.ended(&bad, "nothing-activated");
    world.held("Quarantined");
    world.set_env("GREETING", "hello");
    world.until("a third try", || (world.tries(&bad) == 3).then_some(()));
    world.ended(&bad, "nothing-activated");
    world.held("Quarantined");
    assert_eq!(world.page(), "shop one");
    assert_eq!(world.status()["live"]["revision"], old);
}

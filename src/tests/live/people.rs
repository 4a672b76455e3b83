//! What people ask for, and the exit codes of the answers.

use super::app::AppSpec;
use super::world::{Options, World};

#[test]
fn a_paused_target_begins_nothing_until_it_is_resumed() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    world.about("pause", &["--note", "stock-taking"]).ended(0);
    let next = world.push(&AppSpec::page("shop two"));
    let held = world.held("Paused");
    assert!(held["message"].as_str().unwrap().contains("stock-taking"), "{held:#}");
    let sync = world.about("sync", &[]).ended(5);
    assert!(sync.stdout.contains("Paused"), "{sync:#?}");
    let why = world.about("why", &[]).ended(0).stdout;
    assert!(why.contains("trueup resume"), "{why}");
    assert_eq!((world.tries(&next), world.serves(&first)), (0, true));
    world.about("resume", &[]).ended(0);
    world.ended(&next, "live");
    assert!(world.status()["paused"].is_null());
}

#[test]
fn a_plan_waits_for_consent_that_is_bound_to_it() {
    let world = World::with(Options { approve: "always", ..Options::default() });
    let first = world.push(&AppSpec::page("shop one"));
    let plan = world.held("NeedsApproval")["plan"].as_str().unwrap().to_owned();
    let shown = world.about("plan", &["--json"]).ended(3).json();
    assert_eq!((shown["id"].as_str(), shown["revision"].as_str()), (Some(plan.as_str()), Some(first.as_str())));
    assert_eq!(world.tries(&first), 0);
    world.about("sync", &[]).ended(5);
    world.trueup(&["approve", &plan]).ended(0);
    world.ended(&first, "live");
    world.about("plan", &[]).ended(0);

    // A plan that a newer commit replaced is no longer what would be done.
    world.push(&AppSpec::page("shop two"));
    let waits = |not: &str| {
        world.until("another plan waits", || {
            let held = world.status()["held"].clone();
            let plan = held["plan"].as_str().filter(|plan| held["reason"] == "NeedsApproval" && *plan != not);
            plan.map(str::to_owned)
        })
    };
    let second = waits(&plan);
    let third_sha = world.push(&AppSpec::page("shop three"));
    let third = waits(&second);
    let refused = world.trueup(&["approve", &second]).ended(1);
    assert!(refused.stderr.contains("no longer what would be done"), "{refused:#?}");
    world.trueup(&["deny", &third]).ended(0);
    world.held("Denied");
    let sync = world.about("sync", &[]).ended(1);
    assert!(sync.stdout.contains("Denied"), "{sync:#?}");
    assert_eq!((world.tries(&third_sha), world.page()), (0, "shop one".to_owned()));
    // People change their minds.
    world.trueup(&["approve", &third[..12]]).ended(0);
    world.ended(&third_sha, "live");
}

#[test]
fn an_older_commit_goes_live_when_a_person_asks_for_it_until_the_branch_moves_on() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    let second = world.release(&AppSpec::page("shop two"));
    let plan = world.about("plan", &["--sha", &first]).ended(3).stdout;
    assert!(plan.contains("-page shop two") || plan.contains(&first[..12]), "{plan}");
    let sync = world.about("sync", &["--sha", &first]).ended(0);
    assert!(sync.stdout.contains("ended live"), "{sync:#?}");
    assert_eq!(world.page(), "shop one");
    let status = world.status();
    assert_eq!((&status["wanted"], &status["tip"]), (&first.clone().into(), &second.clone().into()));
    let why = world.about("why", &[&second]).ended(0).stdout;
    assert!(why.contains("pin") || why.contains("replaced") || why.contains(&first[..12]), "{why}");

    let third = world.push(&AppSpec::page("shop three"));
    world.settled(&third);
    assert!(world.status()["pin"].is_null());
    world.about("sync", &["--sha", &second]).ended(0);
    assert_eq!(world.page(), "shop two");
    world.about("resume", &[]).ended(0);
    world.settled(&third);
    world.repo.git(&["checkout", "--quiet", "--detach", &first]);
    let stray = world.commit(&AppSpec::page("shop stray"));
    let refused = world.about("sync", &["--sha", &stray]).ended(1);
    assert!(refused.stderr.contains("is not a commit of `main`"), "{refused:#?}");
    assert_eq!(world.page(), "shop three");
}

#[test]
fn each_answer_has_its_exit_code() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    // 0: done, or no difference.
    for command in ["status", "releases", "log", "why", "plan", "drift", "sync", "retry"] {
        world.about(command, &[]).ended(0);
        if command != "drift" && command != "sync" && command != "retry" {
            world.about(command, &["--json"]).ended(0).json();
        }
    }
    // 1: refused or failed.
    for command in ["status", "releases", "log", "why", "drift", "plan", "sync", "pause"] {
        let refused = world.trueup(&[command, &world.project, "nowhere"]).ended(1);
        assert!(refused.stderr.contains("error: ") && refused.stderr.contains("do: "), "{refused:#?}");
    }
    world.trueup(&["approve", "0123456789ab"]).ended(1);
    world.about("log", &["99"]).ended(1);
    // 2: usage.
    world.about("status", &["--wrong"]).ended(2);
    world.trueup(&["approve", "not-hex"]).ended(2);
    world.about("sync", &["--sha", "abc"]).ended(2);
    // 3: a difference exists. 5: held, or not ended in time.
    world.about("pause", &[]).ended(0);
    let next = world.push(&AppSpec::page("shop two").with("health", "unhealthy"));
    world.held("Paused");
    world.about("plan", &[]).ended(3);
    world.about("sync", &[]).ended(5);
    assert!(world.serves(&first));
    world.about("resume", &[]).ended(0);
    world.reached(&next, "wait at most");
    world.about("sync", &["--timeout", "1"]).ended(5);
    world.tell(world.slot_port(&next), "health=ok");
    world.ended(&next, "live");
    // A commit that fails while a person watches is 1.
    world.about("pause", &[]).ended(0);
    let bad = world.push(&AppSpec::page("closed"));
    let fix = world.push(&AppSpec::page("shop three"));
    world.about("resume", &[]).ended(0);
    world.settled(&fix);
    assert_eq!(world.tries(&bad), 0);
    let sync = world.about("sync", &["--sha", &bad]).ended(1);
    assert!(sync.stdout.contains("SmokeFailed"), "{sync:#?}");
    assert!(world.serves(&fix));
}

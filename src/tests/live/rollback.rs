//! Going back: a person's rollback, the answer to a failed release, and a developer's own revert.

use super::app::AppSpec;
use super::git_http::GitHttp;
use super::git_repo::git;
use super::world::{Options, World};

fn tip(world: &World) -> String {
    git(&world.repo.bare, &["rev-parse", "main"])
}

fn tree(world: &World, revision: &str) -> String {
    git(&world.repo.bare, &["rev-parse", &format!("{revision}^{{tree}}")])
}

#[test]
fn a_rollback_serves_the_release_before_and_writes_the_revert_to_git() {
    let world = World::with(Options { approve: "always", ..Options::default() });
    let approved = |page: &str| {
        let sha = world.push(&AppSpec::page(page));
        let plan = world.until("a plan for it waits", || {
            let held = world.status()["held"].clone();
            let is_its = world.about("plan", &["--json"]).json()["revision"] == sha.as_str();
            held["plan"].as_str().filter(|_| is_its && held["reason"] == "NeedsApproval").map(str::to_owned)
        });
        world.trueup(&["approve", &plan]).ended(0);
        world.ended(&sha, "live");
        sha
    };
    let good = approved("shop one");
    let bad = approved("shop two");
    let back = world.about("rollback", &[]).ended(0);
    assert!(back.stdout.contains("data is never reverted"), "{back:#?}");
    assert!(world.serves(&good), "{back:#?}");
    let revert = tip(&world);
    assert_eq!(tree(&world, "main"), tree(&world, &good));
    assert_eq!(git(&world.repo.bare, &["rev-parse", "main^"]), bad);
    assert!(git(&world.repo.bare, &["log", "-1", "--format=%B", "main"]).contains(&format!("Trueup-Reverts: {bad}")));
    // The revert is there: the pin is lifted, and its commit needs no release of its own.
    world.until("the pin is lifted", || world.status()["pin"].is_null().then_some(()));
    world.about("sync", &[]).ended(0);
    assert_eq!((world.tries(&revert), world.tries(&good)), (0, 2));
    assert!(world.serves(&good));
    // The branch goes on from there.
    world.repo.git(&["fetch", "--quiet", "origin"]);
    world.repo.git(&["reset", "--quiet", "--hard", "origin/main"]);
    let next = approved("shop three");
    assert!(world.serves(&next));
}

#[test]
fn without_the_right_to_write_the_target_goes_back_and_the_commands_are_told() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = None;
    let world = World::prepared(Options::default(), |dir, options| {
        let git = runtime.block_on(GitHttp::serve(dir.to_owned(), None));
        options.repo = Some(format!("{}/shop.git", git.url));
        server = Some(git);
    });
    let good = world.release(&AppSpec::page("shop one"));
    let bad = world.release(&AppSpec::page("shop two"));
    let back = world.about("rollback", &[]).ended(5);
    assert!(world.serves(&good), "{back:#?}");
    assert!(back.stdout.contains("git push origin HEAD:refs/heads/main"), "{back:#?}");
    assert_eq!(tip(&world), bad, "nothing was pushed");
    assert_eq!(world.status()["wanted"], good.as_str());
    // A developer's own revert ends it.
    world.repo.git(&["revert", "--no-edit", "HEAD"]);
    world.repo.push("main");
    world.until("the pin is lifted", || world.status()["pin"].is_null().then_some(()));
    world.settled(&good);
    drop(server);
}

#[test]
fn a_developers_revert_to_a_kept_older_release_starts_that_release_again() {
    let world = World::start();
    let first = world.release(&AppSpec::page("shop one"));
    world.release(&AppSpec::page("shop two"));
    world.release(&AppSpec::page("shop three"));
    world.repo.git(&["revert", "--no-edit", "HEAD", "HEAD~1"]);
    world.repo.push("main");
    let revert = world.head();
    world.until("the first one serves again", || world.serves(&first).then_some(()));
    world.settled(&first);
    assert_eq!((world.tries(&revert), world.tries(&first)), (0, 2));
}

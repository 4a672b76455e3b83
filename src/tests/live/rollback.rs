//! Going back: a person's rollback, the answer to a failed release, and a developer's own revert.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::app::AppSpec;
use super::git_http::GitHttp;
use super::git_repo::git;
use super::github::{Github, TOKEN};
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
fn a_commit_that_fails_is_answered_once_by_a_revert_of_it() {
    let options = Options::default();
    let target_lines = vec!["require_ci = false".to_owned(), "on_failure = \"commit\"".to_owned()];
    let world = World::with(Options { target_lines, ..options });
    let good = world.release(&AppSpec::page("shop one"));
    let bad = world.push(&AppSpec::page("closed"));
    world.ended(&bad, "nothing-activated");
    let revert = world.until("a revert is on the branch", || Some(tip(&world)).filter(|tip| *tip != bad));
    assert_eq!(tree(&world, "main"), tree(&world, &good));
    world.settled(&good);
    assert!(world.status()["pin"].is_null(), "an automatic revert never pins");
    // The same content again is another human commit, and is answered again; the revert itself never is.
    world.repo.git(&["fetch", "--quiet", "origin"]);
    world.repo.git(&["reset", "--quiet", "--hard", "origin/main"]);
    let again = world.push(&AppSpec::page("closed"));
    world.ended(&again, "nothing-activated");
    let second = world.until("it is answered too", || Some(tip(&world)).filter(|tip| *tip != again));
    assert_eq!(git(&world.repo.bare, &["rev-list", "--count", &format!("{revert}..{second}")]), "2");
    assert!(world.serves(&good));
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

#[test]
fn on_github_a_newer_commit_makes_it_a_pull_request_and_every_outcome_is_told_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let github = runtime.block_on(Github::start());
    let mut server = None;
    let world = World::prepared(Options::default(), |dir, options| {
        symlink(dir, dir.join("acme")).unwrap();
        let git = runtime.block_on(GitHttp::serve(dir.to_owned(), Some(TOKEN)));
        let token = dir.join("token");
        std::fs::write(&token, TOKEN).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        github.forge(&dir.join("shop.git"));
        options.repo = Some("acme/shop".to_owned());
        options.host_lines = vec![format!(
            "[github]\napi_url = \"{}\"\ngit_url = \"{}\"\ntoken_file = \"{}\"\nreport = true",
            github.url(),
            git.url,
            token.display()
        )];
        server = Some(git);
    });
    let good = world.release(&AppSpec::page("shop one"));
    let bad = world.release(&AppSpec::page("shop two"));
    world.about("pause", &[]).ended(0);
    world.repo.write("notes.md", "unrelated");
    let newer = world.repo.commit("unrelated").to_string();
    world.repo.push("main");
    world.held("Paused");
    world.about("rollback", &["--to", &good]).ended(5);
    let pulls = github.with_forge(|forge| forge.pulls.clone());
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    assert_eq!(pulls[0].0, format!("trueup/revert-{}", &bad[..12]));
    assert!(pulls[0].3.contains(&bad[..12]) && !pulls[0].3.contains(&format!("- {}", &newer[..12])), "{pulls:?}");
    assert_eq!(tip(&world), newer, "the branch itself is left alone");
    world.about("resume", &[]).ended(0);
    // `resume` lifts the pin too, so the tip is wanted again.
    world.ended(&newer, "live");
    world.about("rollback", &["--to", &good]).ended(0);
    assert!(world.serves(&good));

    let told = |sha: &str| -> Vec<(String, String)> {
        let told = github.with_forge(|forge| forge.told.clone());
        told.into_iter().filter(|told| told.sha == sha).map(|told| (told.what, told.state)).collect()
    };
    let context = format!("status trueup/{}/prod", world.project);
    let all = world.until("the first release is told", || {
        let all = told(&good);
        all.iter().any(|(_, state)| state == "success").then_some(all)
    });
    assert_eq!(all[0], (context.clone(), "pending".to_owned()), "{all:?}");
    assert!(all.iter().any(|(what, _)| *what == format!("deployment {}/prod", world.project)), "{all:?}");
    let held = world.until("the tip says who holds the target", || {
        let told = github.with_forge(|forge| forge.told.clone());
        told.into_iter().find(|told| told.what == context && told.description.contains("trueup resume"))
    });
    assert!(held.description.contains("uid 0 holds"), "{held:?}");
    github.assert_clean();
    drop(server);
}

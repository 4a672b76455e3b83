//! The CI gate, with a stand-in for GitHub's API and a real Git server behind it.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::app::AppSpec;
use super::git_http::GitHttp;
use super::github::{Github, Run, TOKEN};
use super::world::{Options, World};

const WORKFLOW: u64 = 7;

#[test]
// Field report 18.
fn a_commit_waits_for_its_own_green_ci_run() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let github = runtime.block_on(Github::start());
    github.workflow("ci", WORKFLOW);
    let mut server = None;
    let world = World::prepared(Options::default(), |dir, options| {
        // The world's repository is `shop.git`; on GitHub it is `acme/shop.git`.
        symlink(dir, dir.join("acme")).unwrap();
        let git = runtime.block_on(GitHttp::serve(dir.to_owned(), Some(TOKEN)));
        let token = dir.join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        options.repo = Some("acme/shop".to_owned());
        options.target_lines = vec!["require_ci = true".to_owned()];
        options.host_lines = vec![format!(
            "[github]\napi_url = \"{}\"\ngit_url = \"{}\"\ntoken_file = \"{}\"",
            github.url(),
            git.url,
            token.display()
        )];
        server = Some(git);
    });
    let git = server.unwrap();
    let push = |page: &str, run: &dyn Fn(Run) -> Run, number: u64| {
        let sha = world.commit(&AppSpec::page(page));
        github.run(run(Run::green(number, WORKFLOW, &sha)));
        world.repo.push("main");
        sha
    };

    let first = push("shop one", &|run| run.at("in_progress"), 1);
    world.held("CiPending");
    let why = world.about("why", &["--json"]).ended(0).json();
    assert!(why["ci"]["link"].as_str().unwrap().ends_with("/actions/runs/1"), "{why:#}");
    assert!(world.about("why", &[]).ended(0).stdout.contains("/actions/runs/1"));
    world.about("sync", &[]).ended(5);
    github.run(Run::green(1, WORKFLOW, &first));
    world.ended(&first, "live");
    assert_eq!(world.page(), "shop one");

    let second = push("shop two", &|run| run.ended("failure"), 2);
    world.held("CiRed");
    assert_eq!((world.tries(&second), world.page()), (0, "shop one".to_owned()));
    // A re-run of the same commit turns green.
    let again = Run { attempt: 2, ..Run::green(2, WORKFLOW, &second) };
    github.run(again);
    world.ended(&second, "live");

    // A pull request's run for the same commit proves nothing.
    let third = push("shop three", &|run| Run { event: "pull_request".to_owned(), ..run }, 3);
    world.held("CiPending");
    assert_eq!((world.tries(&third), world.page()), (0, "shop two".to_owned()));
    github.run(Run::green(4, WORKFLOW, &third));
    world.ended(&third, "live");
    github.assert_clean();
    assert!(git.asked().iter().all(|asked| asked.uri.starts_with("/acme/shop.git/")));
}

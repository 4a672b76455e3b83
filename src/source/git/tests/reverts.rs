//! Reverts to plain remotes: real repositories, over `file://` and over `git http-backend`.

use jiff::Timestamp;

use super::*;
use crate::release::revert::{Cause, Decision, Facts, Grounds, Order, Survey, decide, proposal_branch};
use crate::source::{WriteError, Written};
use crate::tests::git_repo::git;

fn at() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

/// Files, committed and pushed to `main`.
fn push(world: &World, files: &[(&str, &str)], message: &str) -> Sha {
    for (path, content) in files {
        world.origin.write(path, content);
    }
    let sha = world.origin.commit(message);
    world.origin.push("main");
    sha
}

fn writable(world: &World) {
    git(&world.origin.bare, &["config", "http.receivepack", "true"]);
}

async fn survey(world: &World, good: &Sha, bad: &Sha) -> Survey {
    world.source.survey(&world.repo, &main_branch(), (good, bad)).await.unwrap()
}

fn order(survey: &Survey, good: &Sha, bad: &Sha) -> Order {
    let facts = Facts {
        target: &"shop/prod".parse().unwrap(),
        branch: &main_branch(),
        good,
        bad,
        survey,
        grounds: &Grounds::default(),
        is_protected: false,
        is_proposal_wanted: false,
        cause: &Cause::Person { by: "uid 0".to_owned() },
        is_answered: false,
    };
    match decide(&facts) {
        Decision::Write(order) => *order,
        other @ (Decision::Nothing(_) | Decision::Stuck(_)) => panic!("{other:?}"),
    }
}

async fn write(world: &World, order: &Order) -> Result<Written, WriteError> {
    world.source.write(&world.repo, (order, at())).await
}

fn tree(world: &World, revision: &str) -> String {
    git(&world.origin.bare, &["rev-parse", &format!("{revision}^{{tree}}")])
}

#[tokio::test]
async fn a_direct_commit_goes_back_to_the_good_tree_on_top_of_the_tip() {
    for over in BOTH {
        let world = World::new(over).await;
        writable(&world);
        let good = push(&world, &[("a", "1"), ("dir/b", "1")], "good");
        push(&world, &[("a", "2"), ("new", "x")], "worse");
        let bad = push(&world, &[("dir/b", "2")], "bad");
        let survey = survey(&world, &good, &bad).await;
        let subjects: Vec<&str> = survey.undone.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, ["bad", "worse"]);
        assert!(survey.is_one_line && survey.newer.is_empty());
        let paths: Vec<&str> = survey.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a", "dir/b", "new"]);

        let written = write(&world, &order(&survey, &good, &bad)).await.unwrap();
        assert!(!written.is_old);
        assert_eq!(tree(&world, "main"), tree(&world, good.as_str()), "{over:?}");
        assert_eq!(git(&world.origin.bare, &["rev-parse", "main^"]), bad.to_string());
        assert_eq!(git(&world.origin.bare, &["rev-parse", "main"]), written.commit.unwrap().to_string());
        let message = git(&world.origin.bare, &["log", "-1", "--format=%B", "main"]);
        assert!(message.contains(&format!("Trueup-Reverts: {bad}")), "{message}");
        git(&world.origin.bare, &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(
            world.look().await.unwrap(),
            Look::At(git(&world.origin.bare, &["rev-parse", "main"]).parse().unwrap())
        );
    }
}

#[tokio::test]
async fn a_branch_that_moved_meanwhile_is_never_overwritten() {
    for over in BOTH {
        let world = World::new(over).await;
        writable(&world);
        let good = push(&world, &[("a", "1")], "good");
        let bad = push(&world, &[("a", "2")], "bad");
        let order = order(&survey(&world, &good, &bad).await, &good, &bad);
        let theirs = push(&world, &[("c", "theirs")], "somebody else's");
        let refused = write(&world, &order).await.unwrap_err();
        assert!(matches!(refused, WriteError::Moved), "{refused:?}");
        assert_eq!(git(&world.origin.bare, &["rev-parse", "main"]), theirs.to_string());
    }
}

#[tokio::test]
async fn newer_work_stays_and_the_inverse_waits_on_a_branch_of_its_own() {
    for over in BOTH {
        let world = World::new(over).await;
        writable(&world);
        let good = push(&world, &[("a", "1"), ("gone", "x"), ("deep/er/file", "1")], "good");
        std::fs::remove_file(world.origin.work.join("gone")).unwrap();
        let bad = push(&world, &[("a", "2"), ("deep/er/file", "2"), ("deep/er/added", "x")], "bad");
        let tip = push(&world, &[("later", "kept")], "later");
        let survey = survey(&world, &good, &bad).await;
        assert_eq!((survey.undone.len(), survey.newer.len()), (1, 1));
        let order = order(&survey, &good, &bad);
        let written = write(&world, &order).await.unwrap();
        assert_eq!(written.branch, proposal_branch(&bad));
        assert_eq!(git(&world.origin.bare, &["rev-parse", "main"]), tip.to_string(), "the branch itself is left alone");
        let listed = git(&world.origin.bare, &["ls-tree", "-r", "--name-only", &written.branch]);
        assert_eq!(listed.lines().collect::<Vec<_>>(), ["a", "deep/er/file", "gone", "later"]);
        let show = |path: &str| git(&world.origin.bare, &["show", &format!("{}:{path}", written.branch)]);
        assert_eq!((show("a"), show("later")), ("1".to_owned(), "kept".to_owned()));

        let again = write(&world, &order).await.unwrap();
        assert!(again.is_old, "a second try finds the first one's branch");
        assert_eq!(again.commit, written.commit);
    }
}

#[tokio::test]
async fn a_merge_is_undone_with_all_that_it_brought() {
    for over in BOTH {
        let world = World::new(over).await;
        push(&world, &[("a", "1")], "root");
        world.origin.git(&["switch", "--quiet", "-c", "side"]);
        let side = world.origin.commit("side work");
        world.origin.git(&["switch", "--quiet", "main"]);
        let good = push(&world, &[("b", "1")], "good");
        world.origin.git(&["merge", "--quiet", "--no-ff", "-m", "merge side", "side"]);
        let bad = world.origin.head();
        world.origin.push("main");
        let survey = survey(&world, &good, &bad).await;
        let mut undone: Vec<&Sha> = survey.undone.iter().map(|commit| &commit.sha).collect();
        undone.sort();
        let mut wanted = vec![&side, &bad];
        wanted.sort();
        assert_eq!(undone, wanted, "{over:?}");
        assert!(survey.is_one_line);
    }
}

#[tokio::test]
async fn another_line_of_history_is_told_apart() {
    let world = World::new(Over::Http).await;
    let good = push(&world, &[("a", "1")], "good");
    world.origin.git(&["checkout", "--quiet", "--orphan", "other"]);
    let tip = world.origin.commit("rewritten");
    world.origin.push("main");
    git(&world.origin.bare, &["branch", "kept", good.as_str()]);
    assert!(!survey(&world, &good, &tip).await.is_one_line);
}

#[tokio::test]
async fn a_remote_that_takes_no_push_says_why() {
    let world = World::new(Over::Http).await;
    let good = push(&world, &[("a", "1")], "good");
    let bad = push(&world, &[("a", "2")], "bad");
    let ordered = order(&survey(&world, &good, &bad).await, &good, &bad);
    let refused = write(&world, &ordered).await.unwrap_err();
    assert!(matches!(refused, WriteError::NoRight(_)), "anonymous pushes are off by default: {refused:?}");

    writable(&world);
    let hook = world.origin.bare.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho 'no pushes on Friday' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = write(&world, &ordered).await.unwrap_err();
    assert!(
        matches!(&refused, WriteError::Protected(why) if why.message.contains("no pushes on Friday")),
        "{refused:?}"
    );
}

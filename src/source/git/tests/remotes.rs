//! What a remote may do to its history, and what it may be.

use super::*;
use crate::model::Class;
use crate::source::Ancestry;

#[tokio::test]
async fn a_look_sees_the_tip_and_a_fetch_gives_the_commits_own_facts() {
    for over in BOTH {
        let world = World::new(over).await;
        let sha = world.origin.release("v1");
        assert_eq!(world.look().await.unwrap(), Look::At(sha.clone()), "{over:?}");
        let facts = world.fetch(&sha).await.unwrap();
        assert_eq!(facts.author, "Example <dev@example.org>");
        assert_eq!(facts.committed_at.to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(facts.subject, "v1");
        assert_eq!(facts.tree.as_str(), world.origin.git(&["rev-parse", "HEAD^{tree}"]));
        assert!(facts.parents.is_empty());
        assert_eq!(world.manifest(&sha).await, "v1");
    }
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_gone_and_comes_back_by_itself_field_report_23() {
    for over in BOTH {
        let world = World::new(over).await;
        assert_eq!(world.look().await.unwrap(), Look::Gone, "an empty repository, {over:?}");
        let sha = world.origin.release("v1");
        world.origin.push("main-2");
        world.origin.push("topic/main");
        assert_eq!(world.look().await.unwrap(), Look::At(sha.clone()));
        world.origin.git(&["push", "--quiet", "origin", ":refs/heads/main"]);
        assert_eq!(world.look().await.unwrap(), Look::Gone, "names that begin alike do not count, {over:?}");
        world.origin.push("main");
        assert_eq!(world.look().await.unwrap(), Look::At(sha));
    }
}

#[tokio::test]
async fn a_tag_of_the_same_name_is_not_the_branch() {
    for over in BOTH {
        let world = World::new(over).await;
        let old = world.origin.release("v1");
        world.origin.git(&["tag", "main"]);
        world.origin.git(&["push", "--quiet", "origin", "refs/tags/main"]);
        let new = world.origin.release("v2");
        assert_ne!(old, new);
        assert_eq!(world.look().await.unwrap(), Look::At(new), "{over:?}");
    }
}

#[tokio::test]
async fn a_remote_that_does_not_answer_is_never_gone_promise_7() {
    let world = World::new(Over::File).await;
    std::fs::rename(&world.origin.bare, world.dir.path().join("away.git")).unwrap();
    let error = world.look().await.unwrap_err();
    assert_eq!((code(&error), error.class), (ReasonCode::GitUnavailable, Class::Transient));

    let world = World::new(Over::File).await;
    world.origin.release("v1");
    std::fs::write(world.origin.bare.join("refs/heads/main"), "").unwrap();
    let error = world.look().await.unwrap_err();
    assert_eq!(code(&error), ReasonCode::GitUnavailable, "a half-written ref is unreadable, not absent");
}

#[tokio::test]
async fn a_force_push_is_followed_by_sha_field_reports_21_and_25() {
    for over in BOTH {
        let world = World::new(over).await;
        world.origin.release("base");
        let old = world.origin.release("v1");
        assert_eq!(world.manifest(&old).await, "v1");
        world.origin.write("deploy/app.toml", "amended");
        world.origin.git(&["commit", "--quiet", "--all", "--amend", "-m", "amended"]);
        world.origin.push("main");
        let new = world.origin.head();
        assert_eq!(world.look().await.unwrap(), Look::At(new.clone()));
        assert_eq!(world.manifest(&new).await, "amended", "{over:?}");
        let moved = world.source.ancestry(&world.repo, &main_branch(), (&old, &new)).await.unwrap();
        assert_eq!(moved, Ancestry::Unrelated, "{over:?}");
    }
}

#[tokio::test]
async fn a_push_back_to_an_older_commit_is_fetched_whole_field_report_22() {
    for over in BOTH {
        let world = World::new(over).await;
        world.origin.write("only-in-the-first.txt", "first");
        let first = world.origin.release("v1");
        world.origin.git(&["rm", "--quiet", "only-in-the-first.txt"]);
        let second = world.origin.release("v2");
        let third = world.origin.release("v3");
        assert_eq!(world.manifest(&third).await, "v3");
        world.origin.git(&["reset", "--quiet", "--hard", first.as_str()]);
        world.origin.push("main");
        assert_eq!(world.look().await.unwrap(), Look::At(first.clone()));
        assert_eq!(world.manifest(&first).await, "v1", "{over:?}");
        assert_eq!(world.read(&first, "only-in-the-first.txt").await.unwrap(), b"first");
        assert_eq!(world.manifest(&second).await, "v2", "a sha below no branch any more, {over:?}");
    }
}

#[tokio::test]
async fn a_released_commit_stays_readable_after_the_remote_forgot_it_field_report_24() {
    for over in BOTH {
        let world = World::new(over).await;
        let old = world.origin.release("v1");
        assert_eq!(world.manifest(&old).await, "v1");
        world.origin.git(&["checkout", "--quiet", "--orphan", "new"]);
        let new = world.origin.release("rewritten");
        crate::tests::git_repo::git(&world.origin.bare, &["reflog", "expire", "--expire=now", "--all"]);
        crate::tests::git_repo::git(&world.origin.bare, &["gc", "--quiet", "--prune=now"]);
        assert_eq!(world.manifest(&new).await, "rewritten");
        let world = world.restart();
        assert_eq!(world.manifest(&old).await, "v1", "{over:?}");
    }
}

#[tokio::test]
async fn a_commit_that_the_remote_does_not_have_is_told_apart_from_a_broken_mirror() {
    for over in BOTH {
        let world = World::new(over).await;
        world.origin.release("v1");
        let absent: Sha = "0123456789012345678901234567890123456789".parse().unwrap();
        let error = world.fetch(&absent).await.unwrap_err();
        assert_eq!(code(&error), ReasonCode::GitUnavailable);
        assert!(error.reason.message.contains("no longer in the remote"), "{over:?}: {}", error.reason.message);
    }
}

#[tokio::test]
async fn ancestry_is_answered_over_more_history_than_the_first_depth() {
    for over in BOTH {
        let world = World::new(over).await;
        let first = world.origin.commit("first");
        for round in 0..70 {
            world.origin.git(&["commit", "--quiet", "--allow-empty", "-m", &round.to_string()]);
        }
        let last = world.origin.release("v1");
        let ask =
            async |old: &Sha, new: &Sha| world.source.ancestry(&world.repo, &main_branch(), (old, new)).await.unwrap();
        assert_eq!(ask(&last, &last).await, Ancestry::Ancestor);
        assert_eq!(ask(&first, &last).await, Ancestry::Ancestor, "{over:?}");
        assert_eq!(ask(&last, &first).await, Ancestry::Unrelated, "{over:?}");
    }
}

#[tokio::test]
async fn fifty_targets_of_one_commit_share_one_fetch_field_report_2() {
    let world = World::new(Over::Http).await;
    let sha = world.origin.release("v1");
    let all = (0..50).map(|_| world.fetch(&sha));
    for result in futures_util::future::join_all(all).await {
        assert_eq!(result.unwrap().subject, "v1");
    }
    let posts = world.http.as_ref().unwrap().asked().into_iter().filter(|asked| asked.method == "POST").count();
    assert_eq!(posts, 1);
}

#[tokio::test]
async fn a_local_repository_is_read_without_its_hooks_its_configuration_or_its_owner() {
    let world = World::new(Over::File).await;
    let sha = world.origin.release("v1");
    let canary = world.dir.path().join("canary");
    let config = format!(
        "[core]\n\tfsmonitor = touch {0}\n\tsshCommand = touch {0}\n[uploadpack]\n\tpackObjectsHook = touch {0}\n",
        canary.display()
    );
    let old = std::fs::read_to_string(world.origin.bare.join("config")).unwrap();
    std::fs::write(world.origin.bare.join("config"), old + &config).unwrap();
    // Only root can give files away; for anybody else the repository stays their own.
    std::os::unix::fs::chown(&world.origin.bare, Some(65_534), Some(65_534)).ok();
    assert_eq!(world.look().await.unwrap(), Look::At(sha.clone()));
    assert_eq!(world.manifest(&sha).await, "v1");
    assert!(!canary.exists());
}

//! Reverts through the Git data API, against a real repository behind the stand-in.

use std::sync::Arc;

use super::super::{GithubChecks, GithubReverts};
use super::{settings, sha};
use crate::model::policy::Repository;
use crate::model::{BranchName, Secret, Sha};
use crate::release::revert::{Content, Leaf, Order, Proposal};
use crate::source::{Forge, WriteError};
use crate::tests::git_repo::{GitRepo, git};
use crate::tests::github::{Fault, Github, TOKEN};

struct World {
    _dir: tempfile::TempDir,
    origin: GitRepo,
    github: Github,
    reverts: GithubReverts,
    repo: Repository,
    good: Sha,
    bad: Sha,
}

fn main_branch() -> BranchName {
    "main".parse().unwrap()
}

async fn world() -> World {
    rustls::crypto::ring::default_provider().install_default().ok();
    let dir = tempfile::tempdir().unwrap();
    let origin = GitRepo::new(dir.path(), "shop");
    let github = Github::start().await;
    github.forge(&origin.bare);
    let token = Some(Secret::new(TOKEN.to_owned()));
    let forge: Arc<dyn Forge> = Arc::new(GithubChecks::new(settings(github.url()), token).unwrap());
    let good = origin.release("v1");
    let bad = origin.release("v2");
    let repo = Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() };
    World { _dir: dir, origin, github, reverts: GithubReverts::new(forge), repo, good, bad }
}

impl World {
    fn bare(&self, arguments: &[&str]) -> String {
        git(&self.origin.bare, arguments)
    }

    fn tree(&self, revision: &str) -> Sha {
        self.bare(&["rev-parse", &format!("{revision}^{{tree}}")]).parse().unwrap()
    }

    fn order(&self, proposal: Option<&str>) -> Order {
        Order {
            branch: main_branch(),
            parent: self.bad.clone(),
            content: Content::Tree(self.tree(self.good.as_str())),
            message: format!("Revert\n\nTrueup-Reverts: {}\n", self.bad),
            proposal: proposal.map(|head| Proposal {
                head: head.to_owned(),
                title: "Revert".to_owned(),
                body: "This undoes: …".to_owned(),
                why: "`main` is protected".to_owned(),
            }),
        }
    }
}

#[tokio::test]
async fn one_commit_moves_the_branch_forward_without_force() {
    let world = world().await;
    let written = world.reverts.write(&world.repo, &world.order(None)).await.unwrap();
    assert_eq!(world.bare(&["rev-parse", "main"]), written.commit.unwrap().to_string());
    assert_eq!(world.bare(&["rev-parse", "main^"]), world.bad.to_string());
    assert_eq!(world.tree("main"), world.tree(world.good.as_str()));
    let asked: Vec<String> = world.github.asked().into_iter().map(|asked| asked.path_and_query).collect();
    assert_eq!(asked, ["/repos/acme/shop/git/commits", "/repos/acme/shop/git/refs/heads/main"]);
}

#[tokio::test]
async fn a_branch_that_moved_meanwhile_is_told_and_left_alone() {
    let world = world().await;
    world.origin.write("theirs", "x");
    let theirs = world.origin.commit("theirs");
    let work = world.origin.work.clone();
    world.github.with_forge(|forge| {
        forge.meddler = Some(Box::new(move || {
            git(&work, &["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
        }));
    });
    let refused = world.reverts.write(&world.repo, &world.order(None)).await.unwrap_err();
    assert!(matches!(refused, WriteError::Moved), "{refused:?}");
    assert_eq!(world.bare(&["rev-parse", "main"]), theirs.to_string());
}

#[tokio::test]
async fn a_protected_branch_is_known_before_and_at_the_write() {
    let world = world().await;
    assert!(!world.reverts.is_protected(&world.repo, &main_branch()).await.unwrap());
    world.github.with_forge(|forge| forge.is_protected = true);
    assert!(world.reverts.is_protected(&world.repo, &main_branch()).await.unwrap());
    let refused = world.reverts.write(&world.repo, &world.order(None)).await.unwrap_err();
    assert!(matches!(refused, WriteError::Protected(_)), "{refused:?}");
    world.github.misbehave(Fault::Html);
    world.reverts.is_protected(&world.repo, &main_branch()).await.expect_err("unreadable is not \"no\"");
}

#[tokio::test]
async fn a_pull_request_is_opened_once_whatever_broke_in_between() {
    let world = world().await;
    let order = world.order(Some("trueup/revert-0123456789ab"));
    world.github.with_forge(|forge| {
        forge.lacks.insert("pull_requests");
    });
    let refused = world.reverts.write(&world.repo, &order).await.unwrap_err();
    assert!(
        matches!(&refused, WriteError::NoRight(why) if why.message.contains("`Pull requests: write`")),
        "{refused:?}"
    );
    world.github.with_forge(|forge| forge.lacks.clear());
    let written = world.reverts.write(&world.repo, &order).await.unwrap();
    assert_eq!(written.link.as_deref(), Some("https://github.test/acme/shop/pull/1"));
    let again = world.reverts.write(&world.repo, &order).await.unwrap();
    assert_eq!((again.is_old, again.link), (true, written.link));
    let pulls = world.github.with_forge(|forge| forge.pulls.clone());
    assert_eq!(pulls.len(), 1);
    assert_eq!((pulls[0].0.as_str(), pulls[0].1.as_str()), ("trueup/revert-0123456789ab", "main"));
    assert_eq!(world.bare(&["rev-parse", "main"]), world.bad.to_string());
}

#[tokio::test]
async fn edits_become_a_tree_on_top_of_the_tips() {
    let world = world().await;
    let blob: Sha = world.bare(&["rev-parse", &format!("{}:deploy/app.toml", world.good)]).parse().unwrap();
    let leaf = Leaf { mode: "100644".to_owned(), id: blob };
    let edits = vec![("deploy/app.toml".to_owned(), None), ("back/again".to_owned(), Some(leaf))];
    let content = Content::Edits { onto: world.tree("main"), edits };
    world.reverts.write(&world.repo, &Order { content, ..world.order(None) }).await.unwrap();
    assert_eq!(world.bare(&["ls-tree", "-r", "--name-only", "main"]), "back/again");
    assert_eq!(world.bare(&["show", "main:back/again"]), "v1");
}

#[tokio::test]
async fn a_missing_right_is_named_and_an_outage_is_not_taken_for_one() {
    let world = world().await;
    world.github.with_forge(|forge| {
        forge.lacks.insert("contents");
    });
    let refused = world.reverts.write(&world.repo, &world.order(None)).await.unwrap_err();
    assert!(matches!(&refused, WriteError::NoRight(why) if why.message.contains("`Contents: write`")), "{refused:?}");
    world.github.misbehave(Fault::Status(502, "unicorn"));
    let failed = world.reverts.write(&world.repo, &world.order(None)).await.unwrap_err();
    assert!(matches!(failed, WriteError::Failed(_)), "{failed:?}");
    assert_eq!(world.bare(&["rev-parse", "main"]), world.bad.to_string());
    assert_ne!(world.bad, sha("a"));
}

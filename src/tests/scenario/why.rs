//! Promise P11: every non-action has a reason that a person can ask for.

use crate::model::policy::Approve;
use crate::model::{Class, ReasonCode};
use crate::server::views::{status, why};
use crate::tests::world::{Fault, World};

/// `state: answer (reason)`, without shas and times.
async fn asked(world: &World, commit: Option<&str>) -> String {
    let sha = commit.map(|name| world.sha(name).to_string());
    let answer = why(&world.store, &world.target, sha.as_deref()).await.unwrap();
    let state = status(&world.store, &world.target, false).await.unwrap().state;
    let mut text = answer.answer.clone();
    let names = world.outside(|state| {
        state.commits.iter().map(|(sha, commit)| (sha.clone(), commit.name.clone())).collect::<Vec<_>>()
    });
    for (sha, name) in &names {
        text = text.replace(sha.as_str(), name).replace(sha.short(), name);
    }
    let reason = answer.reason.map_or("-".to_owned(), |reason| reason.to_string());
    let text: String = text.split(" since 2031").next().unwrap_or_default().chars().take(90).collect();
    format!("{} | {reason} | {text}", state.as_str())
}

#[tokio::test(start_paused = true)]
async fn why_answers_for_what_is_live_replaced_quarantined_and_never_seen() {
    let world = World::serving("v1").await;
    world.push("v2");
    world.settle().await;
    world.push("v3").never_healthy();
    world.settle().await;
    let lines = [
        asked(&world, Some("v2")).await,
        asked(&world, Some("v1")).await,
        asked(&world, Some("v3")).await,
        asked(&world, None).await,
        asked(&world, Some("never pushed")).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    held | - | v2 is live as release 2
    held | - | v1 was live as release 1 and was replaced by v2 (release 2)
    held | NeverHealthy | v3 is quarantined
    held | NeverHealthy | v3 is quarantined
    held | - | nothing is known of ff772799c17df7b1a2861e1b26d51ccf6ac7d809: it was never the tip of shop
    ");
}

#[tokio::test(start_paused = true)]
// Field report 20.
async fn why_names_what_holds_a_commit() {
    let mut lines = Vec::new();
    let world = World::serving("v1").await;
    world.push("v2").without_image();
    world.settle().await;
    lines.push(asked(&world, Some("v2")).await);
    world.pause(true).await;
    world.settled(crate::reconcile::queue::Wake::PERSON).await;
    lines.push(asked(&world, Some("v2")).await);
    world.pause(false).await;
    world.outside(|state| state.commits.values_mut().for_each(|commit| commit.has_image = true));
    world.policy(|policy| policy.approve = Approve::Always);
    world.settled(crate::reconcile::queue::Wake::PERSON).await;
    lines.push(asked(&world, Some("v2")).await);
    world.push("v3");
    world.settle().await;
    lines.push(asked(&world, Some("v2")).await);
    world.move_branch(None);
    world.settle().await;
    lines.push(asked(&world, None).await);
    insta::assert_snapshot!(lines.join("\n"), @r"
    held | ImageMissing | v2 is held
    held | Paused | v2 is held
    held | NeedsApproval | v2 is held
    held | Superseded | v2 is not wanted: only the tip is, and that is v3
    held | BranchGone | shop/prod is held
    ");
}

#[tokio::test(start_paused = true)]
async fn why_names_what_overtook_a_release_and_what_is_stuck() {
    let mut lines = Vec::new();
    let world = World::serving("v1").await;
    world.push("v2").never_healthy();
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v2").await;
    world.push("v3").never_healthy();
    world.workers.wake(&world.target, crate::reconcile::queue::Wake::SOURCE);
    world.until_effect("start b with v3").await;
    lines.push(asked(&world, Some("v2")).await);
    world.fail("remove b", 9999, Fault::Error(ReasonCode::EngineUnavailable, Class::Transient));
    world.settle().await;
    lines.push(asked(&world, Some("v3")).await);
    insta::assert_snapshot!(lines.join("\n"), @r"
    releasing | Superseded | release 2 of v2 ended superseded: v3 is wanted now; nothing was switched
    stuck | NeverHealthy | v3 is quarantined
    ");
}

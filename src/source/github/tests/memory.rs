//! What is remembered of earlier answers, and what that must never do.

use super::{CI, ask, ask_for, checks, green, numbers, sha};
use crate::model::Secret;
use crate::tests::github::Run;

#[tokio::test]
async fn an_answer_that_has_not_changed_costs_nothing() {
    let github = green().await;
    let checks = checks(&github);
    let first = ask(&checks).await.unwrap();
    assert_eq!(github.charged(), 2);
    for _ in 0..5 {
        assert_eq!(ask(&checks).await.unwrap(), first);
    }
    assert_eq!(github.charged(), 2);
    assert_eq!(github.asked().iter().filter(|asked| asked.status == 304).count(), 10);
}

#[tokio::test]
async fn what_is_remembered_never_answers_for_another_sha() {
    let github = green().await;
    github.run(Run::green(8, CI, sha("b").as_str()).ended("failure"));
    let checks = checks(&github);
    assert_eq!(numbers(ask_for(&checks, "a").await.unwrap()), [7]);
    assert_eq!(numbers(ask_for(&checks, "b").await.unwrap()), [8]);
    assert_eq!(numbers(ask_for(&checks, "c").await.unwrap()), Vec::<u64>::new());
    assert_eq!(numbers(ask_for(&checks, "a").await.unwrap()), [7]);
}

#[tokio::test]
async fn another_token_is_asked_with_afresh() {
    let github = green().await;
    let checks = checks(&github);
    ask(&checks).await.unwrap();
    github.rotate_token("another");
    checks.replace_token(Some(Secret::new("another".to_owned()))).unwrap();
    assert_eq!(checks.budget(), None, "the old token's limit is not the new one's");
    assert_eq!(numbers(ask(&checks).await.unwrap()), [7]);
    assert_eq!(github.charged(), 4);
}

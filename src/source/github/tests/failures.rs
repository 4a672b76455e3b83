//! What GitHub does when it does not answer as asked, and what is made of it.

use std::time::Duration;

use super::super::{Budget, GithubChecks, GithubSettings, limits};
use super::{NOW, ask, at, checks, epoch, green, now, numbers, settings};
use crate::model::{Class, ReasonCode, Secret};
use crate::tests::github::{Fault, TOKEN};

#[tokio::test]
async fn what_goes_away_by_itself_is_transient() {
    let github = green().await;
    let checks = checks(&github);
    for fault in [
        Fault::Status(500, "oops"),
        Fault::Status(503, "unicorn"),
        Fault::Status(422, "odd"),
        Fault::Truncated,
        Fault::Cut,
        Fault::Html,
    ] {
        github.misbehave(fault.clone());
        let error = ask(&checks).await.unwrap_err();
        assert_eq!((error.class, error.reason.code), (Class::Transient, ReasonCode::GithubUnavailable), "{fault:?}");
        assert!(error.reason.message.starts_with("CI of acme/shop: GitHub"), "{fault:?}: {error}");
        assert_eq!(error.until, None, "{fault:?}");
        assert_eq!(numbers(ask(&checks).await.unwrap()), [7], "after {fault:?}");
    }
}

#[tokio::test]
async fn a_slow_answer_is_given_up_at_the_deadline() {
    let github = green().await;
    let hasty = GithubSettings { call_deadline: Duration::from_millis(200), ..settings(github.url()) };
    let checks = GithubChecks::new(hasty, Some(Secret::new(TOKEN.to_owned()))).unwrap();
    github.misbehave(Fault::Hang);
    let error = ask(&checks).await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    assert!(error.reason.message.contains("did not answer within 0.2 s"), "{error}");
    let patient = super::checks(&github);
    assert_eq!(numbers(ask(&patient).await.unwrap()), [7]);
}

#[tokio::test]
async fn nobody_listening_is_transient() {
    let github = green().await;
    let url = github.url();
    let checks = checks(&github);
    drop(github);
    let error = ask(&checks).await.unwrap_err();
    assert_eq!((error.class, error.reason.code), (Class::Transient, ReasonCode::GithubUnavailable));
    assert!(error.reason.message.contains("could not be asked"), "{url}: {error}");
}

#[tokio::test]
async fn a_missing_right_is_stalled_and_named() {
    let github = green().await;
    let checks = checks(&github);
    for (fault, part) in [
        (Fault::Status(401, "Bad credentials"), "does not accept the token: 401 Unauthorized (\"Bad credentials\")"),
        (Fault::Status(403, "Resource not accessible by personal access token"), "`Actions: read`"),
        (Fault::Status(404, "Not Found"), "knows no such repository, or the token has no access"),
    ] {
        github.misbehave(fault);
        let error = ask(&checks).await.unwrap_err();
        assert_eq!((error.class, error.until), (Class::Stalled, None), "{error}");
        assert!(error.reason.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_wait_that_github_asks_for_is_kept_without_asking_again() {
    let soon = epoch("2026-11-30T10:20:00Z");
    for (fault, until) in [
        (Fault::RetryAfter(30), "2026-11-30T10:00:30Z"),
        (Fault::Exhausted, "2026-11-30T10:20:00Z"),
        (Fault::Secondary, "2026-11-30T10:01:00Z"),
        (Fault::RetryAfter(999_999), "2026-11-30T11:00:00Z"),
    ] {
        let github = green().await;
        github.budget(4_000, soon);
        let checks = checks(&github);
        github.misbehave(fault.clone());
        let error = ask(&checks).await.unwrap_err();
        assert_eq!((error.class, error.until), (Class::Transient, at(until)), "{fault:?}: {error}");
        let again = ask(&checks).await.unwrap_err();
        assert_eq!((again.class, again.until), (Class::Transient, at(until)), "{fault:?}: {again}");
        assert_eq!(github.asked().len(), 1, "{fault:?}: nothing is sent in the meantime");
    }
}

#[tokio::test]
async fn the_budget_is_known_and_its_reserve_is_left_alone() {
    let github = green().await;
    let reset = epoch("2026-11-30T10:20:00Z");
    github.budget(102, reset);
    let checks = checks(&github);
    ask(&checks).await.unwrap();
    let budget = Budget { limit: 5_000, remaining: 100, reset: at("2026-11-30T10:20:00Z").unwrap() };
    assert_eq!(checks.budget(), Some(budget));
    let error = ask(&checks).await.unwrap_err();
    assert_eq!((error.class, error.until), (Class::Transient, Some(budget.reset)));
    assert!(error.reason.message.contains("100 of 5000 calls to GitHub are left"), "{error}");
    assert_eq!(github.asked().len(), 2);
}

#[tokio::test]
async fn a_reserve_of_an_hour_that_is_over_holds_nothing_up() {
    let github = green().await;
    github.budget(1, epoch("2026-11-30T09:59:00Z"));
    let checks = checks(&github);
    ask(&checks).await.unwrap();
    assert_eq!(numbers(ask(&checks).await.unwrap()), [7]);
}

#[tokio::test]
async fn the_token_is_in_no_error_and_no_debug() {
    let github = green().await;
    let checks = checks(&github);
    github.misbehave(Fault::Echo);
    let error = ask(&checks).await.unwrap_err();
    assert!(error.reason.message.contains("the token [secret] is not welcome"), "{error}");
    let shown = format!("{checks:?} {error:?} {error}");
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn a_token_or_an_address_that_cannot_be_used_is_refused_without_showing_it() {
    let secret = "two\nlines";
    let error = GithubChecks::new(settings("https://api.github.com".to_owned()), Some(Secret::new(secret.to_owned())));
    let error = error.unwrap_err();
    assert_eq!(error.class, Class::Stalled);
    assert!(!error.to_string().contains("lines"), "{error}");
    let error = GithubChecks::new(settings("api.github.com".to_owned()), None).unwrap_err();
    assert!(error.reason.message.contains("which is no URL with a host"), "{error}");
}

#[test]
fn a_wait_without_a_number_is_a_minute_and_none_is_in_the_past() {
    let answer = |status: u16, headers: &[(&'static str, &str)]| {
        let mut map = hyper::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        super::super::pages::Answer {
            status: hyper::StatusCode::from_u16(status).unwrap(),
            headers: map,
            body: bytes::Bytes::new(),
        }
    };
    let past = [("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000")];
    for (answer, until) in [
        (answer(429, &[]), "2026-11-30T10:01:00Z"),
        (answer(429, &[("retry-after", "Mon, 30 Nov 2026 12:00:00 GMT")]), "2026-11-30T10:01:00Z"),
        (answer(403, &[("retry-after", "-5")]), NOW),
        (answer(403, &past), NOW),
    ] {
        let error = limits::refusal(&answer, now());
        assert_eq!((error.class, error.until), (Class::Transient, at(until)));
    }
}

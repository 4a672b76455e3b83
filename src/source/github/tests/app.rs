//! A GitHub App's tokens against the stand-in.

use std::process::Command;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};

use super::super::{AppSettings, AppTokens, GithubChecks, GithubSettings};
use super::{now, settings};
use crate::model::policy::Repository;
use crate::model::{Class, Secret};
use crate::source::http::{Roots, client};
use crate::source::{Call, Forge as _, Purpose, Tokens as _};
use crate::tests::github::{Fault, Github};

struct World {
    _dir: tempfile::TempDir,
    github: Github,
    time: Arc<Mutex<Timestamp>>,
    tokens: Arc<AppTokens>,
    settings: GithubSettings,
}

fn key() -> Secret {
    let made = Command::new("openssl").args(["genrsa", "-traditional", "2048"]).output().expect("install openssl");
    Secret::new(String::from_utf8(made.stdout).unwrap())
}

async fn world() -> World {
    rustls::crypto::ring::default_provider().install_default().ok();
    let dir = tempfile::tempdir().unwrap();
    let github = Github::start().await;
    github.forge(dir.path());
    github.with_forge(|forge| forge.clock(now().as_second()));
    let time = Arc::new(Mutex::new(now()));
    let shared = Arc::clone(&time);
    let settings =
        GithubSettings { now: Arc::new(move || *shared.lock().unwrap()), ..settings(github.enterprise_url()) };
    let app = AppSettings { app_id: 11, installation_id: 22, private_key: key() };
    let http = client(true, &Roots::default(), "test").unwrap();
    let tokens = Arc::new(AppTokens::new(&app, settings.clone(), http).unwrap());
    World { _dir: dir, github, time, tokens, settings }
}

fn repo() -> Repository {
    Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() }
}

impl World {
    async fn token(&self, purpose: Purpose) -> String {
        self.tokens.token(&repo(), purpose).await.unwrap().unwrap().expose().to_owned()
    }

    fn later(&self, minutes: i64) {
        let mut time = self.time.lock().unwrap();
        *time += SignedDuration::from_mins(minutes);
        self.github.with_forge(|forge| forge.clock(time.as_second()));
    }
}

#[tokio::test]
async fn a_token_is_for_one_repository_and_has_the_rights_of_its_purpose_alone() {
    let world = world().await;
    assert_eq!(world.token(Purpose::Read).await, "ghs_1");
    assert_eq!(world.token(Purpose::Report).await, "ghs_2");
    assert_eq!(world.token(Purpose::Revert).await, "ghs_3");
    let minted = world.github.with_forge(|forge| forge.minted.clone());
    let rights: Vec<String> = minted.iter().map(|asked| asked["permissions"].to_string()).collect();
    assert_eq!(
        rights,
        [
            r#"{"actions":"read","contents":"read"}"#,
            r#"{"deployments":"write","statuses":"write"}"#,
            r#"{"contents":"write","pull_requests":"write"}"#,
        ]
    );
    assert_eq!(world.tokens.peek(&repo()).unwrap().expose(), "ghs_1", "Git reads, and never gets more");
}

#[tokio::test]
async fn a_token_is_asked_for_again_before_it_ends_and_an_old_one_serves_through_an_outage() {
    let world = world().await;
    assert_eq!(world.token(Purpose::Read).await, "ghs_1");
    world.later(49);
    assert_eq!(world.token(Purpose::Read).await, "ghs_1");
    world.later(2);
    world.github.misbehave(Fault::Status(503, "unicorn"));
    assert_eq!(world.token(Purpose::Read).await, "ghs_1", "it has nine minutes left");
    assert_eq!(world.token(Purpose::Read).await, "ghs_2");
    world.later(70);
    assert!(world.tokens.peek(&repo()).is_none(), "one that ended is never sent");
}

#[tokio::test]
async fn many_who_ask_at_once_get_one_token() {
    let world = world().await;
    let asked = futures_util::future::join_all((0..20).map(|_| world.token(Purpose::Read))).await;
    assert!(asked.iter().all(|token| token == "ghs_1"), "{asked:?}");
    assert_eq!(world.github.with_forge(|forge| forge.minted.len()), 1);
}

#[tokio::test]
async fn the_proof_is_dated_back_and_ends_within_ten_minutes() {
    let world = world().await;
    world.token(Purpose::Read).await;
    let jwt = world.github.with_forge(|forge| forge.jwts.remove(0));
    let claims = jwt.split('.').nth(1).unwrap().to_owned();
    let decoded = Command::new("sh")
        .args(["-c", "printf %s \"$1\" | tr -- -_ +/ | base64 -di 2>/dev/null; true", "sh", &format!("{claims}==")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&decoded.stdout).into_owned();
    let claims: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (from, to) = (claims["iat"].as_i64().unwrap(), claims["exp"].as_i64().unwrap());
    let real = crate::clock::now().as_second();
    assert!((real - 120..=real - 60).contains(&from), "a minute for clocks that differ: {from} {real}");
    assert!(to - from <= 600 && to > real, "{from} {to}");
    assert_eq!(claims["iss"].to_string(), "11");
}

#[tokio::test]
async fn a_right_that_the_app_lacks_is_named_and_remembered() {
    let world = world().await;
    world.github.with_forge(|forge| {
        forge.lacks.insert("statuses");
    });
    let error = world.tokens.token(&repo(), Purpose::Report).await.unwrap_err();
    assert_eq!(error.class, Class::Stalled);
    assert!(error.reason.message.contains("statuses: write"), "{error}");
    assert!(world.tokens.refused().contains(&Purpose::Report));
    assert_eq!(world.token(Purpose::Read).await, "ghs_1", "reading goes on");
}

#[tokio::test]
async fn a_wrong_installation_or_key_says_what_to_correct() {
    let world = world().await;
    world.github.misbehave(Fault::Status(404, "Not Found"));
    let error = world.tokens.token(&repo(), Purpose::Read).await.unwrap_err();
    assert!(error.reason.message.contains("`installation_id`"), "{error}");
    world.github.misbehave(Fault::Status(401, "A JSON web token could not be decoded"));
    let error = world.tokens.token(&repo(), Purpose::Read).await.unwrap_err();
    assert!(error.reason.message.contains("does not accept App 11"), "{error}");
    let app = AppSettings { app_id: 11, installation_id: 22, private_key: Secret::new("canary".to_owned()) };
    let http = client(true, &Roots::default(), "test").unwrap();
    let error = AppTokens::new(&app, world.settings.clone(), http).unwrap_err();
    assert!(error.reason.message.contains("`private_key_file`") && !error.to_string().contains("canary"), "{error}");
}

#[tokio::test]
async fn calls_take_the_fresh_token_of_their_purpose() {
    let world = world().await;
    let tokens: Arc<dyn crate::source::Tokens> = world.tokens.clone();
    let checks = GithubChecks::new(world.settings.clone(), None).unwrap().with_tokens(tokens);
    let call = || Call { method: "GET", path: "/branches/main".to_owned(), body: None, purpose: Purpose::Read };
    assert!(checks.call(&repo(), call()).await.unwrap().is_good());
    world.later(55);
    world.github.with_forge(|forge| forge.revoke());
    assert!(checks.call(&repo(), call()).await.unwrap().is_good(), "the old token is not used any more");
}

//! Smart HTTP: what is asked, what is sent with it, and what a refusal says.

use super::*;
use crate::model::Class;
use crate::tests::git_http::Mood;

#[tokio::test]
async fn a_second_look_is_one_request_with_one_ref_prefix() {
    let world = World::new(Over::Http).await;
    let sha = world.origin.release("v1");
    world.look().await.unwrap();
    let http = world.http.as_ref().unwrap();
    let first = http.asked();
    assert_eq!(first.iter().map(|asked| asked.method.as_str()).collect::<Vec<_>>(), ["GET", "POST"]);
    assert_eq!(world.look().await.unwrap(), Look::At(sha));
    let second = http.asked();
    assert_eq!(second.len(), 1, "{second:?}");
    let asked = second.first().unwrap();
    assert_eq!((asked.method.as_str(), asked.uri.as_str()), ("POST", "/shop.git/git-upload-pack"));
    assert_eq!(asked.protocol.as_deref(), Some("version=2"));
    assert_eq!(asked.body.matches("ref-prefix").count(), 1);
    assert!(asked.body.contains("ref-prefix refs/heads/main\n"));
}

#[tokio::test]
async fn a_fetch_asks_for_the_sha_with_depth_one_and_names_what_it_has() {
    let world = World::new(Over::Http).await;
    let first = world.origin.release("v1");
    world.fetch(&first).await.unwrap();
    let second = world.origin.release("v2");
    world.http.as_ref().unwrap().asked();
    world.fetch(&second).await.unwrap();
    let asked = world.http.as_ref().unwrap().asked();
    let body = &asked.last().unwrap().body;
    for line in [format!("want {second}"), format!("have {first}"), format!("shallow {first}"), "deepen 1".to_owned()] {
        assert!(body.contains(&line), "{line}: {body}");
    }
    assert_eq!(asked.len(), 1, "the kept conversation is used");
}

async fn github(password: &str, token: Option<&str>) -> (TempDir, GitRepo, GitHttp, GitSource, Repository) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("acme")).unwrap();
    let origin = GitRepo::new(&dir.path().join("acme"), "shop");
    let http = GitHttp::serve(dir.path().to_owned(), Some(password)).await;
    let source = open(&dir.path().join("state"), &http.url, token);
    let repo = Repository::GitHub { owner: "acme".to_owned(), name: "shop".to_owned() };
    (dir, origin, http, source, repo)
}

#[tokio::test]
async fn a_github_repository_is_read_with_the_token_and_no_url_holds_it() {
    let (_dir, origin, http, source, repo) = github("canary-token", Some("canary-token")).await;
    let sha = origin.release("v1");
    assert_eq!(source.look(&repo, &main_branch()).await.unwrap(), Look::At(sha.clone()));
    assert_eq!(source.fetch(&repo, &main_branch(), &sha).await.unwrap().subject, "v1");
    let asked = http.asked();
    assert!(
        asked.iter().all(|asked| asked.authorization.as_deref() == Some("Basic eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LXRva2Vu"))
    );
    assert!(asked.iter().all(|asked| asked.uri.starts_with("/acme/shop.git/") && !asked.uri.contains("canary")));
}

#[tokio::test]
async fn no_error_and_no_debug_text_holds_the_token() {
    let (_dir, origin, http, source, repo) = github("another", Some("canary-token")).await;
    origin.release("v1");
    let mut texts = vec![format!("{source:?}")];
    let mut look = async || {
        let error = source.look(&repo, &main_branch()).await.unwrap_err();
        texts.push(format!("{error} {error:?}"));
        error
    };
    let refused = look().await;
    assert_eq!(refused.class, Class::Stalled);
    assert!(refused.reason.message.contains("(401)"), "{refused}");
    for mood in [
        Mood::Status(403),
        Mood::Status(404),
        Mood::Status(500),
        Mood::Moved("http://u:canary-token@127.0.0.1/x?canary-token".to_owned()),
    ] {
        http.mood(mood);
        look().await;
    }
    for text in texts {
        assert!(!text.contains("canary-token"), "{text}");
        assert!(!text.contains("eC1hY2Nlc3MtdG9rZW46"), "{text}");
    }
}

#[tokio::test]
async fn the_token_goes_to_github_alone() {
    let dir = tempfile::tempdir().unwrap();
    let origin = GitRepo::new(dir.path(), "shop");
    origin.release("v1");
    let http = GitHttp::serve(dir.path().to_owned(), None).await;
    let source = open(&dir.path().join("state"), "https://github.com", Some("canary-token"));
    let repo = Repository::Url(format!("{}/shop.git", http.url));
    source.look(&repo, &main_branch()).await.unwrap();
    assert!(http.asked().iter().all(|asked| asked.authorization.is_none()));
}

#[tokio::test]
async fn each_refusal_says_why_and_what_to_do() {
    for (mood, class, says) in [
        (Mood::Status(404), Class::Stalled, "(404); check the name"),
        (Mood::Status(403), Class::Stalled, "(403); check the token's rights"),
        (Mood::Status(401), Class::Stalled, "asks for credentials (401); give a token"),
        (Mood::Status(503), Class::Transient, "the server answered 503"),
        (
            Mood::Moved("https://example.org/new.git/info/refs?service=x".to_owned()),
            Class::Stalled,
            "has moved to https://example.org/new.git",
        ),
    ] {
        let world = World::new(Over::Http).await;
        world.origin.release("v1");
        world.http.as_ref().unwrap().mood(mood);
        let error = world.look().await.unwrap_err();
        assert_eq!((code(&error), error.class), (ReasonCode::GitUnavailable, class), "{error}");
        assert!(error.reason.message.contains(says), "{error}");
        assert!(
            error.reason.message.starts_with("the branch `main` could not be looked at (at http://127.0.0.1:"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_away_and_comes_back_is_looked_at_again() {
    let world = World::new(Over::Http).await;
    let sha = world.origin.release("v1");
    world.look().await.unwrap();
    let http = world.http.as_ref().unwrap();
    http.mood(Mood::Status(502));
    let error = world.look().await.unwrap_err();
    assert_eq!(error.class, Class::Transient);
    http.mood(Mood::Well);
    assert_eq!(world.look().await.unwrap(), Look::At(sha));
}

#[tokio::test]
async fn nothing_listening_is_unavailable_and_names_the_cause() {
    let world = World::new(Over::Http).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/shop.git", listener.local_addr().unwrap());
    drop(listener);
    let error = world.source.look(&Repository::Url(url), &main_branch()).await.unwrap_err();
    assert!(error.reason.message.to_lowercase().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn fifty_hanging_remotes_do_not_slow_another_one_field_report_41() {
    let hanging = World::new(Over::Http).await;
    let other = World::new(Over::Http).await;
    let sha = other.origin.release("v1");
    hanging.http.as_ref().unwrap().mood(Mood::Hang);
    let hung = (0..50).map(|_| hanging.look());
    tokio::select! {
        _ = futures_util::future::join_all(hung) => panic!("nothing answers"),
        seen = other.look() => assert_eq!(seen.unwrap(), Look::At(sha)),
    }
}

#[tokio::test]
async fn https_speaks_tls_with_the_provider_of_this_process() {
    use tokio::io::AsyncReadExt as _;
    let world = World::new(Over::File).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 3];
        stream.read_exact(&mut hello).await.unwrap();
        hello
    });
    let repo = Repository::Url(format!("https://localhost:{port}/shop.git"));
    let error = world.source.look(&repo, &main_branch()).await.unwrap_err();
    assert_eq!(code(&error), ReasonCode::GitUnavailable, "{error}");
    // A handshake record of TLS 1.x (RFC 8446, section 5.1).
    let [kind, major, _] = server.await.unwrap();
    assert_eq!((kind, major), (22, 3));
}

//! The stand-in itself: what it must not let pass.

use super::super::GithubChecks;
use super::{ask, green, repo, settings, sha};
use crate::model::{BranchName, Secret};
use crate::source::Checks as _;
use crate::tests::github::TOKEN;

#[tokio::test]
async fn the_stand_in_notices_what_github_would_not_have_answered() {
    let github = green().await;
    let mallory = Some(Secret::new("wrong".to_owned()));
    let checks = GithubChecks::new(settings(github.url()), mallory).unwrap();
    ask(&checks).await.unwrap_err();
    let main: BranchName = "main".parse().unwrap();
    checks.replace_token(Some(Secret::new(TOKEN.to_owned()))).unwrap();
    checks.runs(&repo("nowhere"), "ci", (&main, &sha("a"))).await.unwrap_err();
    let client = reqwest_without_tls();
    for (path, headers) in [
        ("/repos/acme/shop/actions/workflows", vec![]),
        ("/repos/acme/shop/actions/workflows/11/runs?head_sha=aaaaaaa&event=push&branch=main", version()),
        ("/repos/acme/shop/actions/workflows/11/runs?event=push&branch=main", version()),
    ] {
        let mut request = client.get(format!("{}{path}", github.url())).bearer_auth(TOKEN).header("user-agent", "test");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status().as_u16(), 400);
    }
    let violations = github.take_violations();
    for (violation, part) in violations.iter().zip([
        "the header authorization is not what it should be",
        "there is no such path",
        "the header x-github-api-version is missing",
        "`aaaaaaa` is not a full sha",
        "`` is not a full sha",
    ]) {
        assert!(violation.contains(part), "{violation}");
    }
    assert_eq!(violations.len(), 5);
    github.assert_clean();
}

fn version() -> Vec<(&'static str, &'static str)> {
    vec![("x-github-api-version", super::super::API_VERSION)]
}

fn reqwest_without_tls() -> reqwest::Client {
    // A second installation of the same provider is refused, and that is fine here.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::new()
}

//! One look at a remote that has not moved, beside `git ls-remote`, over HTTP and over `file://`.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use trueup::model::policy::Repository;
use trueup::source::git::{GitSettings, GitSource};
use trueup::source::{Look, Source as _};

use super::git_http::{Asked, GitHttp};
use super::git_repo::{GitRepo, git_command};
use super::table::{Figure, median, millis};

/// Looks of each kind, taken in turn so that all meet the same machine.
const LOOKS: usize = 150;

pub(crate) fn run() -> Vec<Figure> {
    super::runtime().block_on(both())
}

async fn both() -> Vec<Figure> {
    let dir = tempfile::tempdir().unwrap();
    let repo = GitRepo::new(dir.path(), "shop");
    repo.release("schema = 1\n");
    let source = GitSource::open(GitSettings {
        state_dir: dir.path().join("state"),
        git_url: "https://git.example.org".to_owned(),
        token: None,
        identity_files: Default::default(),
    })
    .unwrap();
    let server = GitHttp::serve(dir.path().to_owned(), None).await;
    let mut figures = over_http(&source, &server, dir.path()).await;
    figures.push(over_file(&source, &repo, dir.path()).await);
    figures
}

async fn look(source: &GitSource, url: &str) -> f64 {
    let repository = Repository::Url(url.to_owned());
    let branch = "main".parse().unwrap();
    let began = Instant::now();
    let looked = source.look(&repository, &branch).await.unwrap();
    assert!(matches!(looked, Look::At(_)), "{looked:?}");
    millis(began.elapsed())
}

async fn ls_remote(dir: &Path, url: &str) -> f64 {
    let mut command = tokio::process::Command::from(git_command(dir));
    command.args(["ls-remote", url, "refs/heads/main"]).stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    assert!(command.status().await.unwrap().success());
    millis(began.elapsed())
}

/// The same requests again, by a client that only sends and receives: the server's own time.
async fn replay(client: &reqwest::Client, server: &GitHttp, asked: &[Asked]) -> f64 {
    let began = Instant::now();
    for request in asked {
        let url = format!("{}{}", server.url, request.uri);
        let builder = match request.method.as_str() {
            "GET" => client.get(url),
            _ => client
                .post(url)
                .header("content-type", "application/x-git-upload-pack-request")
                .body(request.body.clone()),
        };
        let protocol = request.protocol.clone().unwrap_or_default();
        let answer = builder.header("git-protocol", protocol).send().await.unwrap();
        assert!(answer.status().is_success());
        answer.bytes().await.unwrap();
    }
    millis(began.elapsed())
}

async fn over_http(source: &GitSource, server: &GitHttp, dir: &Path) -> Vec<Figure> {
    let url = format!("{}/shop.git", server.url);
    // The first look greets the server; what counts is the ones after it.
    look(source, &url).await;
    server.asked();
    look(source, &url).await;
    let ours_asked = server.asked();
    ls_remote(dir, &url).await;
    let peer_asked = server.asked();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    replay(&client, server, &peer_asked).await;
    let [mut ours, mut server_of_ours, mut peer, mut server_of_peer] = [(); 4].map(|()| Vec::new());
    for _ in 0..LOOKS {
        ours.push(look(source, &url).await);
        server_of_ours.push(replay(&client, server, &ours_asked).await);
        peer.push(ls_remote(dir, &url).await);
        server_of_peer.push(replay(&client, server, &peer_asked).await);
    }
    let [ours, server_of_ours, peer, server_of_peer] =
        [ours, server_of_ours, peer, server_of_peer].map(|times| median(&times));
    let shares = [ours - server_of_ours, peer - server_of_peer];
    let note = format!(
        "medians of {LOOKS}: a look {ours:.2} ms, the server alone {server_of_ours:.2} ms; `git ls-remote` {peer:.2} ms, the server alone {server_of_peer:.2} ms"
    );
    vec![
        Figure::new("round trips of one look over HTTP", count(ours_asked.len()), "requests")
            .at_most(1.0)
            .beside("git ls-remote", count(peer_asked.len())),
        Figure::new("one look over HTTP, our share beyond the server's time", shares[0].max(0.0), "ms")
            .at_most(shares[1] / 10.0)
            .beside("git ls-remote", shares[1])
            .noting(note),
    ]
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

async fn over_file(source: &GitSource, repo: &GitRepo, dir: &Path) -> Figure {
    let url = format!("file://{}", repo.bare.display());
    look(source, &url).await;
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        ours.push(look(source, &url).await);
        peer.push(ls_remote(dir, &url).await);
    }
    Figure::new("one look over file://", median(&ours), "ms")
        .at_most(median(&peer) / 10.0)
        .beside("git ls-remote", median(&peer))
}

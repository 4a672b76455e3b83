//! Real repositories, over `file://`, over `git http-backend` and over `sshd`.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::model::policy::Repository;
use crate::model::{BranchName, ReasonCode, RepoPath, Secret, Sha};
use crate::source::{Look, Source as _, SourceError};
use crate::tests::git_http::GitHttp;
use crate::tests::git_repo::GitRepo;

use super::{GitSettings, GitSource, Token};

mod export;
mod http;
mod recovery;
mod remotes;
mod reverts;
mod ssh;

/// The limit of a manifest.
const LIMIT: u64 = 256 << 10;

/// One repository, one way to reach it, one source.
struct World {
    dir: TempDir,
    origin: GitRepo,
    source: GitSource,
    repo: Repository,
    http: Option<GitHttp>,
}

/// How a test reaches its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    File,
    Http,
}

const BOTH: [Over; 2] = [Over::File, Over::Http];

fn main_branch() -> BranchName {
    "main".parse().unwrap()
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn settings(state_dir: &Path, git_url: &str, token: Option<&str>) -> GitSettings {
    GitSettings {
        state_dir: state_dir.to_owned(),
        git_url: git_url.to_owned(),
        token: token.map(|text| Token::fixed(Secret::new(text.to_owned()))),
        identity_files: std::collections::BTreeMap::new(),
    }
}

fn open(state_dir: &Path, git_url: &str, token: Option<&str>) -> GitSource {
    // Whoever comes first in this process installs it; the others find it there.
    rustls::crypto::ring::default_provider().install_default().ok();
    GitSource::open(settings(state_dir, git_url, token)).unwrap()
}

impl World {
    async fn new(over: Over) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let origin = GitRepo::new(dir.path(), "shop");
        let http = match over {
            Over::File => None,
            Over::Http => Some(GitHttp::serve(dir.path().to_owned(), None).await),
        };
        let url = match &http {
            None => format!("file://{}", origin.bare.display()),
            Some(http) => format!("{}/shop.git", http.url),
        };
        let source = open(&dir.path().join("state"), "https://github.com", None);
        Self { dir, origin, source, repo: Repository::Url(url), http }
    }

    /// The daemon ends and starts again.
    fn restart(self) -> Self {
        let Self { dir, origin, source, repo, http } = self;
        drop(source);
        let source = open(&dir.path().join("state"), "https://github.com", None);
        Self { dir, origin, source, repo, http }
    }

    async fn look(&self) -> Result<Look, SourceError> {
        self.source.look(&self.repo, &main_branch()).await
    }

    async fn fetch(&self, sha: &Sha) -> Result<crate::source::CommitFacts, SourceError> {
        self.source.fetch(&self.repo, &main_branch(), sha).await
    }

    async fn read(&self, sha: &Sha, file: &str) -> Result<Vec<u8>, SourceError> {
        self.source.read(&self.repo, sha, &path(file), LIMIT).await
    }

    /// The manifest at a sha, fetched first.
    async fn manifest(&self, sha: &Sha) -> String {
        self.fetch(sha).await.unwrap();
        String::from_utf8(self.read(sha, "deploy/app.toml").await.unwrap()).unwrap()
    }

    /// The one mirror on disk.
    fn mirror(&self) -> PathBuf {
        let mut mirrors: Vec<PathBuf> = std::fs::read_dir(self.dir.path().join("state/git"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() && path.extension().is_none())
            .collect();
        assert_eq!(mirrors.len(), 1, "{mirrors:?}");
        mirrors.remove(0)
    }
}

fn code(error: &SourceError) -> ReasonCode {
    error.reason.code
}

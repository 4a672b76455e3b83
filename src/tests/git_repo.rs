//! Real repositories for tests, made by the real `git`, cut off from everybody's configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::model::Sha;

/// A work tree and the bare repository that it pushes to.
#[derive(Debug)]
pub(crate) struct GitRepo {
    /// Where files are written and committed.
    pub(crate) work: PathBuf,
    /// What is served.
    pub(crate) bare: PathBuf,
}

/// A `git` that reads no configuration but ours.
pub(crate) fn git_command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", dir);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "Example"),
        ("GIT_AUTHOR_EMAIL", "dev@example.org"),
        ("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z"),
        ("GIT_COMMITTER_NAME", "Example"),
        ("GIT_COMMITTER_EMAIL", "dev@example.org"),
        ("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z"),
    ] {
        command.env(name, value);
    }
    command
}

/// Runs `git` in a directory and gives its output; anything but success ends the test.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = git_command(dir).args(arguments).stdin(Stdio::null()).output().expect("install the package git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

impl GitRepo {
    /// Makes `<dir>/<name>.git` and a work tree beside it, with the branch `main` and no commit.
    pub(crate) fn new(dir: &Path, name: &str) -> Self {
        let bare = dir.join(format!("{name}.git"));
        let work = dir.join(format!("{name}.work"));
        git(dir, &["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
        git(&bare, &["config", "receive.denyDeleteCurrent", "ignore"]);
        git(dir, &["init", "--quiet", "--initial-branch=main", work.to_str().unwrap()]);
        git(&work, &["remote", "add", "origin", bare.to_str().unwrap()]);
        Self { work, bare }
    }

    /// Runs `git` in the work tree.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.work, arguments)
    }

    /// Writes a file into the work tree.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Commits everything in the work tree.
    pub(crate) fn commit(&self, message: &str) -> Sha {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head()
    }

    /// The work tree's commit.
    pub(crate) fn head(&self) -> Sha {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Makes the served branch be the work tree's commit, whatever it was before.
    pub(crate) fn push(&self, branch: &str) {
        self.git(&["push", "--quiet", "--force", "origin", &format!("HEAD:refs/heads/{branch}")]);
    }

    /// Writes `app.toml` with this text, commits and pushes it to `main`.
    pub(crate) fn release(&self, text: &str) -> Sha {
        self.write("deploy/app.toml", text);
        let sha = self.commit(text);
        self.push("main");
        sha
    }
}

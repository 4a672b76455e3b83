//! Reading and exporting trees, also those that no honest Git client makes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::source::Export;
use crate::tests::git_repo::git_command;

/// Adds an entry of any mode to the index.
fn stage(origin: &GitRepo, mode: &str, id: &str, path: &str) {
    origin.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("{mode},{id},{path}"),
    ]);
}

fn hash_object(origin: &GitRepo, content: &str) -> String {
    std::fs::write(origin.work.join(".git/scratch"), content).unwrap();
    origin.git(&["hash-object", "-w", ".git/scratch"])
}

/// Makes a commit of a hand-written tree, pushed to `main`.
fn raw_commit(origin: &GitRepo, lines: &str) -> Sha {
    let mut child = git_command(&origin.work)
        .args(["mktree", "--missing"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    let tree = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let sha = origin.git(&["commit-tree", tree.trim(), "-m", "raw"]);
    origin.git(&[
        "push",
        "--quiet",
        "--force",
        "origin",
        &format!("{sha}:refs/heads/main"),
    ]);
    sha.parse().unwrap()
}

#[tokio::test]
async fn what_is_not_a_regular_file_is_refused_by_name() {
    for over in BOTH {
        let world = World::new(over).await;
        let origin = &world.origin;
        origin.write("deploy/app.toml", "v1");
        origin.write("deploy/big.toml", vec![b'x'; 300 << 10]);
        origin.write(
            "deploy/lfs.toml",
            "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        );
        symlink("app.toml", origin.work.join("deploy/link.toml")).unwrap();
        symlink("deploy", origin.work.join("elsewhere")).unwrap();
        origin.git(&["add", "--all"]);
        stage(
            origin,
            "160000",
            "0123456789012345678901234567890123456789",
            "module",
        );
        origin.git(&["commit", "--quiet", "-m", "all kinds"]);
        origin.push("main");
        let sha = origin.head();
        world.fetch(&sha).await.unwrap();
        for (file, expected, says) in [
            (
                "deploy/link.toml",
                ReasonCode::ManifestInvalid,
                "it is a symbolic link",
            ),
            (
                "elsewhere/app.toml",
                ReasonCode::ManifestInvalid,
                "`elsewhere` above it is a symbolic link",
            ),
            ("module", ReasonCode::ManifestInvalid, "it is a submodule"),
            (
                "module/app.toml",
                ReasonCode::ManifestInvalid,
                "`module` above it is a submodule",
            ),
            ("deploy", ReasonCode::ManifestInvalid, "it is a directory"),
            (
                "deploy/app.toml/x",
                ReasonCode::ManifestInvalid,
                "`deploy/app.toml` above it is a file",
            ),
            (
                "deploy/lfs.toml",
                ReasonCode::ManifestInvalid,
                "it is a Git LFS pointer",
            ),
            (
                "deploy/big.toml",
                ReasonCode::ManifestInvalid,
                "it has 307200 bytes and at most 262144 are read",
            ),
            (
                "deploy/ap.toml",
                ReasonCode::ManifestMissing,
                "`deploy` has no `ap.toml` (it has `app.toml`",
            ),
            (
                "Deploy/app.toml",
                ReasonCode::ManifestMissing,
                "the root of the tree has no `Deploy` (it has `deploy`",
            ),
        ] {
            let error = world.read(&sha, file).await.unwrap_err();
            assert_eq!(code(&error), expected, "{file}: {error}");
            assert!(error.reason.message.contains(says), "{file}: {error}");
        }
        let here = path("deploy/app.toml");
        world
            .source
            .check_file(&world.repo, &sha, &here)
            .await
            .unwrap();
        let link = path("deploy/link.toml");
        assert_eq!(
            code(
                &world
                    .source
                    .check_file(&world.repo, &sha, &link)
                    .await
                    .unwrap_err()
            ),
            ReasonCode::ManifestInvalid
        );
        let modules = world
            .source
            .submodules(&world.repo, &sha, &path("."))
            .await
            .unwrap();
        assert_eq!(modules, ["module"], "field report 32");
    }
}

#[tokio::test]
async fn a_file_is_given_byte_for_byte_field_report_38() {
    for over in BOTH {
        let world = World::new(over).await;
        let bytes = b"\xef\xbb\xbfa = 1\r\nb = \"\xff\"\r\n";
        world
            .origin
            .write(".gitattributes", "*.toml text eol=lf filter=lfs ident\n");
        world.origin.git(&["config", "core.autocrlf", "false"]);
        world.origin.git(&["add", "--all"]);
        let id = {
            std::fs::write(world.origin.work.join(".git/scratch"), bytes).unwrap();
            world
                .origin
                .git(&["hash-object", "-w", "--no-filters", ".git/scratch"])
        };
        stage(&world.origin, "100644", &id, "app.toml");
        world.origin.git(&["commit", "--quiet", "-m", "bytes"]);
        world.origin.push("main");
        let sha = world.origin.head();
        world.fetch(&sha).await.unwrap();
        assert_eq!(world.read(&sha, "app.toml").await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_tree_with_names_that_leave_it_is_refused() {
    let world = World::new(Over::File).await;
    world.origin.release("v1");
    let blob = hash_object(&world.origin, "x");
    for name in ["..", ".", ".git", ".GIT"] {
        let sha = raw_commit(&world.origin, &format!("100644 blob {blob}\t{name}\n"));
        world.fetch(&sha).await.unwrap();
        let error = world.read(&sha, "app.toml").await.unwrap_err();
        assert!(
            error
                .reason
                .message
                .contains("which no Git client may write"),
            "{name}: {error}"
        );
        let to = world.dir.path().join("context.tar");
        let context = path(".");
        let export = Export {
            context: &context,
            to: &to,
            limit: LIMIT,
        };
        assert!(
            world
                .source
                .export(&world.repo, &sha, &export)
                .await
                .is_err()
        );
        assert!(!to.exists());
    }
}

/// Path → (type, mode, content or link target).
type Listing = BTreeMap<String, (tar::EntryType, u32, String)>;

fn list(archive: &Path) -> Listing {
    let mut archive = tar::Archive::new(std::fs::File::open(archive).unwrap());
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!(
                (
                    header.mtime().unwrap(),
                    header.uid().unwrap(),
                    header.gid().unwrap()
                ),
                (0, 0, 0)
            );
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let link = entry
                .link_name()
                .unwrap()
                .map(|link| link.to_string_lossy().into_owned());
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (
                name,
                (
                    header.entry_type(),
                    header.mode().unwrap(),
                    link.unwrap_or(text),
                ),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_build_context_has_the_tree_and_nothing_of_this_host() {
    for over in BOTH {
        let world = World::new(over).await;
        let origin = &world.origin;
        let long = format!("{}/file", ["a-rather-long-directory-name"; 8].join("/"));
        origin.write("outside", "x");
        origin.write("app/Dockerfile", "FROM scratch\n");
        origin.write(&format!("app/{long}"), "deep");
        origin.write("app/run.sh", "#!/bin/sh\n");
        std::fs::set_permissions(
            origin.work.join("app/run.sh"),
            std::fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        symlink("run.sh", origin.work.join("app/start")).unwrap();
        symlink("not-there", origin.work.join("app/dangling")).unwrap();
        origin.git(&["add", "--all"]);
        stage(
            origin,
            "160000",
            "0123456789012345678901234567890123456789",
            "app/module",
        );
        origin.git(&["commit", "--quiet", "-m", "context"]);
        origin.push("main");
        let sha = origin.head();
        world.fetch(&sha).await.unwrap();
        let context = path("app");
        let archives = ["one.tar", "two.tar"].map(|name| world.dir.path().join(name));
        for to in &archives {
            let export = Export {
                context: &context,
                to,
                limit: LIMIT,
            };
            assert_eq!(
                &world
                    .source
                    .export(&world.repo, &sha, &export)
                    .await
                    .unwrap(),
                to
            );
        }
        assert_eq!(
            std::fs::read(&archives[0]).unwrap(),
            std::fs::read(&archives[1]).unwrap()
        );
        assert_eq!(
            std::fs::metadata(&archives[0])
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let listing = list(&archives[0]);
        let expected = [
            (
                "Dockerfile",
                tar::EntryType::Regular,
                0o644,
                "FROM scratch\n",
            ),
            ("run.sh", tar::EntryType::Regular, 0o755, "#!/bin/sh\n"),
            ("start", tar::EntryType::Symlink, 0o777, "run.sh"),
            ("dangling", tar::EntryType::Symlink, 0o777, "not-there"),
            ("module/", tar::EntryType::Directory, 0o755, ""),
            (long.as_str(), tar::EntryType::Regular, 0o644, "deep"),
        ];
        for (name, kind, mode, text) in expected {
            assert_eq!(
                listing.get(name),
                Some(&(kind, mode, text.to_owned())),
                "{name}, {over:?}"
            );
        }
        let again = Export {
            context: &context,
            to: &archives[0],
            limit: LIMIT,
        };
        assert!(
            world
                .source
                .export(&world.repo, &sha, &again)
                .await
                .is_err(),
            "an existing file is not overwritten"
        );
    }
}

#[tokio::test]
async fn a_build_context_that_is_too_large_or_whose_links_leave_it_is_refused() {
    for (name, target) in [
        ("etc", "/etc/passwd"),
        ("up", "../outside"),
        ("sub/up", "../../outside"),
        // Inside by its letters, outside once the link in the middle is followed.
        ("trick", "sub/here/../../outside"),
        ("loop", "loop"),
    ] {
        let world = World::new(Over::File).await;
        world.origin.write("outside", "x");
        world.origin.write("app/sub/file", "x");
        symlink("..", world.origin.work.join("app/sub/here")).unwrap();
        symlink(target, world.origin.work.join("app").join(name)).unwrap();
        let sha = world.origin.release("v1");
        world.fetch(&sha).await.unwrap();
        let (context, to) = (path("app"), world.dir.path().join("context.tar"));
        let export = Export {
            context: &context,
            to: &to,
            limit: LIMIT,
        };
        let error = world
            .source
            .export(&world.repo, &sha, &export)
            .await
            .unwrap_err();
        assert_eq!(code(&error), ReasonCode::BuildFailed);
        assert!(
            error.reason.message.contains(&format!("the link `{name}`")),
            "{error}"
        );
    }
    let world = World::new(Over::File).await;
    world.origin.write("app/file", "12345");
    let sha = world.origin.release("v1");
    world.fetch(&sha).await.unwrap();
    let (context, to) = (path("app"), world.dir.path().join("context.tar"));
    let export = Export {
        context: &context,
        to: &to,
        limit: 4,
    };
    let error = world
        .source
        .export(&world.repo, &sha, &export)
        .await
        .unwrap_err();
    assert!(
        error
            .reason
            .message
            .contains("more than `build_context_limit` = 4 bytes"),
        "{error}"
    );
    let file = path("app/file");
    let export = Export {
        context: &file,
        to: &to,
        limit: LIMIT,
    };
    assert!(
        world
            .source
            .export(&world.repo, &sha, &export)
            .await
            .unwrap_err()
            .reason
            .message
            .contains("not a directory")
    );
    assert!(!to.exists());
}

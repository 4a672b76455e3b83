//! Reading and exporting trees, also those that no honest Git client makes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::source::Export;
use crate::tests::git_repo::git_command;

/// Adds an entry of any mode to the index.
fn stage(origin: &GitRepo, mode: &str, id: &str, path: &str) {
    origin.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{path}")]);
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
    origin.git(&["push", "--quiet", "--force", "origin", &format!("{sha}:refs/heads/main")]);
    sha.parse().unwrap()
}

/// A submodule's commit; nobody has it.
const ELSEWHERE: &str = "0123456789012345678901234567890123456789";

/// Path, and what the refusal says.
const INVALID: [(&str, &str); 8] = [
    ("deploy/link.toml", "it is a symbolic link"),
    ("elsewhere/app.toml", "`elsewhere` above it is a symbolic link"),
    ("module", "it is a submodule"),
    ("module/app.toml", "`module` above it is a submodule"),
    ("deploy", "it is a directory"),
    ("deploy/app.toml/x", "`deploy/app.toml` above it is a file"),
    ("deploy/lfs.toml", "it is a Git LFS pointer"),
    ("deploy/big.toml", "it has 307200 bytes and at most 262144 are read"),
];

const MISSING: [(&str, &str); 2] = [
    ("deploy/ap.toml", "`deploy` has no `ap.toml` (it has `app.toml`"),
    ("Deploy/app.toml", "the root of the tree has no `Deploy` (it has `deploy`"),
];

/// A commit with one of each kind, pushed and fetched.
async fn all_kinds(world: &World) -> Sha {
    let origin = &world.origin;
    origin.write("deploy/app.toml", "v1");
    origin.write("deploy/big.toml", vec![b'x'; 300 << 10]);
    origin.write("deploy/lfs.toml", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    symlink("app.toml", origin.work.join("deploy/link.toml")).unwrap();
    symlink("deploy", origin.work.join("elsewhere")).unwrap();
    origin.git(&["add", "--all"]);
    stage(origin, "160000", ELSEWHERE, "module");
    origin.git(&["commit", "--quiet", "-m", "all kinds"]);
    origin.push("main");
    let sha = origin.head();
    world.fetch(&sha).await.unwrap();
    sha
}

#[tokio::test]
async fn what_is_not_a_regular_file_is_refused_by_name_field_report_33() {
    for over in BOTH {
        let world = World::new(over).await;
        let sha = all_kinds(&world).await;
        let invalid = INVALID.map(|row| (ReasonCode::ManifestInvalid, row));
        let missing = MISSING.map(|row| (ReasonCode::ManifestMissing, row));
        for (expected, (file, says)) in invalid.into_iter().chain(missing) {
            let error = world.read(&sha, file).await.unwrap_err();
            assert_eq!(code(&error), expected, "{file}: {error}");
            assert!(error.reason.message.contains(says), "{file}: {error}");
        }
    }
}

#[tokio::test]
async fn a_dockerfile_can_be_checked_and_submodules_be_listed_field_report_32() {
    let world = World::new(Over::File).await;
    let sha = all_kinds(&world).await;
    let check = async |file: &str| world.source.check_file(&world.repo, &sha, &path(file)).await;
    check("deploy/app.toml").await.unwrap();
    assert_eq!(code(&check("deploy/link.toml").await.unwrap_err()), ReasonCode::ManifestInvalid);
    let modules = world.source.submodules(&world.repo, &sha, &path(".")).await.unwrap();
    assert_eq!(modules, ["module"]);
}

#[tokio::test]
async fn a_file_is_given_byte_for_byte_field_report_38() {
    for over in BOTH {
        let world = World::new(over).await;
        let bytes = b"\xef\xbb\xbfa = 1\r\nb = \"\xff\"\r\n";
        world.origin.write(".gitattributes", "*.toml text eol=lf filter=lfs ident\n");
        world.origin.git(&["config", "core.autocrlf", "false"]);
        world.origin.git(&["add", "--all"]);
        let id = {
            std::fs::write(world.origin.work.join(".git/scratch"), bytes).unwrap();
            world.origin.git(&["hash-object", "-w", "--no-filters", ".git/scratch"])
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
        assert!(error.reason.message.contains("which no Git client may write"), "{name}: {error}");
        let to = world.dir.path().join("context.tar");
        let context = path(".");
        let export = Export { context: &context, to: &to, limit: LIMIT };
        assert!(world.source.export(&world.repo, &sha, &export).await.is_err());
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
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (0, 0, 0));
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let link = entry.link_name().unwrap().map(|link| link.to_string_lossy().into_owned());
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (name, (header.entry_type(), header.mode().unwrap(), link.unwrap_or(text)))
        })
        .collect()
}

impl World {
    async fn export(&self, sha: &Sha, context: &str, limit: u64) -> Result<PathBuf, SourceError> {
        let (context, to) = (path(context), self.dir.path().join("context.tar"));
        let export = Export { context: &context, to: &to, limit };
        self.source.export(&self.repo, sha, &export).await
    }
}

/// A commit with a build context in `app`, and the long path in it.
async fn with_context(world: &World) -> (Sha, String) {
    let origin = &world.origin;
    let long = format!("{}/file", ["a-rather-long-directory-name"; 8].join("/"));
    origin.write("outside", "x");
    origin.write("app/Dockerfile", "FROM scratch\n");
    origin.write(&format!("app/{long}"), "deep");
    origin.write("app/run.sh", "#!/bin/sh\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(origin.work.join("app/run.sh"), executable).unwrap();
    symlink("run.sh", origin.work.join("app/start")).unwrap();
    symlink("not-there", origin.work.join("app/dangling")).unwrap();
    origin.git(&["add", "--all"]);
    stage(origin, "160000", ELSEWHERE, "app/module");
    origin.git(&["commit", "--quiet", "-m", "context"]);
    origin.push("main");
    let sha = origin.head();
    world.fetch(&sha).await.unwrap();
    (sha, long)
}

#[tokio::test]
async fn a_build_context_has_the_tree_and_nothing_of_this_host() {
    use tar::EntryType::{Directory, Regular, Symlink};
    for over in BOTH {
        let world = World::new(over).await;
        let (sha, long) = with_context(&world).await;
        let archive = world.export(&sha, "app", LIMIT).await.unwrap();
        let mode = std::fs::metadata(&archive).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let listing = list(&archive);
        for (name, kind, mode, text) in [
            ("Dockerfile", Regular, 0o644, "FROM scratch\n"),
            ("run.sh", Regular, 0o755, "#!/bin/sh\n"),
            ("start", Symlink, 0o777, "run.sh"),
            ("dangling", Symlink, 0o777, "not-there"),
            ("module/", Directory, 0o755, ""),
            (long.as_str(), Regular, 0o644, "deep"),
        ] {
            let expected = (kind, mode, text.to_owned());
            assert_eq!(listing.get(name), Some(&expected), "{name}, {over:?}");
        }
        assert!(world.export(&sha, "app", LIMIT).await.is_err(), "a file that is there is not overwritten");
        let bytes = std::fs::read(&archive).unwrap();
        std::fs::remove_file(&archive).unwrap();
        world.export(&sha, "app", LIMIT).await.unwrap();
        assert_eq!(std::fs::read(&archive).unwrap(), bytes, "equal trees give equal bytes");
    }
}

#[tokio::test]
async fn a_build_context_whose_links_leave_it_is_refused() {
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
        let error = world.export(&sha, "app", LIMIT).await.unwrap_err();
        assert_eq!(code(&error), ReasonCode::BuildFailed);
        assert!(error.reason.message.contains(&format!("the link `{name}`")), "{error}");
    }
}

#[tokio::test]
async fn a_build_context_that_is_too_large_or_no_directory_is_refused() {
    let world = World::new(Over::File).await;
    world.origin.write("app/file", "12345");
    let sha = world.origin.release("v1");
    world.fetch(&sha).await.unwrap();
    let error = world.export(&sha, "app", 4).await.unwrap_err();
    assert!(error.reason.message.contains("more than `build_context_limit` = 4 bytes"), "{error}");
    let error = world.export(&sha, "app/file", LIMIT).await.unwrap_err();
    assert!(error.reason.message.contains("not a directory"), "{error}");
    assert!(!world.dir.path().join("context.tar").exists());
}

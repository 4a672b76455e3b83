//! Mirrors that were interrupted, damaged, or left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::tests::git_http::Mood;

/// Every lock file that a killed Git leaves (field reports 26 and 27).
const LOCKS: [&str; 8] = [
    "shallow.lock",
    "index.lock",
    "packed-refs.lock",
    "HEAD.lock",
    "config.lock",
    "refs/heads/main.lock",
    "refs/trueup/main.lock",
    "objects/info/commit-graph.lock",
];

#[tokio::test]
async fn lock_files_and_half_written_packs_of_a_killed_process_stop_nothing_field_reports_26_and_27() {
    for over in BOTH {
        let mut world = World::new(over).await;
        let sha = world.origin.release("v1");
        world.fetch(&sha).await.unwrap();
        let mirror = world.mirror();
        fs::create_dir_all(mirror.join("refs/heads")).unwrap();
        fs::create_dir_all(mirror.join("objects/info")).unwrap();
        for lock in LOCKS {
            fs::write(mirror.join(lock), "").unwrap();
        }
        for part in [".tmpAbCdEf", "tmp_pack_1", "pack-0123456789012345678901234567890123456789.pack", "pack-x.keep"] {
            fs::write(mirror.join("objects/pack").join(part), "PACK half").unwrap();
        }
        world = world.restart();
        let next = world.origin.release("v2");
        assert_eq!(world.manifest(&next).await, "v2", "{over:?}");
        for lock in LOCKS {
            assert!(!mirror.join(lock).exists(), "{lock} stays, {over:?}");
        }
        let left: Vec<_> =
            fs::read_dir(mirror.join("objects/pack")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name.to_string_lossy().starts_with("pack-")), "{left:?}");
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".keep")), "{left:?}");
    }
}

#[tokio::test]
async fn a_fetch_cut_at_any_byte_leaves_nothing_that_the_next_one_trips_over_field_report_27() {
    let mut world = World::new(Over::Http).await;
    world.origin.write(
        "noise.bin",
        (0..4096_u32).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>(),
    );
    let mut last = None;
    for (round, bytes) in [0, 1, 4, 9, 40, 100, 200, 500, 1_500, 5_000, 9_000, 14_000].into_iter().enumerate() {
        let sha = world.origin.release(&format!("v{round}"));
        let http = world.http.as_ref().unwrap();
        http.mood(Mood::CutAfter(bytes));
        let result = world.fetch(&sha).await;
        http.mood(Mood::Well);
        if let Err(error) = result {
            assert_eq!(code(&error), ReasonCode::GitUnavailable, "cut after {bytes}");
        }
        if round % 3 == 0 {
            world = world.restart();
        }
        assert_eq!(world.manifest(&sha).await, format!("v{round}"), "cut after {bytes}");
        last = Some(sha);
    }
    assert!(last.is_some());
    let left: Vec<_> =
        fs::read_dir(world.dir.path().join("state/git")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("tmp-")), "{left:?}");
}

/// Names of what the test below hands to its own second process.
const CHILD: [&str; 3] = ["TRUEUP_TEST_STATE", "TRUEUP_TEST_URL", "TRUEUP_TEST_SHA"];

/// This very test in a process of its own, where it does nothing but fetch.
fn start_child(values: [&str; 3]) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["kill_9_in_the_middle_of_a_fetch", "--nocapture"]).envs(CHILD.into_iter().zip(values));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn kill_9_in_the_middle_of_a_fetch_is_forgotten_at_the_next_start_field_report_27() {
    if let [Ok(state), Ok(url), Ok(sha)] = CHILD.map(std::env::var) {
        let source = open(Path::new(&state), "https://github.com", None);
        source.fetch(&Repository::Url(url), &main_branch(), &sha.parse().unwrap()).await.unwrap();
        return;
    }
    let mut world = World::new(Over::Http).await;
    world.origin.write(
        "noise.bin",
        (0..65_536_u32).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>(),
    );
    let first = world.origin.release("first");
    world.fetch(&first).await.unwrap();
    let mirror = world.mirror();
    for bytes in [0, 8, 60, 200, 1_000] {
        let sha = world.origin.release(&format!("after {bytes}"));
        let World { dir, origin, source, repo, http } = world;
        drop(source);
        let http = http.unwrap();
        http.mood(Mood::StallAfter(bytes));
        let state = dir.path().join("state");
        let mut child = start_child([state.to_str().unwrap(), &repo.to_string(), sha.as_str()]);
        while !(mirror.join("shallow.lock").exists() && http.asked().iter().any(|asked| asked.body.contains("want"))) {
            assert_eq!(child.try_wait().unwrap(), None, "the second process ended by itself");
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(mirror.join("shallow.lock").exists(), "the lock is left behind, or this test proves nothing");
        http.mood(Mood::Well);
        let source = open(&state, "https://github.com", None);
        world = World { dir, origin, source, repo, http: Some(http) };
        assert_eq!(world.manifest(&sha).await, format!("after {bytes}"));
        assert!(!mirror.join("shallow.lock").exists());
    }
}

#[tokio::test]
async fn a_fetch_that_nobody_waits_for_any_more_gives_its_turn_back() {
    let world = World::new(Over::Http).await;
    let sha = world.origin.release("v1");
    let http = world.http.as_ref().unwrap();
    http.mood(Mood::Hang);
    // The look is dropped as soon as the server has heard it, as a pass does when it is cancelled.
    let heard = async {
        while http.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = world.look() => panic!("nothing answers"),
        () = heard => {}
    }
    http.mood(Mood::Well);
    assert_eq!(world.look().await.unwrap(), Look::At(sha));
}

/// Ways in which a mirror can be broken on disk.
type Damage = fn(&Path);

fn every_pack(mirror: &Path, then: impl Fn(&Path)) {
    for entry in fs::read_dir(mirror.join("objects/pack")).unwrap() {
        let path = entry.unwrap().path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        then(&path);
    }
    for entry in fs::read_dir(mirror.join("objects")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().len() == 2 {
            for object in fs::read_dir(&path).unwrap() {
                let object = object.unwrap().path();
                fs::set_permissions(&object, fs::Permissions::from_mode(0o600)).unwrap();
                then(&object);
            }
        }
    }
}

const DAMAGES: [(&str, Damage); 6] = [
    ("all objects deleted", |mirror| every_pack(mirror, |path| fs::remove_file(path).unwrap())),
    ("all objects emptied", |mirror| every_pack(mirror, |path| fs::write(path, "").unwrap())),
    ("objects cut in half", |mirror| {
        every_pack(mirror, |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        });
    }),
    ("a byte turned in every file", |mirror| {
        every_pack(mirror, |path| {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            fs::write(path, bytes).unwrap();
        });
    }),
    ("no HEAD and no config", |mirror| {
        fs::remove_file(mirror.join("HEAD")).unwrap();
        fs::remove_file(mirror.join("config")).unwrap();
    }),
    ("a garbled shallow file", |mirror| fs::write(mirror.join("shallow"), "\0garbage").unwrap()),
];

#[tokio::test]
async fn a_broken_mirror_is_made_again_without_a_person_field_report_21() {
    for over in BOTH {
        for (name, damage) in DAMAGES {
            let mut world = World::new(over).await;
            let old = world.origin.release("v1");
            world.fetch(&old).await.unwrap();
            damage(&world.mirror());
            world = world.restart();
            assert_eq!(world.manifest(&old).await, "v1", "the same commit: {name}, {over:?}");
            damage(&world.mirror());
            let new = world.origin.release("v2");
            assert_eq!(world.manifest(&new).await, "v2", "the next commit: {name}, {over:?}");
        }
    }
}

#[tokio::test]
async fn a_mirror_broken_under_a_running_daemon_is_repaired_by_the_read_that_meets_it() {
    for over in BOTH {
        for (name, damage) in DAMAGES {
            let world = World::new(over).await;
            let sha = world.origin.release("v1");
            world.fetch(&sha).await.unwrap();
            damage(&world.mirror());
            assert_eq!(world.read(&sha, "deploy/app.toml").await.unwrap(), b"v1", "{name}, {over:?}");
        }
    }
}

#[tokio::test]
async fn a_broken_mirror_outlives_a_remote_that_is_away() {
    let world = World::new(Over::Http).await;
    let sha = world.origin.release("v1");
    world.fetch(&sha).await.unwrap();
    world.http.as_ref().unwrap().mood(Mood::Status(503));
    let other = world.origin.release("v2");
    assert_eq!(code(&world.fetch(&other).await.unwrap_err()), ReasonCode::GitUnavailable);
    assert_eq!(world.read(&sha, "deploy/app.toml").await.unwrap(), b"v1", "nothing was thrown away");
}

#[tokio::test]
async fn what_an_earlier_process_did_not_finish_is_removed_at_the_start_field_report_34() {
    let mut world = World::new(Over::File).await;
    let sha = world.origin.release("v1");
    world.fetch(&sha).await.unwrap();
    let mirror = world.mirror();
    let name = mirror.file_name().unwrap().to_string_lossy().into_owned();
    let left = world.dir.path().join("state/git").join(format!("tmp-{name}"));
    fs::create_dir_all(left.join("objects")).unwrap();
    fs::remove_dir_all(&mirror).unwrap();
    world = world.restart();
    assert!(!left.exists());
    assert_eq!(world.manifest(&sha).await, "v1");
}

#[tokio::test]
async fn an_overgrown_mirror_is_made_again_and_keeps_its_commits_ruling_23() {
    let world = World::new(Over::Http).await;
    let first = world.origin.release("v0");
    world.fetch(&first).await.unwrap();
    let packs = world.mirror().join("objects/pack");
    for number in 0..=super::super::mirror::MAX_PACKS {
        fs::write(packs.join(format!("pack-{number:040}.pack")), "").unwrap();
        fs::write(packs.join(format!("pack-{number:040}.idx")), "").unwrap();
    }
    world.origin.git(&["checkout", "--quiet", "--orphan", "new"]);
    let second = world.origin.release("v1");
    crate::tests::git_repo::git(&world.origin.bare, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(world.manifest(&second).await, "v1");
    assert!(fs::read_dir(&packs).unwrap().count() < 10);
    assert_eq!(world.manifest(&first).await, "v0");
}

#[tokio::test]
async fn two_processes_never_share_the_mirrors() {
    let world = World::new(Over::File).await;
    let error = GitSource::open(settings(&world.dir.path().join("state"), "https://github.com", None)).unwrap_err();
    assert!(error.reason.message.contains("another process"), "{}", error.reason.message);
    let mode = fs::metadata(world.dir.path().join("state/git")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

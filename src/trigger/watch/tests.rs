//! Real files, real events, and a watcher that cannot be had.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::tests::git_repo::{GitRepo, git};

/// Comparing without events would take an hour: what these tests see, events brought.
const EVENTS_ONLY: Pace = Pace {
    quiet: Duration::from_millis(5),
    hold: Duration::from_millis(100),
    poll: Duration::from_secs(3600),
    safety: Duration::from_secs(3600),
};

struct Watched {
    dir: TempDir,
    watching: Watching,
    _stop: tokio_util::sync::DropGuard,
}

async fn watch(dir: TempDir, places: impl IntoIterator<Item = Place>) -> Watched {
    let stop = CancellationToken::new();
    let watching = start(places.into_iter().collect(), EVENTS_ONLY, stop.clone()).await;
    Watched { dir, watching, _stop: stop.drop_guard() }
}

impl Watched {
    async fn next(&mut self) -> Notice {
        self.watching.notices.recv().await.unwrap()
    }

    /// Waits until the place at this path has changed; earlier notices of the same burst may still come.
    async fn changed(&mut self, path: &Path) {
        while self.next().await != Notice::Changed(path.to_owned()) {}
    }
}

#[tokio::test]
async fn every_way_to_write_a_file_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("huta");
    let projects = config.join("projects.d");
    fs::create_dir_all(&projects).unwrap();
    fs::write(config.join("huta.toml"), "schema = 1\n").unwrap();
    let mut watched = watch(dir, [Place::Config(config.join("huta.toml")), Place::Config(projects.clone())]).await;

    fs::write(config.join("huta.toml"), "schema = 1\n# in place\n").unwrap();
    watched.changed(&config.join("huta.toml")).await;
    // As an editor does: beside it, then over it.
    fs::write(config.join(".huta.toml.swp"), "x").unwrap();
    fs::write(config.join("huta.toml.new"), "schema = 1\n# renamed over\n").unwrap();
    fs::rename(config.join("huta.toml.new"), config.join("huta.toml")).unwrap();
    watched.changed(&config.join("huta.toml")).await;
    fs::write(projects.join("shop.toml"), "x").unwrap();
    watched.changed(&projects).await;
    fs::remove_file(projects.join("shop.toml")).unwrap();
    watched.changed(&projects).await;
    fs::remove_file(config.join("huta.toml")).unwrap();
    watched.changed(&config.join("huta.toml")).await;
}

#[tokio::test]
async fn a_directory_that_comes_later_is_watched_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let projects = dir.path().join("etc/huta/projects.d");
    let mut watched = watch(dir, [Place::Config(projects.clone())]).await;
    for _ in 0..3 {
        fs::create_dir_all(&projects).unwrap();
        watched.changed(&projects).await;
        fs::write(projects.join("shop.toml"), "x").unwrap();
        watched.changed(&projects).await;
        fs::remove_dir_all(watched.dir.path().join("etc")).unwrap();
        watched.changed(&projects).await;
    }
}

#[tokio::test]
async fn a_swapped_link_is_a_change_of_every_file_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let projects = dir.path().join("projects.d");
    for (name, text) in [("..one", "1"), ("..two", "2")] {
        fs::create_dir_all(projects.join(name)).unwrap();
        fs::write(projects.join(name).join("shop.toml"), text).unwrap();
    }
    symlink("..one", projects.join("..data")).unwrap();
    symlink("..data/shop.toml", projects.join("shop.toml")).unwrap();
    let mut watched = watch(dir, [Place::Config(projects.clone())]).await;
    symlink("..two", projects.join("..new")).unwrap();
    fs::rename(projects.join("..new"), projects.join("..data")).unwrap();
    watched.changed(&projects).await;
    fs::write(projects.join("..two/shop.toml"), "three").unwrap();
    watched.changed(&projects).await;
}

#[tokio::test]
async fn a_push_to_a_local_repository_is_a_change_loose_or_packed() {
    let dir = tempfile::tempdir().unwrap();
    let origin = GitRepo::new(dir.path(), "shop");
    let mut watched = watch(dir, [Place::Refs(origin.bare.clone())]).await;
    origin.release("v1");
    watched.changed(&origin.bare).await;
    origin.push("topic/deep/branch");
    watched.changed(&origin.bare).await;
    git(&origin.bare, &["pack-refs", "--all"]);
    watched.changed(&origin.bare).await;
    origin.release("v2");
    watched.changed(&origin.bare).await;
    fs::remove_dir_all(&origin.bare).unwrap();
    watched.changed(&origin.bare).await;
}

#[tokio::test]
async fn a_place_can_be_added_while_it_runs_and_is_no_change_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    for path in [&first, &second] {
        fs::create_dir(path).unwrap();
    }
    let mut watched = watch(dir, [Place::Config(first.clone())]).await;
    watched.watching.places.send([Place::Config(first.clone()), Place::Config(second.clone())].into()).unwrap();
    fs::write(first.join("a.toml"), "x").unwrap();
    assert_eq!(watched.next().await, Notice::Changed(first));
    fs::write(second.join("a.toml"), "x").unwrap();
    assert_eq!(watched.next().await, Notice::Changed(second));
}

#[tokio::test]
async fn without_events_it_polls_and_says_so_and_says_when_they_are_back() {
    let dir = tempfile::tempdir().unwrap();
    let is_broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = Arc::clone(&is_broken);
    let open: Open = Box::new(move |bell| {
        if switch.load(std::sync::atomic::Ordering::Relaxed) {
            Err("too many open files".to_owned())
        } else {
            open_watcher(bell)
        }
    });
    let stop = CancellationToken::new();
    let pace = Pace { poll: Duration::from_millis(5), ..EVENTS_ONLY };
    let places = [Place::Config(dir.path().to_owned())].into();
    let mut watching = start_with(places, pace, (stop.clone(), open)).await;
    let Some(Notice::Degraded { why }) = watching.notices.recv().await else { panic!("it is silent") };
    assert!(why.contains("too many open files"), "{why}");
    fs::write(dir.path().join("a.toml"), "x").unwrap();
    assert_eq!(watching.notices.recv().await, Some(Notice::Changed(dir.path().to_owned())));
    is_broken.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(watching.notices.recv().await, Some(Notice::Restored));
    fs::write(dir.path().join("b.toml"), "x").unwrap();
    assert_eq!(watching.notices.recv().await, Some(Notice::Changed(dir.path().to_owned())));
    stop.cancel();
    assert_eq!(watching.notices.recv().await, None);
}

#[test]
fn more_directories_than_can_be_watched_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..5 {
        fs::create_dir_all(dir.path().join("refs/heads").join(number.to_string())).unwrap();
    }
    let why = print::directories(&[Place::Refs(dir.path().to_owned())].into(), 3).unwrap_err();
    assert!(why.contains("more than 3"), "{why}");
}

#[test]
fn a_lost_queue_and_a_vanished_directory_are_both_heard() {
    let bell = Bell::default();
    bell.ring(Ok(Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan)));
    assert!(bell.heard().lost.as_ref().unwrap().contains("overflowed"));
    bell.ring(Ok(Event::new(EventKind::Remove(notify::event::RemoveKind::Folder)).add_path(PathBuf::from("/gone"))));
    assert!(bell.heard().gone.contains(Path::new("/gone")));
}

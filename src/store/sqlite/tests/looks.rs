//! Looks that saw nothing new, and how they reach the disk.

use jiff::SignedDuration;

use super::super::LOOK_HELD;
use super::*;
use crate::model::TargetName;
use crate::store::contract::{at, sha, target};
use crate::store::record::{Condition, ObservedRef};

fn seen(second: i64) -> ObservedRef {
    ObservedRef {
        branch: "main".parse().expect("a branch"),
        tip: Some(sha('a')),
        looked_at: at(second),
        moved_at: at(0),
        suspect: None,
    }
}

/// What another process reads from the disk.
async fn on_disk(directory: &Path, target: &TargetName) -> Option<ObservedRef> {
    let reader = SqliteStore::open_read_only(directory).await.expect("a reader");
    let found = reader.observed_ref(target).await.expect("a read");
    reader.close().await;
    found
}

#[tokio::test]
async fn the_times_of_looks_that_saw_nothing_new_are_written_together_and_read_at_once() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let targets = ["one", "two", "three"].map(target);
    for name in &targets {
        store.put_observed_ref(name, &seen(0)).await.expect("a write");
    }
    for (name, second) in targets.iter().zip(1..) {
        store.put_observed_ref(name, &seen(second)).await.expect("a write");
        assert_eq!(store.observed_ref(name).await.expect("a read"), Some(seen(second)));
        assert_eq!(on_disk(directory.path(), name).await, Some(seen(0)), "it waits");
    }
    let due = 1 + LOOK_HELD.as_secs();
    store.put_observed_ref(&targets[0], &seen(due)).await.expect("a write");
    for (name, second) in targets.iter().zip([due, 2, 3]) {
        assert_eq!(on_disk(directory.path(), name).await, Some(seen(second)), "written with the others");
    }
    store.put_observed_ref(&targets[1], &seen(due + 1)).await.expect("a write");
    store.close().await;
    assert_eq!(on_disk(directory.path(), &targets[1]).await, Some(seen(due + 1)), "a close loses none");
}

#[tokio::test]
// Field report 35.
async fn a_look_that_saw_something_new_is_on_the_disk_when_it_returns() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let name = target("moved");
    store.put_observed_ref(&name, &seen(0)).await.expect("a write");
    store.put_observed_ref(&name, &seen(1)).await.expect("a write");
    let suspect = ObservedRef { suspect: Some((sha('b'), at(2))), ..seen(2) };
    let gone = ObservedRef { tip: None, ..seen(3) };
    for new in [suspect, gone, seen(4)] {
        store.put_observed_ref(&name, &new).await.expect("a write");
        assert_eq!(on_disk(directory.path(), &name).await, Some(new.clone()));
        assert_eq!(store.observed_ref(&name).await.expect("a read"), Some(new));
    }
}

#[tokio::test]
async fn what_is_known_already_is_not_written_again() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let name = target("quiet");
    let condition = |message: &str| Condition {
        kind: "Ready".to_owned(),
        is_true: true,
        reason: "Converged".to_owned(),
        message: message.to_owned(),
        since: at(1),
    };
    store.put_observed_ref(&name, &seen(0)).await.expect("a write");
    store.put_known_target(&name, false).await.expect("a write");
    assert!(store.put_condition(&name, &condition("live")).await.expect("a write"));
    let log = || std::fs::metadata(directory.path().join("trueup.db-wal")).expect("a log").len();
    let before = log();
    let later = Condition { since: at(1) + SignedDuration::from_secs(60), ..condition("live") };
    assert!(!store.put_condition(&name, &later).await.expect("a write"));
    store.put_observed_ref(&name, &seen(1)).await.expect("a write");
    store.put_known_target(&name, false).await.expect("a write");
    assert_eq!(log(), before, "nothing was added to the log");
    assert_eq!(store.conditions(&name).await.expect("a read"), [condition("live")]);
    assert!(!store.put_condition(&name, &condition("live again")).await.expect("a write"));
    assert_eq!(store.conditions(&name).await.expect("a read"), [condition("live again")]);
    store.put_known_target(&name, true).await.expect("a write");
    assert_eq!(store.known_targets().await.expect("a read"), [(name, true)]);
}

//! A full disk: nothing half written, the reserve freed once, and the way back.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{directory, opened, run};
use crate::store::{Store as _, StoreError, contract};

fn full() -> StoreError {
    StoreError::Full { what: "record a plan", path: "trueup.db".to_owned() }
}

#[tokio::test]
async fn a_write_that_finds_the_disk_full_frees_the_reserve_and_is_done_again_once() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let tries = AtomicU32::new(0);
    let needs_the_reserve = || async {
        tries.fetch_add(1, Ordering::SeqCst);
        if store.has_reserve() { Err(full()) } else { Ok(7) }
    };
    let answer = store.durably(|_| needs_the_reserve()).await;
    assert_eq!((answer.expect("done"), tries.load(Ordering::SeqCst)), (7, 2));

    let never = || async {
        tries.fetch_add(1, Ordering::SeqCst);
        Err::<u32, _>(full())
    };
    let answer = store.durably(|_| never()).await;
    assert!(matches!(answer, Err(StoreError::Full { .. })));
    assert_eq!(tries.load(Ordering::SeqCst), 3, "there was no reserve left");

    store.restore_reserve().expect("there is space");
    store.restore_reserve().expect("it is there");
    assert!(store.has_reserve());
    assert!(store.release_reserve().expect("freed"));
    assert!(!store.release_reserve().expect("nothing to free"));
}

#[tokio::test]
async fn a_full_database_takes_nothing_by_halves_and_goes_on_when_there_is_room() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let target = contract::target("full");
    let number = store.begin_release(&contract::new_release(&target, 'a')).await.expect("begin").number;
    let pages = "PRAGMA max_page_count = 1";
    run(&store, pages).await.expect("no page more than there are");

    let mut kept = Vec::new();
    let mut refused = None;
    for index in 0..1000 {
        let mut plan = contract::new_plan(&target, &format!("{index:016}"));
        plan.difference = "+ a line of the difference\n".repeat(100);
        match store.put_plan(&plan).await {
            Ok(()) => kept.push(plan),
            Err(error) => {
                refused = Some((plan, error));
                break;
            }
        }
    }
    let (plan, error) = refused.expect("it fills up");
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(!store.has_reserve(), "it was freed for the second try");
    assert_eq!(store.plan(&plan.id).await.expect("a read"), None);
    assert_eq!(store.latest_plan(&target).await.expect("a read"), kept.last().cloned());

    // A failed write leaves the connection fit for the next one.
    let mut begun = contract::new_release(&target, 'b');
    begun.desired = Some(serde_json::json!({ "text": "x".repeat(100_000) }));
    let refused = store.begin_release(&begun).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    store.put_image(&target, number, "sha256:1").await.expect("it needs no page");

    run(&store, "PRAGMA max_page_count = 100000").await.expect("room");
    store.restore_reserve().expect("there is space");
    store.put_plan(&plan).await.expect("put");
    let next = store.begin_release(&begun).await.expect("begin");
    assert_eq!(next.number.0, number.0 + 1, "what failed took no number");
    assert!(store.has_reserve());
}

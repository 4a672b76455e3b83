//! What every engine has to do with deliveries.

use super::{at, sha, target};
use crate::store::Store;
use crate::store::deliveries::{Deliveries, DeliveryRecord, RepositoryName};

pub(crate) fn delivery(hook: &str, id: &str) -> DeliveryRecord {
    DeliveryRecord {
        hook: hook.to_owned(),
        id: id.to_owned(),
        event: "push".to_owned(),
        action: None,
        repository: Some("acme/shop \"ü\"".to_owned()),
        repository_id: Some(i64::MAX),
        reference: Some("refs/heads/main".to_owned()),
        sha: Some(sha('a')),
        received_at: at(1),
        last_at: at(1),
        copies: 1,
        bytes: 4600,
        secret_slot: 2,
        reason: "Woke".to_owned(),
        message: "push at refs/heads/main: 1 target asked to look".to_owned(),
        woken: vec![target("shop")],
        woken_count: 1,
    }
}

fn part(store: &dyn Store) -> &dyn Deliveries {
    store.deliveries().expect("it keeps deliveries")
}

pub(crate) async fn a_delivery_is_new_once_for_each_hook_and_comes_back_as_it_was_put(store: &dyn Store) {
    let store = part(store);
    let id = "11111111-aaaa-11ee-8000-000000000001";
    let bare = DeliveryRecord {
        event: "ping".to_owned(),
        repository: None,
        repository_id: None,
        reference: None,
        sha: None,
        action: Some("x".to_owned()),
        woken: Vec::new(),
        woken_count: 0,
        ..delivery("7", id)
    };
    let batch = [delivery("1", id), bare.clone(), delivery("1", id)];
    assert_eq!(store.put_deliveries(&batch).await.expect("put"), [true, true, false]);
    let late = DeliveryRecord { last_at: at(9), received_at: at(9), ..delivery("1", id) };
    assert_eq!(store.put_deliveries(&[late]).await.expect("put"), [false]);
    let twice = DeliveryRecord { copies: 3, last_at: at(9), ..delivery("1", id) };
    for asked in [id, &id[..8]] {
        assert_eq!(store.deliveries_by_id(asked).await.expect("read"), [bare.clone(), twice.clone()], "{asked}");
    }
    for asked in ["", "1111111", "11111111-b", "1111111%"] {
        assert_eq!(store.deliveries_by_id(asked).await.expect("read"), [], "{asked}");
    }
    assert_eq!(store.put_deliveries(&[]).await.expect("put"), [] as [bool; 0]);
}

pub(crate) async fn old_deliveries_are_forgotten_first(store: &dyn Store) {
    let store = part(store);
    let id = |number: u32| format!("22222222-{number:04}");
    let batch: Vec<DeliveryRecord> = (0..30).map(|number| delivery("1", &id(number))).collect();
    assert_eq!(store.put_deliveries(&batch).await.expect("put"), [true; 30]);
    store.prune_deliveries(10).await.expect("prune");
    let left: Vec<String> =
        store.recent_deliveries(100).await.expect("read").into_iter().map(|record| record.id).collect();
    assert_eq!(left, (20..30).rev().map(id).collect::<Vec<_>>());
    assert_eq!(store.recent_deliveries(1).await.expect("read").len(), 1);
    assert_eq!(store.put_deliveries(&batch[..1]).await.expect("put"), [true], "what is forgotten is new again");
}

pub(crate) async fn the_names_of_a_repository_are_kept(store: &dyn Store) {
    let store = part(store);
    let name = |name: &str, second| RepositoryName { id: 41, name: name.to_owned(), seen_at: at(second) };
    store.put_repository_name(&name("acme/shop", 2)).await.expect("put");
    store.put_repository_name(&name("acme/store", 5)).await.expect("put");
    store.put_repository_name(&name("acme/shop", 7)).await.expect("again");
    let found = store.repository_names().await.expect("read");
    assert_eq!(found, [name("acme/shop", 2), name("acme/store", 5)]);
}

//! Copies, order, storms, a failing store, a restart, and what `why` says afterwards.

use std::sync::Arc;

use hyper::StatusCode;
use sqlx::ConnectOptions as _;
use tokio::sync::Semaphore;

use super::{Delivery, Intake, StillClock, Wakes, catalog};
use crate::server::views;
use crate::server::webhook::index::Index;
use crate::server::webhook::pace::Pace;
use crate::server::webhook::writer::{Entry, NotStored, Stored, Writer};
use crate::store::Store;
use crate::store::contract::deliveries::delivery;
use crate::store::sqlite::SqliteStore;
use crate::tests::app::eventually;

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

#[tokio::test]
async fn a_copy_is_counted_and_wakes_nobody_also_after_a_restart() {
    let intake = Intake::start().await;
    let push = Delivery::of("push", "push", ID);
    assert!(intake.send(&push).await.1.contains("Woke"));
    assert_eq!(intake.wakes.taken().len(), 2);
    assert_eq!(
        intake.send(&push).await,
        (StatusCode::ACCEPTED, format!(r#"{{"reason":"Copy","ask":"trueup why {ID}"}}"#))
    );
    let intake = intake.restarted().await;
    assert!(intake.send(&push).await.1.contains("Copy"));
    assert!(intake.wakes.taken().is_empty());
    assert_eq!(intake.records(ID).await[0].copies, 3);
}

#[tokio::test]
async fn the_same_event_by_two_hooks_is_two_rows_one_wake_and_a_warning() {
    let intake = Intake::start().await;
    let push = Delivery::of("push", "push", ID);
    let twin = Delivery { hook: "13".to_owned(), ..push.clone() };
    assert_eq!(intake.send(&push).await.0, StatusCode::ACCEPTED);
    assert_eq!(intake.send(&twin).await.0, StatusCode::ACCEPTED);
    assert_eq!(intake.wakes.taken(), ["shop/prod", "shop/twin"], "the second waits for the end of the rest");
    assert_eq!(intake.records(ID).await.len(), 2);
    let target = "shop/prod".parse().unwrap();
    eventually("the status warns", async || {
        let conditions = intake.store.conditions(&target).await.unwrap();
        conditions.iter().any(|found| found.reason == "SeveralHooks" && found.message.contains("hooks 12, 13"))
    })
    .await;
}

#[tokio::test]
async fn what_the_store_could_not_take_is_503_and_its_redelivery_goes_through() {
    let intake = Intake::start().await;
    let file = intake.socket.parent().unwrap().join("state/trueup.db");
    let mut meddler = sqlx::sqlite::SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    sqlx::query("ALTER TABLE deliveries RENAME TO away").execute(&mut meddler).await.unwrap();
    let push = Delivery::of("push", "push", ID);
    assert_eq!(intake.send(&push).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(intake.wakes.taken().is_empty(), "nobody is woken by what is not stored");
    sqlx::query("ALTER TABLE away RENAME TO deliveries").execute(&mut meddler).await.unwrap();
    assert!(intake.send(&push).await.1.contains("Woke"));
    assert_eq!(intake.wakes.taken().len(), 2);
}

#[tokio::test]
async fn late_and_reordered_deliveries_are_hints_like_any_other() {
    let intake = Intake::start().await;
    let order = [
        ("workflow_run", "run_completed", "00000001-a"),
        ("push", "push_deleted", "00000002-a"),
        ("push", "push_created", "00000003-a"),
        ("push", "push_forced", "00000004-a"),
        ("check_suite", "suite_completed", "00000005-a"),
    ];
    for (event, payload, id) in order {
        assert_eq!(intake.send(&Delivery::of(event, payload, id)).await.0, StatusCode::ACCEPTED);
        assert_eq!(intake.records(id).await[0].reason, "Woke", "{payload}");
    }
    assert_eq!(intake.wakes.taken().len(), 2, "one wake for one ref");
    assert_eq!(intake.records("00000002-a").await[0].sha, None, "a deleted branch names no commit");
}

#[tokio::test]
async fn a_rename_is_remembered_over_a_restart() {
    let intake = Intake::start().await;
    assert!(intake.send(&Delivery::of("repository", "repository_renamed", "00000001-a")).await.1.contains("Woke"));
    let names = async |intake: &Intake| intake.store.deliveries().unwrap().repository_names().await.unwrap().len();
    eventually("both names are stored", async || names(&intake).await == 2).await;
    let intake = intake.restarted().await;
    let renamed = String::from_utf8(Delivery::of("push", "push", ID).body).unwrap().replace("acme/shop", "acme/store");
    assert!(intake.send(&Delivery::raw("push", renamed.into_bytes(), ID)).await.1.contains("Woke"));
    let record = intake.records(ID).await.remove(0);
    assert!(record.message.contains("it is called acme/store now"), "{}", record.message);
}

fn entry(number: usize, index: &Index) -> Entry {
    Entry {
        record: delivery("1", &format!("{number:08}-storm")),
        followers: vec![index.followers("acme/shop", "refs/heads/main").unwrap().clone()],
        learned: Vec::new(),
        conditions: Vec::new(),
    }
}

async fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).await.unwrap();
    (directory, Arc::new(store))
}

#[tokio::test]
async fn ten_thousand_deliveries_of_one_ref_are_one_wake_now_and_one_at_the_end_of_the_rest() {
    let (_directory, store) = store().await;
    let wakes = Arc::new(Wakes::default());
    let clock = Arc::new(StillClock { ends: Some(Semaphore::new(0)) });
    let pace = Pace::new(wakes.clone(), clock.clone());
    let (writer, task) = Writer::start(Arc::clone(&store), pace, 10_000);
    let index = Index::new(&catalog());
    let puts = (0..10_000).map(|number| writer.put(entry(number, &index)));
    let stored = futures_util::future::join_all(puts).await;
    assert!(stored.iter().all(|stored| *stored == Ok(Stored::First)));
    assert_eq!(wakes.taken(), ["shop/prod", "shop/twin"]);
    let ends = clock.ends.as_ref().unwrap();
    ends.add_permits(1);
    let count = async || wakes.0.lock().unwrap().len();
    eventually("the rest is over", async || count().await == 2).await;
    ends.add_permits(1);
    eventually("the second rest is over", async || ends.available_permits() == 0).await;
    assert_eq!(wakes.taken().len(), 2, "and nobody asked again");
    assert_eq!(store.deliveries().unwrap().recent_deliveries(20_000).await.unwrap().len(), 10_000);
    drop(writer);
    task.await.unwrap();
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let (_directory, store) = store().await;
    let pace = Pace::new(Arc::new(Wakes::default()), Arc::new(StillClock::default()));
    let (writer, _) = Writer::start(store, pace, 1);
    let index = Index::new(&catalog());
    let both = futures_util::future::join(writer.put(entry(1, &index)), writer.put(entry(2, &index))).await;
    assert_eq!(both, (Ok(Stored::First), Err(NotStored::QueueFull)));
    assert_eq!(writer.put(entry(2, &index)).await, Ok(Stored::First), "a redelivery goes through");
}

#[tokio::test]
async fn why_tells_what_became_of_a_delivery() {
    let intake = Intake::start().await;
    for (event, payload, id) in [("push", "push", ID), ("push", "push_tag_named_main", "00000002-aaaa")] {
        intake.send(&Delivery::of(event, payload, id)).await;
    }
    intake.send(&Delivery::of("push", "push", "00000003-aaaa").signed_with("wrong")).await;
    let store = intake.store.as_ref();
    let told = views::delivery(store, &ID[..13]).await.unwrap().unwrap();
    assert_eq!(told.id, ID);
    assert!(told.answer.starts_with("`push` by hook 12 came at 2026-"), "{}", told.answer);
    assert!(
        told.answer.contains("signed with secret 1. push at refs/heads/main of acme/shop: 2 targets asked to look.")
    );
    let tag = views::delivery(store, "00000002-aaaa").await.unwrap().unwrap();
    assert!(
        tag.answer.contains("no target follows refs/tags/main of acme/shop; followed are refs/heads/main"),
        "{}",
        tag.answer
    );
    assert!(tag.advice.contains("`branch`"), "{}", tag.advice);
    assert_eq!(views::delivery(store, "00000003-aaaa").await.unwrap(), None, "unverified words are not stored");
    let refused = views::refused(&intake.refusals.find("00000003-aaaa").unwrap());
    assert!(refused.answer.contains("refused with 401") && refused.answer.contains("secret 1"), "{}", refused.answer);

    let ours = views::why(store, &"shop/prod".parse().unwrap(), Some(ID)).await.unwrap();
    assert!(ours.answer.contains("2 targets asked to look"), "{}", ours.answer);
    let other = views::why(store, &"shop/stage".parse().unwrap(), Some(ID)).await.unwrap();
    assert!(other.answer.contains("It did not wake this target"), "{}", other.answer);
    let nothing = views::why(store, &"shop/prod".parse().unwrap(), Some("99999999-aaaa")).await.unwrap();
    assert!(nothing.answer.contains("nothing is known of 99999999-aaaa"), "{}", nothing.answer);
}

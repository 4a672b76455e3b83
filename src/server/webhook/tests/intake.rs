//! The order of things, seen from the sender: cap, signature, durable row, answer.

use std::sync::Arc;

use axum::body::Bytes;
use hyper::{Request, StatusCode};

use super::{Delivery, Intake, SECRET, catalog, streamed};
use crate::config::host::Listen;
use crate::model::Secret;
use crate::server::listen;
use crate::server::webhook::body::Budget;
use crate::server::webhook::form;
use crate::server::webhook::rules::Rules;
use crate::server::webhook::verify::Keys;

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const TWO: [&str; 2] = ["shop/prod", "shop/twin"];

#[tokio::test]
async fn a_signed_push_is_on_the_disk_and_its_targets_are_awake_when_202_is_answered() {
    let intake = Intake::start().await;
    let (status, answer) = intake.send(&Delivery::of("push", "push", ID)).await;
    assert_eq!((status, answer), (StatusCode::ACCEPTED, format!(r#"{{"reason":"Woke","ask":"trueup why {ID}"}}"#)));
    assert_eq!(intake.wakes.taken(), TWO);
    let record = intake.records(ID).await.remove(0);
    assert_eq!((record.hook.as_str(), record.event.as_str(), record.secret_slot), ("12", "push", 1));
    assert_eq!((record.repository.as_deref(), record.repository_id), (Some("acme/shop"), Some(41)));
    assert_eq!(record.reference.as_deref(), Some("refs/heads/main"));
    assert_eq!(record.sha.unwrap().as_str(), "b2".repeat(20));
    assert_eq!((record.reason.as_str(), record.woken_count), ("Woke", 2));
}

#[tokio::test]
async fn the_older_content_type_is_verified_as_it_was_sent_and_understood() {
    let intake = Intake::start().await;
    let form = form::encoded(&Delivery::of("push", "push", ID).body);
    let mut delivery = Delivery::raw("push", form, ID);
    delivery.content_type = "application/x-www-form-urlencoded";
    assert_eq!(intake.send(&delivery).await.0, StatusCode::ACCEPTED);
    assert_eq!(intake.wakes.taken(), TWO);
}

#[tokio::test]
async fn unsigned_forged_and_truncated_bodies_are_401_and_reach_neither_parser_nor_store() {
    let intake = Intake::start().await;
    let good = Delivery::of("push", "push", ID);
    let unsigned = Delivery { signature: None, ..good.clone() };
    let old_scheme =
        Delivery { signature: Some("sha1=0123456789012345678901234567890123456789".to_owned()), ..good.clone() };
    let mut forged = good.clone();
    forged.body.push(b' ');
    let mut truncated = good.clone();
    truncated.body.truncate(100);
    let empty = Delivery { body: Vec::new(), ..good.clone() };
    for delivery in [
        unsigned,
        old_scheme,
        forged,
        truncated,
        empty,
        good.clone().signed_with("another secret, of an organisation's hook"),
    ] {
        let (status, answer) = intake.send(&delivery).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
    }
    assert_eq!((intake.count().await, intake.wakes.taken().len()), (0, 0));
    let refusal = intake.refusals.find(ID).unwrap();
    assert_eq!((refusal.hook.as_str(), refusal.event.as_str(), refusal.status), ("12", "push", 401));
    assert!(refusal.message.contains("tried was secret 1 of"), "{}", refusal.message);
    assert!(!format!("{refusal:?}").contains(SECRET));
    assert_eq!(intake.send(&good).await.0, StatusCode::ACCEPTED, "the real one goes through afterwards");
}

#[tokio::test]
async fn during_a_rotation_both_secrets_are_accepted_and_the_record_says_which() {
    let intake = Intake::start().await;
    let secrets = ["the secret that replaces it", SECRET].map(|text| Secret::new(text.to_owned()));
    intake.rules.send_replace(Arc::new(Rules { keys: Keys::new(&secrets), cap: 1 << 20 }));
    for (id, secret, slot) in [("00000001-a", secrets[0].expose(), 1), ("00000002-a", SECRET, 2)] {
        assert_eq!(intake.send(&Delivery::of("push", "push", id).signed_with(secret)).await.0, StatusCode::ACCEPTED);
        assert_eq!(intake.records(id).await[0].secret_slot, slot);
    }
    let (status, _) = intake.send(&Delivery::of("push", "push", ID).signed_with("neither")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(intake.refusals.find(ID).unwrap().message.contains("secrets 1 and 2"));
}

#[tokio::test]
async fn a_giant_is_413_whether_it_announces_itself_or_not() {
    let intake = Intake::start().await;
    let keys = intake.rules.borrow().keys.clone();
    intake.rules.send_replace(Arc::new(Rules { keys, cap: 100_000 }));
    let giant = Delivery::raw("push", vec![b' '; 100_001], ID);
    assert_eq!(intake.send(&giant).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let pieces = (0..200).map(|_| Bytes::from(vec![b' '; 1000]));
    let (status, _) = intake.exchange(giant.request().body(streamed(pieces)).unwrap()).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(intake.count().await, 0);
    let fits = Delivery::raw("push", vec![b' '; 100_000], ID);
    assert_eq!(intake.send(&fits).await.0, StatusCode::ACCEPTED, "one byte less is taken, and stored as unreadable");
    assert_eq!(intake.records(ID).await[0].reason, "Unreadable");
}

#[tokio::test]
async fn a_body_in_many_pieces_without_a_length_is_one_body() {
    let intake = Intake::start().await;
    let delivery = Delivery::of("push", "push", ID);
    let pieces: Vec<Bytes> = delivery.body.chunks(7).map(Bytes::copy_from_slice).collect();
    let (status, _) = intake.exchange(delivery.request().body(streamed(pieces.into_iter())).unwrap()).await;
    assert_eq!((status, intake.wakes.taken()), (StatusCode::ACCEPTED, TWO.map(String::from).to_vec()));
}

#[tokio::test]
async fn a_used_up_budget_is_503_and_comes_back() {
    let intake = Intake::with(Budget::of(50)).await;
    assert_eq!(intake.send(&Delivery::of("push", "push", ID)).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(intake.send(&Delivery::raw("push", vec![b'{', b'}'], ID)).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_sender_that_breaks_off_leaves_nothing_and_the_next_is_served() {
    let intake = Intake::start().await;
    let delivery = Delivery::of("push", "push", ID);
    let stream = tokio::net::UnixStream::connect(&intake.socket).await.unwrap();
    let head = format!(
        "POST /webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\nx-hub-signature-256: {}\r\n\r\n{{",
        delivery.body.len(),
        delivery.signature.clone().unwrap()
    );
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(head.as_bytes()).unwrap(), head.len());
    drop(stream);
    assert_eq!(intake.send(&delivery).await.0, StatusCode::ACCEPTED);
    assert_eq!(intake.count().await, 1);
}

#[tokio::test]
async fn a_provider_without_a_secret_does_not_exist() {
    let intake = Intake::start().await;
    intake.rules.send_replace(Arc::new(Rules { keys: Keys::default(), cap: 1 << 20 }));
    assert_eq!(intake.send(&Delivery::of("push", "push", ID)).await.0, StatusCode::NOT_FOUND);
    assert_eq!((intake.count().await, intake.refusals.find(ID)), (0, None));
}

#[tokio::test]
async fn nothing_but_deliveries_and_health_is_served_without_a_token() {
    let intake = Intake::start().await;
    let places = [
        ("GET", "/healthz", StatusCode::OK),
        ("GET", "/webhooks/github", StatusCode::METHOD_NOT_ALLOWED),
        ("POST", "/webhooks/gitlab", StatusCode::NOT_FOUND),
        ("GET", "/api/v1/targets", StatusCode::NOT_FOUND),
        ("POST", "/api/v1/targets/shop/prod/sync", StatusCode::NOT_FOUND),
        ("GET", "/readyz", StatusCode::NOT_FOUND),
        ("GET", "/", StatusCode::NOT_FOUND),
    ];
    for (method, path, expected) in places {
        let request = Request::builder().method(method).uri(path).header("host", "x");
        let (status, _) = intake.exchange(request.body(streamed(std::iter::empty())).unwrap()).await;
        assert_eq!(status, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_loopback_port_can_be_listened_on() {
    let listening = listen::bind(&Listen::Tcp("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let address = listening.address().unwrap();
    assert!(address.ip().is_loopback());
    let taken = listen::bind(&Listen::Tcp(address)).await.unwrap_err().to_string();
    assert!(taken.contains(&address.to_string()), "{taken}");
}

#[tokio::test]
async fn signed_but_useless_deliveries_are_202_with_a_stored_reason() {
    let intake = Intake::start().await;
    let mut odd_type = Delivery::of("push", "push", "00000009-a");
    odd_type.content_type = "text/plain";
    let deliveries = [
        (Delivery::of("push", "push_other_repository", "00000001-a"), "UnknownRepository"),
        (Delivery::of("push", "push_tag_named_main", "00000002-a"), "OtherRef"),
        (Delivery::of("workflow_run", "run_of_fork", "00000003-a"), "ForkRun"),
        (Delivery::of("star", "star", "00000004-a"), "EventNotUsed"),
        (Delivery::of("ping", "ping", "00000005-a"), "Ping"),
        (Delivery::raw("push", b"{\"ref\": [".to_vec(), "00000006-a"), "Unreadable"),
        (Delivery::raw("push", vec![0xff, 0xfe, 0], "00000007-a"), "Unreadable"),
        (Delivery::raw("push", vec![b'['; 200_000], "00000008-a"), "Unreadable"),
        (odd_type, "Unreadable"),
    ];
    for (delivery, reason) in deliveries {
        let (status, answer) = intake.send(&delivery).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{reason}: {answer}");
        assert_eq!(intake.records(&delivery.id).await[0].reason, reason);
    }
    assert!(intake.wakes.taken().is_empty());
}

#[tokio::test]
async fn a_signed_delivery_without_its_headers_is_400() {
    let intake = Intake::start().await;
    let good = Delivery::of("push", "push", ID);
    for bad in [Delivery { id: String::new(), ..good.clone() }, Delivery { event: String::new(), ..good }] {
        assert_eq!(intake.send(&bad).await.0, StatusCode::BAD_REQUEST);
    }
    assert_eq!(intake.count().await, 0);
}

#[tokio::test]
async fn a_changed_registry_is_followed_by_the_next_delivery() {
    let intake = Intake::start().await;
    let mut changed = catalog();
    let shop = changed.projects.get_mut(&"shop".parse().unwrap()).unwrap();
    shop.targets.retain(|label, _| label.as_str() == "twin");
    intake.catalog.send_replace(Arc::new(changed));
    assert_eq!(intake.send(&Delivery::of("push", "push", ID)).await.0, StatusCode::ACCEPTED);
    assert_eq!(intake.wakes.taken(), ["shop/twin"]);
}

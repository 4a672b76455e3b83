//! What is decided about each payload, without any effect.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde::Deserialize;

use super::{catalog, testdata};
use crate::model::TargetName;
use crate::reconcile::ports::Catalog;
use crate::server::webhook::index::Index;
use crate::server::webhook::judge::{Judged, Known, Names, judge};
use crate::server::webhook::payload::Payload;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    payload: String,
    event: String,
    reason: String,
    woken: Vec<String>,
}

fn read(payload: &str) -> Payload {
    Payload::read(&testdata(&format!("{payload}.json"))).unwrap()
}

fn woken(judged: &Judged) -> Vec<String> {
    let all: BTreeSet<String> =
        judged.followers.iter().flat_map(|group| group.iter().map(ToString::to_string)).collect();
    all.into_iter().collect()
}

#[test]
fn each_payload_wakes_only_whom_it_is_about() {
    let index = Index::new(&catalog());
    let cases: Cases = toml::from_str(&String::from_utf8(testdata("cases.toml")).unwrap()).unwrap();
    let mut seen = BTreeSet::new();
    for Case { payload, event, reason, woken: expected } in cases.case {
        let judged = judge(&event, &read(&payload), Known { index: &index, names: &Names::default() });
        assert_eq!((judged.reason, woken(&judged)), (reason.as_str(), expected), "{payload}: {}", judged.message);
        assert!(!judged.message.is_empty(), "{payload}");
        seen.insert(format!("{payload}.json"));
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/webhook");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(seen, files, "every payload has a case");
}

#[test]
fn a_renamed_repository_is_found_by_its_number_and_the_message_says_what_to_change() {
    let index = Index::new(&catalog());
    let mut names = Names::default();
    let after = read("repository_renamed");
    let judged = judge("repository", &after, Known { index: &index, names: &names });
    assert_eq!(judged.learned, [(41, "acme/shop".to_owned()), (41, "acme/store".to_owned())]);
    for (id, name) in &judged.learned {
        assert!(names.learn(*id, name));
        assert!(!names.learn(*id, name));
    }
    let mut push = read("push");
    push.repository = after.repository;
    let judged = judge("push", &push, Known { index: &index, names: &names });
    assert_eq!((judged.reason, woken(&judged)), ("Woke", vec!["shop/prod".to_owned(), "shop/twin".to_owned()]));
    assert!(judged.message.contains("it is called acme/store now: change `repo`"), "{}", judged.message);
    assert_eq!(judged.learned, []);
}

#[test]
fn a_repository_that_took_a_name_over_is_told_apart() {
    let index = Index::new(&catalog());
    let mut names = Names::default();
    names.learn(8, "acme/shop");
    let judged = judge("push", &read("push"), Known { index: &index, names: &names });
    assert!(judged.message.contains("was repository 8 before and is 41 now"), "{}", judged.message);
    assert_eq!(judged.learned, [(41, "acme/shop".to_owned())]);
}

/// `count` targets, each with a repository of its own, and one that follows `acme/shop`.
fn crowd(count: usize) -> Catalog {
    let mut crowd = catalog();
    let blog = crowd.projects.values().next().unwrap().clone();
    for number in 0..count {
        let mut project = blog.clone();
        project.name = format!("p{number}").parse().unwrap();
        project.repo =
            crate::model::policy::Repository::GitHub { owner: "acme".to_owned(), name: format!("r{number}") };
        crowd.projects.insert(project.name.clone(), project);
    }
    crowd
}

#[test]
fn ten_thousand_targets_change_nothing_about_what_a_delivery_hands_out() {
    let (few, many) = (Index::new(&catalog()), Index::new(&crowd(10_000)));
    let names = Names::default();
    let push = read("push");
    let [few, many] = [&few, &many].map(|index| judge("push", &push, Known { index, names: &names }));
    assert_eq!(few, many);
    assert_eq!(many.followers.len(), 1, "the group is shared, not copied");
}

#[test]
fn many_targets_of_one_ref_are_one_shared_group() {
    let mut registry = catalog();
    let shop = registry.projects.get_mut(&"shop".parse().unwrap()).unwrap();
    let prod = shop.targets.values().next().unwrap().clone();
    for number in 0..1000 {
        shop.targets.insert(format!("t{number}").parse().unwrap(), prod.clone());
    }
    let index = Index::new(&registry);
    let of = |index: &Index| index.followers("acme/shop", "refs/heads/main").unwrap().clone();
    assert_eq!(of(&index).len(), 1002);
    assert!(std::sync::Arc::ptr_eq(&of(&index), &of(&index)));
    assert!(of(&index).contains(&"shop/t999".parse::<TargetName>().unwrap()));
}

const EVENTS: [&str; 9] = [
    "ping",
    "push",
    "workflow_run",
    "check_suite",
    "repository",
    "installation",
    "installation_repositories",
    "",
    "\u{0}",
];

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["completed", "push", "refs/heads/main", "acme/shop", "main", "/"])
            .prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "action",
        "ref",
        "after",
        "created",
        "deleted",
        "forced",
        "repository",
        "id",
        "full_name",
        "clone_url",
        "workflow_run",
        "check_suite",
        "event",
        "head_branch",
        "head_sha",
        "conclusion",
        "head_repository",
        "app",
        "slug",
        "changes",
        "owner",
        "from",
        "user",
        "organization",
        "login",
        "name",
        "repositories",
        "repositories_added",
        "repositories_removed",
    ]);
    leaf.prop_recursive(5, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..8).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_verified_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drop(Payload::read(&bytes));
    }

    #[test]
    fn no_shape_of_a_payload_panics_and_nobody_is_woken_without_a_followed_repository(value in value()) {
        let index = Index::new(&catalog());
        let text = serde_json::to_vec(&value).unwrap();
        if let Ok(payload) = Payload::read(&text) {
            for event in EVENTS {
                let judged = judge(event, &payload, Known { index: &index, names: &Names::default() });
                prop_assert_eq!(judged.reason == "Woke", judged.count() > 0);
                prop_assert!(judged.count() == 0 || String::from_utf8_lossy(&text).to_lowercase().contains("acme/"));
            }
        }
    }

    #[test]
    fn a_payload_cut_anywhere_is_unreadable_and_no_more(cut in any::<prop::sample::Index>()) {
        let whole = testdata("push.json");
        let end = cut.index(whole.trim_ascii_end().len());
        prop_assert!(Payload::read(&whole[..end]).is_err());
    }
}

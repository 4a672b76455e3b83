//! Differences between manifests.

use serde_json::json;

use super::{Difference, Effect, app, hakopod};
use crate::model::hakopod::Application;

/// A normal form of one service, with some fields of it changed.
fn application(change: impl Fn(&mut serde_json::Value)) -> Application {
    let mut tree = json!({
        "schema_version": 1, "name": "shop", "recovery": { "on_failure": "safe" },
        "env": { "A": "1" }, "networks": { "default": {} }, "volumes": { "u": { "size_gib": 1, "access_mode": "ReadWriteOnce" } },
        "services": { "web": {
            "image": "nginx:1", "size": "small", "replicas": 1, "termination_grace_seconds": 30, "networks": ["default"],
            "update_strategy": "rolling", "run_as_user": 1, "run_as_group": 1, "fs_group": 1,
            "env": { "MODE": "hunter2" }, "files": { "f": { "mount_path": "/f", "content": "hunter2", "mode": 292 } },
        } },
    });
    change(&mut tree);
    serde_json::from_value(tree).unwrap()
}

fn changed(change: impl Fn(&mut serde_json::Value)) -> Difference {
    hakopod(&application(|_| {}), &application(change)).unwrap()
}

fn effects(difference: &Difference) -> Vec<(&str, Effect)> {
    difference.fields.iter().map(|field| (field.path.as_str(), field.effect)).collect()
}

#[test]
fn equal_manifests_differ_in_nothing() {
    assert_eq!(changed(|_| {}), Difference::default());
}

#[test]
fn each_kind_of_field_has_its_effect() {
    let web = |key: &'static str, value: serde_json::Value| {
        changed(move |tree| {
            tree["services"]["web"][key] = value.clone();
        })
    };
    for (key, value, effect) in [
        ("image", json!("nginx:2"), Effect::Rollout),
        ("replicas", json!(2), Effect::None),
        ("restart_nonce", json!("a"), Effect::Restart),
        ("update_strategy", json!("recreate"), Effect::None),
        ("suspended", json!(true), Effect::None),
        ("run_as_user", json!(2), Effect::Rollout),
    ] {
        assert_eq!(effects(&web(key, value)), [(format!("services.web.{key}").as_str(), effect)]);
    }
}

#[test]
fn immutable_fields_are_refused_with_the_way_out() {
    let difference = changed(|tree| tree["volumes"]["u"]["size_gib"] = json!(2));
    assert_eq!(effects(&difference), [("volumes.u.size_gib", Effect::Refused)]);
    assert!(difference.fields[0].way_out.is_some_and(|way| way.contains("copy")));
    for (key, value) in [("access_mode", json!("ReadWriteMany")), ("storage_class", json!("x"))] {
        let difference = changed(|tree| tree["volumes"]["u"][key] = value.clone());
        assert_eq!(difference.fields[0].effect, Effect::Refused);
    }
    let kind = changed(|tree| {
        tree["services"]["web"]["job"] = json!({ "timeout_seconds": 300, "retries": 0 });
    });
    assert!(
        kind.fields.iter().any(|field| field.effect == Effect::Refused && field.path.starts_with("services.web.job"))
    );
}

#[test]
fn values_of_variables_and_contents_are_never_shown_but_their_change_is() {
    let difference = changed(|tree| {
        tree["services"]["web"]["env"]["MODE"] = json!("hunter2-new");
        tree["services"]["web"]["files"]["f"]["content"] = json!("hunter2-new");
        tree["env"]["A"] = json!("hunter2-new");
        tree["services"]["web"]["args"] = json!(["--password=hunter2"]);
    });
    let shown = format!("{difference:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let paths: Vec<&str> = difference.fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(paths, ["env.A", "services.web.args", "services.web.env.MODE", "services.web.files.f.content"]);
    assert!(difference.text.contains("+MODE = \"<hidden, changed>\""));
}

#[test]
fn a_shared_variable_that_reaches_nobody_replaces_nothing() {
    assert_eq!(effects(&changed(|tree| tree["env"]["A"] = json!("2"))), [("env.A", Effect::None)]);
}

#[test]
fn a_service_that_comes_or_goes_is_one_field() {
    let difference = changed(|tree| {
        let web = tree["services"]["web"].clone();
        tree["services"]["api"] = web;
    });
    assert_eq!(effects(&difference), [("services.api", Effect::Rollout)]);
    assert!(!format!("{difference:?}").contains("hunter2"));
}

#[test]
fn app_manifests_are_compared_by_field() {
    let old = json!({ "schema": 1, "project": "shop", "components": { "web": { "image": "a", "port": 80 } } });
    let mut new = old.clone();
    new["components"]["web"]["port"] = json!(81);
    let difference = app(&old, &new);
    assert_eq!(effects(&difference), [("components.web.port", Effect::Rollout)]);
    assert!(difference.text.contains("-port = 80\n+port = 81"));
}

//! Releases of some services.

use std::collections::BTreeMap;

use super::super::{TargetedError, resolved_from, targeted};
use super::good;
use crate::model::hakopod::Application;

fn accepted() -> Application {
    let text = "name = \"backend\"\n[env]\nA = \"1\"\n[services.api]\nimage = \"api:1\"\nport = 1\n[services.worker]\nimage = \"w:1\"\n";
    let digest = |name: &str| format!("docker.io/library/{name}@sha256:{}", "b".repeat(64));
    let images = BTreeMap::from([("api".to_owned(), digest("api")), ("worker".to_owned(), digest("worker"))]);
    resolved_from(&good(text), &images)
}

fn submitted() -> Application {
    good(
        "name = \"backend\"\n[services.api]\nimage = \"api:2\"\nport = 1\n[services.worker]\nimage = \"w:2\"\nreplicas = 3\n",
    )
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn untouched_services_keep_their_digests_and_their_configuration() {
    let merged = targeted(&accepted(), &submitted(), None, Some(&names(&["api"]))).unwrap();
    assert_eq!(merged.services["api"].image, "api:2");
    assert_eq!(merged.services["worker"], accepted().services["worker"]);
    assert_eq!(merged.env, accepted().env);
    let both = targeted(&accepted(), &submitted(), None, Some(&names(&["api", "worker"]))).unwrap();
    assert_eq!(both.services["worker"].replicas, 3);
    assert_eq!(targeted(&accepted(), &submitted(), Some("api"), None).unwrap(), merged);
    assert_eq!(targeted(&accepted(), &submitted(), None, None).unwrap(), submitted());
}

#[test]
fn selections_are_held_to_the_contract() {
    let ask = |service: Option<&str>, services: Option<&[&str]>| {
        let services = services.map(names);
        targeted(&accepted(), &submitted(), service, services.as_deref()).unwrap_err()
    };
    assert_eq!(ask(Some("api"), Some(&["api"])), TargetedError::Both);
    assert_eq!(ask(None, Some(&[])), TargetedError::Empty);
    assert_eq!(ask(None, Some(&["a"; 21])), TargetedError::Many(21));
    assert_eq!(ask(None, Some(&["api", ""])), TargetedError::EmptyName(1));
    assert_eq!(ask(None, Some(&["api", "api"])), TargetedError::Repeated(1));
    assert_eq!(ask(None, Some(&["api", "db"])), TargetedError::Unknown(1));
}

#[test]
fn shared_things_change_with_the_whole_application_only() {
    for (line, field) in [
        ("env = { A = \"2\" }", "env"),
        ("inject_env = true", "inject_env"),
        ("secrets = { S = { ref = \"s\" } }", "secrets"),
        ("networks = { n = {} }", "networks"),
        ("volumes = { v = { size_gib = 1 } }", "volumes"),
    ] {
        let new = good(&format!("name = \"backend\"\n{line}\n[services.api]\nimage = \"api:2\"\n"));
        let refused = targeted(&accepted(), &new, Some("api"), None).unwrap_err();
        assert_eq!(refused, TargetedError::Shared(field));
    }
    let other = good("name = \"other\"\n[services.api]\nimage = \"api:2\"\n");
    assert_eq!(targeted(&accepted(), &other, Some("api"), None).unwrap_err(), TargetedError::OtherApplication);
}

#[test]
fn a_base_whose_images_are_not_resolved_has_to_be_waited_for() {
    let base = good("name = \"backend\"\n[services.api]\nimage = \"api:1\"\n[services.worker]\nimage = \"w:1\"\n");
    let refused = targeted(&base, &submitted(), Some("api"), None).unwrap_err();
    assert_eq!(refused, TargetedError::Unresolved("worker".to_owned()));
}

#[test]
fn what_comes_of_a_merge_obeys_every_rule() {
    let new = good(
        "name = \"backend\"\n[services.api]\nimage = \"api:2\"\nport = 1\ndepends_on = [\"extra\"]\n[services.extra]\nimage = \"e\"\n",
    );
    let refused = targeted(&accepted(), &new, Some("api"), None).unwrap_err();
    assert!(matches!(refused, TargetedError::Refused(_)), "{refused:?}");
}

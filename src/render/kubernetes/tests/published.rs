//! Rendered objects against the published types of a current Kubernetes: each reads into its type, and
//! comes out as it went in, so that an unknown or misplaced field is noticed.

use k8s_openapi::api::{apps, autoscaling, batch, core, networking};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::tests::corpus;

fn strict<T: DeserializeOwned + Serialize>(value: &Value) -> Result<(), String> {
    let typed: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let back = serde_json::to_value(typed).unwrap();
    if &back == value { Ok(()) } else { Err(format!("{back:#}\nis not\n{value:#}")) }
}

/// What the published types say of an object.
pub(super) fn check(object: &Object) -> Result<(), String> {
    let value = &object.value;
    match (object.api_version(), object.kind()) {
        ("v1", "Namespace") => strict::<core::v1::Namespace>(value),
        ("v1", "ResourceQuota") => strict::<core::v1::ResourceQuota>(value),
        ("v1", "ConfigMap") => strict::<core::v1::ConfigMap>(value),
        ("v1", "PersistentVolumeClaim") => strict::<core::v1::PersistentVolumeClaim>(value),
        ("v1", "Service") => strict::<core::v1::Service>(value),
        ("apps/v1", "Deployment") => strict::<apps::v1::Deployment>(value),
        ("batch/v1", "Job") => strict::<batch::v1::Job>(value),
        ("batch/v1", "CronJob") => strict::<batch::v1::CronJob>(value),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => strict::<autoscaling::v2::HorizontalPodAutoscaler>(value),
        ("networking.k8s.io/v1", "Ingress") => strict::<networking::v1::Ingress>(value),
        ("networking.k8s.io/v1", "NetworkPolicy") => strict::<networking::v1::NetworkPolicy>(value),
        (version, kind) => Err(format!("{version} {kind} is not checked")),
    }
}

fn check_all(file: &str, rendered: &Rendered) {
    for object in &rendered.objects {
        check(object).unwrap_or_else(|why| panic!("{file}: {} {}: {why}", object.kind(), object.name()));
    }
}

#[test]
fn every_case_has_the_published_shape() {
    for (file, text) in all().into_iter().filter(|(_, text)| !text.contains("# refused")) {
        let rendered = rendered(&application(&file, &text), &settings("main"), &server(NEWEST_MINOR)).unwrap();
        check_all(&file, &rendered);
    }
}

#[test]
fn every_accepted_file_of_the_corpus_renders_in_the_published_shape() {
    let mut count = 0;
    for (file, application) in corpus::applications() {
        let settings = ClusterSettings::preview(&application);
        match rendered(&application, &settings, &server(NEWEST_MINOR)) {
            Ok(rendered) => {
                check_all(&file, &rendered);
                count += 1;
            }
            Err(problems) => {
                let is_known = |key: &str| key.ends_with(".database_client_profiles");
                assert!(problems.list.iter().all(|one| is_known(&one.key)), "{file}: {:#?}", problems.list);
            }
        }
    }
    assert!(count >= 30, "only {count} files rendered");
}

#[test]
fn a_field_that_is_not_published_is_noticed() {
    let application = application("whole", &edits::text("render/kubernetes/whole.toml"));
    let rendered = rendered(&application, &settings("main"), &server(NEWEST_MINOR)).unwrap();
    let mut deployment = rendered.objects.into_iter().find(|object| object.kind() == "Deployment").unwrap();
    check(&deployment).unwrap();
    deployment.value["spec"]["template"]["spec"]["replicas"] = Value::from(1);
    assert!(check(&deployment).is_err());
}

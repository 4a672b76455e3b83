//! Merging and protection.

use serde_json::{Value, json};

use super::*;

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "labels": { "run.trueup.owner": "x" } },
        "spec": { "replicas": 1, "template": { "metadata": { "labels": { "run.trueup.owner": "x" } }, "spec": {
            "containers": [{
                "name": "app",
                "image": "nginx",
                "env": [{ "name": "A", "value": "1" }],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "web-data" } }],
        }}},
    })
}

fn place(kind: Kind) -> Place {
    Place { key: format!("services.web.kubernetes.{}", kind.word()), kind, is_granted: true }
}

fn patched(object: Value, patch: &str, kind: Kind) -> Result<Value, String> {
    let mut list = Vec::new();
    let merged = apply(object, Some(patch), &place(kind), &mut list);
    if list.is_empty() {
        Ok(merged)
    } else {
        Err(list.iter().map(|one| one.message.clone()).collect::<Vec<_>>().join("\n"))
    }
}

#[test]
fn a_patch_adds_to_lists_by_their_keys_and_removes_with_null() {
    let patch = "
metadata: {annotations: {team: shop}}
spec:
  minReadySeconds: 5
  template:
    spec:
      priorityClassName: high
      containers:
        - name: app
          env: [{name: B, value: '2'}]
          lifecycle: {preStop: {exec: {command: [sleep, '5']}}}
      volumes: [{name: more, emptyDir: {}}]
";
    let merged = patched(deployment(), patch, Kind::Deployment).unwrap();
    let pod = merged.pointer("/spec/template/spec").unwrap();
    let app = pod.pointer("/containers/0").unwrap();
    assert_eq!(app["image"], "nginx");
    assert_eq!(app["env"], json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]));
    assert_eq!(app["lifecycle"]["preStop"]["exec"]["command"][0], "sleep");
    assert_eq!(pod["volumes"].as_array().map(Vec::len), Some(2));
    assert_eq!((&pod["priorityClassName"], &merged["spec"]["minReadySeconds"]), (&json!("high"), &json!(5)));
    assert_eq!(merged["metadata"]["labels"]["run.trueup.owner"], "x");
}

#[test]
fn every_protected_field_is_refused_and_named() {
    let pod = |text: &str| format!("{{spec: {{template: {{spec: {{{text}}}}}}}}}");
    let app = |text: &str| pod(&format!("containers: [{{name: app, {text}}}]"));
    let cases = [
        ("{apiVersion: apps/v1}".to_owned(), "`apiVersion`"),
        ("{kind: Deployment}".to_owned(), "`kind`"),
        ("{status: {}}".to_owned(), "`status`"),
        ("{metadata: {name: x}}".to_owned(), "`metadata.name`"),
        ("{metadata: {namespace: x}}".to_owned(), "`metadata.namespace`"),
        ("{metadata: {ownerReferences: []}}".to_owned(), "`metadata.ownerReferences`"),
        ("{metadata: {labels: {run.trueup.owner: y}}}".to_owned(), "`metadata.labels.run.trueup.owner`"),
        ("{metadata: {labels: {hakopod.io/service: y}}}".to_owned(), "`metadata.labels.hakopod.io/service`"),
        ("{metadata: {labels: null}}".to_owned(), "`metadata.labels`"),
        ("{metadata: null}".to_owned(), "`metadata`"),
        ("{spec: {replicas: 1}}".to_owned(), "`spec.replicas`"),
        ("{spec: {selector: {}}}".to_owned(), "`spec.selector`"),
        ("{spec: {strategy: {$retainKeys: [type], type: Recreate}}}".to_owned(), "`spec.strategy`"),
        ("{spec: {$patch: replace}}".to_owned(), "`spec.$patch`"),
        ("{spec: null}".to_owned(), "`spec`"),
        (pod("hostNetwork: true"), "`spec.template.spec.hostNetwork`"),
        (pod("serviceAccountName: x"), "`spec.template.spec.serviceAccountName`"),
        (pod("nodeName: x"), "`spec.template.spec.nodeName`"),
        (pod("securityContext: {runAsUser: 0}"), "`spec.template.spec.securityContext`"),
        (pod("initContainers: [{name: x, image: y}]"), "`spec.template.spec.initContainers`"),
        (pod("containers: [{name: x, image: y}]"), "`spec.template.spec.containers.image`"),
        (pod("containers: [{name: x}]"), "`spec.template.spec.containers`"),
        (pod("containers: [{name: app, $patch: delete}]"), "`spec.template.spec.containers.$patch`"),
        (pod("$setElementOrder/containers: [{name: app}]"), "`spec.template.spec.$setElementOrder/containers`"),
        (pod("volumes: [{name: x, hostPath: {path: /}}]"), "`spec.template.spec.volumes`"),
        (
            pod("volumes: [{name: x, projected: {sources: [{serviceAccountToken: {path: t}}]}}]"),
            "`spec.template.spec.volumes`",
        ),
        (pod("volumes: [{name: data, emptyDir: {}}]"), "`spec.template.spec.volumes`"),
        (app("image: x"), "`spec.template.spec.containers.image`"),
        (app("securityContext: {privileged: true}"), "`spec.template.spec.containers.securityContext`"),
        (app("ports: []"), "`spec.template.spec.containers.ports`"),
        (app("resources: {}"), "`spec.template.spec.containers.resources`"),
        (app("env: [{name: A, value: '2'}]"), "`spec.template.spec.containers.env`"),
        (app("env: [{name: A, $patch: delete}]"), "`spec.template.spec.containers.env`"),
        (app("env: null"), "`spec.template.spec.containers.env`"),
        (app("volumeMounts: [{mountPath: /data, name: other}]"), "`spec.template.spec.containers.volumeMounts`"),
    ];
    for (patch, field) in cases {
        let refused = patched(deployment(), &patch, Kind::Deployment).expect_err(&patch);
        assert!(refused.contains(&format!("changes the protected field {field}")), "{patch}: {refused}");
    }
}

#[test]
fn services_and_ingresses_protect_what_routes_to_them() {
    for (kind, patch) in [
        (Kind::Service, "{spec: {type: LoadBalancer}}"),
        (Kind::Service, "{spec: {ports: [{port: 80, nodePort: 30000}]}}"),
        (Kind::Service, "{spec: {externalIPs: [192.0.2.1]}}"),
        (Kind::Ingress, "{spec: {rules: []}}"),
        (Kind::Ingress, "{spec: {ingressClassName: other}}"),
        (Kind::Ingress, "{metadata: {annotations: {cert-manager.io/cluster-issuer: x}}}"),
        (Kind::Ingress, "{metadata: {annotations: {nginx.ingress.kubernetes.io/configuration-snippet: x}}}"),
    ] {
        let object = json!({ "metadata": {}, "spec": {} });
        assert!(patched(object, patch, kind).is_err(), "{patch}");
    }
    let object = json!({ "metadata": {}, "spec": {} });
    let merged = patched(object, "{spec: {sessionAffinity: ClientIP}}", Kind::Service).unwrap();
    assert_eq!(merged["spec"]["sessionAffinity"], "ClientIP");
}

#[test]
fn what_is_no_patch_is_refused_without_showing_it() {
    for patch in
        ["- a", "text", "a: [", "spec: {minReadySeconds: 1}\nspec: {}", "spec: {$unknown/x: 1, minReadySeconds: 1}"]
    {
        let refused = patched(deployment(), patch, Kind::Deployment).expect_err(patch);
        assert!(
            refused.starts_with("services.web.kubernetes.deployment ") && !refused.contains("minReady"),
            "{refused}"
        );
    }
}

#[test]
fn without_the_grant_nothing_is_applied() {
    let mut list = Vec::new();
    let place = Place { is_granted: false, ..place(Kind::Deployment) };
    let merged = apply(deployment(), Some("{spec: {minReadySeconds: 9}}"), &place, &mut list);
    assert_eq!((merged, list.len()), (deployment(), 0));
}

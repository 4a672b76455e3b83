//! Rendered objects against a real API server: each is sent as a server-side apply that is not stored.
//!
//! The server is that of `deploy/cluster api`; `deploy/test.sh` builds and starts it. `TRUEUP_KUBECONFIG`
//! names another one.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Certificate, Client, Method, StatusCode};
use serde_json::{Value, json};

use super::{corpus, edits};
use crate::manifest::hakopod;
use crate::model::cluster::ClusterSettings;
use crate::model::hakopod::Application;
use crate::render::kubernetes::{Context, FIELD_MANAGER, Object, Rendered, Server, render};

/// Where `deploy/cluster` writes the way to its server.
const KUBECONFIG: &str = "/run/trueup-cluster/kubeconfig";
const HOW: &str = "no API server answers: run `deploy/cluster api` (or `deploy/test.sh`, which does it)";

struct Api {
    client: Client,
    server: String,
    token: String,
    minor: u32,
}

impl Api {
    async fn connect() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let path = std::env::var("TRUEUP_KUBECONFIG").unwrap_or_else(|_| KUBECONFIG.to_owned());
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}; {HOW}"));
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let word = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let authority = std::fs::read(word("/clusters/0/cluster/certificate-authority")).unwrap();
        let client = Client::builder()
            .tls_certs_only(Certificate::from_pem_bundle(&authority).unwrap())
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        let mut api =
            Self { client, server: word("/clusters/0/cluster/server"), token: word("/users/0/user/token"), minor: 0 };
        let (status, version) = api.ask(Method::GET, "/version", None).await;
        assert_eq!(status, StatusCode::OK, "{HOW}");
        let minor = version["minor"].as_str().unwrap_or_default();
        api.minor = minor.trim_end_matches('+').parse().unwrap();
        api
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.server)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.header("content-type", "application/apply-patch+yaml").body(body.to_string());
        }
        let response = request.send().await.unwrap_or_else(|error| panic!("{error}; {HOW}"));
        let status = response.status();
        (status, response.json().await.unwrap_or(Value::Null))
    }

    /// Applies, or asks what applying would do.
    async fn apply(&self, object: &Object, dry_run: bool) -> (StatusCode, Value) {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict&force=true{dry_run}", path(object));
        self.ask(Method::PATCH, &path, Some(&object.value)).await
    }

    fn rendered(&self, application: &Application, settings: &ClusterSettings, project: &str) -> Option<Rendered> {
        let named = ["kube-system", "haproxy-controller", "ingress-nginx", "traefik"];
        let server = Server { named_namespaces: named.map(str::to_owned).into(), ..Server::of_minor(self.minor) };
        let context = Context::preview("hakopod.toml", (project, "dry-run"), (settings, &server));
        render(application, &context).ok()
    }

    /// Asks the server about every object; what it refuses is told with the file.
    async fn refused(&self, file: &str, rendered: &Rendered) -> Vec<String> {
        let (namespace, others) = rendered.objects.split_first().unwrap();
        let (status, answer) = self.apply(namespace, false).await;
        assert!(status.is_success(), "{file}: {answer}");
        let mut refused = Vec::new();
        for object in others {
            let (status, answer) = self.apply(object, true).await;
            if !status.is_success() {
                refused.push(format!("{file}: {} {}: {}", object.kind(), object.name(), answer["message"]));
            }
        }
        let (status, answer) =
            self.ask(Method::DELETE, &format!("/api/v1/namespaces/{}", namespace.name()), None).await;
        assert!(status.is_success(), "{file}: {answer}");
        refused
    }
}

/// The address of an object.
fn path(object: &Object) -> String {
    let kinds = BTreeMap::from([
        ("Namespace", "namespaces"),
        ("NetworkPolicy", "networkpolicies"),
        ("ResourceQuota", "resourcequotas"),
        ("ConfigMap", "configmaps"),
        ("PersistentVolumeClaim", "persistentvolumeclaims"),
        ("Service", "services"),
        ("Deployment", "deployments"),
        ("Job", "jobs"),
        ("CronJob", "cronjobs"),
        ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("Ingress", "ingresses"),
    ]);
    let plural = kinds[object.kind()];
    let group = match object.api_version() {
        core if !core.contains('/') => format!("/api/{core}"),
        group => format!("/apis/{group}"),
    };
    match object.namespace() {
        "" => format!("{group}/{plural}/{}", object.name()),
        namespace => format!("{group}/namespaces/{namespace}/{plural}/{}", object.name()),
    }
}

/// A project of its own for each run, so that no namespace is one that is still going away.
fn project() -> String {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().file_name().unwrap().to_str().unwrap().to_ascii_lowercase();
    format!("dry{}", name.trim_start_matches('.'))
}

#[tokio::test]
async fn a_real_api_server_accepts_every_object_of_the_corpus() {
    let api = Api::connect().await;
    let project = project();
    let mut refused = Vec::new();
    let mut count = 0;
    for (file, application) in corpus::applications() {
        let settings = ClusterSettings { issuer: Some("any".to_owned()), ..ClusterSettings::preview(&application) };
        if let Some(rendered) = api.rendered(&application, &settings, &format!("{project}{count}")) {
            refused.extend(api.refused(&file, &rendered).await);
            count += 1;
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(count >= 30, "only {count} files rendered");
}

#[tokio::test]
async fn a_real_api_server_accepts_every_object_of_our_own_cases() {
    let api = Api::connect().await;
    let project = project();
    let mut refused = Vec::new();
    let directory = edits::testdata("render/kubernetes");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for (number, path) in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).enumerate() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let application = hakopod::parse(&std::fs::read(path).unwrap(), file).unwrap();
        let settings = ClusterSettings { issuer: Some("any".to_owned()), ..ClusterSettings::preview(&application) };
        if let Some(rendered) = api.rendered(&application, &settings, &format!("{project}{number}")) {
            refused.extend(api.refused(file, &rendered).await);
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[tokio::test]
async fn a_real_api_server_refuses_a_field_in_the_wrong_place() {
    let api = Api::connect().await;
    let application = hakopod::parse(edits::text("render/kubernetes/whole.toml").as_bytes(), "whole.toml").unwrap();
    let settings = ClusterSettings::preview(&application);
    let mut rendered = api.rendered(&application, &settings, &project()).unwrap();
    for object in rendered.objects.iter_mut().filter(|object| object.kind() == "Deployment") {
        object.value["spec"]["template"]["spec"]["replicas"] = json!(1);
    }
    let refused = api.refused("whole.toml", &rendered).await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].starts_with("whole.toml: Deployment web: "), "{refused:?}");
}

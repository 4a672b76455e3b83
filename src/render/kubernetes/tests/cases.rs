//! The table, and what does not fit it.

use std::fmt::Write as _;

use super::*;

fn line<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)).map(str::trim)
}

/// What a case is answered with.
fn answer(file: &str, text: &str) -> String {
    let settings = settings(line(text, "settings:").unwrap_or("main"));
    let minor = line(text, "minor:").map_or(NEWEST_MINOR, |minor| minor.parse().unwrap());
    let server = if line(text, "unnamed namespaces").is_some() { Server::of_minor(minor) } else { server(minor) };
    let result = rendered(&application(file, text), &settings, &server);
    if line(text, "refused").is_some() {
        let problems = result.expect_err(file);
        let lines =
            problems.list.iter().map(|one| format!("{}\n  why: {}\n  do:  {}\n", one.message, one.why, one.fix));
        return lines.collect();
    }
    let rendered = result.unwrap_or_else(|problems| panic!("{file}: {:#?}", problems.list));
    let shown = line(text, "show:").unwrap_or_else(|| panic!("{file} has no `# show:`")).split_whitespace();
    shown.map(|what| show(&rendered, what)).collect()
}

fn show(rendered: &Rendered, what: &str) -> String {
    if what == "secrets" {
        return secrets_of(rendered);
    }
    let (object, pointer) = what.split_once(':').unwrap_or((what, ""));
    let (kind, name) = object.split_once('/').map_or((object, None), |(kind, name)| (kind, Some(name)));
    let mut text = String::new();
    let is_meant = |one: &&Object| one.kind() == kind && name.is_none_or(|name| one.name() == name);
    for one in rendered.objects.iter().filter(is_meant) {
        if pointer.is_empty() {
            text.push_str(&yaml::documents(std::slice::from_ref(one)));
        } else {
            let part = one.value.pointer(pointer).unwrap_or(&Value::Null);
            write!(text, "--- # {kind} {} {pointer}\n{}", one.name(), yaml::document(part)).unwrap();
        }
    }
    text
}

fn secrets_of(rendered: &Rendered) -> String {
    let mut text = String::from("--- # Secrets\n");
    for shape in &rendered.secrets {
        writeln!(text, "{}:", shape.name).unwrap();
        for (key, source) in &shape.keys {
            let source = match source {
                SecretSource::Reference(reference) => format!("{reference:?}"),
                SecretSource::Url(binding, port) => binding_url(binding, *port, "PASSWORD"),
                SecretSource::Certificate(name) => format!("certificate {name}"),
                SecretSource::RegistryCredential(name) => format!("credential {name}"),
            };
            writeln!(text, "  {key}: {source}").unwrap();
        }
    }
    text
}

#[test]
fn objects_match_their_cases() {
    let mut wrong = Vec::new();
    for (file, text) in all() {
        let answer = answer(&file, &text);
        let path = edits::testdata(&format!("render/kubernetes/{file}.yaml"));
        if std::env::var_os("TRUEUP_UPDATE").is_some() {
            std::fs::write(&path, &answer).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if answer != expected {
            wrong.push(format!("{file}:\n{answer}\n=== but the file says\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_release_changes_annotations_and_never_a_pod() {
    let application = application("whole", &edits::text("render/kubernetes/whole.toml"));
    let (settings, server) = (settings("main"), server(NEWEST_MINOR));
    let release =
        |number| Release { target: "shop/web".to_owned(), number, revision: "a".repeat(40), manifest: "b".repeat(64) };
    let of = |release: &Release| {
        let preview = Context::preview("x", ("shop", "production"), (&settings, &server));
        let context = Context { release: Some(release), instance: Some("here"), ..preview };
        render(&application, &context).unwrap()
    };
    let (first, second) = (of(&release(1)), of(&release(2)));
    let deployment = |rendered: &Rendered| {
        rendered.objects.iter().find(|object| object.kind() == "Deployment").unwrap().value.clone()
    };
    let (first, second) = (deployment(&first), deployment(&second));
    assert_eq!(first["metadata"]["annotations"]["run.trueup.release"], "1");
    assert_eq!(second["metadata"]["annotations"]["run.trueup.release"], "2");
    assert_eq!(first["spec"], second["spec"]);
    assert_eq!(first["metadata"]["labels"]["run.trueup.instance"], "here");
}

#[test]
fn digests_secret_versions_and_running_replicas_come_from_the_context() {
    let text = "name = 'x'\n[services.web]\nimage = 'nginx'\nport = 80\nsecrets = { KEY = { ref = 'key' } }\nautoscaling = { max_replicas = 9 }\n";
    let application = application("context", text);
    let (settings, server) = (settings("main"), server(NEWEST_MINOR));
    let pinned = format!("docker.io/library/nginx@sha256:{}", "1".repeat(64));
    let context = Context {
        images: [("nginx".to_owned(), pinned.clone())].into(),
        secret_versions: [("web".to_owned(), "v3".to_owned())].into(),
        running_replicas: [("web".to_owned(), 7)].into(),
        ..Context::preview("x", ("shop", "production"), (&settings, &server))
    };
    let rendered = render(&application, &context).unwrap();
    let deployment = &rendered.objects.iter().find(|object| object.kind() == "Deployment").unwrap().value;
    let app = deployment.pointer("/spec/template/spec/containers/0").unwrap();
    assert_eq!((&app["image"], &deployment["spec"]["replicas"]), (&Value::from(pinned), &Value::from(7)));
    assert_eq!(app["env"][0]["valueFrom"]["secretKeyRef"]["name"], "web.environment.v3");
    assert_eq!(rendered.secrets[0].name, "web.environment.v3");
}

#[test]
fn workloads_come_after_what_they_depend_on_and_routes_after_workloads() {
    let text = "name = 'x'\n[services.a]\nimage = 'nginx'\nport = 80\npublic = true\ndepends_on = ['z']\n[services.z]\nimage = 'nginx'\nport = 81\n";
    let rendered = rendered(&application("order", text), &settings("main"), &server(NEWEST_MINOR)).unwrap();
    let order: Vec<String> = rendered.objects.iter().map(|one| format!("{} {}", one.kind(), one.name())).collect();
    let at = |what: &str| order.iter().position(|one| one == what).unwrap();
    assert_eq!(at(&format!("Namespace {}", namespace_name("shop", "production", "x"))), 0);
    assert!(at("NetworkPolicy trueup-service-z") < at("Service a") && at("Service z") < at("Deployment z"));
    assert!(at("Deployment z") < at("Deployment a") && at("Deployment a") < at("Ingress a"));
}

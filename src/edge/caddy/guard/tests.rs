//! The guard without a Caddy: configurations as 2.6 and later releases write them.

use super::*;

fn site(hosts: &[&str], group: &str, body: &str) -> Value {
    json!({
        "match": [{ "host": hosts }],
        "handle": [{ "handler": "subroute", "routes": [
            { "group": group, "handle": [{ "handler": "static_response", "body": body }] },
        ] }],
        "terminal": true,
    })
}

fn config(routes: Value) -> Value {
    json!({ "apps": { "http": { "servers": { "srv0": { "listen": [":443"], "routes": routes } } } } })
}

fn ours() -> Hosts {
    ["shop.example.org".to_owned()].into()
}

fn objection_of(before: Value, after: Value) -> Option<String> {
    objection(&config(before), &config(after), &ours())
}

#[test]
fn our_site_may_come_change_and_go() {
    let foreign = site(&["a.example.org"], "group2", "a");
    let shifted = site(&["a.example.org"], "group5", "a");
    let (one, two) = (site(&["shop.example.org"], "group2", "1"), site(&["shop.example.org"], "group2", "2"));
    assert_eq!(objection_of(json!([foreign]), json!([one, shifted])), None);
    assert_eq!(objection_of(json!([one, shifted]), json!([shifted, two])), None);
    assert_eq!(objection_of(json!([one, shifted]), json!([foreign])), None);
    assert_eq!(objection_of(Value::Null, json!([one])), None);
}

#[test]
fn every_other_change_is_named() {
    let (a, b) = (site(&["a.example.org"], "g", "a"), site(&["b.example.org"], "g", "b"));
    let wild = site(&["*.example.org"], "g", "w");
    for (before, after, said) in [
        (json!([a, b]), json!([a]), "the load would stop serving b.example.org"),
        (json!([a]), json!([a, b]), "order of sites on listener :443; site b.example.org on listener :443"),
        (json!([a, wild]), json!([wild, a]), "order of sites on listener :443"),
        (json!([a]), json!([site(&["a.example.org"], "g", "c")]), "site a.example.org on listener :443"),
        (json!([a]), json!([a, { "handle": [] }]), "order of sites on listener :443; site any host on listener :443"),
    ] {
        let objection = objection_of(before, after).unwrap();
        assert!(objection.ends_with(said), "{objection}");
    }
    let mixed = site(&["a.example.org", "shop.example.org"], "g", "both");
    let objection = objection_of(json!([mixed]), json!([a])).unwrap();
    assert!(objection.contains("together with others (a.example.org shop.example.org)"), "{objection}");
}

#[test]
fn a_change_outside_the_sites_is_named_too() {
    let before = config(json!([]));
    for (place, value, said) in [
        ("admin", json!({ "disabled": true }), "`admin`"),
        ("logging", json!({ "logs": { "default": { "level": "DEBUG" } } }), "log `default`"),
        ("apps", json!({ "layer4": {} }), "app `layer4`"),
        (
            "apps",
            json!({ "tls": { "automation": { "policies": [{ "subjects": ["a.example.org"], "on_demand": true }] } } }),
            "TLS automation for a.example.org",
        ),
        (
            "apps",
            json!({ "tls": { "automation": { "policies": [{ "on_demand": true }] } } }),
            "TLS automation for every host",
        ),
        (
            "apps",
            json!({ "tls": { "certificates": { "load_files": [{ "certificate": "/c.pem", "tags": ["cert0"] }] } } }),
            "certificate /c.pem",
        ),
        ("apps", json!({ "http": { "http_port": 81 } }), "app `http`, `http_port`"),
    ] {
        let mut after = before.clone();
        after[place] = value;
        let objection = objection(&before, &after, &ours()).unwrap();
        assert!(objection.contains(&format!("not ours: {said}")), "{objection}");
    }
}

/// Since 2.8 a host may have several logs, and their names are arrays.
#[test]
fn access_logs_of_both_forms_are_told_apart_by_where_they_write() {
    let with = |names: Value, logs: Value| {
        let mut whole = config(json!([site(&["a.example.org"], "g", "a"), site(&["shop.example.org"], "g", "s")]));
        whole["apps"]["http"]["servers"]["srv0"]["logs"] = json!({ "logger_names": names, "skip_hosts": ["x"] });
        whole["logging"] = json!({ "logs": logs });
        whole
    };
    let log = |file: &str, name: &str| json!({ "writer": { "filename": file }, "include": [format!("http.log.access.{name}")] });
    let default = |names: &[&str]| json!({ "exclude": names });
    let alone = with(
        json!({ "a.example.org": ["log0"] }),
        json!({ "log0": log("/a", "log0"), "default": default(&["http.log.access.log0"]) }),
    );
    let both = |name_a: &str, name_ours: &str, file_a: &str| {
        let names = json!({ "a.example.org": [name_a], "shop.example.org": [name_ours] });
        let excluded = [format!("http.log.access.{name_a}"), format!("http.log.access.{name_ours}")];
        let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
        let mut logs = json!({ "default": default(&excluded) });
        logs[name_a] = log(file_a, name_a);
        logs[name_ours] = log("/s", name_ours);
        with(names, logs)
    };
    assert_eq!(objection(&alone, &both("log1", "log0", "/a"), &ours()), None);
    let objection = objection(&alone, &both("log1", "log0", "/elsewhere"), &ours()).unwrap();
    assert!(objection.contains("access log of a.example.org on listener :443"), "{objection}");
}

//! The tables that have names.

use std::collections::BTreeMap;

use super::read::TOP_LEVEL;
use super::sections::{optional, path};
use super::{Cluster, Notify, Role, Token, Upstream};
use crate::config::cluster as parts;
use crate::model::cluster::{Grants, IngressDialect, Limits};
use crate::model::document::{Refusal, Table, Value, form, net};
use crate::model::outcome::Outcome;
use crate::model::{Digest, ProjectName};

/// Reads `[<key>.<name>]` tables, each by `one`; an absent key is none.
pub(super) fn read<'d, T>(
    root: &Table<'d>,
    key: &str,
    one: impl Fn(&Table<'d>) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    let Some(value) = root.get(key) else {
        return Some(BTreeMap::new());
    };
    let table = value.table()?;
    let mut tables = BTreeMap::new();
    let mut is_good = true;
    for (name, value) in table.entries() {
        let label = entry_name(key, name);
        let read = value.table().and_then(|table| one(&table));
        match (label, read) {
            (Ok(()), Some(read)) => {
                tables.insert(name.to_owned(), read);
            }
            (Err(refusal), _) => {
                table.refuse_key(name, refusal);
                is_good = false;
            }
            (Ok(()), None) => is_good = false,
        }
    }
    is_good.then_some(tables)
}

/// Boxes are containers and may have Docker's longer names; everything else has a label.
fn entry_name(key: &str, name: &str) -> Result<(), Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_box = key == "boxes"
        && name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(plain);
    if is_box { Ok(()) } else { form::label(name).map(|_| ()) }
}

/// The path of a deploy key.
pub(super) fn credential(table: &Table<'_>) -> Option<String> {
    table.only(&["ssh_key_file"], &TOP_LEVEL);
    let fix = "add the path of the private key that the repository knows as its deploy key";
    table.need("ssh_key_file", fix)?.read(form::absolute_path)
}

pub(super) fn upstream(table: &Table<'_>) -> Option<Upstream> {
    table.only(&["address"], &TOP_LEVEL);
    let address = optional(table, "address", None, |value| value.read(upstream_address).map(Some));
    Some(Upstream { address: address? })
}

fn upstream_address(text: &str) -> Result<String, Refusal> {
    if text.contains('*') {
        return Err(Refusal::new(
            "is not one address",
            "an upstream is one service",
            "write for example \"127.0.0.1:1080\"",
        ));
    }
    net::egress(text)
}

fn digest(table: &Table<'_>) -> Option<Digest> {
    let value = table.need("token_sha256", "add the SHA-256 of the token, 64 hex digits")?;
    value.read(|text| {
        text.parse().map_err(|_| {
            Refusal::new(
                "is not a SHA-256 digest",
                "only the digest of a token is kept here, so that this file opens nothing",
                "write 64 lower-case hex digits, as `sha256sum` prints them",
            )
        })
    })
}

pub(super) fn dev_box(table: &Table<'_>) -> Option<Digest> {
    table.only(&["token_sha256"], &TOP_LEVEL);
    digest(table)
}

pub(super) fn token(table: &Table<'_>) -> Option<Token> {
    table.only(&["token_sha256", "role", "projects"], &TOP_LEVEL);
    let sha256 = digest(table);
    let role = table.need("role", "add `role = \"viewer\"`, `\"deployer\"` or `\"admin\"`").and_then(|value| {
        value.one_of(
            &[("viewer", Role::Viewer), ("deployer", Role::Deployer), ("admin", Role::Admin)],
            "a token reads, or releases too, or may do everything",
        )
    });
    let projects = optional(table, "projects", None, |value| value.each(project).map(Some));
    Some(Token { sha256: sha256?, role: role?, projects: projects? })
}

fn project(value: &Value<'_>) -> Option<ProjectName> {
    value.read(|text| text.parse().map_err(|_| form::label_refusal()))
}

/// A word of Kubernetes: a DNS subdomain, or a context's free name without control characters.
fn word(table: &Table<'_>, key: &str) -> Option<Option<String>> {
    optional(table, key, None, |value| value.read(one_word).map(Some))
}

fn one_word(text: &str) -> Result<String, Refusal> {
    if !text.trim().is_empty() && text.len() <= 253 && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a name",
            "names in a cluster are one line of at most 253 bytes",
            "write the name as the cluster shows it",
        ))
    }
}

fn word_table(value: &Value<'_>) -> Option<BTreeMap<String, String>> {
    let table = value.table()?;
    let read = |(key, value): (&str, Value<'_>)| Some((key.to_owned(), value.read(one_word)?));
    let pairs: Vec<Option<(String, String)>> = table.entries().into_iter().map(read).collect();
    pairs.into_iter().collect()
}

pub(in crate::config) fn cluster(table: &Table<'_>) -> Option<Cluster> {
    table.only(
        &[
            "kubeconfig",
            "context",
            "app_domain",
            "ingress_class",
            "issuer",
            "storage_class",
            "ingress_namespace",
            "ingress_pod_labels",
            "ingress_dialect",
            "dns_peers",
            "grants",
            "limits",
        ],
        &TOP_LEVEL,
    );
    let kubeconfig = path(table, "kubeconfig");
    let context = word(table, "context");
    let app_domain = optional(table, "app_domain", None, |value| value.read(net::host_name).map(Some));
    let ingress_class = word(table, "ingress_class");
    let issuer = word(table, "issuer");
    let storage_class = word(table, "storage_class");
    let ingress_namespace = word(table, "ingress_namespace");
    let ingress_pod_labels = optional(table, "ingress_pod_labels", BTreeMap::new(), word_table);
    let ingress_dialect = optional(table, "ingress_dialect", IngressDialect::Nginx, |value| {
        value.one_of(
            &[
                ("haproxy", IngressDialect::Haproxy),
                ("nginx", IngressDialect::Nginx),
                ("traefik", IngressDialect::Traefik),
            ],
            "each ingress controller has annotations of its own",
        )
    });
    let dns_peers = optional(table, "dns_peers", Vec::new(), |value| value.each(parts::dns_peer));
    let grants = optional(table, "grants", Grants::default(), |value| parts::grants(&value.table()?));
    let limits = optional(table, "limits", Limits::default(), |value| parts::limits(&value.table()?));
    Some(Cluster {
        kubeconfig: kubeconfig?,
        context: context?,
        app_domain: app_domain?,
        ingress_class: ingress_class?,
        issuer: issuer?,
        storage_class: storage_class?,
        ingress_namespace: ingress_namespace?,
        ingress_pod_labels: ingress_pod_labels?,
        ingress_dialect: ingress_dialect?,
        dns_peers: dns_peers?,
        grants: grants?,
        limits: limits?,
    })
}

pub(super) fn notify(table: &Table<'_>) -> Option<Notify> {
    table.only(&["url_file", "on"], &TOP_LEVEL);
    let url_file = table.need("url_file", "add the path of a file that holds the URL to post to");
    let url_file = url_file.and_then(|value| value.read(form::absolute_path));
    let on = optional(table, "on", Vec::new(), |value| value.each(outcome));
    Some(Notify { url_file: url_file?, on: on? })
}

fn outcome(value: &Value<'_>) -> Option<Outcome> {
    const WORDS: [(&str, Outcome); 6] = [
        ("live", Outcome::Live),
        ("nothing-activated", Outcome::NothingActivated),
        ("reverted", Outcome::Reverted),
        ("superseded", Outcome::Superseded),
        ("refused", Outcome::Refused),
        ("stuck", Outcome::Stuck),
    ];
    value.one_of(&WORDS, "a release ends in one of these words")
}

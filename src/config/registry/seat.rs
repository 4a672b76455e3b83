//! What a host target has: names, ports, limits, data, and the way out.

use std::collections::BTreeSet;

use super::environment;
use super::project::TOP_LEVEL;
use super::target::{Around, cpus, optional};
use crate::model::document::{Refusal, Table, Value, form, net};
use crate::model::policy::{DataPolicy, HostPolicy, Limits};
use crate::schedule::field::calendar_expression;

/// Reads the host target's keys.
pub(super) fn read(table: &Table<'_>, around: &Around<'_>) -> Option<HostPolicy> {
    let hosts = hosts(table, around);
    let cloudflare = optional(table, "cloudflare", (), |value| {
        value.one_of(&[("orange", ())], "hosts are served behind Cloudflare's proxy; plain mode is planned")
    });
    let slots = slots(table);
    let limits = limits(table);
    let keep_releases = optional(table, "keep_releases", 5, |value| {
        value.integer(1..=1000, "one kept release is the least that can be gone back to")
    });
    let drain_seconds = optional(table, "drain", 10, |value| {
        value.integer(0..=300, "seconds the old slot keeps running after the switch")
    });
    let environment = environment::read(table);
    let egress = optional(table, "egress", Vec::new(), egress);
    let upstreams = optional(table, "upstreams", Vec::new(), |value| upstreams(value, around));
    let data = optional(table, "data", None, |value| data(value, around).map(Some));
    let access_log = optional(table, "access_log", true, Value::boolean);
    let adopt = optional(table, "adopt", None, |value| value.read(site_file).map(Some));
    cloudflare?;
    let environment = environment?;
    Some(HostPolicy {
        hosts: hosts?,
        slots: slots?,
        limits: limits?,
        keep_releases: keep_releases?,
        drain_seconds: drain_seconds?,
        env: environment.env,
        secrets: environment.secrets,
        job_secrets: environment.job_secrets,
        egress: egress?,
        upstreams: upstreams?,
        data: data?,
        access_log: access_log?,
        adopt: adopt?,
    })
}

fn hosts(table: &Table<'_>, around: &Around<'_>) -> Option<Vec<String>> {
    let fix = "add for example `hosts = [\"shop.example.org\"]`";
    let value = table.need("hosts", fix)?;
    let hosts = value.each(|item| host(item, around))?;
    let unique: BTreeSet<&String> = hosts.iter().collect();
    if hosts.is_empty() {
        value.refuse(Refusal::new("is empty", "smoke checks and the public proof ask the first host", fix));
    } else if unique.len() < hosts.len() {
        value.refuse(Refusal::new("has a host twice", "each host is served once", "remove one of the two"));
    } else {
        return Some(hosts);
    }
    None
}

fn host(item: &Value<'_>, around: &Around<'_>) -> Option<String> {
    let host = item.read(net::host_name)?;
    if !around.is_behind_cloudflare() {
        return Some(host);
    }
    if !host.contains('.') {
        item.refuse(Refusal::new(
            "is not a public host name",
            "with `[edge] tls = \"origin-ca\"`, the default, hosts lie in Cloudflare zones",
            "write the whole name, for example \"shop.example.org\"",
        ));
        return None;
    }
    let in_zone =
        |zone: &String| host.strip_suffix(zone.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if around.host.is_some_and(|config| !config.cloudflare.zones.iter().any(in_zone)) {
        item.refuse(Refusal::new(
            "is in none of the Cloudflare zones that this host allows",
            "with `[edge] tls = \"origin-ca\"`, the default, every host lies in one of `[cloudflare] zones` of huta.toml",
            "add its zone there, choose another host, or set `[edge] tls`",
        ));
        return None;
    }
    Some(host)
}

fn slots(table: &Table<'_>) -> Option<[u16; 2]> {
    let value = table.need("slots", "add two free loopback ports, for example `slots = [18300, 18301]`")?;
    let ports =
        value.each(|item| item.integer::<u16>(1025..=65535, "a slot is a loopback port outside the system's range"))?;
    match ports.as_slice() {
        [a, b] if a != b => Some([*a, *b]),
        [_, _] => {
            value.refuse(Refusal::new(
                "has one port twice",
                "the old and the new release run side by side, each on its own port",
                "write two different ports",
            ));
            None
        }
        _ => {
            value.refuse(Refusal::new(
                "must have exactly two ports",
                "a target has the slots a and b",
                "write two different ports",
            ));
            None
        }
    }
}

fn limits(table: &Table<'_>) -> Option<Limits> {
    let defaults = Limits { memory_bytes: 256 * form::MIB, cpus_milli: 1000, pids: 128, tmp_bytes: 16 * form::MIB };
    let Some(value) = table.get("limits") else {
        return Some(defaults);
    };
    let table = value.table()?;
    table.only(&["memory", "cpus", "pids", "tmp"], &TOP_LEVEL);
    // 6 MiB is the least that the engine takes.
    let memory_bytes =
        optional(&table, "memory", defaults.memory_bytes, |value| value.read(|text| form::size(text, "6m", "16t")));
    let cpus_milli = optional(&table, "cpus", defaults.cpus_milli, cpus);
    let pids = optional(&table, "pids", defaults.pids, |value| {
        value.integer(1..=4_194_304, "the kernel counts at most 4194304 processes")
    });
    let tmp_bytes =
        optional(&table, "tmp", defaults.tmp_bytes, |value| value.read(|text| form::size(text, "1m", "4g")));
    Some(Limits { memory_bytes: memory_bytes?, cpus_milli: cpus_milli?, pids: pids?, tmp_bytes: tmp_bytes? })
}

/// `"none"` or a list; an empty list is none.
fn egress(value: &Value<'_>) -> Option<Vec<String>> {
    if let Some(text) = value.as_text() {
        if text == "none" {
            return Some(Vec::new());
        }
        value.refuse(Refusal::new(
            "must be \"none\" or a list",
            "the word stands for no way out; anything else is a list of destinations",
            "write for example `egress = [\"api.example.com:443\"]`",
        ));
        return None;
    }
    value.each(|item| item.read(net::egress))
}

fn upstreams(value: &Value<'_>, around: &Around<'_>) -> Option<Vec<String>> {
    value.each(|item| {
        let name = item.read(form::label)?;
        let is_known = around.host.is_none_or(|host| host.upstreams.contains_key(name));
        if !is_known {
            item.refuse(Refusal::new(
                "names no upstream",
                "an upstream is a service of this host, defined in huta.toml as [upstreams.<name>]",
                "define it there, or write the name of one that is",
            ));
        }
        is_known.then(|| name.to_owned())
    })
}

fn data(value: &Value<'_>, around: &Around<'_>) -> Option<DataPolicy> {
    let table = value.table()?;
    table.only(&["size", "backup", "concurrent"], &TOP_LEVEL);
    let size_bytes = table.need("size", "add the volume's size, for example `size = \"2g\"`");
    let size_bytes = size_bytes.and_then(|value| value.read(|text| form::size(text, "64m", "512g")));
    let backup = optional(&table, "backup", "daily".to_owned(), |value| value.read(backup));
    let concurrent = optional(&table, "concurrent", false, Value::boolean);
    let has_backup = around.host.is_none_or(|host| host.backup.is_some());
    if !has_backup {
        value.refuse(Refusal::new(
            "needs [backup] in huta.toml",
            "its directory holds the copies, also those made before a release; `backup = \"off\"` only ends the schedule",
            "add `[backup]` with `dir` to huta.toml",
        ));
    }
    let data = DataPolicy { size_bytes: size_bytes?, backup: backup?, concurrent: concurrent? };
    has_backup.then_some(data)
}

/// `hourly`, `daily` and `off` as they are, anything else as a calendar expression.
fn backup(text: &str) -> Result<String, Refusal> {
    match text {
        "hourly" | "daily" | "off" => Ok(text.to_owned()),
        _ => calendar_expression(text),
    }
}

/// A file name in the sites directory.
fn site_file(text: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let stem = text.strip_suffix(".caddy").unwrap_or_default();
    if !stem.is_empty() && !stem.starts_with('.') && text.len() <= 255 && text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a file name `*.caddy`",
            "it names one file in Caddy's sites directory, which the release takes over",
            "write the bare file name, without a directory",
        ))
    }
}

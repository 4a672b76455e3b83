//! `[targets.<name>]`: what every target has, and cluster targets.

use super::super::host::{EdgeTls, HostConfig};
use super::project::TOP_LEVEL;
use super::seat;
use crate::model::document::{Refusal, Table, Value, form, smoke};
use crate::model::policy::{
    Approve, ClusterPolicy, DriftPolicy, NoCiRun, OnFailure, TargetKind, TargetPolicy, WindowEffect, WindowRule,
};

/// Keys of every target.
const COMMON: [&str; 8] =
    ["branch", "approve", "require_ci", "ci_workflow", "no_ci_run", "drift", "windows", "on_failure"];
/// Keys of host targets only.
const HOST_ONLY: [&str; 14] = [
    "hosts",
    "cloudflare",
    "slots",
    "limits",
    "keep_releases",
    "drain",
    "env",
    "secrets",
    "job_secrets",
    "egress",
    "upstreams",
    "data",
    "access_log",
    "adopt",
];
/// Keys of cluster targets only **(own)**.
const CLUSTER_ONLY: [&str; 3] = ["cluster", "environment", "smoke"];

/// The most `windows` of one target: each is asked at every pass.
const MAX_WINDOWS: usize = 50;

/// What surrounds a target while it is read.
pub(super) struct Around<'a> {
    /// `huta.toml`, when it is known.
    pub(super) host: Option<&'a HostConfig>,
    /// Whether `repo` is on GitHub, or could not be read.
    pub(super) is_github: bool,
}

impl Around<'_> {
    /// Whether hosts must lie in Cloudflare zones.
    pub(super) fn is_behind_cloudflare(&self) -> bool {
        self.host.is_none_or(|host| host.edge.tls == EdgeTls::OriginCa)
    }
}

/// A number of CPUs, in thousandths.
pub(super) fn cpus(value: &Value<'_>) -> Option<u32> {
    match form::cpus_milli(value.decimal()?) {
        Ok(milli) => Some(milli),
        Err(refusal) => {
            value.refuse(refusal);
            None
        }
    }
}

/// An optional key, read by `form`, or its default.
pub(super) fn optional<'d, T>(
    table: &Table<'d>,
    key: &str,
    default: T,
    form: impl FnOnce(&Value<'d>) -> Option<T>,
) -> Option<T> {
    table.get(key).map_or(Some(default), |value| form(&value))
}

/// Reads one target.
pub(super) fn read(table: &Table<'_>, around: &Around<'_>) -> Option<TargetPolicy> {
    let is_cluster = table.get("cluster").is_some();
    known_keys(table, is_cluster);
    let branch = optional(table, "branch", None, |value| value.read(form::branch).map(Some));
    let approve = optional(table, "approve", Approve::Always, |value| {
        value.one_of(
            &[("always", Approve::Always), ("never", Approve::Never)],
            "a person consents to every plan, or (own) it goes live once CI is green",
        )
    });
    let require_ci = require_ci(table, around);
    let ci_workflow = optional(table, "ci_workflow", "ci".to_owned(), |value| value.read(workflow));
    let no_ci_run = no_ci_run(table);
    let drift = optional(table, "drift", DriftPolicy::Report, |value| {
        value.one_of(
            &[("off", DriftPolicy::Off), ("report", DriftPolicy::Report), ("heal", DriftPolicy::Heal)],
            "it says what is done about a difference that no commit explains",
        )
    });
    let windows = windows(table);
    let on_failure = on_failure(table);
    let kind = if is_cluster {
        cluster(table, around).map(TargetKind::Cluster)
    } else {
        seat::read(table, around).map(|policy| TargetKind::Host(Box::new(policy)))
    };
    Some(TargetPolicy {
        branch: branch?,
        approve: approve?,
        require_ci: require_ci?,
        ci_workflow: ci_workflow?,
        no_ci_run: no_ci_run?,
        drift: drift?,
        windows: windows?,
        on_failure: on_failure?,
        kind: kind?,
    })
}

fn no_ci_run(table: &Table<'_>) -> Option<NoCiRun> {
    optional(table, "no_ci_run", NoCiRun::Hold, |value| {
        value.one_of(
            &[("hold", NoCiRun::Hold), ("allow-if-release-paths-unchanged", NoCiRun::AllowIfReleasePathsUnchanged)],
            "it says what a commit means for which no CI run will come",
        )
    })
}

fn on_failure(table: &Table<'_>) -> Option<OnFailure> {
    optional(table, "on_failure", OnFailure::None, |value| {
        value.one_of(
            &[("none", OnFailure::None), ("pull-request", OnFailure::PullRequest), ("commit", OnFailure::Commit)],
            "it says what is written to Git after an automatic revert",
        )
    })
}

/// Unknown keys, and keys of the other kind of target.
fn known_keys(table: &Table<'_>, is_cluster: bool) {
    let all: Vec<&str> = COMMON.iter().chain(&HOST_ONLY).chain(&CLUSTER_ONLY).copied().collect();
    table.only(&all, &TOP_LEVEL);
    let (wrong, why): (&[&str], _) = if is_cluster {
        (&HOST_ONLY, "a target with `cluster` is a cluster target, and this key is for host targets")
    } else {
        (&CLUSTER_ONLY, "this key is for cluster targets, which have `cluster`")
    };
    for key in wrong.iter().filter(|key| table.get(key).is_some()) {
        table.refuse_key(key, Refusal::new("does not belong here", why, "remove it, or make two targets"));
    }
}

/// `require_ci`, by default true, which only GitHub can answer.
fn require_ci(table: &Table<'_>, around: &Around<'_>) -> Option<bool> {
    let value = table.get("require_ci");
    let is_required = value.as_ref().map_or(Some(true), Value::boolean)?;
    if is_required && !around.is_github {
        let refusal = Refusal::new(
            if value.is_some() { "cannot be true here" } else { "is true by default, and cannot be here" },
            "CI runs are read from GitHub Actions, and `repo` is not on GitHub",
            "set `require_ci = false`",
        );
        match value {
            Some(value) => value.refuse(refusal),
            None => table.refuse("require_ci", refusal),
        }
        return None;
    }
    Some(is_required)
}

/// A workflow's name, as GitHub shows it.
fn workflow(text: &str) -> Result<String, Refusal> {
    if !text.trim().is_empty() && text.len() <= 255 && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a workflow's name",
            "it is the `name:` of a workflow, one line of at most 255 bytes",
            "write for example `ci_workflow = \"ci\"`",
        ))
    }
}

fn windows(table: &Table<'_>) -> Option<Vec<WindowRule>> {
    let Some(value) = table.get("windows") else {
        return Some(Vec::new());
    };
    let items = value.items()?;
    if items.len() > MAX_WINDOWS {
        value.refuse(Refusal::new(
            format!("has more than {MAX_WINDOWS} rules"),
            "every rule is looked at in every pass",
            "join rules that open together",
        ));
        return None;
    }
    let rules: Vec<Option<WindowRule>> = items.iter().map(|item| window(item, &item.table()?)).collect();
    rules.into_iter().collect()
}

fn window(value: &Value<'_>, table: &Table<'_>) -> Option<WindowRule> {
    table.only(&["allow", "deny", "duration", "time_zone"], &TOP_LEVEL);
    let rule = match (table.get("allow"), table.get("deny")) {
        (Some(cron), None) => cron.read(cron_shape).map(|cron| (WindowEffect::Allow, cron)),
        (None, Some(cron)) => cron.read(cron_shape).map(|cron| (WindowEffect::Deny, cron)),
        (Some(_), Some(_)) | (None, None) => {
            value.refuse(Refusal::new(
                "must have either `allow` or `deny`",
                "a rule opens a window or closes one",
                "write for example `{ deny = \"0 17 * * 5\", duration = \"63h\" }`",
            ));
            None
        }
    };
    let duration = table.need("duration", "say how long it lasts, for example `duration = \"8h\"`");
    let duration = duration.and_then(|value| value.read(|text| form::seconds(text, (60, 7 * 86400), "smhd")));
    let time_zone = optional(table, "time_zone", "UTC".to_owned(), |value| value.read(time_zone));
    let (effect, cron) = rule?;
    Some(WindowRule { effect, cron, duration_seconds: duration?, time_zone: time_zone? })
}

/// Five fields of the characters that crontab(5) knows; the schedule itself reads their meaning.
fn cron_shape(text: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"*/,-".contains(&byte);
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    if fields.len() == 5 && text.len() <= 255 && fields.iter().all(|field| field.bytes().all(plain)) {
        Ok(fields.join(" "))
    } else {
        Err(Refusal::new(
            "is not a cron expression of five fields",
            "the fields are minute, hour, day of month, month and day of week, as in crontab(5)",
            "write for example \"0 9 * * 1-5\"",
        ))
    }
}

/// The shape of an IANA zone's name; whether the zone exists is asked where time is known.
fn time_zone(text: &str) -> Result<String, Refusal> {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    if text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.split('/').all(part) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "is not a time zone's name",
            "a zone is named as in the IANA database",
            "write for example \"Europe/Berlin\" or \"UTC\"",
        ))
    }
}

fn cluster(table: &Table<'_>, around: &Around<'_>) -> Option<ClusterPolicy> {
    let cluster = table.get("cluster").and_then(|value| {
        let name = value.read(form::label)?;
        let is_known = around.host.is_none_or(|host| host.clusters.contains_key(name));
        if !is_known {
            value.refuse(Refusal::new(
                "names no cluster",
                "a cluster is defined in huta.toml as [clusters.<name>]",
                "define it there, or write the name of one that is",
            ));
        }
        is_known.then(|| name.to_owned())
    });
    let environment = table.need("environment", "add for example `environment = \"production\"`");
    let environment = environment.and_then(|value| value.read(form::label));
    let smoke = smoke::read(table.get("smoke"), &TOP_LEVEL);
    Some(ClusterPolicy { cluster: cluster?, environment: environment?.to_owned(), smoke: smoke? })
}

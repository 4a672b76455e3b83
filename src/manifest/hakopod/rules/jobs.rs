//! Section 18: jobs.

use super::super::form::{is_cron, is_time_zone};
use super::super::raw::RawKubernetes;
use super::One;
use super::counts::{identities, names, repeated};

pub(super) fn job(one: &One<'_>) {
    let Some(job) = &one.raw.job else { return };
    let path = one.at("job");
    one.range(path.key("timeout_seconds"), job.timeout_seconds, 10..=900);
    one.range(path.key("retries"), i64::from(job.retries), 0..=3);
    if job.schedule.is_some() && job.invocation.is_some() {
        one.app.refuse(
            path.key("invocation"),
            "is refused with `schedule`",
            "a job is started by time or by callers",
            "make two jobs",
        );
    }
}

pub(super) fn excludes(one: &One<'_>) {
    if !one.raw.is_job() {
        return;
    }
    let raw = one.raw;
    one.exclude(
        &[
            (raw.port != 0, "port"),
            (!raw.ports.is_empty(), "ports"),
            (raw.public, "public"),
            (raw.backend_http2, "backend_http2"),
            (!raw.public_tcp.is_empty(), "public_tcp"),
            (raw.tls.is_some(), "tls"),
            (raw.readiness.is_some(), "readiness"),
            (!raw.healthcheck.is_empty(), "healthcheck"),
            (!raw.certificate_mounts.is_empty(), "certificate_mounts"),
            (!raw.update_strategy.is_empty(), "update_strategy"),
            (!raw.container_daemon.is_empty(), "container_daemon"),
            (raw.startup_timeout_seconds != 0, "startup_timeout_seconds"),
            (raw.kubernetes != RawKubernetes::default(), "kubernetes"),
            (raw.custom_hostnames.is_some(), "custom_hostnames"),
            (raw.serverless.is_some(), "serverless"),
            (!raw.http.is_empty(), "http"),
            (raw.ingress_timeout_seconds != 0, "ingress_timeout_seconds"),
        ],
        "is refused on a job",
        "a job runs to its end: it listens to nothing and is not updated in place",
    );
}

pub(super) fn schedule(one: &One<'_>) {
    let Some(schedule) = one.raw.job.as_ref().and_then(|job| job.schedule.as_ref()) else { return };
    let path = one.at("job").key("schedule");
    if !is_cron(&schedule.cron) {
        one.app.refuse(
            path.key("cron"),
            "is not a cron expression of five fields",
            "minute, hour, day of month, month, day of week (0 to 6 from Sunday), at most 100 bytes",
            "write for example \"30 3 * * MON\"",
        );
    }
    if !schedule.timezone.is_empty() && !is_time_zone(&schedule.timezone) {
        one.app.refuse(
            path.key("timezone"),
            "is not a time zone",
            "a zone is named as in the IANA database, in its letter case",
            "write for example \"Europe/Berlin\", or leave it out for UTC",
        );
    }
    one.range(path.key("history_limit"), i64::from(schedule.history_limit), 1..=2);
}

pub(super) fn invocation(one: &One<'_>) {
    let Some(job) = &one.raw.job else { return };
    let Some(invocation) = &job.invocation else { return };
    let path = one.at("job").key("invocation");
    identities(one, &path.key("allowed_identities"), &invocation.allowed_identities, 16);
    let keys = path.key("input_keys");
    if invocation.input_keys.is_empty() || invocation.input_keys.len() > 16 {
        one.app.refuse(
            keys.clone(),
            "must have 1 to 16 entries",
            "callers may send what is named here and nothing else",
            "list the keys",
        );
    }
    names(one.app, &keys, &invocation.input_keys);
    repeated(one.app, &keys, &invocation.input_keys);
    one.range(path.key("max_input_bytes"), invocation.max_input_bytes, 2..=131_072);
    one.range(path.key("queue_limit"), invocation.queue_limit, 1..=64);
    if job.retries != 0 {
        one.app.refuse(
            one.at("job").key("retries"),
            "must be 0 with `invocation`",
            "a caller decides whether to try again",
            "remove it",
        );
    }
    let raw = one.raw;
    one.exclude(
        &[(raw.volume.is_some(), "volume"), (!raw.mounts.is_empty(), "mounts")],
        "is refused on an invocation job",
        "each invocation starts fresh",
    );
    let mounted = raw.files.len() + raw.temporary_mounts.len() + raw.certificate_mounts.len();
    if mounted > 15 {
        one.app.refuse(
            path,
            format!("leaves room for 15 files and mounts, and there are {mounted}"),
            "the invocation's input takes one of 16 places",
            "remove some",
        );
    }
}

//! Sections 11, 13 (GPU) and 19: replicas, autoscaling, serverless.

use super::One;

pub(super) fn suspended(one: &One<'_>) {
    if one.raw.suspended && one.raw.is_job() && !one.raw.is_started_elsewhere() {
        one.refuse(
            "suspended",
            "is refused on a deployment job",
            "such a job runs once with each release, and a release waits for it",
            "remove the job instead",
        );
    }
}

pub(super) fn replicas(one: &One<'_>) {
    let replicas = i64::from(one.raw.replicas);
    one.range(one.at("replicas"), replicas, 1..=20);
    let kind = if one.is_persistent() {
        "a service with persistent storage"
    } else if one.raw.is_job() {
        "a job"
    } else if one.raw.serverless.is_some() {
        "a serverless service"
    } else if one.raw.session.is_some() {
        "a session"
    } else {
        return;
    };
    if (2..=20).contains(&replicas) {
        one.refuse("replicas", format!("must be 1 for {kind}"), "it cannot run twice at once", "write `replicas = 1`");
    }
}

pub(super) fn autoscaling(one: &One<'_>) {
    let Some(scaling) = &one.raw.autoscaling else { return };
    let path = one.at("autoscaling");
    let (min, max) = (i64::from(scaling.min_replicas), i64::from(scaling.max_replicas));
    one.needed(path.key("max_replicas"), max, 1..=20);
    one.range(path.key("min_replicas"), min, 1..=20);
    one.range(path.key("target_cpu"), i64::from(scaling.target_cpu), 10..=95);
    if (1..=20).contains(&max) && (max + 1..=20).contains(&min) {
        one.app.refuse(
            path.key("min_replicas"),
            "must not be above `max_replicas`",
            "the number of replicas moves between the two",
            "lower it, or raise `max_replicas`",
        );
    }
    let raw = one.raw;
    let others = [
        (raw.volume.is_some(), "volume"),
        (!raw.mounts.is_empty(), "mounts"),
        (raw.gpu.is_some(), "gpu"),
        (raw.is_job(), "job"),
        (raw.serverless.is_some(), "serverless"),
        (raw.session.is_some(), "session"),
    ];
    for (_, other) in others.iter().filter(|(is_set, _)| *is_set) {
        one.refuse(
            "autoscaling",
            format!("is refused with `{other}`"),
            "such a workload has one replica or another kind of scaling",
            "remove one of the two",
        );
    }
}

pub(super) fn serverless(one: &One<'_>) {
    let Some(table) = &one.raw.serverless else { return };
    let path = one.at("serverless");
    one.range(path.key("min_replicas"), i64::from(table.min_replicas), 0..=1);
    one.range(path.key("idle_seconds"), table.idle_seconds, 30..=86_400);
    one.range(path.key("startup_timeout_seconds"), table.startup_timeout_seconds, 5..=300);
    one.range(path.key("request_timeout_seconds"), table.request_timeout_seconds, 1..=300);
    one.range(path.key("max_concurrency"), table.max_concurrency, 1..=64);
    if !one.is_public() || !one.has_port() {
        one.refuse(
            "serverless",
            "needs `public = true` and a `port`",
            "requests wake it",
            "make the service public, or remove the table",
        );
    }
    let raw = one.raw;
    one.exclude(
        &[
            (raw.volume.is_some(), "volume"),
            (!raw.mounts.is_empty(), "mounts"),
            (raw.gpu.is_some(), "gpu"),
            (!raw.public_tcp.is_empty(), "public_tcp"),
            (!raw.http.is_empty(), "http"),
            (!raw.ports.is_empty(), "ports"),
            (!raw.certificate_mounts.is_empty(), "certificate_mounts"),
            (raw.kubernetes != super::super::raw::RawKubernetes::default(), "kubernetes"),
            (raw.custom_hostnames.is_some(), "custom_hostnames"),
            (!raw.container_daemon.is_empty(), "container_daemon"),
        ],
        "is refused on a serverless service",
        "a serverless service is one HTTP port that sleeps and wakes, and nothing else",
    );
}

pub(super) fn gpu(one: &One<'_>) {
    let Some(gpu) = &one.raw.gpu else { return };
    one.needed(one.at("gpu").key("count"), i64::from(gpu.count), 1..=8);
}

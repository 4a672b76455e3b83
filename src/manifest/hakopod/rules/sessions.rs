//! Section 22: sandbox sessions.

use super::super::raw::RawKubernetes;
use super::One;
use super::counts::identities;
use super::process::{arguments, blank_program};

pub(super) fn session(one: &One<'_>) {
    let Some(session) = &one.raw.session else { return };
    let path = one.at("session");
    identities(one, &path.key("allowed_identities"), &session.allowed_identities, 32);
    for (field, command) in [("helper_command", &session.helper_command), ("ready_command", &session.ready_command)] {
        let path = path.key(field);
        if command.is_empty() {
            one.app.refuse(path.clone(), "is missing", "a session needs it", "write the program and its arguments");
        }
        arguments(one, &path, command, 64);
        blank_program(one, &path, command);
    }
    one.range(path.key("idle_seconds"), session.idle_seconds, 60..=900);
    let idle = if session.idle_seconds == 0 { 900 } else { session.idle_seconds };
    let lifetime = if session.lifetime_seconds == 0 { 3600 } else { session.lifetime_seconds };
    if !(idle..=3600).contains(&lifetime) && (60..=900).contains(&idle) {
        one.app.refuse(
            path.key("lifetime_seconds"),
            "must be between `idle_seconds` and 3600",
            "a session ends at the latest after an hour, and not before it may be idle",
            "choose a number inside these bounds",
        );
    }
}

pub(super) fn needs(one: &One<'_>) {
    if one.raw.session.is_none() {
        return;
    }
    let raw = one.raw;
    let needs = [
        (!raw.image.is_empty() && !raw.image.contains("@sha256:"), "image", "must be pinned by `@sha256:`"),
        (raw.command.is_empty(), "command", "is required for a session"),
        (raw.runtime_profile.is_empty(), "runtime_profile", "is required for a session"),
        (raw.run_as_user == 0, "run_as_user", "must be at least 1 for a session"),
        (raw.run_as_group == 0, "run_as_group", "must be at least 1 for a session"),
        (raw.fs_group == 0, "fs_group", "must be at least 1 for a session"),
        (!raw.read_only_root_filesystem, "read_only_root_filesystem", "must be true for a session"),
    ];
    for (_, field, what) in needs.iter().filter(|(is_wrong, _, _)| *is_wrong) {
        one.refuse(field, *what, "code of somebody else runs in a session, so nothing is left to defaults", "set it");
    }
}

pub(super) fn excludes(one: &One<'_>) {
    if one.raw.session.is_none() {
        return;
    }
    let raw = one.raw;
    one.exclude(
        &[
            (raw.is_job(), "job"),
            (raw.serverless.is_some(), "serverless"),
            (raw.gpu.is_some(), "gpu"),
            (raw.volume.is_some(), "volume"),
            (!raw.container_daemon.is_empty(), "container_daemon"),
            (!raw.aws_identity.is_empty(), "aws_identity"),
            (raw.port != 0, "port"),
            (!raw.ports.is_empty(), "ports"),
            (raw.public, "public"),
            (!raw.public_tcp.is_empty(), "public_tcp"),
            (!raw.http.is_empty(), "http"),
            (raw.tls.is_some(), "tls"),
            (raw.backend_http2, "backend_http2"),
            (raw.network_access.is_some(), "network_access"),
            (raw.networks.is_some(), "networks"),
            (!raw.private_egress.is_empty(), "private_egress"),
            (!raw.secrets.is_empty(), "secrets"),
            (!raw.bindings.is_empty(), "bindings"),
            (!raw.files.is_empty(), "files"),
            (!raw.mounts.is_empty(), "mounts"),
            (!raw.certificate_mounts.is_empty(), "certificate_mounts"),
            (!raw.depends_on.is_empty(), "depends_on"),
            (!raw.healthcheck.is_empty(), "healthcheck"),
            (raw.readiness.is_some(), "readiness"),
            (!raw.update_strategy.is_empty(), "update_strategy"),
            (raw.startup_timeout_seconds != 0, "startup_timeout_seconds"),
            (raw.kubernetes != RawKubernetes::default(), "kubernetes"),
            (raw.custom_hostnames.is_some(), "custom_hostnames"),
        ],
        "is refused on a session",
        "a session is a closed sandbox: no network, no secrets, no data of its own",
    );
    let app = one.app;
    for (is_set, field) in [
        (!app.raw.secrets.is_empty(), "secrets"),
        (!app.raw.env.is_empty(), "env"),
        (app.raw.inject_env == Some(true), "inject_env"),
    ] {
        if is_set {
            app.refuse(
                app.at(field),
                "is refused beside a session",
                "shared variables and secrets would reach the sandbox",
                "move the session to an application of its own",
            );
        }
    }
}

pub(super) fn egress_proxy(one: &One<'_>) {
    let Some(session) = one.raw.session.as_ref().filter(|session| !session.egress_proxy.is_empty()) else { return };
    let is_proxy = one.app.one(&session.egress_proxy).is_some_and(|proxy| {
        proxy.has_port() && proxy.raw.session.is_none() && !proxy.raw.public && proxy.raw.public_tcp.is_empty()
    });
    if !is_proxy {
        one.app.refuse(
            one.at("session").key("egress_proxy"),
            "must name a private service with a `port` that is not a session",
            "it is the only thing that the worker may reach",
            "name such a service of this application",
        );
    }
}

//! Section 26: what a preview may not have.

use super::super::raw::RawSecretRef;
use super::counts::too_many;
use super::{App, One};

const WHY: &str = "a preview is small, private and thrown away";

pub(super) fn application(app: &App<'_>) {
    too_many(app, &app.at("services"), app.services.len(), 4);
    if !app.raw.domains.is_empty() {
        app.refuse(app.at("domains"), "is refused in a preview", WHY, "remove it");
    }
    for (name, network) in &app.raw.networks {
        if !network.virtual_network.is_empty() {
            let path = app.at("networks").key(name).key("virtual_network");
            app.refuse(path, "is refused in a preview", WHY, "remove it");
        }
    }
}

pub(super) fn service(one: &One<'_>) {
    let raw = one.raw;
    one.exclude(
        &[
            (!matches!(raw.size.as_str(), "" | "small"), "size"),
            (raw.replicas > 1, "replicas"),
            (raw.autoscaling.is_some(), "autoscaling"),
            (raw.gpu.is_some(), "gpu"),
            (!raw.public_tcp.is_empty(), "public_tcp"),
            (!raw.certificate_mounts.is_empty(), "certificate_mounts"),
            (!raw.aws_identity.is_empty(), "aws_identity"),
            (raw.tls.is_some(), "tls"),
            (!raw.container_daemon.is_empty(), "container_daemon"),
        ],
        "is refused in a preview",
        WHY,
    );
    let is_scheduled = raw.job.as_ref().is_some_and(|job| job.schedule.is_some());
    if is_scheduled && !raw.suspended {
        one.refuse("suspended", "must be true for a scheduled job in a preview", WHY, "add `suspended = true`");
    }
    let refuse = |path| {
        one.app.refuse(
            path,
            "must be a `ref` in a preview",
            "providers hold production values",
            "use `{ ref = \"…\" }`",
        );
    };
    let is_provider = |reference: &RawSecretRef| !reference.provider.is_empty();
    for name in one.secret_names() {
        let own = raw.secrets.get(name);
        if own.or_else(|| one.app.raw.secrets.get(name)).is_some_and(is_provider) {
            refuse(if own.is_some() { one.at("secrets").key(name) } else { one.app.at("secrets").key(name) });
        }
    }
    for (name, _) in raw.files.iter().filter(|(_, file)| file.secret.as_ref().is_some_and(is_provider)) {
        refuse(one.at("files").key(name).key("secret"));
    }
    for (name, _) in raw.bindings.iter().filter(|(_, binding)| binding.password.as_ref().is_some_and(is_provider)) {
        refuse(one.at("bindings").key(name).key("password"));
    }
}

pub(super) fn storage(app: &App<'_>) {
    let own = app.services.values().filter_map(|service| service.volume.as_ref()).map(|volume| volume.size_gib);
    let total = app.raw.volumes.values().map(|volume| volume.size_gib).chain(own).fold(0_i64, i64::saturating_add);
    if total > 5 {
        app.refuse(
            app.at("volumes"),
            "must be at most 5 GiB in a preview, those of services counted",
            WHY,
            "make them smaller",
        );
    }
}

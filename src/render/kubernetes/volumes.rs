//! What containers find in their file systems beside their image.
//!
//! Source: `spec/hakopod-kubernetes`, section 4, volumes.

use serde_json::{Value, json};

use super::context::View;
use super::{container, files, ingress, names, probe, secrets};
use crate::model::hakopod::{CertificateMount, Mount, Service, ServiceFile, Sidecar, TemporaryMount};

/// The volume of the probe helper.
pub(super) const HELPER: &str = "readiness-probe";
/// Mode 0440 of certificates.
const CERTIFICATE_MODE: u32 = 0o440;

/// The pod's volumes: data, named ones once each, scratch, files, certificates, shared memory, helper.
pub(super) fn volumes(view: &View<'_>, name: &str, service: &Service) -> Vec<Value> {
    let mut volumes = Vec::new();
    if service.volume.is_some() {
        volumes.push(json!({ "name": "data", "persistentVolumeClaim": { "claimName": names::own_claim(name) } }));
    }
    let mut named: Vec<&str> = service.mounts.iter().map(|mount| mount.volume.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    volumes.extend(named.into_iter().map(|volume| {
        json!({
            "name": format!("volume-{volume}"),
            "persistentVolumeClaim": { "claimName": names::named_claim(volume) },
        })
    }));
    volumes.extend((0_usize..).zip(&service.temporary_mounts).map(|(index, mount)| {
        json!({
            "name": format!("temporary-{index}"),
            "emptyDir": {
                "sizeLimit": format!("{}Mi", mount.size_mib),
                "medium": mount.memory.then_some("Memory"),
            },
        })
    }));
    volumes
        .extend((0_usize..).zip(&service.files).map(|(index, file)| file_volume(view, (index, file), (name, service))));
    volumes.extend((0_usize..).zip(&service.certificate_mounts).map(|(index, mount)| {
        json!({
            "name": format!("certificate-{index}"),
            "secret": {
                "secretName": certificate_secret(name, service, mount),
                "defaultMode": CERTIFICATE_MODE,
                "items": [{ "key": "tls.crt", "path": "tls.crt" }, { "key": "tls.key", "path": "tls.key" }],
            },
        })
    }));
    if service.gpu.is_some() {
        volumes.push(json!({ "name": "shm", "emptyDir": { "medium": "Memory", "sizeLimit": "1Gi" } }));
    }
    if probe::needs_helper(service) {
        let size = format!("{}Mi", container::HELPER_MIB);
        volumes.push(json!({ "name": HELPER, "emptyDir": { "sizeLimit": size } }));
    }
    volumes
}

fn file_volume(view: &View<'_>, file: (usize, (&String, &ServiceFile)), owner: (&str, &Service)) -> Value {
    let (index, (file_name, file)) = file;
    let (name, service) = owner;
    let items = json!([{ "key": file_name, "path": "file", "mode": file.mode }]);
    let volume = format!("config-file-{index}");
    if file.content.is_some() {
        json!({ "name": volume, "configMap": { "name": files::config_map_name(name, service), "items": items } })
    } else {
        json!({ "name": volume, "secret": { "secretName": secrets::files_name(view, name), "items": items } })
    }
}

/// The uploaded certificate, or the one of the service's ingress.
fn certificate_secret(name: &str, service: &Service, mount: &CertificateMount) -> String {
    match &mount.certificate {
        Some(certificate) => names::certificate(name, certificate),
        None => ingress::tls_secret(name, service),
    }
}

/// The mounts of `app`, in the order of the volumes.
pub(super) fn mounts(view: &View<'_>, service: &Service) -> Vec<Value> {
    let mut mounts = Vec::new();
    if let Some(volume) = &service.volume {
        mounts.push(json!({ "name": "data", "mountPath": volume.mount_path }));
    }
    mounts.extend(service.mounts.iter().map(named_mount));
    mounts.extend((0_usize..).zip(&service.temporary_mounts).map(|(index, mount)| temporary_mount(index, mount)));
    mounts.extend((0_usize..).zip(service.files.values()).map(|(index, file)| {
        json!({
            "name": format!("config-file-{index}"),
            "mountPath": file.mount_path,
            "subPath": "file",
            "readOnly": true,
        })
    }));
    mounts.extend((0_usize..).zip(&service.certificate_mounts).map(|(index, mount)| {
        json!({ "name": format!("certificate-{index}"), "mountPath": mount.mount_path, "readOnly": true })
    }));
    if service.gpu.is_some() {
        mounts.push(json!({ "name": "shm", "mountPath": "/dev/shm" }));
    }
    if probe::needs_helper(service) && view.context.settings.grants.probe_image.is_some() {
        mounts.push(json!({ "name": HELPER, "mountPath": probe::HELPER_DIR, "readOnly": true }));
    }
    mounts
}

fn named_mount(mount: &Mount) -> Value {
    json!({
        "name": format!("volume-{}", mount.volume),
        "mountPath": mount.mount_path,
        "subPath": mount.sub_path,
        "readOnly": mount.read_only.then_some(true),
    })
}

fn temporary_mount(index: usize, mount: &TemporaryMount) -> Value {
    json!({ "name": format!("temporary-{index}"), "mountPath": mount.mount_path })
}

/// The mounts of a sidecar: named volumes, and scratch directories that the service has at that path.
pub(super) fn sidecar_mounts(service: &Service, sidecar: &Sidecar) -> Vec<Value> {
    let mut mounts: Vec<Value> = sidecar.mounts.iter().map(named_mount).collect();
    let scratch = |mount: &TemporaryMount| {
        let same = |own: &TemporaryMount| own.mount_path == mount.mount_path;
        let index = service.temporary_mounts.iter().position(same)?;
        Some(temporary_mount(index, mount))
    };
    mounts.extend(sidecar.temporary_mounts.iter().filter_map(scratch));
    mounts
}

//! Section 23 as ruling 54 reads it: further containers of a service's pod.

use super::super::form::{is_clean_absolute, is_name, overlap};
use super::super::raw::RawSidecar;
use super::One;
use super::counts::too_many;
use super::document::{NAME, NAME_FIX};
use super::environment::{MAX_ENV, MAX_SECRETS, both, references, variables};
use super::mounts::{protected_mount, sub_path};
use super::process::{arguments, blank_program, image_at, resources_at, size_at, working_dir_at};
use super::storage::bad_directory;
use crate::model::document::KeyPath;

/// Names of containers that the pod has already.
const TAKEN: [&str; 2] = ["app", "install-readiness-probe"];

pub(super) fn sidecars(one: &One<'_>) {
    let raw = one.raw;
    if raw.sidecars.is_empty() {
        return;
    }
    let table = one.at("sidecars");
    too_many(one.app, &table, raw.sidecars.len(), 4);
    if raw.is_job() || raw.session.is_some() || raw.serverless.is_some() {
        one.refuse(
            "sidecars",
            "is refused on jobs, sessions and serverless services",
            "a container beside the first one would keep a job from ending and a service from sleeping",
            "remove it, or move it to a regular service",
        );
    }
    let mut names: Vec<&str> = TAKEN.to_vec();
    for (index, sidecar) in raw.sidecars.iter().enumerate() {
        let path = table.index(index);
        if !is_name(&sidecar.name) {
            one.app.refuse(path.key("name"), "is not a name", NAME, NAME_FIX);
        } else if names.contains(&sidecar.name.as_str()) {
            one.app.refuse(
                path.key("name"),
                "is taken by another container",
                "names are unique in the pod, where the service's own container is `app`",
                "choose another name",
            );
        }
        names.push(&sidecar.name);
        container(one, &path, sidecar);
        mounts(one, &path, sidecar);
    }
}

fn container(one: &One<'_>, path: &KeyPath, sidecar: &RawSidecar) {
    image_at(one, path.key("image"), &sidecar.image);
    arguments(one, &path.key("command"), &sidecar.command, 64);
    blank_program(one, &path.key("command"), &sidecar.command);
    arguments(one, &path.key("args"), &sidecar.args, 128);
    too_many(one.app, &path.key("env"), sidecar.env.len(), MAX_ENV);
    variables(one.app, &path.key("env"), &sidecar.env);
    too_many(one.app, &path.key("secrets"), sidecar.secrets.len(), MAX_SECRETS);
    references(one.app, &path.key("secrets"), &sidecar.secrets);
    both(one.app, &path.key("secrets"), &sidecar.secrets, &sidecar.env);
    size_at(one, path.key("size"), &sidecar.size);
    resources_at(one, &path.key("resources"), &sidecar.resources, &sidecar.size);
    working_dir_at(one, path.key("working_dir"), &sidecar.working_dir);
}

fn mounts(one: &One<'_>, path: &KeyPath, sidecar: &RawSidecar) {
    let mut taken: Vec<&str> = Vec::new();
    for (index, mount) in sidecar.mounts.iter().enumerate() {
        let path = path.key("mounts").index(index);
        if !one.raw.mounts.iter().any(|own| own.volume == mount.volume) {
            one.app.refuse(
                path.key("volume"),
                "names no volume that the service mounts",
                "a sidecar shares what its service has",
                "mount the volume in the service too",
            );
        }
        sub_path(one, path.key("sub_path"), &mount.sub_path);
        place(one, path.key("mount_path"), &mount.mount_path, &mut taken);
    }
    for (index, mount) in sidecar.temporary_mounts.iter().enumerate() {
        let path = path.key("temporary_mounts").index(index);
        let own = one.raw.temporary_mounts.iter().find(|own| own.mount_path == mount.mount_path);
        match own {
            None => one.app.refuse(
                path.key("mount_path"),
                "is no temporary mount of the service",
                "a sidecar shares the scratch directories of its service, found by their path",
                "add it to the service's `temporary_mounts`",
            ),
            Some(own) if mount.size_mib != 0 && (mount.size_mib != own.size_mib || mount.memory != own.memory) => {
                one.app.refuse(
                    path.key("size_mib"),
                    "differs from the service's",
                    "it is the same directory",
                    "leave `size_mib` and `memory` out here",
                );
            }
            Some(_) => {}
        }
        place(one, path.key("mount_path"), &mount.mount_path, &mut taken);
    }
}

fn place<'a>(one: &One<'_>, path: KeyPath, text: &'a str, taken: &mut Vec<&'a str>) {
    if !is_clean_absolute(text, 200) {
        bad_directory(one, path);
        return;
    }
    if taken.iter().any(|other| overlap(text, other)) {
        one.app.refuse(
            path.clone(),
            "overlaps another mount of this sidecar",
            "of two mounts one would hide the other, wholly or in part",
            "choose directories that do not lie inside each other",
        );
    }
    taken.push(text);
    protected_mount(one, path, text);
}

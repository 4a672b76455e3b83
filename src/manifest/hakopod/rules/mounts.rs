//! Sections 14 to 16 and 20: what is mounted where.

use std::collections::BTreeSet;

use super::super::form::{
    is_below, is_clean_absolute, is_clean_relative, is_hostname, is_name, is_resource_name, overlap,
};
use super::counts::too_many;
use super::document::{NAME, NAME_FIX};
use super::environment::secret_reference;
use super::exposure::{HOSTNAME, HOSTNAME_FIX};
use super::storage::bad_directory;
use super::{One, process};
use crate::model::document::KeyPath;

const MAX_MOUNTS: usize = 16;
const MAX_SCRATCH_MIB: i64 = 1 << 20;
const MAX_CONTENT: usize = 65536;
const MAX_CONTENTS: usize = 131_072;

/// Directories that a kind of mount may not touch: `below` includes the directory itself.
struct Protected {
    below: &'static [&'static str],
    above: &'static [&'static str],
    exactly: &'static [&'static str],
}

const MOUNTED: [&str; 5] = ["/proc", "/sys", "/dev", "/etc", "/var/run/secrets"];
const FILED: [&str; 5] = ["/proc", "/sys", "/dev", "/var/run/secrets", "/run/secrets"];
const VOLUME: Protected =
    Protected { below: &["/proc", "/sys", "/dev", "/etc", "/run", "/var/run"], above: &[], exactly: &[] };
const MOUNT: Protected = Protected { below: &MOUNTED, above: &MOUNTED, exactly: &[] };
const FILE: Protected = Protected { below: &FILED, above: &FILED, exactly: &["/etc"] };

/// What kind of mount a path comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Volume,
    Mount,
    Temporary,
    Certificate,
    File,
}

impl One<'_> {
    /// Every mount path with its place, in the order of the kinds.
    fn mount_paths(&self) -> Vec<(Kind, KeyPath, &str)> {
        let raw = self.raw;
        let key = "mount_path";
        let volume =
            raw.volume.iter().map(|volume| (Kind::Volume, self.at("volume").key(key), volume.mount_path.as_str()));
        let mounts =
            raw.mounts.iter().enumerate().map(|(index, mount)| {
                (Kind::Mount, self.at("mounts").index(index).key(key), mount.mount_path.as_str())
            });
        let temporary = raw.temporary_mounts.iter().enumerate().map(|(index, mount)| {
            (Kind::Temporary, self.at("temporary_mounts").index(index).key(key), mount.mount_path.as_str())
        });
        let certificates = raw.certificate_mounts.iter().enumerate().map(|(index, mount)| {
            (Kind::Certificate, self.at("certificate_mounts").index(index).key(key), mount.mount_path.as_str())
        });
        let files = raw
            .files
            .iter()
            .map(|(name, file)| (Kind::File, self.at("files").key(name).key(key), file.mount_path.as_str()));
        volume.chain(mounts).chain(temporary).chain(certificates).chain(files).collect()
    }
}

pub(super) fn counts(one: &One<'_>) {
    let raw = one.raw;
    let mounts = raw.mounts.len() + raw.temporary_mounts.len() + raw.certificate_mounts.len();
    let field = if raw.mounts.is_empty() { "temporary_mounts" } else { "mounts" };
    if mounts > MAX_MOUNTS {
        one.refuse(
            field,
            format!("makes {mounts} mounts with all kinds counted, more than {MAX_MOUNTS}"),
            "named, temporary and certificate mounts count together",
            "remove some",
        );
    } else if mounts + raw.files.len() > MAX_MOUNTS {
        one.refuse(
            "files",
            format!("makes {} files and mounts, more than {MAX_MOUNTS}", mounts + raw.files.len()),
            "each file is a mount too",
            "remove some",
        );
    }
}

pub(super) fn named(one: &One<'_>) {
    for (index, mount) in one.raw.mounts.iter().enumerate() {
        let path = one.at("mounts").index(index);
        if !one.app.raw.volumes.contains_key(&mount.volume) {
            one.app.refuse(
                path.key("volume"),
                "names no declared volume",
                "mounts use the application's volumes",
                "add `[volumes.<name>]` with its `size_gib`",
            );
        }
        sub_path(one, path.key("sub_path"), &mount.sub_path);
        if !is_clean_absolute(&mount.mount_path, 200) {
            bad_directory(one, path.key("mount_path"));
        }
    }
}

pub(super) fn sub_path(one: &One<'_>, path: KeyPath, text: &str) {
    if !text.is_empty() && !is_clean_relative(text) {
        one.app.refuse(
            path,
            "is not a clean relative directory",
            "it is a directory inside the volume, at most 200 bytes, without `.`, `..` or empty parts",
            "write for example \"archive\"",
        );
    }
}

pub(super) fn temporary(one: &One<'_>) {
    let mounts = &one.raw.temporary_mounts;
    let table = one.at("temporary_mounts");
    for (index, mount) in mounts.iter().enumerate() {
        let path = table.index(index);
        if !is_clean_absolute(&mount.mount_path, 200) {
            bad_directory(one, path.key("mount_path"));
        }
        one.needed(path.key("size_mib"), mount.size_mib, 1..=MAX_SCRATCH_MIB);
    }
    let sum = |is_memory: bool| {
        let sizes = mounts.iter().filter(|mount| mount.memory == is_memory).map(|mount| mount.size_mib.max(0));
        sizes.fold(0_i64, i64::saturating_add)
    };
    let (memory, disk) = (sum(true), sum(false));
    let refuse = |what: &'static str, why: &'static str| one.app.refuse(table.clone(), what, why, "make some smaller");
    if memory.saturating_add(disk) > MAX_SCRATCH_MIB {
        refuse("must be at most 1048576 MiB together", "more than 1 TiB of scratch space is taken for a mistake");
    }
    if one.raw.session.is_some() {
        if memory > 128 {
            refuse("must be at most 128 MiB of memory for a session", "sessions are small");
        }
        if disk > 16384 {
            refuse("must be at most 16384 MiB of disk for a session", "sessions are small");
        }
    }
    let limit = process::budget(&one.raw.resources, &one.raw.size).memory_limit;
    let bytes = u64::try_from(memory).unwrap_or_default().saturating_mul(1 << 20);
    if memory > 0 && bytes >= limit.bytes() {
        refuse(
            "must stay below the memory limit with those in memory",
            "what is written there counts against the container's memory",
        );
    }
}

pub(super) fn protected(one: &One<'_>) {
    for (kind, path, text) in one.mount_paths() {
        let rules = match kind {
            Kind::Volume => VOLUME,
            Kind::Mount | Kind::Temporary | Kind::Certificate => MOUNT,
            Kind::File => FILE,
        };
        protected_at(one, path, text, &rules);
    }
}

/// The directories of mounts, for containers beside the service's.
pub(super) fn protected_mount(one: &One<'_>, path: KeyPath, text: &str) {
    protected_at(one, path, text, &MOUNT);
}

fn protected_at(one: &One<'_>, path: KeyPath, text: &str, rules: &Protected) {
    let is_hit = rules.below.iter().any(|directory| is_below(text, directory))
        || rules.above.iter().any(|directory| !text.is_empty() && is_below(directory, text))
        || rules.exactly.contains(&text);
    if is_hit {
        one.app.refuse(
            path,
            "is a protected directory",
            "the system, the kernel or the cluster keeps its own files there",
            "choose a directory of the application's own",
        );
    }
}

pub(super) fn reserved(one: &One<'_>) {
    let raw = one.raw;
    let is_invoked = raw.job.as_ref().is_some_and(|job| job.invocation.is_some());
    let reservations: [(bool, &str, &[Kind]); 4] = [
        (
            !raw.container_daemon.is_empty(),
            "/var/run/secrets/hakopod/container-daemon",
            &[Kind::Volume, Kind::Mount, Kind::Certificate, Kind::Temporary],
        ),
        (
            !raw.aws_identity.is_empty(),
            "/var/run/secrets/hakopod/aws",
            &[Kind::Volume, Kind::Mount, Kind::Certificate, Kind::Temporary],
        ),
        (is_invoked, "/run/hakopod/invocation", &[Kind::File, Kind::Temporary]),
        (raw.session.is_some(), "/run/hakopod-session", &[Kind::Temporary]),
    ];
    for (_, directory, kinds) in reservations.iter().filter(|(is_set, _, _)| *is_set) {
        for (_, path, _) in one
            .mount_paths()
            .into_iter()
            .filter(|(kind, _, text)| kinds.contains(kind) && text.starts_with('/') && overlap(text, directory))
        {
            one.app.refuse(
                path,
                format!("overlaps the reserved directory {directory}"),
                "what the service is given by the platform is mounted there",
                "choose another directory",
            );
        }
    }
}

pub(super) fn overlaps(one: &One<'_>) {
    let paths = one.mount_paths();
    let is_given = |text: &str| text.starts_with('/');
    for (index, (_, path, text)) in paths.iter().enumerate().filter(|(_, (_, _, text))| is_given(text)) {
        let earlier = paths.iter().take(index).find(|(_, _, other)| is_given(other) && overlap(text, other));
        if let Some((_, other, _)) = earlier {
            one.app.refuse(
                path.clone(),
                format!("overlaps {other}"),
                "of two mounts one would hide the other, wholly or in part",
                "choose directories that do not lie inside each other",
            );
        }
    }
}

pub(super) fn certificates(one: &One<'_>) {
    let table = one.at("certificate_mounts");
    let mounts = &one.raw.certificate_mounts;
    too_many(one.app, &table, mounts.len(), 4);
    let mut seen: BTreeSet<(bool, &str)> = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let path = table.index(index);
        let is_ingress = mount.source == "ingress";
        if !is_ingress && !mount.source.is_empty() {
            one.app.refuse(
                path.key("source"),
                "must be \"ingress\"",
                "there is no other source",
                "write it, or remove it",
            );
        } else if mount.certificate.is_empty() == mount.source.is_empty() {
            one.app.refuse(
                path.clone(),
                "must have exactly one of `certificate` and `source`",
                "a certificate is uploaded, or follows the ingress",
                "write one of the two",
            );
        }
        if !mount.certificate.is_empty()
            && (!is_resource_name(&mount.certificate) || mount.certificate.starts_with("hp-auto-cert-"))
        {
            one.app.refuse(
                path.key("certificate"),
                "is not the name of an uploaded certificate",
                "such names match ^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$, and `hp-auto-cert-` is for automatic ones",
                "write the certificate's name",
            );
        }
        if is_ingress && !one.is_public() && one.raw.public_tcp.is_empty() {
            one.app.refuse(
                path.key("source"),
                "needs `public` or a `public_tcp` listener",
                "without them the service has no ingress to follow",
                "upload a certificate, or open the service",
            );
        }
        if !is_hostname(&mount.hostname) {
            one.app.refuse(path.key("hostname"), "must be a host name", HOSTNAME, HOSTNAME_FIX);
        }
        if !is_clean_absolute(&mount.mount_path, 200) {
            bad_directory(one, path.key("mount_path"));
        }
        let identity = if is_ingress { mount.hostname.as_str() } else { mount.certificate.as_str() };
        if !identity.is_empty() && !seen.insert((is_ingress, identity)) {
            let field = if is_ingress { "hostname" } else { "certificate" };
            one.app.refuse(path.key(field), "is mounted already", "one mount of it is enough", "remove one");
        }
    }
}

pub(super) fn files(one: &One<'_>) {
    let table = one.at("files");
    let mut total = 0_usize;
    for (name, file) in &one.raw.files {
        let path = table.key(name);
        if !is_name(name) {
            one.app.refuse_key(path.clone(), "is not a name", NAME, NAME_FIX);
        }
        let has_content = file.content.is_some() || one.app.sink.is_failed(&path.key("content"));
        let has_secret = file.secret.is_some() || one.app.sink.is_failed(&path.key("secret"));
        if has_content == has_secret {
            one.app.refuse(
                path.clone(),
                "must have exactly one of `content` and `secret`",
                "a file has one text; an empty `content` counts",
                "write one of the two",
            );
        }
        if !is_clean_absolute(&file.mount_path, 200) {
            bad_directory(one, path.key("mount_path"));
        }
        let content = file.content.as_deref().unwrap_or_default();
        total = total.saturating_add(content.len());
        if content.len() > MAX_CONTENT || content.contains('\0') {
            one.app.refuse(
                path.key("content"),
                format!("must be at most {MAX_CONTENT} bytes without a NUL"),
                "files are kept with the specification",
                "put larger files into the image",
            );
        }
        if let Some(secret) = &file.secret {
            secret_reference(one.app, &path.key("secret"), secret);
        }
        if !matches!(file.mode, 0 | 288 | 292) {
            one.app.refuse(
                path.key("mode"),
                "must be 292 (0o444) or 288 (0o440)",
                "files are read-only",
                "write one of the two, or leave it out for 0o444",
            );
        }
    }
    if total > MAX_CONTENTS {
        one.refuse(
            "files",
            format!("must have at most {MAX_CONTENTS} bytes of content together"),
            "files are kept with the specification",
            "put larger files into the image",
        );
    }
}

//! Sections 3, 10, 12, 13 and 21: the image and how its process runs.

use super::super::form::{is_clean_absolute, is_digest, is_health_path, is_image, is_nonce, is_resource_name};
use super::super::raw::RawResources;
use super::One;
use super::counts::too_many;
use crate::model::document::KeyPath;
use crate::model::hakopod::{Cpu, Memory, Profile, QuantityError, Size};

const MAX_ARGUMENT: usize = 4096;

pub(super) fn image(one: &One<'_>) {
    image_at(one, one.at("image"), &one.raw.image);
}

/// Holds a reference to section 3.
pub(super) fn image_at(one: &One<'_>, path: KeyPath, image: &str) {
    if image.is_empty() {
        one.app.refuse(path, "is missing", "it is required and has no default", "add `image = \"…\"`");
        return;
    }
    if !is_image(image) {
        let is_digest_wrong = image.split_once('@').is_some_and(|(_, digest)| !is_digest(digest));
        let fix = if is_digest_wrong {
            "write the digest as `@sha256:` and 64 lower-case hex digits, and no credentials before the `@`"
        } else {
            "write for example \"docker.io/library/nginx:1.29\", without scheme, spaces or `..`"
        };
        one.app.refuse(path, "is not an image reference", "references have at most 512 plain characters", fix);
    }
}

pub(super) fn size(one: &One<'_>) {
    size_at(one, one.at("size"), &one.raw.size);
}

/// The profile of a word; nothing means small.
pub(in super::super) fn size_of(word: &str) -> Option<Size> {
    if word.is_empty() {
        return Some(Size::Small);
    }
    Size::WORDS.iter().find(|(known, _)| *known == word).map(|(_, size)| *size)
}

pub(super) fn size_at(one: &One<'_>, path: KeyPath, word: &str) {
    if size_of(word).is_none() {
        one.app.refuse(
            path,
            "must be \"small\", \"medium\", \"large\", \"compute\" or \"gpu\"",
            "these are the profiles",
            "write one of them, and use `resources` for other values",
        );
    }
}

pub(super) fn resources(one: &One<'_>) {
    resources_at(one, &one.at("resources"), &one.raw.resources, &one.raw.size);
}

/// The effective budget; quantities that cannot be read are left to the profile.
pub(super) fn budget(raw: &RawResources, size: &str) -> Profile {
    let own = crate::model::hakopod::Resources {
        cpu_request: raw.cpu_request.parse().ok(),
        cpu_limit: raw.cpu_limit.parse().ok(),
        memory_request: raw.memory_request.parse().ok(),
        memory_limit: raw.memory_limit.parse().ok(),
    };
    size_of(size).unwrap_or_default().profile().with(Some(&own))
}

pub(super) fn resources_at(one: &One<'_>, path: &KeyPath, raw: &RawResources, size: &str) {
    let cpu = |text: &str| text.parse::<Cpu>().err();
    let memory = |text: &str| text.parse::<Memory>().err();
    let fields = [
        ("cpu_request", &raw.cpu_request, cpu(&raw.cpu_request), CPU),
        ("cpu_limit", &raw.cpu_limit, cpu(&raw.cpu_limit), CPU),
        ("memory_request", &raw.memory_request, memory(&raw.memory_request), MEMORY),
        ("memory_limit", &raw.memory_limit, memory(&raw.memory_limit), MEMORY),
    ];
    let mut is_read = size_of(size).is_some();
    for (field, _, error, rule) in fields.iter().filter(|(_, text, _, _)| !text.is_empty()) {
        if let Some(error) = error {
            is_read = false;
            let what = match error {
                QuantityError::Form => "is not a quantity of this kind",
                QuantityError::Bounds => "is out of bounds",
            };
            one.app.refuse(path.key(field), what, *rule, "write a quoted quantity inside the bounds");
        }
    }
    let is_failed = fields.iter().any(|(field, ..)| one.app.sink.is_failed(&path.key(field)));
    if !is_read || is_failed {
        return;
    }
    let budget = budget(raw, size);
    let over = |field: &str| {
        one.app.refuse(
            path.key(field),
            "is above the limit",
            "a request must not exceed its effective limit; what is not given comes from `size`",
            "lower the request, or set a higher limit too",
        );
    };
    if budget.cpu_request > budget.cpu_limit {
        over("cpu_request");
    }
    if budget.memory_request > budget.memory_limit {
        over("memory_request");
    }
}

const CPU: &str = "CPU is whole cores, cores with up to three decimals, or millicores such as 250m; 1m to 64 cores";
const MEMORY: &str = "memory is a whole number with Ki, Mi, Gi, Ti, k, M, G, T or no unit; 1Mi to 256Gi";

pub(super) fn healthcheck(one: &One<'_>) {
    if one.raw.healthcheck.is_empty() {
        return;
    }
    if !one.has_port() && !one.raw.is_job() {
        one.refuse("healthcheck", "needs a `port`", "the path is asked for on it", "add `port`");
    }
    if !is_health_path(&one.raw.healthcheck) {
        one.refuse(
            "healthcheck",
            "is not a path",
            "it starts with one `/`, has at most 2048 bytes, complete percent escapes and no control characters",
            "write for example \"/healthz\"",
        );
    }
}

pub(super) fn startup_timeout(one: &One<'_>) {
    one.range(one.at("startup_timeout_seconds"), one.raw.startup_timeout_seconds, 10..=900);
}

pub(super) fn update_strategy(one: &One<'_>) {
    if !matches!(one.raw.update_strategy.as_str(), "" | "rolling" | "recreate") {
        one.refuse(
            "update_strategy",
            "must be \"rolling\" or \"recreate\"",
            "these are the two ways to replace pods",
            "write one of the two",
        );
    }
}

pub(super) fn termination_grace(one: &One<'_>) {
    one.range(one.at("termination_grace_seconds"), one.raw.termination_grace_seconds, 1..=3600);
}

pub(super) fn command(one: &One<'_>) {
    arguments(one, &one.at("command"), &one.raw.command, 64);
    arguments(one, &one.at("args"), &one.raw.args, 128);
    blank_program(one, &one.at("command"), &one.raw.command);
}

pub(super) fn arguments(one: &One<'_>, path: &KeyPath, list: &[String], most: usize) {
    too_many(one.app, path, list.len(), most);
    for (index, _) in list.iter().enumerate().filter(|(_, text)| text.len() > MAX_ARGUMENT || text.contains('\0')) {
        one.app.refuse(
            path.index(index),
            format!("must be at most {MAX_ARGUMENT} bytes without a NUL"),
            "it becomes one argument of the process",
            "put longer text into `files`",
        );
    }
}

/// The first element of a command that is not empty names the program.
pub(super) fn blank_program(one: &One<'_>, path: &KeyPath, list: &[String]) {
    if list.first().is_some_and(|program| program.trim().is_empty()) {
        one.app.refuse(path.index(0), "is blank", "the first element is the program", "name the program");
    }
}

pub(super) fn working_dir(one: &One<'_>) {
    working_dir_at(one, one.at("working_dir"), &one.raw.working_dir);
}

pub(super) fn working_dir_at(one: &One<'_>, path: KeyPath, text: &str) {
    if !matches!(text, "" | "/") && !is_clean_absolute(text, 200) {
        one.app.refuse(
            path,
            "is not a clean absolute directory",
            "at most 200 bytes, without `.`, `..`, empty parts or a slash at the end",
            "write for example \"/app\"",
        );
    }
}

pub(super) fn restart_nonce(one: &One<'_>) {
    if !is_nonce(&one.raw.restart_nonce) {
        one.refuse(
            "restart_nonce",
            "must be at most 64 letters, digits, `_` or `-`",
            "it is an opaque mark",
            "write for example a date",
        );
    }
}

pub(super) fn architecture(one: &One<'_>) {
    if !matches!(one.raw.architecture.as_str(), "" | "amd64" | "arm64") {
        one.refuse(
            "architecture",
            "must be \"amd64\" or \"arm64\"",
            "images and nodes are chosen by it",
            "write one of the two, or leave it out",
        );
    }
}

pub(super) fn users(one: &One<'_>) {
    let most = i64::from(i32::MAX);
    one.range(one.at("run_as_user"), one.raw.run_as_user, 1..=most);
    one.range(one.at("run_as_group"), one.raw.run_as_group, 1..=most);
    one.range(one.at("fs_group"), one.raw.fs_group, 1..=most);
}

pub(super) fn resource_names(one: &One<'_>) {
    let fields = [
        ("registry_credential", &one.raw.registry_credential),
        ("aws_identity", &one.raw.aws_identity),
        ("container_daemon", &one.raw.container_daemon),
        ("runtime_profile", &one.raw.runtime_profile),
    ];
    for (field, _) in fields.iter().filter(|(_, text)| !text.is_empty() && !is_resource_name(text)) {
        one.refuse(
            field,
            "is not the name of an object",
            "such names match ^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$",
            "use 1 to 63 lower-case letters, digits or hyphens, no hyphen at the ends",
        );
    }
}

pub(super) fn container_daemon(one: &One<'_>) {
    if one.raw.container_daemon.is_empty() {
        return;
    }
    if one.raw.session.is_none() && !one.has_egress() {
        one.refuse(
            "container_daemon",
            "needs a network with external egress",
            "the daemon is reached over the network, and every network of this service is internal",
            "join a network that is not internal",
        );
    }
}

pub(super) fn runtime_profile(one: &One<'_>) {
    if !one.raw.runtime_profile.is_empty() && one.raw.serverless.is_some() {
        one.refuse("runtime_profile", "is refused with `serverless`", "the gateway wakes plain pods only", "remove it");
    }
}

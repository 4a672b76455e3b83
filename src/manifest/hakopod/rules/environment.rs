//! Section 6: variables and references to secrets.

use std::collections::BTreeSet;

use super::super::form::{is_env_name, is_name, is_provider_part};
use super::super::raw::{Map, RawSecretRef};
use super::counts::too_many;
use super::document::{NAME, NAME_FIX};
use super::{App, One};
use crate::model::document::KeyPath;
use crate::model::hakopod::credential::{is_credential_name, is_credential_value};

/// The most variables of one table, and of one service's effective environment.
pub(super) const MAX_ENV: usize = 128;
/// The most references of one table, and of one service's effective references.
pub(super) const MAX_SECRETS: usize = 32;
/// The longest value of a variable, in bytes.
pub(in super::super) const MAX_VALUE: usize = 4096;

const DAEMON: [&str; 6] =
    ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_API_VERSION", "BUILDKIT_HOST"];
const AWS: [&str; 27] = [
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CREDENTIAL_EXPIRATION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_STS",
    "AWS_CA_BUNDLE",
];
const SESSION: [&str; 2] = ["HAKOPOD_POD_UID", "HAKOPOD_SESSION_GENERATION"];

pub(super) fn shared_env(app: &App<'_>) {
    let path = app.at("env");
    too_many(app, &path, app.raw.env.len(), MAX_ENV);
    variables(app, &path, &app.raw.env);
}

pub(super) fn shared_secrets(app: &App<'_>) {
    let path = app.at("secrets");
    too_many(app, &path, app.raw.secrets.len(), MAX_SECRETS);
    references(app, &path, &app.raw.secrets);
    both(app, &path, &app.raw.secrets, &app.raw.env);
}

pub(super) fn env(one: &One<'_>) {
    variables(one.app, &one.at("env"), &one.raw.env);
}

/// Variables of any table: each is told its first problem, as the original does.
pub(super) fn variables(app: &App<'_>, table: &KeyPath, env: &Map<String>) {
    for (key, value) in env {
        let path = table.key(key);
        if is_credential_name(key) || is_credential_value(value) {
            app.refuse_key(
                path,
                "looks like a credential",
                "variables are stored in plain text and shown in plans and histories",
                "save it as a secret and name it under `secrets`, for example `{ ref = \"…\" }`",
            );
        } else if !is_env_name(key) {
            bad_variable(app, path);
        } else if value.len() > MAX_VALUE || value.contains('\0') {
            app.refuse(
                path,
                format!("must be at most {MAX_VALUE} bytes without a NUL"),
                "it becomes one entry of the process's environment",
                "put longer text into `files`",
            );
        }
    }
}

fn bad_variable(app: &App<'_>, path: KeyPath) {
    app.refuse_key(
        path,
        "is not a variable's name",
        "names match ^[A-Za-z_][A-Za-z0-9_]*$ and have at most 128 bytes",
        "use letters, digits and underscores, first a letter or underscore",
    );
}

/// Keys and forms of a table of references.
pub(super) fn references(app: &App<'_>, table: &KeyPath, secrets: &Map<RawSecretRef>) {
    for (key, reference) in secrets {
        let path = table.key(key);
        if is_env_name(key) {
            secret_reference(app, &path, reference);
        } else {
            bad_variable(app, path);
        }
    }
}

/// A key that stands under `secrets` and `env` of one level.
pub(super) fn both(app: &App<'_>, table: &KeyPath, secrets: &Map<RawSecretRef>, env: &Map<String>) {
    for key in secrets.keys().filter(|key| env.contains_key(*key)) {
        app.refuse_key(
            table.key(key),
            "is a variable of `env` too",
            "one name has one value",
            "remove it from one of the two tables",
        );
    }
}

/// One reference: `ref` alone, or `provider`, `key` and perhaps `path`.
pub(super) fn secret_reference(app: &App<'_>, path: &KeyPath, reference: &RawSecretRef) {
    let RawSecretRef { name, provider, key, path: inner } = reference;
    let is_provider = !provider.is_empty() || !key.is_empty() || !inner.is_empty();
    match (name.is_empty(), is_provider) {
        (false, false) if is_name(name) => {}
        (false, false) => app.refuse(path.key("ref"), "is not a name", NAME, NAME_FIX),
        (false, true) | (true, false) => app.refuse(
            path.clone(),
            "must have either `ref`, or `provider` and `key`",
            "a reference names one secret in one place",
            "write `{ ref = \"…\" }`, or `{ provider = \"…\", key = \"…\" }` with an optional `path`",
        ),
        (true, true) => provider_reference(app, path, reference),
    }
}

fn provider_reference(app: &App<'_>, path: &KeyPath, reference: &RawSecretRef) {
    let RawSecretRef { provider, key, path: inner, .. } = reference;
    if !is_name(provider) {
        app.refuse(path.key("provider"), "is not a name", NAME, NAME_FIX);
    }
    if key.len() > 128 || !is_provider_part(key) {
        app.refuse(
            path.key("key"),
            "is not a key of a provider",
            "keys have 1 to 128 bytes of [A-Za-z0-9._-] and are not `.` or `..`",
            "write the provider's own key",
        );
    }
    if inner.len() > 512 || (!inner.is_empty() && !inner.split('/').all(is_provider_part)) {
        app.refuse(
            path.key("path"),
            "is not a path of a provider",
            "paths have at most 512 bytes; their parts are of [A-Za-z0-9._-], never empty, `.` or `..`",
            "write parts with `/` between them, none in front or at the end",
        );
    }
}

impl One<'_> {
    /// Names of the effective environment. Section 6.1.
    pub(super) fn env_names(&self) -> BTreeSet<&str> {
        let raw = self.raw;
        let is_shared = self.app.raw.inject_env.unwrap_or_default();
        let shared = is_shared.then_some(&self.app.raw.env).into_iter().flat_map(|env| env.keys());
        let is_kept = |key: &&String| !raw.secrets.contains_key(*key) && !raw.bindings.contains_key(*key);
        shared.chain(raw.env.keys()).filter(is_kept).map(String::as_str).collect()
    }

    /// Names of the effective references. Section 6.2.
    pub(super) fn secret_names(&self) -> BTreeSet<&str> {
        let raw = self.raw;
        let is_kept = |key: &&String| !raw.env.contains_key(*key) && !raw.bindings.contains_key(*key);
        let shared = self.app.raw.secrets.keys().filter(is_kept);
        shared.chain(raw.secrets.keys()).map(String::as_str).collect()
    }
}

pub(super) fn effective_env(one: &One<'_>) {
    too_many(one.app, &one.at("env"), one.env_names().len(), MAX_ENV);
}

pub(super) fn secrets(one: &One<'_>) {
    let path = one.at("secrets");
    too_many(one.app, &path, one.secret_names().len(), MAX_SECRETS);
    references(one.app, &path, &one.raw.secrets);
    both(one.app, &path, &one.raw.secrets, &one.raw.env);
    for key in one.raw.secrets.keys() {
        let is_file = key.strip_prefix("__file_").is_some_and(|name| one.raw.files.contains_key(name));
        let is_binding = key.strip_prefix("__binding_").is_some_and(|name| one.raw.bindings.contains_key(name));
        if is_file || is_binding {
            one.app.refuse_key(
                path.key(key),
                "is reserved",
                "the value of that file or binding is stored under this name",
                "choose another variable",
            );
        }
    }
}

pub(super) fn reserved(one: &One<'_>) {
    if !one.raw.container_daemon.is_empty() {
        managed(one, &DAEMON, "`container_daemon` sets these variables itself");
    }
    if !one.raw.aws_identity.is_empty() {
        managed(one, &AWS, "`aws_identity` sets these variables itself");
    }
    if one.raw.session.is_some() {
        let is_reserved = |key: &&String| SESSION.contains(&key.to_ascii_uppercase().as_str());
        for key in one.raw.env.keys().filter(is_reserved) {
            refuse_reserved(one, one.at("env").key(key), "sessions set these variables themselves");
        }
    }
}

fn managed(one: &One<'_>, names: &[&str], why: &'static str) {
    let is_reserved = |key: &str| names.contains(&key.to_ascii_uppercase().as_str());
    let place = |table: &'static str, is_own: bool, key: &str| {
        if is_own { one.at(table).key(key) } else { one.app.at(table).key(key) }
    };
    for key in one.env_names().into_iter().filter(|key| is_reserved(key)) {
        refuse_reserved(one, place("env", one.raw.env.contains_key(key), key), why);
    }
    for key in one.secret_names().into_iter().filter(|key| is_reserved(key)) {
        refuse_reserved(one, place("secrets", one.raw.secrets.contains_key(key), key), why);
    }
    for key in one.raw.bindings.keys().filter(|key| is_reserved(key)) {
        refuse_reserved(one, one.at("bindings").key(key), why);
    }
}

fn refuse_reserved(one: &One<'_>, path: KeyPath, why: &'static str) {
    one.app.refuse_key(path, "is a reserved variable", why, "remove it");
}

//! Section 17: bindings, and client profiles (ruling 53).

use super::super::form::{is_env_name, is_resource_name};
use super::super::raw::RawBinding;
use super::One;
use super::counts::too_many;
use super::environment::secret_reference;
use crate::model::document::KeyPath;

pub(super) fn bindings(one: &One<'_>) {
    let table = one.at("bindings");
    too_many(one.app, &table, one.raw.bindings.len(), 16);
    for (key, binding) in &one.raw.bindings {
        let path = table.key(key);
        if !is_env_name(key) {
            one.app.refuse_key(
                path.clone(),
                "is not a variable's name",
                "names match ^[A-Za-z_][A-Za-z0-9_]*$ and have at most 128 bytes",
                "use letters, digits and underscores, first a letter or underscore",
            );
        }
        if one.raw.env.contains_key(key) || one.raw.secrets.contains_key(key) {
            one.app.refuse_key(
                path.clone(),
                "is a variable or a secret of the service too",
                "one name has one value",
                "remove it from the other table",
            );
        }
        target(one, &path, binding);
        parts(one, &path, binding);
        if let Some(password) = &binding.password {
            secret_reference(one.app, &path.key("password"), password);
        }
    }
}

fn target(one: &One<'_>, path: &KeyPath, binding: &RawBinding) {
    let path = path.key("service");
    let Some(target) = one.app.one(&binding.service) else {
        one.app.refuse(
            path,
            "names no declared service",
            "a binding leads to a service of this application",
            "correct it",
        );
        return;
    };
    if target.raw.is_job() || !target.has_port() {
        one.app.refuse(
            path,
            "names a job or a service without a `port`",
            "the address is made of the service's name and its primary port",
            "name a service with a `port`",
        );
    } else if !is_peer(one, &target) {
        one.app.refuse(
            path,
            "names a service that does not let this one in",
            "both need a network in common, and `network_access.from` of the other must name this one if it is there",
            "share a network, or add this service to the other's `from`",
        );
    }
}

fn is_peer(one: &One<'_>, target: &One<'_>) -> bool {
    let is_let_in = |access: &super::super::raw::RawNetworkAccess| access.from.iter().any(|peer| peer == one.name);
    one.shares_network(target) && target.raw.network_access.as_ref().is_none_or(is_let_in)
}

fn parts(one: &One<'_>, path: &KeyPath, binding: &RawBinding) {
    let bad_text =
        |text: &str, others: &[char]| text.len() > 64 || text.contains(['\0', '\r', '\n']) || text.contains(others);
    if bad_text(&binding.database, &['/', '\\', '?', '#']) {
        one.app.refuse(
            path.key("database"),
            "is not a database's name",
            "at most 64 bytes without `/`, `\\`, `?`, `#` or line breaks",
            "write the plain name",
        );
    }
    if bad_text(&binding.username, &[]) {
        one.app.refuse(
            path.key("username"),
            "is not a user's name",
            "at most 64 bytes without line breaks",
            "write the plain name",
        );
    }
    let has = [
        ("password", binding.password.is_some()),
        ("username", !binding.username.is_empty()),
        ("database", !binding.database.is_empty()),
    ];
    let (needed, allowed): (&[&str], &[&str]) = match binding.protocol.as_str() {
        "http" => (&[], &[]),
        "postgres" | "mysql" | "amqp" => (&["password", "username", "database"], &["password", "username", "database"]),
        "redis" => (&["password"], &["password", "username", "database"]),
        _ => {
            one.app.refuse(
                path.key("protocol"),
                "must be \"http\", \"postgres\", \"mysql\", \"redis\" or \"amqp\"",
                "these are the addresses that can be made",
                "write one of them",
            );
            return;
        }
    };
    for (field, is_there) in has {
        if needed.contains(&field) && !is_there {
            one.app.refuse(path.key(field), "is required for this protocol", "the address names it", "add it");
        } else if is_there && !allowed.contains(&field) {
            one.app.refuse(path.key(field), "is refused for this protocol", "an HTTP address has none", "remove it");
        }
    }
    let is_number = |text: &str| matches!(text.as_bytes(), [b'0'..=b'9'] | [b'1', b'0'..=b'5']);
    if binding.protocol == "redis" && !binding.database.is_empty() && !is_number(&binding.database) {
        one.app.refuse(
            path.key("database"),
            "must be a number from 0 to 15",
            "redis numbers its databases",
            "write one",
        );
    }
}

pub(super) fn client_profiles(one: &One<'_>) {
    let table = one.at("database_client_profiles");
    for (key, profile) in &one.raw.database_client_profiles {
        if !is_env_name(key) || !is_resource_name(profile) {
            one.app.refuse_key(
                table.key(key),
                "must map a variable's name to a profile's name",
                "profiles are chosen for variables that hold an address",
                "write for example `DB_URL = \"profile-v1\"`",
            );
        }
    }
}

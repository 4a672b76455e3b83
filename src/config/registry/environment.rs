//! `env`, `secrets` and `job_secrets`: names are shown, values never.

use std::collections::BTreeMap;

use crate::model::document::{Refusal, Table, Value, form};

/// The three tables of one target.
pub(super) struct Environment {
    pub(super) env: BTreeMap<String, String>,
    pub(super) secrets: Vec<String>,
    pub(super) job_secrets: BTreeMap<String, Vec<String>>,
}

/// Variables by which programs choose a proxy; the host sets them with the target's egress.
///
/// `TRUST_PROXY` and the like are an application's own, so this is a list and not an ending.
const PROXY: [&str; 12] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "FTP_PROXY",
    "FTPS_PROXY",
    "SOCKS_PROXY",
    "SOCKS5_PROXY",
    "RSYNC_PROXY",
    "WS_PROXY",
    "WSS_PROXY",
    "NODE_USE_ENV_PROXY",
];

/// Variables of the dynamic loader without a prefix of their own.
///
/// Source: ld.so(8), "Environment".
const LOADER: [&str; 4] = ["GLIBC_TUNABLES", "GCONV_PATH", "GETCONF_DIR", "LOCPATH"];

/// Prefixes of the loader's variables, on Linux and elsewhere.
const LOADER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// Reads all three. A name stands in one of them only.
pub(super) fn read(table: &Table<'_>) -> Option<Environment> {
    let env = table.get("env").map_or(Some(BTreeMap::new()), |value| env(&value));
    let names = |key: &str| table.get(key);
    let in_env = |name: &str| table.get("env").and_then(|env| env.as_table()?.get(name)).is_some();
    let secrets = names("secrets")
        .map_or(Some(Vec::new()), |value| list(&value, |name| in_env(name).then_some("is in `env` too")));
    let given = secrets.clone().unwrap_or_default();
    let job_secrets = names("job_secrets").map_or(Some(BTreeMap::new()), |value| {
        job_secrets(&value, |name| {
            if in_env(name) {
                Some("is in `env` too")
            } else if given.iter().any(|other| other == name) {
                Some("is in `secrets` too")
            } else {
                None
            }
        })
    });
    Some(Environment { env: env?, secrets: secrets?, job_secrets: job_secrets? })
}

/// A variable's name: `^[A-Z][A-Z0-9_]{0,63}$`, and not one that the host decides.
fn variable(name: &str) -> Result<String, Refusal> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(plain);
    let reserved = |why: &'static str| Err(Refusal::new("is reserved", why, "choose another name"));
    if !is_name {
        Err(Refusal::new(
            "is not a variable's name",
            "names match ^[A-Z][A-Z0-9_]{0,63}$",
            "use an upper-case letter, then at most 63 upper-case letters, digits or underscores",
        ))
    } else if name.starts_with("HUTA_") || name == "RELEASE_SHA" {
        reserved("HUTA_* and RELEASE_SHA tell a container which release it is; the host sets them")
    } else if PROXY.contains(&name) {
        reserved("proxy variables are set by the host from `egress`")
    } else if LOADER.contains(&name) || LOADER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        reserved("loader variables put other code into every program of the container")
    } else {
        Ok(name.to_owned())
    }
}

fn env(value: &Value<'_>) -> Option<BTreeMap<String, String>> {
    let table = value.table()?;
    let mut variables = BTreeMap::new();
    let mut is_good = true;
    for (name, value) in table.entries() {
        let variable = variable(name);
        let text = value.read(one_line);
        match (variable, text) {
            (Ok(name), Some(text)) => {
                variables.insert(name, text);
            }
            (Err(refusal), _) => {
                table.refuse_key(name, refusal);
                is_good = false;
            }
            (Ok(_), None) => is_good = false,
        }
    }
    is_good.then_some(variables)
}

fn one_line(text: &str) -> Result<String, Refusal> {
    if form::is_one_line(text) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(
            "must be one line without control characters",
            "a line break in a variable ends it early in too many tools",
            "put texts of many lines into the image or the data volume",
        ))
    }
}

/// Names of secrets; `clash` says where else a name stands.
fn list(value: &Value<'_>, clash: impl Fn(&str) -> Option<&'static str>) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut is_good = true;
    for item in value.items()? {
        let Some(name) = item.read(variable) else {
            is_good = false;
            continue;
        };
        let twice = names.contains(&name).then_some("is there twice");
        if let Some(what) = twice.or_else(|| clash(&name)) {
            item.refuse(Refusal::new(what, "a variable has one source", "keep the name in one place only"));
            is_good = false;
        }
        names.push(name);
    }
    is_good.then_some(names)
}

fn job_secrets(
    value: &Value<'_>,
    clash: impl Fn(&str) -> Option<&'static str>,
) -> Option<BTreeMap<String, Vec<String>>> {
    let table = value.table()?;
    let mut jobs = BTreeMap::new();
    let mut is_good = true;
    for (job, value) in table.entries() {
        let name = form::label(job);
        let names = list(&value, &clash);
        match (name, names) {
            (Ok(name), Some(names)) => {
                jobs.insert(name.to_owned(), names);
            }
            (Err(refusal), _) => {
                table.refuse_key(job, refusal);
                is_good = false;
            }
            (Ok(_), None) => is_good = false,
        }
    }
    is_good.then_some(jobs)
}

//! The sections that there is one of.

use std::net::{Ipv4Addr, SocketAddr};

use super::read::TOP_LEVEL;
use super::{
    Admin, Backup, Cloudflare, Docker, Drift, Edge, EdgeTls, GitHub, GitHubApp, Listen, Platform, Poll, PublicChecks,
    Server, StoreLocation,
};
use crate::model::document::{Refusal, Table, Value, form, net};

/// An optional key, read by `form`, or its default.
pub(super) fn optional<'d, T>(
    table: &Table<'d>,
    key: &str,
    default: T,
    form: impl FnOnce(&Value<'d>) -> Option<T>,
) -> Option<T> {
    table.get(key).map_or(Some(default), |value| form(&value))
}

/// An optional absolute path.
pub(super) fn path(table: &Table<'_>, key: &str) -> Option<Option<String>> {
    optional(table, key, None, |value| value.read(form::absolute_path).map(Some))
}

fn path_or(table: &Table<'_>, key: &str, default: String) -> Option<String> {
    optional(table, key, default, |value| value.read(form::absolute_path))
}

/// A web address without a slash at its end.
fn address(table: &Table<'_>, key: &str, default: String) -> Option<String> {
    optional(table, key, default, |value| {
        value.read(|text| net::web(text).map(|_| text.trim_end_matches('/').to_owned()))
    })
}

pub(super) fn platform(table: &Table<'_>) -> Option<Platform> {
    table.only(&["state_dir", "public_ipv4"], &TOP_LEVEL);
    let state_dir = path_or(table, "state_dir", Platform::default().state_dir);
    let public_ipv4 = optional(table, "public_ipv4", None, |value| value.read(public_ipv4).map(Some));
    Some(Platform { state_dir: state_dir?, public_ipv4: public_ipv4? })
}

fn public_ipv4(text: &str) -> Result<Ipv4Addr, Refusal> {
    text.parse::<Ipv4Addr>()
        .ok()
        .filter(|address| {
            !(address.is_loopback()
                || address.is_private()
                || address.is_unspecified()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast())
        })
        .ok_or_else(|| {
            Refusal::new(
                "is not a public IPv4 address",
                "new DNS records get this address, and the world must reach it",
                "write the address that this host has on the Internet",
            )
        })
}

pub(super) fn server(table: &Table<'_>) -> Option<Server> {
    table.only(&["listen", "socket"], &TOP_LEVEL);
    let listen = optional(table, "listen", None, |value| value.read(listen).map(Some));
    let socket = path_or(table, "socket", Server::default().socket);
    Some(Server { listen: listen?, socket: socket? })
}

/// `127.0.0.1:8600`, `[::1]:8600`, `unix:/run/x.sock` or `/run/x.sock`.
fn listen(text: &str) -> Result<Listen, Refusal> {
    const FIX: &str = "write for example \"127.0.0.1:8600\" or \"/run/trueup-http.sock\"";
    let path = text.strip_prefix("unix:").unwrap_or(text);
    if path.starts_with('/') {
        return form::absolute_path(path).map(Listen::Unix);
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        Refusal::new("is not an address to listen on", "it is an IP address with a port, or the path of a socket", FIX)
    })?;
    if address.ip().is_loopback() {
        Ok(Listen::Tcp(address))
    } else {
        Err(Refusal::new(
            "is not a loopback address",
            "the daemon speaks plain HTTP and decides what runs on this host: TLS and the way in belong to the web server before it",
            FIX,
        ))
    }
}

pub(super) fn store(table: &Table<'_>) -> Option<StoreLocation> {
    table.only(&["url", "url_file"], &TOP_LEVEL);
    let location = optional(table, "url", None, |value| value.read(store_url).map(Some));
    let file = path(table, "url_file");
    match (location?, file?) {
        (Some(_), Some(_)) => {
            table.refuse("url_file", Refusal::new("stands beside `url`", "there is one store", "keep one of the two"));
            None
        }
        (Some(location), None) => Some(StoreLocation::Url(location)),
        (None, Some(file)) => Some(StoreLocation::UrlFile(file)),
        (None, None) => Some(StoreLocation::StateDir),
    }
}

fn store_url(text: &str) -> Result<String, Refusal> {
    const FIX: &str = "write for example \"postgres://trueup@db.example.org/trueup\"";
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let lower = text.to_ascii_lowercase();
    if user.contains(':') || lower.contains("password=") || authority.matches('@').count() > 1 {
        return Err(Refusal::new(
            "holds a password",
            "this file is shown on screens and in backups; secrets live in their own files",
            "put the whole URL into a file and name it with `url_file`",
        ));
    }
    let is_plain = !rest.is_empty() && text.len() <= 2000 && text.bytes().all(|byte| byte.is_ascii_graphic());
    match scheme {
        "postgres" | "postgresql" if is_plain => Ok(text.to_owned()),
        "sqlite" if is_plain && form::absolute_path(rest).is_ok() => Ok(text.to_owned()),
        _ => Err(Refusal::new(
            "is not the URL of a store",
            "the store is SQLite (`sqlite:///absolute/path`) or PostgreSQL (`postgres://…`)",
            FIX,
        )),
    }
}

pub(super) fn github(table: &Table<'_>) -> Option<GitHub> {
    table.only(
        &["api_url", "git_url", "token_file", "app", "report", "ca_file", "webhook_secret_files", "webhook_limit"],
        &TOP_LEVEL,
    );
    let defaults = GitHub::default();
    let api_url = address(table, "api_url", defaults.api_url);
    let git_url = address(table, "git_url", defaults.git_url);
    let token_file = path(table, "token_file");
    let app = optional(table, "app", None, |value| github_app(&value.table()?).map(Some));
    let report = optional(table, "report", false, Value::boolean);
    let ca_file = path(table, "ca_file");
    let webhook_secret_files = optional(table, "webhook_secret_files", Vec::new(), secret_files);
    let webhook_limit_bytes = optional(table, "webhook_limit", defaults.webhook_limit_bytes, |value| {
        value.read(|text| form::size(text, "64k", "25m"))
    });
    if table.get("app").is_some() && table.get("token_file").is_some() {
        table.refuse(
            "token_file",
            Refusal::new("stands beside [github.app]", "requests are made by one identity", "keep one of the two"),
        );
    }
    Some(GitHub {
        api_url: api_url?,
        git_url: git_url?,
        token_file: token_file?,
        app: app?,
        report: report?,
        ca_file: ca_file?,
        webhook_secret_files: webhook_secret_files?,
        webhook_limit_bytes: webhook_limit_bytes?,
    })
}

fn github_app(table: &Table<'_>) -> Option<GitHubApp> {
    const WHY: &str = "GitHub counts them from 1";
    table.only(&["app_id", "installation_id", "private_key_file"], &TOP_LEVEL);
    let app_id = table.need("app_id", "add the App's id").and_then(|value| value.integer(1..=i64::MAX, WHY));
    let installation_id = table.need("installation_id", "add the id of the App's installation");
    let installation_id = installation_id.and_then(|value| value.integer(1..=i64::MAX, WHY));
    let private_key_file = table.need("private_key_file", "add the path of the App's private key");
    let private_key_file = private_key_file.and_then(|value| value.read(form::absolute_path));
    Some(GitHubApp { app_id: app_id?, installation_id: installation_id?, private_key_file: private_key_file? })
}

fn secret_files(value: &Value<'_>) -> Option<Vec<String>> {
    let files = value.each(|item| item.read(form::absolute_path))?;
    if (1..=2).contains(&files.len()) {
        return Some(files);
    }
    value.refuse(Refusal::new(
        "must name one or two files",
        "a second secret is for the time while the first is being replaced",
        "write for example `webhook_secret_files = [\"/etc/huta/webhook.secret\"]`",
    ));
    None
}

pub(super) fn poll(table: &Table<'_>) -> Option<Poll> {
    table.only(&["every"], &TOP_LEVEL);
    let every_seconds = optional(table, "every", Poll::default().every_seconds, |value| {
        value.read(|text| form::seconds(text, (1, 86400), "smhd"))
    });
    Some(Poll { every_seconds: every_seconds? })
}

pub(super) fn drift(table: &Table<'_>) -> Option<Drift> {
    table.only(&["every"], &TOP_LEVEL);
    let every_seconds = optional(table, "every", Drift::default().every_seconds, |value| {
        value.read(|text| form::seconds(text, (10, 7 * 86400), "smhd"))
    });
    Some(Drift { every_seconds: every_seconds? })
}

pub(super) fn docker(table: &Table<'_>) -> Option<Docker> {
    table.only(&["socket"], &TOP_LEVEL);
    let socket = path_or(table, "socket", Docker::default().socket);
    Some(Docker { socket: socket? })
}

pub(super) fn edge(table: &Table<'_>) -> Option<Edge> {
    table.only(&["admin", "sites", "caddyfile", "public_checks", "tls"], &TOP_LEVEL);
    let defaults = Edge::default();
    let admin = optional(table, "admin", defaults.admin, |value| value.read(admin));
    let sites = path_or(table, "sites", defaults.sites);
    let caddyfile = path_or(table, "caddyfile", defaults.caddyfile);
    let public_checks = optional(table, "public_checks", defaults.public_checks, |value| {
        value.one_of(
            &[("public", PublicChecks::Public), ("direct", PublicChecks::Direct)],
            "the public proof goes the way of the world, or straight to this host's edge",
        )
    });
    let tls = optional(table, "tls", defaults.tls, |value| {
        value.one_of(
            &[("origin-ca", EdgeTls::OriginCa), ("internal", EdgeTls::Internal), ("off", EdgeTls::Off)],
            "it says which certificates the vhosts name",
        )
    });
    Some(Edge { admin: admin?, sites: sites?, caddyfile: caddyfile?, public_checks: public_checks?, tls: tls? })
}

/// A loopback `http://` address, `unix:/path` or `/path`.
fn admin(text: &str) -> Result<Admin, Refusal> {
    let path = text.strip_prefix("unix:").unwrap_or(text);
    let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    if path.starts_with('/') {
        return form::absolute_path(path).map(Admin::Unix);
    }
    let rest = text.strip_prefix("http://").unwrap_or_default().trim_end_matches('/');
    if !rest.contains('/') && net::host_of(rest).is_ok_and(net::is_loopback) {
        Ok(Admin::Http(text.trim_end_matches('/').to_owned()))
    } else {
        Err(Refusal::new(
            "is not a loopback address or a socket",
            "who reaches Caddy's admin endpoint rules every site, so it must not leave this host",
            "write for example \"http://127.0.0.1:2019\" or \"/run/caddy/admin.sock\"",
        ))
    }
}

pub(super) fn cloudflare(table: &Table<'_>) -> Option<Cloudflare> {
    table.only(&["zones", "token_file", "api_url"], &TOP_LEVEL);
    let zones = optional(table, "zones", Vec::new(), |value| value.each(|item| item.read(net::host_name)));
    let token_file = path(table, "token_file");
    let api_url = address(table, "api_url", Cloudflare::default().api_url);
    Some(Cloudflare { zones: zones?, token_file: token_file?, api_url: api_url? })
}

pub(super) fn backup(table: &Table<'_>) -> Option<Backup> {
    table.only(&["dir", "keep"], &TOP_LEVEL);
    let defaults = Backup::default();
    let dir = path_or(table, "dir", defaults.dir);
    let keep = optional(table, "keep", defaults.keep, |value| {
        value.integer(1..=10000, "one copy is the least that can be restored")
    });
    Some(Backup { dir: dir?, keep: keep? })
}

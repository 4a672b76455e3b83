//! `doctor`: what every daemon needs, checked from outside and without changing anything.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::daemon::print_json;
use super::paint::{Hue, Paint};
use super::remote::Remote;
use super::target::Global;
use crate::app::{self, hub::Hub};
use crate::config::host::{Admin, HostConfig};
use crate::model::policy::{OnFailure, Project, Repository, TargetKind};
use crate::source::{Call, Forge as _, Purpose, Tokens as _};
use crate::trigger::config_dir::{self, LoadedConfig};

/// How long one question may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// Checks what the daemon needs on this host and what its credential may do; changes nothing.
///
/// Exit code 1 when something fails.
#[derive(Debug, Clone, Args)]
pub(super) struct DoctorArgs {}

/// One finding.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    check: String,
    verdict: Verdict,
    said: String,
    /// What to do.
    fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Good,
    Warning,
    Bad,
}

fn good(check: &str, said: impl Into<String>) -> Finding {
    Finding { check: check.to_owned(), verdict: Verdict::Good, said: said.into(), fix: String::new() }
}

fn warning(check: &str, said: impl Into<String>, fix: &str) -> Finding {
    Finding { verdict: Verdict::Warning, fix: fix.to_owned(), ..good(check, said) }
}

fn bad(check: &str, said: impl Into<String>, fix: &str) -> Finding {
    Finding { verdict: Verdict::Bad, fix: fix.to_owned(), ..good(check, said) }
}

pub(super) async fn run(global: &Global, _args: &DoctorArgs) -> ExitCode {
    drop(rustls::crypto::ring::default_provider().install_default());
    let loaded = config_dir::load(&global.config);
    let host = loaded.host.clone().unwrap_or_default();
    let mut findings = config(&loaded, &global.config);
    findings.push(store(&host).await);
    findings.push(docker(&host).await);
    findings.push(firewall());
    findings.push(caddy(&host).await);
    findings.extend(imports(&host));
    findings.extend(github(&host, &loaded).await);
    findings.extend(ports(&loaded));
    show(global, &findings);
    let is_bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    ExitCode::from(u8::from(is_bad))
}

fn show(global: &Global, findings: &[Finding]) {
    if global.json {
        print_json(&findings);
        return;
    }
    let paint = Paint::for_stdout();
    for finding in findings {
        let (hue, word) = match finding.verdict {
            Verdict::Good => (Hue::Good, "ok  "),
            Verdict::Warning => (Hue::Waiting, "warn"),
            Verdict::Bad => (Hue::Bad, "fail"),
        };
        println!("{} {}: {}", paint.hue(hue, word), finding.check, finding.said);
        if !finding.fix.is_empty() {
            println!("     do: {}", finding.fix);
        }
    }
}

fn config(loaded: &LoadedConfig, dir: &Path) -> Vec<Finding> {
    if loaded.problems.is_empty() {
        let said = format!("{} with {} projects", dir.display(), loaded.projects.len());
        return vec![good("configuration", said)];
    }
    let fix = "`trueup check host FILE` and `trueup check registry DIR` show each place";
    loaded.problems.iter().map(|problems| bad("configuration", problems.summary(), fix)).collect()
}

async fn store(host: &HostConfig) -> Finding {
    let dir = PathBuf::from(&host.platform.state_dir);
    if !dir.join("trueup.db").exists() && !dir.exists() {
        return warning("store", format!("{} is not there yet", dir.display()), "`trueup serve` makes it");
    }
    match app::open_offline(&dir).await {
        Ok(store) => match store.known_targets().await {
            Ok(targets) => good("store", format!("{} knows {} targets", dir.display(), targets.len())),
            Err(error) => unreadable(&error),
        },
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &crate::store::StoreError) -> Finding {
    bad(
        "store",
        crate::reconcile::worker::chain(error),
        "check the state directory, its disk, and that you may read it",
    )
}

async fn docker(host: &HostConfig) -> Finding {
    let fix = "start Docker, or correct `[docker] socket`; the daemon's user must be able to use it";
    let remote = Remote::new(Path::new(&host.docker.socket));
    match tokio::time::timeout(DEADLINE, remote.get::<Value>("/version")).await {
        Ok(Ok(version)) => {
            let text = |key: &str| version.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
            let said = format!("{} with API {} (from {})", text("Version"), text("ApiVersion"), text("MinAPIVersion"));
            good("docker", said)
        }
        Ok(Err(error)) => bad("docker", error.to_string(), fix),
        Err(_) => bad("docker", format!("no answer within {} s", DEADLINE.as_secs()), fix),
    }
}

/// Isolation needs one of the two (ruling 41).
fn firewall() -> Finding {
    let found: Vec<&str> = ["nft", "iptables"].into_iter().filter(|program| is_there(program)).collect();
    if found.is_empty() {
        return bad("isolation", "neither nft nor iptables can be started", "install the package nftables");
    }
    good("isolation", format!("{} can be started", found.join(" and ")))
}

fn is_there(program: &str) -> bool {
    let started = Command::new(program)
        .arg("--version")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok_and(|status| status.success())
}

async fn caddy(host: &HostConfig) -> Finding {
    let fix = "start Caddy with its admin endpoint on, or correct `[edge] admin`";
    let answer = match &host.edge.admin {
        Admin::Unix(path) => {
            let remote = Remote::new(Path::new(path));
            match tokio::time::timeout(DEADLINE, remote.get::<Value>("/config/")).await {
                Ok(Ok(_) | Err(super::RemoteError::Refused { .. })) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no answer".to_owned()),
            }
        }
        Admin::Http(url) => ask(&format!("{url}/config/")).await,
    };
    match answer {
        Ok(()) => good("caddy", "its admin endpoint answers"),
        Err(why) => bad("caddy", why, fix),
    }
}

async fn ask(url: &str) -> Result<(), String> {
    let client = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().map_err(|error| error.to_string())?;
    let answer = client.get(url).send().await.map_err(|error| error.to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it answered {}", answer.status())) }
}

/// A relative `import` unloads every site at the next load (ruling 31).
fn imports(host: &HostConfig) -> Vec<Finding> {
    let Ok(text) = std::fs::read_to_string(&host.edge.caddyfile) else {
        let said = format!("{} cannot be read", host.edge.caddyfile);
        return vec![warning("caddyfile", said, "correct `[edge] caddyfile`, or run this as the daemon's user")];
    };
    let loose = app::unanchored_imports(&text);
    if loose.is_empty() {
        return vec![good("caddyfile", format!("every import of {} is absolute", host.edge.caddyfile))];
    }
    let fix =
        "write the absolute path: a relative one resolves against Caddy's working directory and unloads every site";
    let said = |(line, what): &(usize, String)| format!("{}:{line}: `import {what}` is relative", host.edge.caddyfile);
    loose.iter().map(|one| bad("caddyfile", said(one), fix)).collect()
}

/// A right of the credential, asked for by a call that GitHub refuses in any case: 422 with the right, 403 or
/// 404 without.
struct Right {
    name: &'static str,
    purpose: Purpose,
    path: &'static str,
    body: fn() -> Value,
}

const NO_COMMIT: &str = "0000000000000000000000000000000000000000";

const READ_RIGHT: &str = "Contents: read, Actions: read";

const REPORT_RIGHTS: [Right; 2] = [
    Right {
        name: "Commit statuses: write",
        purpose: Purpose::Report,
        path: "/statuses/0000000000000000000000000000000000000000",
        body: || json!({ "state": "pending", "context": "trueup/doctor" }),
    },
    Right {
        name: "Deployments: write",
        purpose: Purpose::Report,
        path: "/deployments",
        body: || json!({ "ref": NO_COMMIT, "auto_merge": false, "required_contexts": [] }),
    },
];

const REVERT_RIGHTS: [Right; 2] = [
    Right {
        name: "Contents: write",
        purpose: Purpose::Revert,
        path: "/git/refs",
        body: || json!({ "ref": "refs/heads/trueup/doctor", "sha": NO_COMMIT }),
    },
    Right { name: "Pull requests: write", purpose: Purpose::Revert, path: "/pulls", body: || json!({}) },
];

async fn github(host: &HostConfig, loaded: &LoadedConfig) -> Vec<Finding> {
    let projects: Vec<&Project> =
        loaded.projects.values().filter(|project| matches!(project.repo, Repository::GitHub { .. })).collect();
    if projects.is_empty() {
        return Vec::new();
    }
    if host.github.token_file.is_none() && host.github.app.is_none() {
        let fix =
            "name `token_file` or `[github.app]`: without one GitHub allows 60 calls an hour, and nothing is written";
        return vec![warning("github", "there is no credential", fix)];
    }
    let hub = match Hub::of(host) {
        Ok(hub) => hub,
        Err(error) => return vec![bad("github", error.to_string(), error.fix())],
    };
    let mut findings = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for project in projects {
        if seen.insert(project.repo.clone()) {
            findings.extend(rights(&hub, project, host.github.report).await);
        }
    }
    findings
}

async fn rights(hub: &Hub, project: &Project, is_reporting: bool) -> Vec<Finding> {
    let check = format!("github {}", project.repo);
    let read = Call { method: "GET", path: "/actions/workflows".to_owned(), body: None, purpose: Purpose::Read };
    let mut findings = vec![match hub.checks.call(&project.repo, read).await {
        Ok(reply) if reply.is_good() => good(&check, READ_RIGHT),
        Ok(reply) => bad(&check, format!("{} {}", reply.status, reply.words()), &give(READ_RIGHT)),
        Err(error) => return vec![bad(&check, error.reason.message, "repair this first")],
    }];
    let is_answered = project.targets.values().any(|target| target.on_failure != OnFailure::None);
    for (rights, is_needed) in [(REPORT_RIGHTS, is_reporting), (REVERT_RIGHTS, is_answered)] {
        for right in rights {
            findings.push(has(hub, (&check, project), (&right, is_needed)).await);
        }
    }
    findings
}

fn give(right: &str) -> String {
    format!("give the token or the App the repository permission `{right}`")
}

async fn has(hub: &Hub, (check, project): (&str, &Project), (right, is_needed): (&Right, bool)) -> Finding {
    if let Some(tokens) = &hub.tokens
        && let Err(error) = tokens.token(&project.repo, right.purpose).await
    {
        return lacks((check, right.name, is_needed), error.reason.message);
    }
    let call = Call { method: "POST", path: right.path.to_owned(), body: Some((right.body)()), purpose: right.purpose };
    match hub.checks.call(&project.repo, call).await {
        Ok(reply) if reply.status == 422 => good(check, right.name),
        Ok(reply) => lacks((check, right.name, is_needed), format!("{} {}", reply.status, reply.words())),
        Err(error) => warning(check, error.reason.message, "ask again later"),
    }
}

fn lacks((check, right, is_needed): (&str, &str, bool), said: String) -> Finding {
    let said = format!("`{right}` is missing ({said})");
    if is_needed { bad(check, said, &give(right)) } else { warning(check, said, &give(right)) }
}

/// Slots in the ephemeral range may be taken by any outgoing connection (ruling 44).
fn ports(loaded: &LoadedConfig) -> Vec<Finding> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let (range, reserved) = (read("ip_local_port_range"), read("ip_local_reserved_ports"));
    let mut bounds = range.split_whitespace().filter_map(|bound| bound.parse::<u16>().ok());
    let (Some(low), Some(high)) = (bounds.next(), bounds.next()) else { return Vec::new() };
    let mut findings = Vec::new();
    for project in loaded.projects.values() {
        for (label, target) in &project.targets {
            let TargetKind::Host(policy) = &target.kind else { continue };
            let loose: Vec<String> = policy
                .slots
                .iter()
                .filter(|port| (low..=high).contains(port) && !is_reserved(&reserved, **port))
                .map(ToString::to_string)
                .collect();
            if !loose.is_empty() {
                let said =
                    format!("{}/{label}: {} lie in the ephemeral range {low}-{high}", project.name, loose.join(", "));
                let fix = "choose ports below it, or add them to net.ipv4.ip_local_reserved_ports";
                findings.push(warning("ports", said, fix));
            }
        }
    }
    if findings.is_empty() {
        findings.push(good("ports", format!("no slot lies in the ephemeral range {low}-{high}")));
    }
    findings
}

fn is_reserved(list: &str, port: u16) -> bool {
    list.trim().split(',').any(|item| {
        let (low, high) = item.split_once('-').unwrap_or((item, item));
        let bound = |text: &str| text.trim().parse::<u16>().ok();
        bound(low).zip(bound(high)).is_some_and(|(low, high)| (low..=high).contains(&port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_single_ones_and_ranges() {
        for (list, port, is_in) in [
            ("", 40000, false),
            ("40000", 40000, true),
            ("1,39990-40010\n", 40000, true),
            ("40001-40002", 40000, false),
        ] {
            assert_eq!(is_reserved(list, port), is_in, "{list}");
        }
    }

    #[tokio::test]
    async fn what_does_not_answer_fails_and_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = HostConfig::default();
        host.docker.socket = dir.path().join("docker.sock").display().to_string();
        host.edge.admin = Admin::Unix(dir.path().join("admin.sock").display().to_string());
        host.edge.caddyfile = dir.path().join("Caddyfile").display().to_string();
        for finding in [docker(&host).await, caddy(&host).await] {
            assert_eq!(finding.verdict, Verdict::Bad, "{finding:?}");
            assert!(!finding.fix.is_empty());
        }
        std::fs::write(&host.edge.caddyfile, "import sites/*.caddy\nimport /etc/x\n").unwrap();
        let found = imports(&host);
        assert_eq!(found.len(), 1);
        assert!(found[0].said.contains(":1: `import sites/*.caddy` is relative"), "{found:?}");
    }
}

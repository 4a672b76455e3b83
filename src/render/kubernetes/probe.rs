//! Probes. There is never a liveness probe: a readiness check must not restart anything.
//!
//! Source: `spec/hakopod-kubernetes`, section 4, probes; Hakopod TOML schema v1.

use serde_json::{Value, json};

use super::context::View;
use crate::model::hakopod::{Readiness, ReadinessProtocol, Service};

/// The start-up budget of a service that names none, in a cluster whose settings name none.
const DEFAULT_BUDGET_SECONDS: u32 = 180;
/// Seconds between two looks while a container starts.
const STARTUP_PERIOD_SECONDS: u32 = 2;
/// Where the helper lies in the container.
pub(super) const HELPER_DIR: &str = "/var/run/secrets/trueup-probe";

/// The start-up and readiness budget of one replica, in seconds.
pub(super) fn budget_seconds(view: &View<'_>, service: &Service) -> u32 {
    let installation = view.context.settings.limits.rollout_timeout_seconds.unwrap_or(DEFAULT_BUDGET_SECONDS);
    service.startup_timeout_seconds.unwrap_or(installation)
}

/// Whether the readiness check needs the helper: it speaks SMTP, or checks two things at once.
pub(super) fn needs_helper(service: &Service) -> bool {
    service.readiness.as_ref().is_some_and(|readiness| match readiness.protocol {
        ReadinessProtocol::Smtp | ReadinessProtocol::SmtpStarttls => true,
        ReadinessProtocol::Tcp => service.healthcheck.is_some(),
    })
}

/// The start-up probe, for a service that listens.
pub(super) fn startup(view: &View<'_>, service: &Service) -> Value {
    let port = service.port.or_else(|| service.readiness.as_ref().map(|readiness| readiness.port));
    port.map_or(Value::Null, |port| {
        json!({
            "tcpSocket": { "port": port },
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": 2,
            "successThreshold": 1,
            "failureThreshold": budget_seconds(view, service).div_ceil(STARTUP_PERIOD_SECONDS),
        })
    })
}

/// The readiness probe.
pub(super) fn readiness(service: &Service) -> Value {
    let numbers = (3, 2, 3);
    match (&service.readiness, &service.healthcheck, service.port) {
        (Some(readiness), _, _) if needs_helper(service) => {
            let timeout = readiness.timeout_seconds.saturating_add(1);
            let command = helper_command(service, readiness);
            let numbers = (readiness.period_seconds, timeout, readiness.failure_threshold);
            probe(("exec", json!({ "command": command })), numbers)
        }
        (Some(readiness), _, _) => {
            let numbers = (readiness.period_seconds, readiness.timeout_seconds, readiness.failure_threshold);
            probe(("tcpSocket", json!({ "port": readiness.port })), numbers)
        }
        (None, Some(path), Some(port)) => {
            probe(("httpGet", json!({ "path": path, "port": port, "scheme": "HTTP" })), numbers)
        }
        (None, None, Some(port)) => probe(("tcpSocket", json!({ "port": port })), numbers),
        (None, _, None) => Value::Null,
    }
}

fn probe(check: (&str, Value), numbers: (u32, u32, u32)) -> Value {
    json!({
        check.0: check.1,
        "periodSeconds": numbers.0,
        "timeoutSeconds": numbers.1,
        "failureThreshold": numbers.2,
        "successThreshold": 1,
    })
}

/// What the helper is asked: every check must pass within the timeout.
fn helper_command(service: &Service, readiness: &Readiness) -> Vec<String> {
    let protocol = match readiness.protocol {
        ReadinessProtocol::Tcp => "tcp",
        ReadinessProtocol::Smtp => "smtp",
        ReadinessProtocol::SmtpStarttls => "smtp_starttls",
    };
    let mut command = vec![
        format!("{HELPER_DIR}/probe"),
        format!("--timeout-seconds={}", readiness.timeout_seconds),
        format!("--{protocol}=127.0.0.1:{}", readiness.port),
    ];
    command.extend(readiness.tls_server_name.as_ref().map(|name| format!("--tls-server-name={name}")));
    command.extend(readiness.tls_ca_file.as_ref().map(|file| format!("--tls-ca-file={file}")));
    if let (Some(path), Some(port)) = (&service.healthcheck, service.port) {
        command.push(format!("--http=http://127.0.0.1:{port}{path}"));
    }
    command
}

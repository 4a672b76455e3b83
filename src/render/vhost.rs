//! A target's vhost: TLS, compression, the Cloudflare filter, a `reverse_proxy` to the slot that the
//! marker names, and 503 `not released yet` before the first release. Nothing else: headers, redirects
//! and error pages are the image's.
//!
//! The text never changes at a release; only the registry changes it. It is written for Caddy 2.6.2
//! (Debian 12) and uses nothing that later releases removed.
//!
//! Source: app.toml contract, 'HTTP behaviour belongs in the image'; the measured marker switch (ruling 33).

use std::fmt::Write as _;

use crate::model::TargetName;
use crate::model::desired::{NOT_RELEASED_YET, Vhost};

/// Cloudflare's published IPv4 ranges. Source: <https://www.cloudflare.com/ips-v4>.
///
/// They are part of the text on purpose: they change only through `edge --apply` (ruling 32).
pub const CLOUDFLARE_IPV4: [&str; 15] = [
    "173.245.48.0/20",
    "103.21.244.0/22",
    "103.22.200.0/22",
    "103.31.4.0/22",
    "141.101.64.0/18",
    "108.162.192.0/18",
    "190.93.240.0/20",
    "188.114.96.0/20",
    "197.234.240.0/22",
    "198.41.128.0/17",
    "162.158.0.0/15",
    "104.16.0.0/13",
    "104.24.0.0/14",
    "172.64.0.0/13",
    "131.0.72.0/22",
];

/// Cloudflare's published IPv6 ranges. Source: <https://www.cloudflare.com/ips-v6>.
pub const CLOUDFLARE_IPV6: [&str; 7] = [
    "2400:cb00::/32",
    "2606:4700::/32",
    "2803:f800::/32",
    "2405:b500::/32",
    "2405:8100::/32",
    "2a06:98c0::/29",
    "2c0f:f248::/32",
];

/// This machine itself: probes through the edge come from here.
pub const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VhostTls {
    /// A Cloudflare Origin CA certificate, from two PEM files that Caddy's user can read.
    OriginCa {
        /// Absolute path of the certificate.
        certificate: String,
        /// Absolute path of its key.
        key: String,
    },
    /// Caddy's own authority **(own)**.
    Internal,
    /// Plain HTTP **(own)**: for tests, and behind something else that does TLS.
    Off,
}

/// What a vhost is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VhostInput<'input> {
    /// Whose; names the file and the marker's directory.
    pub target: &'input TargetName,
    /// Host names, at least one.
    pub hosts: &'input [String],
    /// Loopback ports of slots a and b.
    pub ports: [u16; 2],
    /// Absolute path of the state directory; the marker lives in `edge/<project>/<target>` of it.
    pub state_dir: &'input str,
    /// The certificate.
    pub tls: VhostTls,
    /// Whether only Cloudflare and loopback may connect.
    pub is_cloudflare_only: bool,
    /// Absolute path of the access log; none = no access log.
    pub access_log: Option<&'input str>,
}

/// The vhost's file name in Caddy's sites directory.
///
/// Names have no dot, so two targets never share one (ruling 1).
#[must_use]
pub fn vhost_file(target: &TargetName) -> String {
    format!("{}.{}.caddy", target.project, target.target)
}

/// The marker's directory, absolute, below `state_dir`.
#[must_use]
pub fn marker_dir(state_dir: &str, target: &TargetName) -> String {
    format!("{}/edge/{}/{}", state_dir.trim_end_matches('/'), target.project, target.target)
}

/// Writes the vhost.
///
/// What reaches the application: the request as it came, `Host` included; `X-Forwarded-For` and
/// `X-Real-IP` with the visitor's one address; `X-Forwarded-Proto` and `X-Forwarded-Host` as seen by
/// Caddy. What a visitor wrote into these, or into `Forwarded`, never arrives. The visitor's address is
/// Cloudflare's `CF-Connecting-IP` when only Cloudflare can connect (for a loopback peer: that peer),
/// and the direct peer otherwise.
#[must_use]
pub fn vhost(input: &VhostInput<'_>) -> Vhost {
    let mut text = String::with_capacity(2048);
    let [a, b] = input.ports;
    let marker = token(&marker_dir(input.state_dir, input.target));
    // Writing to a String cannot fail, so the results carry nothing.
    line(
        &mut text,
        0,
        &format!("# Made by trueup for {}; changed only by the registry, and overwritten.", input.target),
    );
    line(&mut text, 0, &format!("{} {{", addresses(input)));
    tls(&mut text, &input.tls);
    if let Some(path) = input.access_log {
        line(&mut text, 1, "log {");
        line(&mut text, 2, &format!("output file {}", token(path)));
        line(&mut text, 1, "}");
    }
    line(&mut text, 1, "encode zstd gzip");
    visitor(&mut text, input.is_cloudflare_only);
    if input.is_cloudflare_only {
        filter(&mut text);
    }
    for (name, port) in [("b", b), ("released", a)] {
        slot(&mut text, name, &marker, port);
    }
    line(&mut text, 1, "handle {");
    line(&mut text, 2, &format!("respond \"{NOT_RELEASED_YET}\" 503"));
    line(&mut text, 1, "}");
    line(&mut text, 0, "}");
    Vhost { file: vhost_file(input.target), hosts: input.hosts.to_vec(), text }
}

fn addresses(input: &VhostInput<'_>) -> String {
    let scheme = match &input.tls {
        VhostTls::Off => "http://",
        VhostTls::OriginCa { .. } | VhostTls::Internal => "",
    };
    let all: Vec<String> = input.hosts.iter().map(|host| format!("{scheme}{host}")).collect();
    all.join(", ")
}

fn tls(text: &mut String, tls: &VhostTls) {
    match tls {
        VhostTls::OriginCa { certificate, key } => {
            line(text, 1, &format!("tls {} {}", token(certificate), token(key)));
        }
        VhostTls::Internal => line(text, 1, "tls internal"),
        VhostTls::Off => {}
    }
}

/// Makes `CF-Connecting-IP` the visitor's address, whoever connects.
///
/// Cloudflare overwrites the header, so behind the filter only a loopback peer could invent it; without
/// the filter everybody could, so there it is always the direct peer.
fn visitor(text: &mut String, is_cloudflare_only: bool) {
    if is_cloudflare_only {
        line(text, 1, &format!("@loopback remote_ip {}", LOOPBACK.join(" ")));
        line(text, 1, "request_header @loopback CF-Connecting-IP {remote_host}");
    } else {
        line(text, 1, "request_header CF-Connecting-IP {remote_host}");
    }
}

/// `remote_ip` without `forwarded` is the direct peer in every release of Caddy 2: a header never opens
/// the filter (ruling 32).
fn filter(text: &mut String) {
    let ranges: Vec<&str> = LOOPBACK.into_iter().chain(CLOUDFLARE_IPV4).chain(CLOUDFLARE_IPV6).collect();
    line(text, 1, &format!("@outside not remote_ip {}", ranges.join(" ")));
    line(text, 1, "handle @outside {");
    line(text, 2, "respond \"this site answers through Cloudflare only\" 403");
    line(text, 1, "}");
}

/// One marker and its slot. `b` is asked first, so that it decides alone.
///
/// `flush_interval` sends what has come at least every 10 ms, so streams flow; -1 would do so too, but
/// also keeps requests running in the application whose visitor has gone.
fn slot(text: &mut String, name: &str, marker: &str, port: u16) {
    line(text, 1, &format!("@{name} file {{"));
    line(text, 2, &format!("root {marker}"));
    line(text, 2, &format!("try_files /{name}"));
    line(text, 1, "}");
    line(text, 1, &format!("handle @{name} {{"));
    line(text, 2, &format!("reverse_proxy 127.0.0.1:{port} {{"));
    line(text, 3, "flush_interval 10ms");
    line(text, 3, "header_up X-Forwarded-For {header.CF-Connecting-IP}");
    line(text, 3, "header_up X-Real-IP {header.CF-Connecting-IP}");
    line(text, 3, "header_up -Forwarded");
    line(text, 2, "}");
    line(text, 1, "}");
}

/// One line with tabs, as `caddy fmt` writes it.
fn line(text: &mut String, depth: usize, content: &str) {
    let written = writeln!(text, "{}{content}", "\t".repeat(depth));
    debug_assert!(written.is_ok(), "writing to a String cannot fail");
}

/// A Caddyfile token: quoted when it must be.
fn token(value: &str) -> String {
    let is_plain = !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_'));
    if is_plain { value.to_owned() } else { format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(tls: VhostTls, is_cloudflare_only: bool, access_log: Option<&str>) -> String {
        let target: TargetName = "shop/prod".parse().unwrap();
        let hosts = ["shop.example.org".to_owned(), "www.shop.example.org".to_owned()];
        let input = VhostInput {
            target: &target,
            hosts: &hosts,
            ports: [18300, 18301],
            state_dir: "/var/lib/trueup",
            tls,
            is_cloudflare_only,
            access_log,
        };
        let made = vhost(&input);
        assert_eq!(made, vhost(&input), "equal inputs give equal text");
        assert_eq!(made.file, "shop.prod.caddy");
        made.text
    }

    /// Compares with the file beside the others; `TRUEUP_BLESS=1` writes it.
    fn assert_file(name: &str, text: &str) {
        let path = format!("{}/testdata/render/vhost/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("TRUEUP_BLESS").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{path}");
    }

    #[test]
    fn an_origin_certificate_goes_with_the_cloudflare_filter_and_a_log() {
        let tls = VhostTls::OriginCa {
            certificate: "/var/lib/trueup/tls/shop.pem".into(),
            key: "/var/lib/trueup/tls/shop.key".into(),
        };
        assert_file("origin-ca.caddy", &render(tls, true, Some("/var/log/caddy/shop.prod.log")));
    }

    #[test]
    fn the_internal_authority_may_serve_everybody() {
        assert_file("internal.caddy", &render(VhostTls::Internal, false, None));
    }

    #[test]
    fn without_tls_the_addresses_are_plain_http() {
        assert_file("off.caddy", &render(VhostTls::Off, false, None));
    }

    #[test]
    fn a_path_with_a_blank_stays_one_token() {
        assert_eq!(token("/srv/my state"), "\"/srv/my state\"");
        assert_eq!(token("/srv/state_1"), "/srv/state_1");
        assert_eq!(token("a\"b\\"), "\"a\\\"b\\\\\"");
    }
}

//! A Caddy of our own, on loopback ports of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::app::free_ports;

/// How long a start may take.
const START_BOUND: Duration = Duration::from_secs(20);

/// A running Caddy; it ends when dropped.
pub(crate) struct Caddy {
    /// Where sites are served.
    pub(crate) http_port: u16,
    /// `127.0.0.1:<port>`.
    pub(crate) admin: String,
    /// The operator's file; it imports every file of `sites`.
    pub(crate) caddyfile: PathBuf,
    /// Where vhosts go.
    pub(crate) sites: PathBuf,
    child: Child,
}

impl Drop for Caddy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Caddy {
    /// The global options, which every configuration of this Caddy must repeat.
    pub(crate) fn options(admin: &str, http_port: u16) -> String {
        format!(
            "{{\n\tadmin {admin}\n\thttp_port {http_port}\n\tdefault_bind 127.0.0.1\n\tauto_https off\n\tlog {{\n\t\tlevel ERROR\n\t}}\n}}\n"
        )
    }

    /// Starts one that serves nothing yet but the sites that come.
    pub(crate) fn start(dir: &Path) -> Self {
        let [http_port, admin_port] = free_ports();
        let admin = format!("127.0.0.1:{admin_port}");
        let (caddyfile, sites) = (dir.join("Caddyfile"), dir.join("sites"));
        std::fs::create_dir_all(&sites).unwrap();
        let text = format!("{}import {}/*.caddy\n", Self::options(&admin, http_port), sites.display());
        std::fs::write(&caddyfile, text).unwrap();
        let child = Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&caddyfile)
            .envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, dir)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.join("caddy.log")).unwrap())
            .spawn()
            .expect("install the package caddy");
        let mut caddy = Self { http_port, admin, caddyfile, sites, child };
        let began = Instant::now();
        while std::net::TcpStream::connect(&caddy.admin).is_err() {
            let is_over = began.elapsed() > START_BOUND || caddy.child.try_wait().unwrap().is_some();
            assert!(!is_over, "{}", std::fs::read_to_string(dir.join("caddy.log")).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        caddy
    }
}

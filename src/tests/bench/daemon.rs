//! The real program: `trueup serve`, and what its command line says.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program that this run of `cargo bench` has built.
const BINARY: &str = env!("CARGO_BIN_EXE_trueup");
/// How long a start may take.
const START_BOUND: Duration = Duration::from_secs(60);

/// A daemon; it ends when dropped.
pub(crate) struct Daemon {
    config: PathBuf,
    log: PathBuf,
    child: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

impl Daemon {
    /// Starts it and waits until it answers.
    pub(crate) fn start(config: &Path) -> Self {
        let log = config.with_extension("log");
        let child = Command::new(BINARY)
            .args(["serve", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut daemon = Self { config: config.to_owned(), log, child };
        daemon.until("the daemon answers", START_BOUND, |daemon| daemon.ask(&["status"]).is_some());
        daemon
    }

    /// Runs a command of the command line with `--json`; none when it fails.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Option<serde_json::Value> {
        let mut command = Command::new(BINARY);
        command.args(arguments).arg("--json").arg("--config").arg(&self.config);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    /// Waits until it is so; says how long that took, and ends the run if it takes longer than `bound`.
    pub(crate) fn until(&mut self, what: &str, bound: Duration, is_so: impl Fn(&Self) -> bool) -> Duration {
        let began = Instant::now();
        while !is_so(self) {
            let is_over = began.elapsed() > bound || self.child.try_wait().unwrap().is_some();
            assert!(!is_over, "in vain for {:?}: {what}\n{}", began.elapsed(), self.last_lines());
            std::thread::sleep(Duration::from_millis(2));
        }
        began.elapsed()
    }

    /// Ends it; a second call does nothing.
    pub(crate) fn end(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// One question over the socket, without a process of its own; none when the answer is no JSON.
    pub(crate) fn get(&self, path: &str) -> Option<serde_json::Value> {
        let mut stream = UnixStream::connect(self.config.with_file_name("trueup.sock")).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let body = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        serde_json::from_slice(&answer[body..]).ok()
    }

    fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// A line of `/proc/<pid>/status` in MiB, for example `VmRSS`. Source: proc_pid_status(5).
    pub(crate) fn mib(&self, line: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':')).unwrap();
        value.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }
}

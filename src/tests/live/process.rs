//! A child process that ends with the test.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running process whose output goes to a file.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; what it writes is added to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let open = || -> File { OpenOptions::new().create(true).append(true).open(log).unwrap() };
        let program = command.get_program().to_owned();
        let child = command.stdin(Stdio::null()).stdout(open()).stderr(open()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{program:?}: {error}: run deploy/test.sh"));
        Self { child, log: log.to_owned() }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// SIGKILL, and waits for the end.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// SIGTERM, and waits for the end, at most `bound`.
    pub(crate) fn terminate(mut self, bound: Duration) -> ExitStatus {
        self.signal(Signal::TERM);
        let until = Instant::now() + bound;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it did not end within {bound:?}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The end of what it wrote.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn end(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

//! Git over the fixed program `ssh`, started without any shell.
//!
//! gix's own SSH transport takes options only through a shell, and reads the user's configuration, where a
//! `ProxyCommand` runs programs (CVE-2026-55797). Here the argument list is fixed, no configuration file is
//! read, and a host key is trusted only if an operator put it into the file of known hosts (field report 28).

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection;

use super::abort::Abort;
use super::fault::{Fault, hold, short};
use super::place::Way;
use super::wire::Link;

/// How much of what `ssh` complains is kept.
const COMPLAINT_BYTES: u64 = 16 << 10;

/// What `ssh` is started with besides the address.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// The only file of known hosts.
    pub(super) known_hosts: PathBuf,
    /// The only identity, if any.
    pub(super) identity: Option<PathBuf>,
}

/// A started `ssh` that speaks Git.
pub(super) struct Started {
    /// The conversation.
    pub(super) transport: Box<dyn Transport + Send>,
    /// What it complained about.
    pub(super) complaint: Complaint,
}

/// The error output of `ssh`, collected while it runs.
#[derive(Debug, Clone)]
pub(super) struct Complaint {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
}

/// The options that every `ssh` of ours is started with.
///
/// Source: `ssh(1)`, `ssh_config(5)`.
pub(super) fn fixed(keys: &Keys) -> Vec<String> {
    let file = |path: &Path| format!("\"{}\"", path.display().to_string().replace('%', "%%"));
    let mut list = vec!["-F".to_owned(), "/dev/null".to_owned(), "-T".to_owned()];
    let mut option = |text: String| list.extend(["-o".to_owned(), text]);
    for fixed in [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "GlobalKnownHostsFile=/dev/null",
        "UpdateHostKeys=no",
        "IdentitiesOnly=yes",
        "ForwardAgent=no",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
        "ConnectTimeout=15",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
        "SendEnv=GIT_PROTOCOL",
    ] {
        option(fixed.to_owned());
    }
    option(format!("UserKnownHostsFile={}", file(&keys.known_hosts)));
    if let Some(identity) = &keys.identity {
        option(format!("IdentityFile={}", file(identity)));
    }
    list
}

/// The argument list: options first, then `--`, the host and one remote command with a quoted path.
fn arguments(way: &Way, keys: &Keys) -> Option<Vec<String>> {
    let Way::Ssh { user, host, port, path } = way else {
        return None;
    };
    let mut list = fixed(keys);
    let mut option = |text: String| list.extend(["-o".to_owned(), text]);
    if let Some(port) = port {
        option(format!("Port={port}"));
    }
    if let Some(user) = user {
        option(format!("User={user}"));
    }
    list.extend(["--".to_owned(), host.clone(), format!("git-upload-pack '{path}'")]);
    Some(list)
}

/// Starts `ssh`; the abort owns the process.
pub(super) fn start(way: &Way, keys: &Keys, link: &Arc<Link>, abort: &Abort) -> Result<Started, Fault> {
    let Some(arguments) = arguments(way, keys) else {
        return Err(Fault::refused("this is not an `ssh://` address", "report this as a bug"));
    };
    let mut child = Command::new("ssh")
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("GIT_PROTOCOL", "version=2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            Fault::refused(format!("`ssh` cannot be started ({error})"), "install the package openssh-client")
        })?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    abort.adopt(child);
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(Fault::remote("`ssh` started without its pipes"));
    };
    let complaint = Complaint::collect(stderr);
    let path = match way {
        Way::Ssh { path, .. } => path.clone(),
        Way::File(_) | Way::Http { .. } => String::new(),
    };
    let counted = Counted { stdout, link: Arc::clone(link) };
    let transport: Connection<Counted, ChildStdin> =
        Connection::new(counted, stdin, Protocol::V2, path, None::<(String, _)>, ConnectMode::Process, false);
    Ok(Started { transport: Box::new(transport), complaint })
}

/// Counts what comes out of `ssh` against the operation's limit.
struct Counted {
    stdout: ChildStdout,
    link: Arc<Link>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stdout.read(buffer)?;
        self.link.count(read)?;
        Ok(read)
    }
}

impl Complaint {
    fn collect(stderr: ChildStderr) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let place = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut stderr = stderr;
            let mut kept = Vec::new();
            (&mut stderr).take(COMPLAINT_BYTES).read_to_end(&mut kept).ok();
            *hold(&place) = kept;
            // The rest is drained, so that `ssh` never waits for us to read its complaints.
            io::copy(&mut stderr, &mut io::sink()).ok();
        });
        Self { text, reader: Arc::new(Mutex::new(Some(reader))) }
    }

    /// The fault behind a failed conversation, once `ssh` has ended.
    pub(super) fn fault(&self, way: &Way, keys: &Keys) -> Option<Fault> {
        if let Some(reader) = hold(&self.reader).take() {
            reader.join().ok();
        }
        let text = String::from_utf8_lossy(&hold(&self.text)).into_owned();
        judge(&text, way, keys)
    }
}

/// What a complaint of OpenSSH or of `git-upload-pack` means.
pub(super) fn judge(text: &str, way: &Way, keys: &Keys) -> Option<Fault> {
    let line = short(text);
    if text.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let sent = text.split_whitespace().find(|word| word.starts_with("SHA256:")).unwrap_or("an unknown fingerprint");
        return Some(Fault::refused(
            format!(
                "the host key changed: {} knows {}, the host sent {}",
                keys.known_hosts.display(),
                known(way, keys),
                sent.trim_end_matches('.')
            ),
            "compare it with what the host's owner publishes, then put the new key beside the old one in that file",
        ));
    }
    if text.contains("Host key verification failed") || text.contains("host key is known for") {
        return Some(Fault::refused(
            format!("the host's key is not in {}", keys.known_hosts.display()),
            "check the key with the host's owner (`ssh-keyscan` prints it) and add it to that file",
        ));
    }
    if text.contains("Permission denied") {
        return Some(Fault::refused("the host refused our key", "give the deploy key of this project to the host"));
    }
    let is_missing = text.contains("does not appear to be a git repository") || text.contains("Repository not found");
    if is_missing {
        return Some(Fault::refused(line, "check the path of the repository and the key's rights"));
    }
    // The conversation itself has said this better.
    let is_told = line.contains("not our ref");
    (!line.is_empty() && !is_told).then(|| Fault::remote(line))
}

/// The fingerprints that are pinned for the host, as `ssh-keygen` prints them.
fn known(way: &Way, keys: &Keys) -> String {
    let Way::Ssh { host, port, .. } = way else {
        return String::new();
    };
    let name = port.map_or_else(|| host.clone(), |port| format!("[{host}]:{port}"));
    let output = Command::new("ssh-keygen")
        .args(["-l", "-F", &name, "-f"])
        .arg(&keys.known_hosts)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let prints: Vec<&str> = text.split_whitespace().filter(|word| word.starts_with("SHA256:")).collect();
    if prints.is_empty() { "another key".to_owned() } else { prints.join(" and ") }
}

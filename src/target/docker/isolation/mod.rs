//! The rules that close every way out of our bridges (ruling 41).
//!
//! One table of ours on the forward and the input hook: what belongs to a connection that the
//! host opened may answer, everything else that comes out of a bridge called `tu-*` is dropped,
//! and nothing is forwarded into one. A base chain that drops wins over every other one that
//! accepts, so neither the engine's rules nor a firewall's can open it again. The engine's own
//! proxy connects from the host to the container: what comes back is established.
//!
//! Where nft is missing, the same with a chain of ours that FORWARD and INPUT jump to first.
//! Egress will need one more rule, for the egress process's port; until then there is none.

mod iptables;
mod nft;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::engine::failure;
use crate::model::{Class, ReasonCode};
use crate::target::TargetError;

/// The rules as text for `nft -f`, for a unit that sets them before the engine starts: containers
/// that the engine starts at boot would otherwise run without them until the daemon's first pass.
pub const NFT_RULES: &str = nft::TEXT;

/// Both programs answer within milliseconds; a kernel lock held by a firewall reload can take longer.
const TOOL_DEADLINE: Duration = Duration::from_secs(15);
/// Where the programs are looked for; never `PATH`, which is not ours to trust.
const DIRECTORIES: [&str; 6] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

/// Why the rules could not be read or set.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum FirewallError {
    /// Neither program is installed.
    #[error("neither `nft` nor `iptables` is installed: install the package nftables")]
    NoTool,
    /// The program could not be started or did not answer.
    #[error("`{program}` could not be run: {cause}")]
    NotRun { program: String, cause: String },
    /// The program refused.
    #[error("`{program}` refused: {cause}. It needs root, or CAP_NET_ADMIN, in the host's network namespace")]
    Refused { program: String, cause: String },
    /// The program's answer cannot be read.
    #[error("the answer of `{program}` cannot be read: {cause}")]
    Unreadable { program: String, cause: String },
    /// Set, and yet not there when read back.
    #[error("the rules were set, and reading them back lacks: {0}. Something else removes them at once")]
    NotKept(String),
}

impl From<FirewallError> for TargetError {
    fn from(error: FirewallError) -> Self {
        let text = format!(
            "the network cannot be closed to the outside on this host, so nothing is started: {error}. `trueup doctor` \
             checks it again"
        );
        failure(ReasonCode::IsolationUnavailable, Class::Stalled, text)
    }
}

/// Which program sets the rules.
#[derive(Debug, Clone)]
enum Backend {
    Nft { nft: PathBuf },
    Iptables { tools: Vec<iptables::Family> },
}

/// The host's packet filter.
#[derive(Debug, Clone)]
pub(super) struct Firewall {
    /// Put before each command: empty, or `ip netns exec NAME` for another network namespace.
    wrapper: Vec<String>,
    /// Whether to look for nft at all.
    prefers_nft: bool,
}

impl Firewall {
    /// The one of the namespace that this process is in.
    pub(super) fn of_this_host() -> Self {
        Self { wrapper: Vec::new(), prefers_nft: true }
    }

    /// The one of a named network namespace, with or without nft.
    #[cfg(test)]
    pub(super) fn of_namespace(name: &str, prefers_nft: bool) -> Self {
        let wrapper = ["ip", "netns", "exec", name].map(str::to_owned).to_vec();
        Self { wrapper, prefers_nft }
    }

    /// Looked up at each use, so that installing the missing package is all a person has to do.
    fn backend(&self) -> Result<Backend, FirewallError> {
        if let Some(nft) = self.prefers_nft.then(|| find("nft")).flatten() {
            return Ok(Backend::Nft { nft });
        }
        let tools = iptables::families(find);
        if tools.is_empty() { Err(FirewallError::NoTool) } else { Ok(Backend::Iptables { tools }) }
    }

    /// What the rules lack, one sentence part each; empty when they are complete. Never writes.
    pub(super) async fn missing(&self) -> Result<Vec<String>, FirewallError> {
        match self.backend()? {
            Backend::Nft { nft } => nft::missing(self, &nft).await,
            Backend::Iptables { tools } => iptables::missing(self, &tools).await,
        }
    }

    /// Puts the rules in place if anything is missing, and reads them back.
    pub(super) async fn ensure(&self) -> Result<(), FirewallError> {
        if self.missing().await?.is_empty() {
            return Ok(());
        }
        match self.backend()? {
            Backend::Nft { nft } => nft::apply(self, &nft).await?,
            Backend::Iptables { tools } => iptables::apply(self, &tools).await?,
        }
        let missing = self.missing().await?;
        if missing.is_empty() { Ok(()) } else { Err(FirewallError::NotKept(missing.join("; "))) }
    }

    /// Runs one program with a fixed argument vector and `input` on its standard input.
    async fn run(&self, program: &Path, arguments: &[&str], input: &str) -> Result<Answer, FirewallError> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let not_run = |cause: String| FirewallError::NotRun { program: name.clone(), cause };
        let mut words: Vec<std::ffi::OsString> = self.wrapper.iter().map(Into::into).collect();
        words.push(program.into());
        words.extend(arguments.iter().map(Into::into));
        let [first, rest @ ..] = words.as_slice() else {
            return Err(FirewallError::NoTool);
        };
        let work = async {
            let mut child = Command::new(first)
                .args(rest)
                .env("LC_ALL", "C")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            if let Some(mut pipe) = child.stdin.take() {
                // A program that reads nothing closes the pipe: its exit status says the rest.
                pipe.write_all(input.as_bytes()).await.unwrap_or_default();
            }
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(TOOL_DEADLINE, work)
            .await
            .map_err(|_elapsed| not_run(format!("no answer within {} s", TOOL_DEADLINE.as_secs())))?
            .map_err(|error| not_run(error.to_string()))?;
        Ok(Answer {
            program: name,
            is_success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// What a program said.
#[derive(Debug)]
struct Answer {
    program: String,
    is_success: bool,
    stdout: String,
    stderr: String,
}

impl Answer {
    /// The output, or the refusal.
    fn success(self) -> Result<String, FirewallError> {
        if self.is_success { Ok(self.stdout) } else { Err(self.refused()) }
    }

    fn refused(self) -> FirewallError {
        let cause = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        FirewallError::Refused { program: self.program, cause }
    }
}

fn find(name: &str) -> Option<PathBuf> {
    DIRECTORIES.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.is_file())
}

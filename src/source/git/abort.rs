//! Ends blocking work for real: a timeout that only stops waiting would leave the thread, the connection
//! and the repository's lock behind.

use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::fault::{Fault, hold};

/// One operation's emergency brake.
#[derive(Debug, Default)]
pub(super) struct Abort {
    /// What gix looks at between objects.
    flag: AtomicBool,
    /// What our own waiting selects on.
    token: CancellationToken,
    /// The `ssh` that would otherwise block a read.
    child: Mutex<Option<Child>>,
}

impl Abort {
    /// Raises the flag, ends every wait and kills the child.
    pub(super) fn fire(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.token.cancel();
        if let Some(child) = hold(&self.child).as_mut() {
            child.kill().ok();
        }
    }

    /// The flag for gix.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// The token for waiting.
    pub(super) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Fails once the abort was raised.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.flag.load(Ordering::Relaxed) { Err(Fault::Stopped) } else { Ok(()) }
    }

    /// Takes charge of a child, killing it at once if the abort was raised before.
    pub(super) fn adopt(&self, child: Child) {
        let mut place = hold(&self.child);
        let child = place.insert(child);
        if self.flag.load(Ordering::Relaxed) {
            child.kill().ok();
        }
    }

    /// Ends the child, if there is one, and says whether it had ended well by itself.
    pub(super) fn reap(&self) -> Option<bool> {
        let mut child = hold(&self.child).take()?;
        child.kill().ok();
        child.wait().ok().map(|status| status.success())
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Raises the abort when the waiting side goes away.
pub(super) struct FireOnDrop(pub(super) std::sync::Arc<Abort>);

impl Drop for FireOnDrop {
    fn drop(&mut self) {
        self.0.fire();
    }
}

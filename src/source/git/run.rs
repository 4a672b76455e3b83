//! Running blocking work so that a bound ends it for real.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Class, Reason, ReasonCode};
use crate::source::SourceError;

use super::abort::{Abort, FireOnDrop};
use super::fault::Fault;

/// Waits at most `bound`; dropping the work ends it for real, through its [`FireOnDrop`].
pub(super) async fn within<T>(bound: Duration, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(bound, work)
        .await
        .unwrap_or_else(|_| Err(Fault::remote(format!("it took longer than {} s", bound.as_secs()))))
}

/// Runs blocking work on a thread of its own, and raises its abort when nobody waits for it any more.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&Arc<Abort>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let abort = Arc::new(Abort::default());
    let _fire = FireOnDrop(Arc::clone(&abort));
    let task = tokio::task::spawn_blocking(move || work(&abort));
    task.await.unwrap_or_else(|error| Err(Fault::Final(Box::new(bug(&error.to_string())))))
}

/// A broken promise of our own.
pub(super) fn bug(why: &str) -> SourceError {
    SourceError {
        reason: Reason::new(ReasonCode::Bug, format!("reading Git failed inside trueup: {why}; please report it")),
        class: Class::Bug,
    }
}

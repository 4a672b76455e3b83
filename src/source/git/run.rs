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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bound_ends_the_work_itself_and_not_only_the_waiting() {
        let (sender, ended) = std::sync::mpsc::channel();
        let work = blocking(move |abort| {
            while abort.check().is_ok() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
            Ok(())
        });
        let result = within(Duration::from_millis(1), work).await;
        assert!(matches!(result, Err(Fault::Remote { why, .. }) if why.contains("longer than")));
        ended.recv().unwrap();
    }

    #[tokio::test]
    async fn a_panic_of_a_lower_layer_is_a_bug_and_not_the_end_of_the_process() {
        let result: Result<(), Fault> = blocking(|_| panic!("below")).await;
        let Err(Fault::Final(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.reason.code, ReasonCode::Bug);
    }

    #[tokio::test]
    async fn a_child_is_killed_with_its_operation() {
        let work = blocking(|abort| {
            let child = std::process::Command::new("sleep").arg("3600").spawn().unwrap();
            abort.adopt(child);
            abort.fire();
            Ok(abort.reap())
        });
        assert_eq!(work.await.unwrap(), Some(false));
    }
}

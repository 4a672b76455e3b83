//! How often deliveries may wake: at once, and then no more than once a [`REST`] for the targets of one ref.
//!
//! A push comes with a handful of events, and ten thousand deliveries of one ref are still one ref: the first
//! wakes, those of the next second wake once when it is over (field report 5). None is lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::index::Followers;
use crate::clock::Clock;
use crate::model::TargetName;
use crate::reconcile::queue::Wake;
use crate::reconcile::worker::Workers;

/// The time between two wakes of the same targets. A look costs one round trip to the remote.
pub const REST: Duration = Duration::from_secs(1);

/// Who is woken.
pub trait Waker: Send + Sync {
    /// Asks a target to look for itself.
    fn wake(&self, target: &TargetName);
}

impl Waker for Workers {
    fn wake(&self, target: &TargetName) {
        Self::wake(self, target, Wake::SOURCE);
    }
}

/// Groups of targets that were woken a moment ago.
pub struct Pace {
    waker: Arc<dyn Waker>,
    clock: Arc<dyn Clock>,
    resting: HashMap<usize, Resting>,
    rests: FuturesUnordered<BoxFuture<'static, usize>>,
}

struct Resting {
    followers: Followers,
    is_asked_again: bool,
}

impl Pace {
    /// Nobody rests.
    #[must_use]
    pub fn new(waker: Arc<dyn Waker>, clock: Arc<dyn Clock>) -> Self {
        Self { waker, clock, resting: HashMap::new(), rests: FuturesUnordered::new() }
    }

    /// Wakes the targets of one ref, now or when their rest is over.
    pub fn wake(&mut self, followers: &Followers) {
        // The map holds the group, so that its address belongs to nobody else meanwhile.
        let group = Arc::as_ptr(followers).cast::<()>().addr();
        match self.resting.get_mut(&group) {
            Some(resting) => resting.is_asked_again = true,
            None => self.wake_now(group, followers.clone()),
        }
    }

    fn wake_now(&mut self, group: usize, followers: Followers) {
        for target in followers.iter() {
            self.waker.wake(target);
        }
        self.resting.insert(group, Resting { followers, is_asked_again: false });
        let clock = Arc::clone(&self.clock);
        self.rests.push(Box::pin(async move {
            clock.sleep(REST).await;
            group
        }));
    }

    /// Whether nobody rests.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.rests.is_empty()
    }

    /// Waits for the end of the next rest, and wakes again whom that was asked for. Ends at once when nobody rests.
    pub async fn rested(&mut self) {
        let Some(group) = self.rests.next().await else { return };
        if let Some(resting) = self.resting.remove(&group)
            && resting.is_asked_again
        {
            self.wake_now(group, resting.followers);
        }
    }
}

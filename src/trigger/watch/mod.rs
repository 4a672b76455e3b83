//! Notices when files change: the operator's configuration, and the refs of local repositories.
//!
//! An event of the kernel is only a reason to look: what counts is whether a place looks different from the
//! last time. So editors that write beside and rename, links that are swapped, directories that come later and
//! events that were lost all end in the same comparison. Without events it polls, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use print::Print;

mod print;

#[cfg(test)]
mod tests;

/// Notices that wait for a slow reader; later changes of one place are one notice.
const CAPACITY: usize = 256;
/// More directories than this are not watched one by one: the kernel's own limit may be as low as 8,192.
const MAX_DIRECTORIES: usize = 4_096;

/// Listings in a row after which directories that keep coming are left to the next round.
const MAX_LISTINGS: usize = 8;

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A file, or a directory and the files right in it. It may come later.
    Config(PathBuf),
    /// A local repository: its `packed-refs` and everything below `refs/`.
    Refs(PathBuf),
}

impl Place {
    /// Its path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Config(path) | Self::Refs(path) => path,
        }
    }
}

/// What the watcher has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something at the place with this path is different: look for yourself.
    Changed(PathBuf),
    /// There are no events: places are compared every [`Pace::poll`] from now on. Said once.
    Degraded {
        /// Why, and what to do.
        why: String,
    },
    /// Events are back.
    Restored,
}

/// How fast it reacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// No event for so long ends a burst.
    pub quiet: Duration,
    /// A burst is looked at after so long at the latest.
    pub hold: Duration,
    /// How often places are compared without events.
    pub poll: Duration,
    /// How often they are compared although there are events: what a link leads to may lie anywhere.
    pub safety: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(50),
            hold: Duration::from_millis(500),
            poll: Duration::from_secs(5),
            safety: Duration::from_secs(60),
        }
    }
}

/// A running watcher.
#[derive(Debug)]
pub struct Watching {
    /// What it noticed. Ends after the stop.
    pub notices: mpsc::Receiver<Notice>,
    /// What it watches from now on; a place that is new here is not a change.
    pub places: watch::Sender<BTreeSet<Place>>,
}

/// Starts to watch, until `stop`. What is there now is the state to compare with.
///
/// The notices begin once everything is being watched: a change after the return of this function is seen.
pub async fn start(places: BTreeSet<Place>, pace: Pace, stop: CancellationToken) -> Watching {
    start_with(places, pace, (stop, Box::new(open_watcher))).await
}

type Open = Box<dyn Fn(&Arc<Bell>) -> Result<Box<dyn Watcher + Send>, String> + Send>;

fn open_watcher(bell: &Arc<Bell>) -> Result<Box<dyn Watcher + Send>, String> {
    let bell = Arc::clone(bell);
    let watcher = RecommendedWatcher::new(move |event| bell.ring(event), notify::Config::default());
    watcher.map(|watcher| -> Box<dyn Watcher + Send> { Box::new(watcher) }).map_err(|error| error.to_string())
}

async fn start_with(places: BTreeSet<Place>, pace: Pace, (stop, open): (CancellationToken, Open)) -> Watching {
    let (notices, receiver) = mpsc::channel(CAPACITY);
    let (sender, wanted) = watch::channel(places);
    let mut task = Task {
        pace,
        open,
        bell: Arc::new(Bell::default()),
        watcher: None,
        watched: BTreeSet::new(),
        prints: BTreeMap::new(),
        trouble: None,
        notices,
        wanted,
    };
    let is_open = task.compare().await;
    tokio::spawn(async move {
        if is_open {
            stop.run_until_cancelled(task.run()).await;
        }
    });
    Watching { notices: receiver, places: sender }
}

/// Rung by the kernel's events, on a thread of the watcher's own.
#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Directories whose watch the kernel has dropped or moved along.
    gone: BTreeSet<PathBuf>,
    /// Why the watcher cannot be trusted any more.
    lost: Option<String>,
}

impl Bell {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, event: notify::Result<Event>) {
        match event {
            // Our own looking opens and closes: that is not a change.
            Ok(event) if event.kind.is_access() => return,
            Ok(event) => {
                if event.need_rescan() {
                    self.heard().lost = Some("the kernel's event queue overflowed".to_owned());
                }
                if matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))) {
                    self.heard().gone.extend(event.paths);
                }
            }
            Err(error) => self.heard().lost = Some(error.to_string()),
        }
        self.rung.notify_one();
    }
}

/// Waits for the end of a burst, for [`Pace::hold`] at most.
async fn settle(bell: &Bell, pace: Pace) {
    let burst = async { while tokio::time::timeout(pace.quiet, bell.rung.notified()).await.is_ok() {} };
    // Reaching the bound is as good an end as silence.
    tokio::time::timeout(pace.hold, burst).await.ok();
}

struct Task {
    pace: Pace,
    open: Open,
    bell: Arc<Bell>,
    watcher: Option<Box<dyn Watcher + Send>>,
    watched: BTreeSet<PathBuf>,
    prints: BTreeMap<Place, Print>,
    trouble: Option<String>,
    notices: mpsc::Sender<Notice>,
    wanted: watch::Receiver<BTreeSet<Place>>,
}

impl Task {
    async fn run(&mut self) {
        loop {
            let period = if self.trouble.is_some() { self.pace.poll } else { self.pace.safety };
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() {
                    return;
                },
                () = self.bell.rung.notified() => settle(&self.bell, self.pace).await,
                () = tokio::time::sleep(period) => {}
            }
            if !self.compare().await {
                return;
            }
        }
    }

    /// Watches what there is to watch now, then compares each place. Gives `false` once nobody listens.
    async fn compare(&mut self) -> bool {
        let places = self.wanted.borrow_and_update().clone();
        // Watches come before the look, so that what changes in between rings.
        let trouble = self.arm_all(&places).await.err();
        if !self.report(trouble).await {
            return false;
        }
        let looked = tokio::task::spawn_blocking(move || {
            places.into_iter().map(|place| (Print::of(&place), place)).map(|(print, place)| (place, print)).collect()
        });
        let prints: BTreeMap<Place, Print> = match looked.await {
            Ok(prints) => prints,
            Err(_) => return true,
        };
        let old = std::mem::replace(&mut self.prints, prints);
        let changed: Vec<PathBuf> = self
            .prints
            .iter()
            .filter(|(place, print)| old.get(place).is_some_and(|before| before != *print))
            .map(|(place, _)| place.path().to_owned())
            .collect();
        for path in changed {
            if self.notices.send(Notice::Changed(path)).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Lists and watches in turn until a listing has nothing new: what comes between a listing and its watch rings nobody.
    async fn arm_all(&mut self, places: &BTreeSet<Place>) -> Result<(), String> {
        for _ in 0..MAX_LISTINGS {
            let listed = places.clone();
            let listing = tokio::task::spawn_blocking(move || print::directories(&listed, MAX_DIRECTORIES)).await;
            let wanted = listing.map_err(|error| error.to_string())??;
            if !self.arm(&wanted)? {
                return Ok(());
            }
        }
        self.bell.rung.notify_one();
        Ok(())
    }

    /// Says when events are lost, and when they are back. Gives `false` once nobody listens.
    async fn report(&mut self, trouble: Option<String>) -> bool {
        let notice = match (&self.trouble, &trouble) {
            (None, Some(why)) => Some(Notice::Degraded {
                why: format!("files are not watched but compared every {} s: {why}", self.pace.poll.as_secs_f32()),
            }),
            (Some(_), None) => Some(Notice::Restored),
            (None, None) | (Some(_), Some(_)) => None,
        };
        if trouble.is_some() {
            // A watcher in doubt is not kept: the next round opens a new one.
            self.watcher = None;
            self.watched.clear();
        }
        self.trouble = trouble;
        match notice {
            Some(notice) => self.notices.send(notice).await.is_ok(),
            None => true,
        }
    }

    /// Makes the watches be these, and says whether one is new.
    fn arm(&mut self, wanted: &BTreeSet<PathBuf>) -> Result<bool, String> {
        let heard = std::mem::take(&mut *self.bell.heard());
        if let Some(why) = heard.lost {
            return Err(why);
        }
        if self.watcher.is_none() {
            self.watched.clear();
            self.watcher = Some((self.open)(&self.bell)?);
        }
        let Some(watcher) = self.watcher.as_mut() else {
            return Ok(false);
        };
        let mut is_new = false;
        let stale: Vec<PathBuf> =
            self.watched.iter().filter(|path| !wanted.contains(*path) || heard.gone.contains(*path)).cloned().collect();
        for path in stale {
            // The kernel may have dropped it before us.
            watcher.unwatch(&path).ok();
            self.watched.remove(&path);
        }
        for path in wanted {
            if self.watched.contains(path) {
                continue;
            }
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone());
                    is_new = true;
                }
                // Gone between the listing and now: its parent rings, or has rung.
                Err(_) if !path.exists() => self.bell.rung.notify_one(),
                Err(error) => {
                    return Err(format!(
                        "{error}; raise `fs.inotify.max_user_watches` and `fs.inotify.max_user_instances`"
                    ));
                }
            }
        }
        Ok(is_new)
    }
}

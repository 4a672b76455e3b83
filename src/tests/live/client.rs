//! A visitor who asks a site the whole time, and writes down each answer that was none.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::http;
use super::world::Site;

/// Between two questions: many a second, without taking a processor for itself.
const PACE: Duration = Duration::from_millis(4);

#[derive(Debug, Default)]
struct Seen {
    is_over: AtomicBool,
    count: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

/// The visitor.
#[derive(Debug)]
pub(crate) struct Client {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Begins to ask `/`.
    pub(crate) fn start(site: Site) -> Self {
        let seen = Arc::new(Seen::default());
        let theirs = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            while !theirs.is_over.load(Ordering::Relaxed) {
                let answer = http::get(site.port, &site.host, "/");
                let is_good = answer.as_ref().is_ok_and(|answer| answer.status == 200);
                if !is_good {
                    theirs.failures.lock().unwrap().push(format!("after {:?}: {answer:?}", began.elapsed()));
                }
                theirs.count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PACE);
            }
        });
        Self { seen, thread: Some(thread) }
    }

    /// Fails if any question had no good answer until now.
    #[track_caller]
    pub(crate) fn assert_never_failed(&self, context: &str) {
        let failures = self.seen.failures.lock().unwrap().clone();
        let count = self.seen.count.load(Ordering::Relaxed);
        assert!(failures.is_empty(), "{context}: {} of {count} requests failed: {failures:#?}", failures.len());
        assert!(count > 0, "{context}: nobody asked");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

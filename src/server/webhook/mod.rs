//! `POST /webhooks/github`: a hint that it is time to look.
//!
//! | file | what it does |
//! |---|---|
//! | `envelope` | the headers, unverified |
//! | `body` | takes the body in: cap, budget, hash, while it streams |
//! | `verify` | HMAC-SHA256 over the raw bytes, in constant time |
//! | `form`, `payload` | verified bytes become a few optional fields |
//! | `index`, `judge` | whom it wakes, and if nobody, why |
//! | `writer`, `pace` | durable first, then awake, then answered |
//! | `rules` | secrets and cap, read again when they change |
//! | `memory`, `refusals` | what earlier deliveries told |
//! | `route` | these in order |
//!
//! Order is the whole point: cap → HMAC → durable row → 202. Unverified bytes reach no parser, a delivery
//! only enqueues (I7), and losing one costs delay, never truth: polling finds what no delivery told.
//!
//! Source: `github-facts`, sections 1 and 2; ruling 30; field reports 1, 3 to 8, 13 to 15 and 69.

pub mod body;
pub mod envelope;
pub mod form;
pub mod index;
pub mod judge;
pub mod memory;
pub mod pace;
pub mod payload;
pub mod refusals;
pub mod route;
pub mod rules;
pub mod verify;
pub mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use body::Budget;
use index::Index;
use memory::Memory;
use pace::{Pace, Waker};
use refusals::Refusals;
use rules::{Rules, SecretFiles};
use writer::Writer;

use crate::clock::Clock;
use crate::config::host::GitHub;
use crate::reconcile::ports::Catalog;
use crate::store::{Store, StoreError};

pub use route::{PATH, router};

/// The time between two looks at the secrets' files.
const TICK: Duration = Duration::from_secs(2);

/// Deliveries out of which the hooks are known again after a start.
const RECENT: u32 = 1000;

/// What the intake is made of.
pub struct Parts {
    /// Where rows go.
    pub store: Arc<dyn Store>,
    /// Who is woken.
    pub waker: Arc<dyn Waker>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The registry.
    pub catalog: watch::Receiver<Arc<Catalog>>,
    /// Secrets and cap.
    pub rules: watch::Receiver<Arc<Rules>>,
    /// Shared with whoever answers `why`.
    pub refusals: Arc<Refusals>,
    /// What all bodies in flight share.
    pub budget: Budget,
}

/// The intake.
pub struct Webhooks {
    clock: Arc<dyn Clock>,
    catalog: watch::Receiver<Arc<Catalog>>,
    indexed: Mutex<(Arc<Catalog>, Arc<Index>)>,
    rules: watch::Receiver<Arc<Rules>>,
    memory: Mutex<Memory>,
    budget: Budget,
    writer: Writer,
    refusals: Arc<Refusals>,
}

impl Webhooks {
    /// Starts the intake: knows again what the store remembers, and starts the task that writes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, StoreError> {
        let Parts { store, waker, clock, catalog, rules, refusals, budget } = parts;
        let memory = match store.deliveries() {
            Some(deliveries) => {
                let names = deliveries.repository_names().await?;
                Memory::from_store(&names, &deliveries.recent_deliveries(RECENT).await?)
            }
            None => Memory::default(),
        };
        let (writer, _) = Writer::start(store, Pace::new(waker, Arc::clone(&clock)), writer::QUEUE);
        let registry = catalog.borrow().clone();
        let index = Arc::new(Index::new(&registry));
        Ok(Arc::new(Self {
            clock,
            catalog,
            indexed: Mutex::new((registry, index)),
            rules,
            memory: Mutex::new(memory),
            budget,
            writer,
            refusals,
        }))
    }

    /// The index of the registry in force: made again only when that changed.
    fn index(&self) -> Arc<Index> {
        let now = self.catalog.borrow().clone();
        let mut indexed = self.indexed.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&indexed.0, &now) {
            *indexed = (Arc::clone(&now), Arc::new(Index::new(&now)));
        }
        Arc::clone(&indexed.1)
    }

    fn rules(&self) -> Arc<Rules> {
        self.rules.borrow().clone()
    }
}

/// Keeps the rules true to the configuration and to the secrets' files, until the process ends.
pub async fn follow(
    (mut files, rules): (SecretFiles, watch::Sender<Arc<Rules>>),
    mut github: watch::Receiver<GitHub>,
    (clock, refusals): (Arc<dyn Clock>, Arc<Refusals>),
) {
    let mut last = Vec::new();
    loop {
        tokio::select! {
            changed = github.changed() => if changed.is_err() {
                return;
            },
            () = clock.sleep(TICK) => refusals.tick(),
        }
        let (fresh, problems) = files.refresh(&github.borrow_and_update());
        let told: Vec<String> = problems.iter().map(|problem| crate::reconcile::worker::chain(problem)).collect();
        for problem in told.iter().filter(|problem| !last.contains(*problem)) {
            tracing::error!("{problem}; the secret that it had stays in force");
        }
        last = told;
        rules.send_replace(Arc::new(fresh));
    }
}

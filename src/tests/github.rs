//! A stand-in for GitHub's REST API, on an ephemeral loopback port: strict about what it is asked,
//! and able to misbehave in the ways that the real one does.
//!
//! It knows one repository. What the real service would refuse, or answer with something other than
//! what was meant (a short sha, no version header, an unknown path), is a violation: it is recorded,
//! answered with an error, and fails the test at [`Github::assert_clean`] or when the stand-in is
//! dropped. Depends on nothing of the crate, so that every test target can include it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;

// By its path, because a test target that includes this file by path looks elsewhere otherwise.
#[path = "github/forge.rs"]
mod forge;
#[path = "github/query.rs"]
mod query;
#[path = "github/service.rs"]
mod service;
pub(crate) use forge::Forge;
use service::{LIMIT, Service, answer};

/// The token that is accepted until [`Github::rotate_token`].
pub(crate) const TOKEN: &str = "github_pat_stand_in";

/// One CI run; `Run::green` is what a push to `main` gives.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) attempt: u64,
    pub(crate) workflow_id: u64,
    pub(crate) sha: String,
    pub(crate) branch: Option<String>,
    pub(crate) event: String,
    /// Where the commit came from; the repository itself when absent.
    pub(crate) fork: Option<String>,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
}

impl Run {
    /// Completed with success.
    pub(crate) fn green(number: u64, workflow_id: u64, sha: &str) -> Self {
        Self {
            number,
            attempt: 1,
            workflow_id,
            sha: sha.to_owned(),
            branch: Some("main".to_owned()),
            event: "push".to_owned(),
            fork: None,
            status: "completed".to_owned(),
            conclusion: Some("success".to_owned()),
        }
    }

    /// Completed with another conclusion.
    pub(crate) fn ended(mut self, conclusion: &str) -> Self {
        self.status = "completed".to_owned();
        self.conclusion = Some(conclusion.to_owned());
        self
    }

    /// Not completed.
    pub(crate) fn at(mut self, status: &str) -> Self {
        self.status = status.to_owned();
        self.conclusion = None;
        self
    }
}

/// A way to misbehave, for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An error status with GitHub's kind of body.
    Status(u16, &'static str),
    /// 429 with `retry-after` in seconds.
    RetryAfter(u64),
    /// 403 with nothing left until the reset.
    Exhausted,
    /// 403 of the secondary limit, without a word on how long.
    Secondary,
    /// No answer, ever.
    Hang,
    /// Half of the JSON, as if it were whole.
    Truncated,
    /// The connection breaks in the middle of the body.
    Cut,
    /// A page that is not JSON.
    Html,
    /// An empty list, whatever there is.
    Empty,
    /// Every run, whatever was asked for.
    Unfiltered,
    /// A next page on another host.
    StrangeLink,
    /// Sends the token back in its error message.
    Echo,
}

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path_and_query: String,
    pub(crate) status: u16,
    /// Whether it counted against the rate limit.
    pub(crate) is_charged: bool,
}

/// The stand-in. It ends when dropped.
pub(crate) struct Github {
    service: Arc<Mutex<Service>>,
    address: SocketAddr,
    server: tokio::task::JoinHandle<io::Result<()>>,
}

impl Github {
    /// Starts it with the repository `acme/shop` and 5,000 calls left.
    pub(crate) async fn start() -> Self {
        let Ok(listener) = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await else {
            unreachable!("the loopback interface has no free port")
        };
        let Ok(address) = listener.local_addr() else { unreachable!("a bound socket has an address") };
        let service = Arc::new(Mutex::new(Service {
            origin: format!("http://{address}"),
            name: "acme/shop".to_owned(),
            token: TOKEN.to_owned(),
            budget: Some((LIMIT, 1_800_000_000)),
            ..Service::default()
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&service));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { service, address, server }
    }

    /// The API's address, as of github.com.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The API's address, as of an Enterprise Server.
    pub(crate) fn enterprise_url(&self) -> String {
        format!("http://{}/api/v3", self.address)
    }

    /// Adds a workflow that is switched on.
    pub(crate) fn workflow(&self, name: &str, id: u64) {
        let path = format!(".github/workflows/{name}-{id}.yml");
        self.service().workflows.insert(id, (name.to_owned(), path, "active".to_owned()));
    }

    /// Changes a workflow's state, for example to `disabled_manually`.
    pub(crate) fn workflow_state(&self, id: u64, state: &str) {
        if let Some(workflow) = self.service().workflows.get_mut(&id) {
            state.clone_into(&mut workflow.2);
        }
    }

    /// Adds a run, or replaces the one of this number: a re-run keeps its number.
    pub(crate) fn run(&self, run: Run) {
        let mut service = self.service();
        service.runs.retain(|known| (known.workflow_id, known.number) != (run.workflow_id, run.number));
        service.runs.push(run);
    }

    /// Gives the repository another name; the old one is forwarded.
    pub(crate) fn rename(&self, name: &str) {
        let mut service = self.service();
        let old = std::mem::replace(&mut service.name, name.to_owned());
        service.old_names.push(old);
    }

    /// Accepts only this token from now on.
    pub(crate) fn rotate_token(&self, token: &str) {
        token.clone_into(&mut self.service().token);
    }

    /// Serves at most so many items a page, whatever is asked for.
    pub(crate) fn page_size(&self, size: usize) {
        self.service().page_size = Some(size);
    }

    /// Sets what is left of the rate limit, and the reset in seconds since 1970.
    pub(crate) fn budget(&self, remaining: u64, reset: u64) {
        self.service().budget = Some((remaining, reset));
    }

    /// Sends no rate limit headers, as an Enterprise Server.
    pub(crate) fn without_limits(&self) {
        self.service().budget = None;
    }

    /// Misbehaves at the next request that has no fault queued before it.
    pub(crate) fn misbehave(&self, fault: Fault) {
        self.service().faults.push_back(fault);
    }

    /// Misbehaves at every request until told `None`.
    pub(crate) fn outage(&self, fault: Option<Fault>) {
        self.service().outage = fault;
    }

    /// Puts a bare repository behind it, so that reverts and reports can be written.
    pub(crate) fn forge(&self, bare: &std::path::Path) {
        let forge = Forge::new(bare, &self.service().token);
        self.service().forge = Some(forge);
    }

    /// Changes what the repository behind it allows, or reads what was told to it.
    pub(crate) fn with_forge<T>(&self, work: impl FnOnce(&mut Forge) -> T) -> T {
        let mut service = self.service();
        let Some(forge) = service.forge.as_mut() else { unreachable!("`forge` was not called") };
        work(forge)
    }

    /// Every request so far, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.service().asked.clone()
    }

    /// How many requests counted against the rate limit.
    pub(crate) fn charged(&self) -> usize {
        self.service().asked.iter().filter(|asked| asked.is_charged).count()
    }

    /// What was wrong with requests so far; the caller has seen it and it is forgotten.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.service().violations)
    }

    /// Fails if any request was one that GitHub would not have answered as meant.
    pub(crate) fn assert_clean(&self) {
        let violations = self.take_violations();
        assert!(violations.is_empty(), "GitHub was asked wrongly: {violations:#?}");
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Github {
    fn drop(&mut self) {
        self.server.abort();
        if !std::thread::panicking() {
            self.assert_clean();
        }
    }
}

//! What the stand-in knows, and how it answers.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::forge::Forge;
use super::query::{Query, encode, query, unknown_key, wrong_runs_query};
use super::{Asked, Fault, Run};

/// The repository's number: links and redirects use it, as GitHub's do.
const REPOSITORY_ID: u64 = 4_711;
/// Calls an hour.
pub(super) const LIMIT: u64 = 5_000;

#[derive(Default)]
pub(super) struct Service {
    pub(super) origin: String,
    pub(super) name: String,
    pub(super) old_names: Vec<String>,
    pub(super) token: String,
    /// Number → name, path, state.
    pub(super) workflows: BTreeMap<u64, (String, String, String)>,
    pub(super) runs: Vec<Run>,
    pub(super) page_size: Option<usize>,
    /// Calls left and the reset, in seconds since 1970; absent on an Enterprise Server without limits.
    pub(super) budget: Option<(u64, u64)>,
    pub(super) faults: VecDeque<Fault>,
    pub(super) outage: Option<Fault>,
    pub(super) asked: Vec<Asked>,
    /// What may be written, where a test has a repository behind this one.
    pub(super) forge: Option<Forge>,
    pub(super) violations: Vec<String>,
}

/// Answers one request, or never does.
pub(super) async fn answer(State(service): State<Arc<Mutex<Service>>>, request: Request) -> Response {
    let reply = {
        let is_forge = {
            let service = service.lock().unwrap_or_else(PoisonError::into_inner);
            service.forge.as_ref().is_some_and(|forge| forge.takes(request.method(), request.uri().path()))
        };
        let (parts, body) = request.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
        let request = Request::from_parts(parts, Body::empty());
        let mut service = service.lock().unwrap_or_else(PoisonError::into_inner);
        if is_forge { service.forged(&request, &bytes) } else { service.answer(&request) }
    };
    match reply {
        Some(response) => response,
        None => std::future::pending().await,
    }
}

impl Service {
    /// `None` is no answer at all.
    fn answer(&mut self, request: &Request) -> Option<Response> {
        let path_and_query = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let wrong = self.wrong_with(request);
        if let Some(wrong) = wrong {
            self.violations.push(format!("{} {path_and_query}: {wrong}", request.method()));
            return Some(self.reply(&path_and_query, (400, true), json!({ "message": wrong }).to_string().into()));
        }
        let fault = self.faults.pop_front().or_else(|| self.outage.clone());
        if fault == Some(Fault::Hang) {
            self.note(&path_and_query, (0, false));
            return None;
        }
        if let Some(response) = fault.as_ref().and_then(|fault| self.refuse(fault, &path_and_query)) {
            return Some(response);
        }
        Some(self.serve(request, &path_and_query, fault.as_ref()))
    }

    /// A call of the part that has a repository behind it.
    fn forged(&mut self, request: &Request, body: &[u8]) -> Option<Response> {
        let asked = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let fault = self.faults.pop_front().or_else(|| self.outage.clone());
        if fault == Some(Fault::Hang) {
            self.note(&asked, (0, false));
            return None;
        }
        if let Some(response) = fault.as_ref().and_then(|fault| self.refuse(fault, &asked)) {
            return Some(response);
        }
        let answered = self.forge.as_mut().map(|forge| forge.answer(request, body));
        let (status, value) = match answered? {
            Ok(answer) => answer,
            Err(wrong) => {
                self.violations.push(format!("{} {asked}: {wrong}", request.method()));
                (400, json!({ "message": wrong }))
            }
        };
        Some(self.reply(&asked, (status, true), value.to_string().into()))
    }

    /// What GitHub would not accept of a request.
    fn wrong_with(&self, request: &Request) -> Option<String> {
        let headers = request.headers();
        if request.method() != Method::GET {
            return Some("only GET is asked for here".to_owned());
        }
        let authorization = format!("Bearer {}", self.token);
        let wanted = [
            ("x-github-api-version", Some("2022-11-28")),
            ("authorization", Some(authorization.as_str())),
            ("user-agent", None),
        ];
        for (name, value) in wanted {
            let sent: Vec<&str> = headers.get_all(name).iter().filter_map(|sent| sent.to_str().ok()).collect();
            match (sent.as_slice(), value) {
                ([sent], Some(value)) if *sent == value => {}
                ([sent], None) if !sent.is_empty() => {}
                ([], _) => return Some(format!("the header {name} is missing")),
                _ => return Some(format!("the header {name} is not what it should be")),
            }
        }
        let query = query(request);
        match self.route(request.uri().path()) {
            None => Some("there is no such path".to_owned()),
            Some(Route::Moved(_)) => None,
            Some(Route::Workflows) => unknown_key(&query, &["per_page", "page"]),
            Some(Route::Runs(_)) => wrong_runs_query(&query),
        }
    }

    fn route(&self, path: &str) -> Option<Route> {
        let parts: Vec<&str> = path.trim_start_matches("/api/v3").trim_start_matches('/').split('/').collect();
        let rest = match parts.as_slice() {
            ["repos", owner, name, rest @ ..] => {
                let full = format!("{owner}/{name}");
                if self.old_names.contains(&full) {
                    return Some(Route::Moved(format!("/repositories/{REPOSITORY_ID}/{}", rest.join("/"))));
                }
                if full != self.name {
                    return None;
                }
                rest
            }
            ["repositories", id, rest @ ..] if *id == REPOSITORY_ID.to_string() => rest,
            _ => return None,
        };
        match rest {
            ["actions", "workflows"] => Some(Route::Workflows),
            ["actions", "workflows", id, "runs"] => Some(Route::Runs(id.parse().ok()?)),
            _ => None,
        }
    }

    fn refuse(&mut self, fault: &Fault, asked: &str) -> Option<Response> {
        let message =
            |text: &str| json!({ "message": text, "documentation_url": "https://docs.github.com/rest" }).to_string();
        match fault {
            Fault::Status(status, text) => Some(self.reply(asked, (*status, true), message(text).into())),
            Fault::RetryAfter(seconds) => {
                let mut response = self.reply(asked, (429, false), message("slow down").into());
                insert(&mut response, "retry-after", &seconds.to_string());
                Some(response)
            }
            Fault::Exhausted => {
                self.budget = self.budget.map(|(_, reset)| (0, reset));
                Some(self.reply(asked, (403, false), message("API rate limit exceeded").into()))
            }
            Fault::Secondary => {
                let text = "You have exceeded a secondary rate limit. Please wait a few minutes.";
                Some(self.reply(asked, (403, false), message(text).into()))
            }
            Fault::Html => Some(self.reply(asked, (200, true), "<html>Unicorn!</html>".into())),
            Fault::Echo => {
                let text = format!("the token {} is not welcome", self.token);
                Some(self.reply(asked, (403, true), message(&text).into()))
            }
            Fault::Hang | Fault::Truncated | Fault::Cut | Fault::Empty | Fault::Unfiltered | Fault::StrangeLink => None,
        }
    }

    fn serve(&mut self, request: &Request, asked: &str, fault: Option<&Fault>) -> Response {
        let query = query(request);
        let (name, items) = match self.route(request.uri().path()) {
            Some(Route::Workflows) => ("workflows", self.workflow_items()),
            Some(Route::Runs(id)) => ("workflow_runs", self.run_items(id, &query, fault)),
            Some(Route::Moved(path)) => return self.forward(&path, (asked, request.uri().query())),
            None => {
                return self.reply(asked, (404, true), json!({ "message": "Not Found" }).to_string().into());
            }
        };
        let items = if fault == Some(&Fault::Empty) { Vec::new() } else { items };
        let page: usize = query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1);
        let asked_size: usize = query.get("per_page").and_then(|size| size.parse().ok()).unwrap_or(30);
        let size = self.page_size.unwrap_or(asked_size).min(asked_size).max(1);
        let from = size.saturating_mul(page.saturating_sub(1));
        let shown: Vec<&Value> = items.iter().skip(from).take(size).collect();
        let body = json!({ "total_count": items.len(), name: shown }).to_string();
        let etag = self.etag(asked, &body);
        let is_whole = !matches!(fault, Some(Fault::Truncated | Fault::Cut));
        let sent = request.headers().get(header::IF_NONE_MATCH);
        if is_whole && sent.is_some_and(|sent| sent.as_bytes() == etag.as_bytes()) {
            let mut response = self.reply(asked, (304, false), Body::empty());
            insert(&mut response, "etag", &etag);
            return response;
        }
        let mut response = self.reply(asked, (200, true), broken(fault, body));
        insert(&mut response, "etag", &etag);
        if from.saturating_add(size) < items.len() {
            let link = self.link(request.uri().path(), (&query, page), fault);
            insert(&mut response, "link", &link);
        }
        response
    }

    /// By the repository's number, as GitHub writes it.
    fn link(&self, path: &str, (query, page): (&Query, usize), fault: Option<&Fault>) -> String {
        let prefix = if path.starts_with("/api/v3") { "/api/v3" } else { "" };
        let rest = path.split_once("/actions/").map_or("", |(_, rest)| rest);
        let origin = if fault == Some(&Fault::StrangeLink) { "http://elsewhere.invalid" } else { &self.origin };
        let mut query = query.clone();
        let mut to = |page: usize, rel: &str| {
            query.insert("page".to_owned(), page.to_string());
            let text: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
            let text = text.join("&");
            format!("<{origin}{prefix}/repositories/{REPOSITORY_ID}/actions/{rest}?{text}>; rel=\"{rel}\"")
        };
        [to(1, "first"), to(page + 1, "next")].join(", ")
    }

    fn forward(&mut self, path: &str, (asked, query): (&str, Option<&str>)) -> Response {
        let location = format!("{}{path}?{}", self.origin, query.unwrap_or_default());
        let mut response = self.reply(asked, (301, true), json!({ "message": "Moved Permanently" }).to_string().into());
        insert(&mut response, "location", &location);
        response
    }

    fn workflow_items(&self) -> Vec<Value> {
        let item = |(id, (name, path, state)): (&u64, &(String, String, String))| json!({ "id": id, "node_id": "W", "name": name, "path": path, "state": state });
        self.workflows.iter().map(item).collect()
    }

    /// The newest first, as GitHub does.
    fn run_items(&self, workflow_id: u64, query: &Query, fault: Option<&Fault>) -> Vec<Value> {
        let is_asked_for = |run: &&Run| {
            let wants = |key: &str, value: Option<&str>| query.get(key).map(String::as_str) == value;
            fault == Some(&Fault::Unfiltered)
                || (run.workflow_id == workflow_id
                    && wants("head_sha", Some(&run.sha))
                    && wants("event", Some(&run.event))
                    && wants("branch", run.branch.as_deref()))
        };
        let mut runs: Vec<&Run> = self.runs.iter().filter(is_asked_for).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.number));
        runs.into_iter().map(|run| self.run_item(run)).collect()
    }

    fn run_item(&self, run: &Run) -> Value {
        let from = run.fork.as_ref().unwrap_or(&self.name);
        json!({
            "id": 30_000_000_000_u64 + run.number,
            "name": self.workflows.get(&run.workflow_id).map(|workflow| workflow.0.as_str()),
            "run_number": run.number,
            "run_attempt": run.attempt,
            "workflow_id": run.workflow_id,
            "head_sha": run.sha,
            "head_branch": run.branch,
            "event": run.event,
            "status": run.status,
            "conclusion": run.conclusion,
            "html_url": format!("https://github.test/{}/actions/runs/{}", self.name, run.number),
            "repository": { "id": REPOSITORY_ID, "full_name": self.name },
            "head_repository": { "full_name": from },
        })
    }

    /// Differs with the token, as GitHub's do.
    fn etag(&self, asked: &str, body: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.token, asked, body).hash(&mut hasher);
        format!("W/\"{:016x}\"", hasher.finish())
    }

    fn note(&mut self, asked: &str, (status, is_charged): (u16, bool)) {
        self.asked.push(Asked { path_and_query: asked.to_owned(), status, is_charged });
    }

    fn reply(&mut self, asked: &str, (status, is_charged): (u16, bool), body: Body) -> Response {
        self.note(asked, (status, is_charged));
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
        insert(&mut response, "content-type", "application/json; charset=utf-8");
        if let Some((remaining, reset)) = &mut self.budget {
            *remaining = remaining.saturating_sub(u64::from(is_charged));
            insert(&mut response, "x-ratelimit-limit", &LIMIT.to_string());
            insert(&mut response, "x-ratelimit-remaining", &remaining.to_string());
            insert(&mut response, "x-ratelimit-used", &LIMIT.saturating_sub(*remaining).to_string());
            insert(&mut response, "x-ratelimit-reset", &reset.to_string());
            insert(&mut response, "x-ratelimit-resource", "core");
        }
        response
    }
}

enum Route {
    Workflows,
    Runs(u64),
    Moved(String),
}

fn insert(response: &mut Response, name: &'static str, value: &str) {
    let headers: &mut HeaderMap = response.headers_mut();
    let Ok(value) = value.parse() else { unreachable!("`{value}` is no header value") };
    headers.insert(name, value);
}

fn broken(fault: Option<&Fault>, body: String) -> Body {
    let half = body.get(..body.len() / 2).unwrap_or_default().to_owned();
    match fault {
        Some(Fault::Truncated) => Body::from(half),
        Some(Fault::Cut) => {
            let parts = [Ok(half), Err(io::Error::from(io::ErrorKind::ConnectionReset))];
            Body::from_stream(futures_util::stream::iter(parts))
        }
        _ => Body::from(body),
    }
}

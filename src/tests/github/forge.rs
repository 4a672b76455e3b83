//! The part of the stand-in that has a bare repository behind it: the Git data API, pull requests, statuses,
//! deployments and an App's tokens. What GitHub would refuse, or do otherwise than meant, is a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use axum::extract::Request;
use axum::http::Method;
use serde_json::{Value, json};

use super::query::query;

/// Statuses of one commit and context.
///
/// Source: GitHub facts, section 6.
const MOST_STATUSES: usize = 1_000;

type Answered = Result<(u16, Value), String>;

/// Something that was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// `status <context>`, `deployment <environment>` or `progress <number>`.
    pub(crate) what: String,
    /// The commit of a status or deployment.
    pub(crate) sha: String,
    /// The state, empty for a deployment.
    pub(crate) state: String,
    /// The description.
    pub(crate) description: String,
}

/// A repository that may be written to.
pub(crate) struct Forge {
    bare: PathBuf,
    tokens: BTreeSet<String>,
    /// Whether branches are protected.
    pub(crate) is_protected: bool,
    /// Rights that the credential lacks: `contents`, `pull_requests`, `statuses`, `deployments`.
    pub(crate) lacks: BTreeSet<&'static str>,
    /// Somebody who pushes between reading and writing: run once, before a branch is moved.
    pub(crate) meddler: Option<Box<dyn FnOnce() + Send>>,
    /// Pull requests: number, head, base, title, body.
    pub(crate) pulls: Vec<(String, String, String, String)>,
    /// What was reported, in order.
    pub(crate) told: Vec<Told>,
    /// Statuses that there were before.
    pub(crate) statuses_before: usize,
    /// Seconds that a minted token lives.
    pub(crate) token_lives: i64,
    /// Rights and repositories that tokens were asked for.
    pub(crate) minted: Vec<Value>,
    /// JWTs that were sent.
    pub(crate) jwts: Vec<String>,
    now: i64,
    deployments: BTreeMap<u64, String>,
}

impl Forge {
    pub(super) fn new(bare: &Path, token: &str) -> Self {
        Self {
            bare: bare.to_owned(),
            tokens: BTreeSet::from([token.to_owned()]),
            is_protected: false,
            lacks: BTreeSet::new(),
            meddler: None,
            pulls: Vec::new(),
            told: Vec::new(),
            statuses_before: 0,
            token_lives: 3_600,
            minted: Vec::new(),
            jwts: Vec::new(),
            now: 0,
            deployments: BTreeMap::new(),
        }
    }

    /// The time by which tokens end, in seconds since 1970.
    pub(crate) fn clock(&mut self, seconds: i64) {
        self.now = seconds;
    }

    /// Forgets every token that was given so far.
    pub(crate) fn revoke(&mut self) {
        self.tokens.clear();
    }

    /// Whether a request is for this part.
    pub(super) fn takes(&self, method: &Method, path: &str) -> bool {
        *method != Method::GET || !path.contains("/actions/")
    }

    pub(super) fn answer(&mut self, request: &Request, body: &[u8]) -> Answered {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if header("x-github-api-version") != "2022-11-28" || header("user-agent").is_empty() {
            return Err("a header is missing".to_owned());
        }
        let Some(token) = header("authorization").strip_prefix("Bearer ") else {
            return Err("there is no bearer token".to_owned());
        };
        let body: Value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| error.to_string())?
        };
        let path = request.uri().path().trim_start_matches("/api/v3").to_owned();
        if let Some(rest) = path.strip_prefix("/app/installations/") {
            return self.mint(rest, token, &body);
        }
        if !self.tokens.contains(token) {
            return Ok((401, json!({ "message": "Bad credentials" })));
        }
        let Some(rest) = path.strip_prefix("/repos/acme/shop") else { return Err("there is no such path".to_owned()) };
        let parts: Vec<&str> = rest.trim_start_matches('/').split('/').collect();
        match (request.method().as_str(), parts.as_slice()) {
            ("GET", ["branches", _]) => Ok((200, json!({ "name": "main", "protected": self.is_protected }))),
            ("POST", ["git", "trees"]) => self.needs("contents", |this| this.tree(&body)),
            ("POST", ["git", "commits"]) => self.needs("contents", |this| this.commit(&body)),
            ("POST", ["git", "refs"]) => self.needs("contents", |this| this.branch(&body)),
            ("PATCH", ["git", "refs", "heads", name @ ..]) => {
                let name = name.join("/");
                self.needs("contents", |this| this.forward(&name, &body))
            }
            ("GET", ["pulls"]) => {
                let head = query(request).remove("head").unwrap_or_default();
                let found = self.pulls.iter().position(|pull| format!("acme:{}", pull.0) == head);
                Ok((200, Value::Array(found.map(page).into_iter().collect())))
            }
            ("POST", ["pulls"]) => self.needs("pull_requests", |this| this.pull(&body)),
            ("POST", ["statuses", sha]) => {
                let sha = (*sha).to_owned();
                self.needs("statuses", |this| this.status(&sha, &body))
            }
            ("POST", ["deployments"]) => self.needs("deployments", |this| this.deployment(&body)),
            ("POST", ["deployments", id, "statuses"]) => {
                let id: u64 = id.parse().map_err(|_| "no number".to_owned())?;
                self.needs("deployments", |this| this.progress(id, &body))
            }
            _ => Err("there is no such path".to_owned()),
        }
    }

    fn needs(&mut self, right: &str, work: impl FnOnce(&mut Self) -> Answered) -> Answered {
        if self.lacks.iter().any(|lacked| *lacked == right) {
            return Ok((403, json!({ "message": "Resource not accessible by integration" })));
        }
        work(self)
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Result<String, String> {
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(&self.bare)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_DIR", &self.bare)
            .env("GIT_WORK_TREE", &self.bare)
            .env("GIT_INDEX_FILE", self.bare.join("stand-in-index"))
            .env("GIT_AUTHOR_NAME", "bot")
            .env("GIT_AUTHOR_EMAIL", "bot@example.org")
            .env("GIT_COMMITTER_NAME", "bot")
            .env("GIT_COMMITTER_EMAIL", "bot@example.org")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).map_err(|error| error.to_string())?;
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    fn tree(&self, body: &Value) -> Answered {
        let base = text(body, "base_tree")?;
        self.git(&["read-tree", base], b"")?;
        for entry in body.get("tree").and_then(Value::as_array).ok_or("no tree")? {
            let (path, mode) = (text(entry, "path")?, text(entry, "mode")?);
            match entry.get("sha") {
                Some(Value::String(sha)) => {
                    self.git(&["cat-file", "-e", sha], b"")?;
                    self.git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{sha},{path}")], b"")?;
                }
                Some(Value::Null) => {
                    self.git(&["update-index", "--force-remove", path], b"")?;
                }
                _ => return Err("an entry has neither an object nor null".to_owned()),
            }
        }
        Ok((201, json!({ "sha": self.git(&["write-tree"], b"")? })))
    }

    fn commit(&self, body: &Value) -> Answered {
        let (tree, message) = (text(body, "tree")?, text(body, "message")?);
        let parents = body.get("parents").and_then(Value::as_array).ok_or("no parents")?;
        let [Value::String(parent)] = parents.as_slice() else { return Err("not one parent".to_owned()) };
        Ok((201, json!({ "sha": self.git(&["commit-tree", tree, "-p", parent], message.as_bytes())? })))
    }

    fn forward(&mut self, name: &str, body: &Value) -> Answered {
        if body.get("force") != Some(&Value::Bool(false)) {
            return Err("a branch is never moved by force".to_owned());
        }
        if let Some(meddler) = self.meddler.take() {
            meddler();
        }
        if self.is_protected {
            return Ok((
                422,
                json!({ "message": "Changes must be made through a pull request. Protected branch update failed" }),
            ));
        }
        let (sha, full) = (text(body, "sha")?, format!("refs/heads/{name}"));
        let old = self.git(&["rev-parse", &full], b"")?;
        if self.git(&["merge-base", "--is-ancestor", &old, sha], b"").is_err() {
            return Ok((422, json!({ "message": "Update is not a fast forward" })));
        }
        self.git(&["update-ref", &full, sha, &old], b"")?;
        Ok((200, json!({ "ref": full })))
    }

    fn branch(&self, body: &Value) -> Answered {
        let (full, sha) = (text(body, "ref")?, text(body, "sha")?);
        if !full.starts_with("refs/heads/") {
            return Err("it is no full branch name".to_owned());
        }
        if self.git(&["rev-parse", "--verify", "--quiet", full], b"").is_ok() {
            return Ok((422, json!({ "message": "Reference already exists" })));
        }
        self.git(&["update-ref", full, sha], b"")?;
        Ok((201, json!({ "ref": full })))
    }

    fn pull(&mut self, body: &Value) -> Answered {
        let (head, base) = (text(body, "head")?.to_owned(), text(body, "base")?.to_owned());
        self.git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{head}")], b"")?;
        if self.pulls.iter().any(|pull| pull.0 == head) {
            let errors = json!([{ "message": format!("A pull request already exists for acme:{head}.") }]);
            return Ok((422, json!({ "message": "Validation Failed", "errors": errors })));
        }
        self.pulls.push((head, base, text(body, "title")?.to_owned(), text(body, "body")?.to_owned()));
        Ok((201, page(self.pulls.len() - 1)))
    }

    fn status(&mut self, sha: &str, body: &Value) -> Answered {
        let (state, context) = (text(body, "state")?, text(body, "context")?);
        let description = text(body, "description")?;
        if !["error", "failure", "pending", "success"].contains(&state) || description.chars().count() > 140 {
            return Err(format!("GitHub takes no such status: {body}"));
        }
        let what = format!("status {context}");
        let before = self.told.iter().filter(|told| told.what == what && told.sha == sha).count();
        if before + self.statuses_before >= MOST_STATUSES {
            return Ok((422, json!({ "message": "This SHA and context has reached the maximum number of statuses." })));
        }
        self.tell(what, sha, (state, description));
        Ok((201, json!({ "id": 1 })))
    }

    fn deployment(&mut self, body: &Value) -> Answered {
        if body.get("auto_merge") != Some(&Value::Bool(false)) || body.get("required_contexts") != Some(&json!([])) {
            return Err("GitHub would merge, or wait for every status".to_owned());
        }
        let (sha, environment) = (text(body, "ref")?, text(body, "environment")?);
        let number = u64::try_from(self.deployments.len()).map_err(|error| error.to_string())? + 71;
        self.deployments.insert(number, sha.to_owned());
        self.tell(format!("deployment {environment}"), sha, ("", ""));
        Ok((201, json!({ "id": number })))
    }

    fn progress(&mut self, id: u64, body: &Value) -> Answered {
        let (state, description) = (text(body, "state")?, text(body, "description")?);
        if !["error", "failure", "inactive", "in_progress", "queued", "pending", "success"].contains(&state) {
            return Err(format!("GitHub knows no state {state}"));
        }
        let sha = self.deployments.get(&id).cloned().ok_or("no such deployment")?;
        self.tell(format!("progress {id}"), &sha, (state, description));
        Ok((201, json!({ "id": 1 })))
    }

    fn tell(&mut self, what: String, sha: &str, (state, description): (&str, &str)) {
        let (sha, state, description) = (sha.to_owned(), state.to_owned(), description.to_owned());
        self.told.push(Told { what, sha, state, description });
    }

    fn mint(&mut self, rest: &str, jwt: &str, body: &Value) -> Answered {
        if rest != "22/access_tokens" {
            return Ok((404, json!({ "message": "Not Found" })));
        }
        if jwt.split('.').count() != 3 {
            return Err("it is no JWT".to_owned());
        }
        self.jwts.push(jwt.to_owned());
        let rights = body.get("permissions").and_then(Value::as_object).ok_or("all rights were asked for")?;
        if body.get("repositories") != Some(&json!(["shop"])) {
            return Err("more than one repository was asked for".to_owned());
        }
        if rights.keys().any(|right| self.lacks.iter().any(|lacked| lacked == right)) {
            let message = "The permissions requested are not granted to this installation.";
            return Ok((422, json!({ "message": message })));
        }
        self.minted.push(body.clone());
        let token = format!("ghs_{}", self.minted.len());
        self.tokens.insert(token.clone());
        let ends = jiff::Timestamp::from_second(self.now + self.token_lives).map_err(|error| error.to_string())?;
        Ok((201, json!({ "token": token, "expires_at": ends.to_string() })))
    }
}

fn page(index: usize) -> Value {
    json!({ "number": index + 1, "html_url": format!("https://github.test/acme/shop/pull/{}", index + 1) })
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing"))
}

//! Whom a verified delivery wakes, and if nobody, why: pure, over the payload and the index.
//!
//! A wake says "look for yourself", so a late, reordered, doubled or forged-by-a-colleague delivery can cost a
//! look and nothing else: no commit, no verdict and no flag of a payload is ever believed (I7).

use std::collections::HashMap;

use super::index::{Followers, Index, keys_of};
use super::payload::{Payload, Repo, Run, Suite};

/// The App whose check suites are GitHub Actions' own.
const ACTIONS: &str = "github-actions";

/// Refs named in a sentence.
const REFS_SHOWN: usize = 5;

/// What is decided about a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// One word, for machines: `Woke`, or why nobody is woken.
    pub reason: &'static str,
    /// One sentence, for people.
    pub message: String,
    /// Who is woken.
    pub followers: Vec<Followers>,
    /// Names to remember: id and `owner/name` in lower case.
    pub learned: Vec<(i64, String)>,
}

impl Judged {
    fn nobody(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), followers: Vec::new(), learned: Vec::new() }
    }

    /// A payload that cannot be read wakes nobody.
    #[must_use]
    pub fn unreadable(detail: &str) -> Self {
        Self::nobody("Unreadable", format!("the signature is right, but the payload cannot be read: {detail}"))
    }

    /// How many targets are woken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.followers.iter().map(|followers| followers.len()).sum()
    }
}

/// Every name under which a repository's id was seen: an id stays, names change.
#[derive(Debug, Clone, Default)]
pub struct Names {
    by_id: HashMap<i64, Vec<String>>,
    by_name: HashMap<String, i64>,
}

impl Names {
    /// Remembers a name, in lower case; says whether that is news.
    pub fn learn(&mut self, id: i64, name: &str) -> bool {
        let names = self.by_id.entry(id).or_default();
        let is_new = !names.iter().any(|known| known == name);
        if is_new {
            names.push(name.to_owned());
        }
        self.by_name.insert(name.to_owned(), id) != Some(id) || is_new
    }

    fn of(&self, id: i64) -> &[String] {
        self.by_id.get(&id).map_or(&[], Vec::as_slice)
    }

    fn knows(&self, id: i64, name: &str) -> bool {
        self.by_name.get(name) == Some(&id) && self.of(id).iter().any(|known| known == name)
    }
}

/// What there is to compare with.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The registry.
    pub index: &'a Index,
    /// Names seen before.
    pub names: &'a Names,
}

/// Decides about one delivery.
#[must_use]
pub fn judge(event: &str, payload: &Payload, known: Known<'_>) -> Judged {
    match event {
        "ping" => Judged::nobody("Ping", "a ping: the address and the secret are right, and nothing is to be done"),
        "push" => push(payload, known),
        "workflow_run" => run(payload, known),
        "check_suite" => suite(payload, known),
        "repository" => repository(payload, known),
        "installation" | "installation_repositories" => installation(payload, known),
        other if other.starts_with("installation") => {
            Judged::nobody("EventNotUsed", format!("`{other}` changes nothing that is looked at"))
        }
        other => Judged::nobody(
            "EventNotUsed",
            format!("`{other}` is not looked at; untick it at the hook to save the calls"),
        ),
    }
}

fn push(payload: &Payload, known: Known<'_>) -> Judged {
    let Some(reference) = payload.reference.as_deref() else {
        return Judged::nobody("NoRef", "a push without a `ref`");
    };
    let what = match (payload.deleted, payload.created, payload.forced) {
        (Some(true), _, _) => "deletion",
        (_, Some(true), _) => "creation",
        (_, _, Some(true)) => "forced push",
        _ => "push",
    };
    at(payload.repository.as_ref(), reference, what, known)
}

fn run(payload: &Payload, known: Known<'_>) -> Judged {
    let Run { event, head_branch, conclusion, head_repository, .. } = payload.workflow_run.clone().unwrap_or_default();
    if payload.action.as_deref() != Some("completed") {
        return unfinished("workflow run", payload);
    }
    if event.as_deref() != Some("push") {
        let event = event.unwrap_or_else(|| "nothing known".to_owned());
        return Judged::nobody("NotAPush", format!("a run started by {event} says nothing about a commit of a branch"));
    }
    let home = payload.repository.as_ref();
    if !is_same(head_repository.as_ref(), home) {
        return Judged::nobody("ForkRun", "the run is about a commit of another repository, a fork");
    }
    let Some(branch) = head_branch else {
        return Judged::nobody("NoRef", "a run without a branch");
    };
    let what = format!("finished run ({})", conclusion.as_deref().unwrap_or("no conclusion"));
    at(home, &format!("refs/heads/{branch}"), &what, known)
}

fn suite(payload: &Payload, known: Known<'_>) -> Judged {
    let Suite { head_branch, conclusion, app, .. } = payload.check_suite.clone().unwrap_or_default();
    if payload.action.as_deref() != Some("completed") {
        return unfinished("check suite", payload);
    }
    let slug = app.and_then(|app| app.slug).unwrap_or_default();
    if slug != ACTIONS {
        return Judged::nobody(
            "OtherApp",
            format!("a check suite of the App `{slug}`; only {ACTIONS} is asked about CI"),
        );
    }
    let Some(branch) = head_branch else {
        return Judged::nobody("NoRef", "a check suite without a branch");
    };
    let what = format!("finished check suite ({})", conclusion.as_deref().unwrap_or("no conclusion"));
    at(payload.repository.as_ref(), &format!("refs/heads/{branch}"), &what, known)
}

fn unfinished(what: &str, payload: &Payload) -> Judged {
    let action = payload.action.as_deref().unwrap_or("nothing");
    Judged::nobody("NotFinished", format!("a {what} with action `{action}`: only a completed one can change a verdict"))
}

/// A run of the repository itself; where ids are missing, names decide, and where both are missing it is a fork's.
fn is_same(head: Option<&Repo>, home: Option<&Repo>) -> bool {
    let (Some(head), Some(home)) = (head, home) else { return false };
    match (head.id, home.id) {
        (Some(head), Some(home)) => head == home,
        _ => head.full_name.is_some() && head.full_name == home.full_name,
    }
}

fn repository(payload: &Payload, known: Known<'_>) -> Judged {
    let Some(repo) = payload.repository.as_ref() else {
        return Judged::nobody("NoRepository", "a payload without a `repository`");
    };
    let action = payload.action.as_deref().unwrap_or("unknown");
    everywhere(&[repo], &old_names(payload), (&format!("repository {action}"), known))
}

/// The name before a rename or a transfer.
fn old_names(payload: &Payload) -> Vec<String> {
    let now = payload.repository.as_ref().and_then(|repo| repo.full_name.as_deref());
    let Some((owner, name)) = now.and_then(|full| full.split_once('/')) else { return Vec::new() };
    let Some(changes) = payload.changes.as_ref() else { return Vec::new() };
    let old_name = changes.repository.as_ref().and_then(|it| it.name.as_ref()?.from.as_deref());
    let old_owner = changes.owner.as_ref().and_then(|owner| {
        let from = owner.from.as_ref()?;
        from.user.as_ref().or(from.organization.as_ref())?.login.as_deref()
    });
    if old_name.is_none() && old_owner.is_none() {
        return Vec::new();
    }
    vec![format!("{}/{}", old_owner.unwrap_or(owner), old_name.unwrap_or(name)).to_lowercase()]
}

fn installation(payload: &Payload, known: Known<'_>) -> Judged {
    let lists = [&payload.repositories, &payload.repositories_added, &payload.repositories_removed];
    let repos: Vec<&Repo> = lists.into_iter().flatten().flatten().collect();
    let action = payload.action.as_deref().unwrap_or("unknown");
    everywhere(&repos, &[], (&format!("installation {action}"), known))
}

/// Wakes whoever follows one ref.
fn at(repo: Option<&Repo>, reference: &str, what: &str, known: Known<'_>) -> Judged {
    let Some(repo) = repo else {
        return Judged::nobody("NoRepository", "a payload without a `repository`");
    };
    let keys = followed_keys(repo, &[], known);
    let Some(first) = keys.first() else { return untracked(repo) };
    let followers: Vec<Followers> =
        keys.iter().filter_map(|key| known.index.followers(key, reference).cloned()).collect();
    let learned = learned(repo, &[], known);
    let note = renamed(repo, first, known);
    if followers.is_empty() {
        let refs = keys.iter().flat_map(|key| known.index.refs(key)).take(REFS_SHOWN).collect::<Vec<_>>().join(", ");
        let message = format!("no target follows {reference} of {first}; followed are {refs}{note}");
        return Judged { learned, ..Judged::nobody("OtherRef", message) };
    }
    woke(followers, learned, format!("{what} at {reference} of {first}{note}"))
}

/// Wakes whoever follows any ref of some repositories.
fn everywhere(repos: &[&Repo], old: &[String], (what, known): (&str, Known<'_>)) -> Judged {
    let mut found = (Vec::new(), Vec::new(), String::new());
    let mut seen: Vec<String> = Vec::new();
    for repo in repos {
        let keys = followed_keys(repo, old, known);
        if let Some(first) = keys.first() {
            found.1.extend(learned(repo, old, known));
            found.2.push_str(&renamed(repo, first, known));
        }
        for key in keys.into_iter().filter(|key| !seen.contains(key)).collect::<Vec<_>>() {
            found.0.extend(known.index.all_followers(&key).cloned());
            seen.push(key);
        }
    }
    let (followers, learned, note) = found;
    match (followers.is_empty(), repos) {
        (true, [repo]) => untracked(repo),
        (true, _) => {
            Judged::nobody("UnknownRepository", format!("{what}: none of its repositories is in the registry"))
        }
        (false, _) => woke(followers, learned, format!("{what}{note}")),
    }
}

fn woke(followers: Vec<Followers>, learned: Vec<(i64, String)>, what: String) -> Judged {
    let mut judged = Judged { reason: "Woke", message: String::new(), followers, learned };
    let targets = if judged.count() == 1 { "target" } else { "targets" };
    judged.message = format!("{what}: {} {targets} asked to look", judged.count());
    judged
}

/// Where a payload's repository is in the registry: by name or remote first, then by names its id had before.
fn followed_keys(repo: &Repo, old: &[String], known: Known<'_>) -> Vec<String> {
    let before = repo.id.map_or(&[][..], |id| known.names.of(id));
    let mut keys: Vec<String> = Vec::new();
    for key in keys_of(repo).into_iter().chain(old.iter().cloned()).chain(before.iter().cloned()) {
        if known.index.has(&key) && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Only of repositories in the registry, so that what is remembered stays small.
fn learned(repo: &Repo, old: &[String], known: Known<'_>) -> Vec<(i64, String)> {
    let Some(id) = repo.id else { return Vec::new() };
    let now = repo.full_name.as_ref().map(|name| name.to_lowercase());
    let names = old.iter().cloned().chain(now);
    names.filter(|name| !known.names.knows(id, name)).map(|name| (id, name)).collect()
}

/// A word of warning when names moved.
fn renamed(repo: &Repo, key: &str, known: Known<'_>) -> String {
    let Some(name) = repo.full_name.as_ref().map(|name| name.to_lowercase()) else { return String::new() };
    if let (Some(id), Some(before)) = (repo.id, known.names.by_name.get(&name))
        && id != *before
    {
        return format!("; {name} was repository {before} before and is {id} now: another one took the name");
    }
    let is_by_url = keys_of(repo).iter().any(|own| own == key);
    if is_by_url { String::new() } else { format!("; it is called {name} now: change `repo` in the registry") }
}

fn untracked(repo: &Repo) -> Judged {
    let name = repo.full_name.as_deref().unwrap_or("a repository without a name");
    Judged::nobody("UnknownRepository", format!("no target follows {name}: it is in no file of the registry"))
}

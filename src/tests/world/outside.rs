//! The scripted outside: commits and how they behave, the engine's seats, the edge's marker, and the one
//! ordered record of effects.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::registry;
use crate::model::live::{LiveState, RunState, SlotState};
use crate::model::sample::{Answer, Sample, SilenceKind};
use crate::model::{Class, Digest, Reason, ReasonCode, Sha, Slot, TargetName};

/// When every world begins.
const BEGINNING: &str = "2031-03-01T12:00:00Z";

/// The full sha of a commit by project and name.
pub(crate) fn sha(project: &str, name: &str) -> Sha {
    Digest::of(format!("{project} {name}").as_bytes()).prefix(40).parse().unwrap()
}

/// What a commit's application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Healthy, and every page is as it should be.
    Good,
    /// Answers, and never as the contract asks.
    NeverHealthy,
    /// Ends with this code before it answers.
    Crashes(i64),
    /// Says that it is another commit.
    WrongSha,
    /// Healthy, and its page is not as its smoke check says.
    SmokeFails,
    /// Like `SmokeFails`, but only for visitors that come through the edge.
    FailsInPublic,
    /// Refuses the public host names altogether.
    RefusesHosts,
}

/// What CI says of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ci {
    Nothing,
    Pending,
    Red,
    Green,
}

/// How an effect fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// With this reason.
    Error(ReasonCode, Class),
    /// It never returns.
    Hangs,
}

pub(crate) struct Commit {
    pub(crate) name: String,
    pub(crate) project: String,
    pub(crate) tree: Sha,
    pub(crate) parent: Option<Sha>,
    pub(crate) manifest: Option<String>,
    pub(crate) behaviour: Behaviour,
    pub(crate) healthy_after: Duration,
    pub(crate) has_image: bool,
    pub(crate) ci: Ci,
}

/// How the public path, beyond the edge, is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublicPath {
    Open,
    /// The name does not resolve.
    Silent,
}

/// What the edge holds for one target.
#[derive(Default, Clone)]
pub(crate) struct Site {
    pub(crate) marker: Option<Slot>,
    pub(crate) vhost: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) is_loaded: bool,
}

#[derive(Default, Clone)]
pub(crate) struct Host {
    pub(crate) live: LiveState,
    pub(crate) started: [Option<Timestamp>; 2],
}

pub(crate) struct State {
    pub(crate) record: Vec<String>,
    pub(crate) violations: Vec<String>,
    pub(crate) commits: BTreeMap<Sha, Commit>,
    /// Project → the tip of its branch; none when the branch is gone.
    pub(crate) branches: BTreeMap<String, Option<Sha>>,
    /// Projects whose remote does not answer; with true, it never does.
    pub(crate) remotes_down: BTreeMap<String, Fault>,
    pub(crate) looks: u32,
    pub(crate) hosts: BTreeMap<TargetName, Host>,
    pub(crate) sites: BTreeMap<TargetName, Site>,
    pub(crate) faults: Vec<(String, u32, Fault)>,
    pub(crate) public: PublicPath,
    pub(crate) is_silent_after_switch: bool,
    pub(crate) is_engine_down: bool,
    /// Something removes every container that has run for a second and gets no traffic.
    pub(crate) removes_candidates: bool,
}

pub(crate) struct Outside {
    state: Mutex<State>,
    begin: tokio::time::Instant,
}

impl Outside {
    #[expect(clippy::disallowed_methods, reason = "tokio's paused clock is the time of a world")]
    pub(super) fn new() -> Self {
        let state = State {
            record: Vec::new(),
            violations: Vec::new(),
            commits: BTreeMap::new(),
            branches: BTreeMap::new(),
            remotes_down: BTreeMap::new(),
            looks: 0,
            hosts: BTreeMap::new(),
            sites: BTreeMap::new(),
            faults: Vec::new(),
            public: PublicPath::Open,
            is_silent_after_switch: false,
            is_engine_down: false,
            removes_candidates: false,
        };
        Self { state: Mutex::new(state), begin: tokio::time::Instant::now() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.let_time_pass(self.now());
        state
    }

    pub(crate) fn now(&self) -> Timestamp {
        let begin: Timestamp = BEGINNING.parse().unwrap();
        begin + jiff::SignedDuration::try_from(self.begin.elapsed()).unwrap()
    }
}

impl State {
    pub(super) fn push(&mut self, project: &str, name: &str) -> Sha {
        let new = sha(project, name);
        let parent = self.branches.get(project).cloned().flatten();
        let commit = Commit {
            name: name.to_owned(),
            project: project.to_owned(),
            tree: sha(project, &format!("tree of {name}")),
            parent,
            manifest: None,
            behaviour: Behaviour::Good,
            healthy_after: Duration::from_secs(1),
            has_image: true,
            ci: Ci::Nothing,
        };
        self.commits.insert(new.clone(), commit);
        self.branches.insert(project.to_owned(), Some(new.clone()));
        new
    }

    /// Adds a commit with another parent, and points the branch at it.
    pub(crate) fn force_push(&mut self, project: &str, (name, parent): (&str, Option<&str>)) {
        self.branches.insert(project.to_owned(), parent.map(|parent| sha(project, parent)));
        self.push(project, name);
    }

    pub(super) fn manifest_of(&self, sha: &Sha) -> Option<Vec<u8>> {
        let commit = self.commits.get(sha)?;
        let text = commit.manifest.clone().unwrap_or_else(|| registry::manifest(&commit.project));
        Some(text.into_bytes())
    }

    pub(super) fn is_ancestor(&self, old: &Sha, new: &Sha) -> bool {
        let mut at = Some(new.clone());
        while let Some(sha) = at {
            if sha == *old {
                return true;
            }
            at = self.commits.get(&sha).and_then(|commit| commit.parent.clone());
        }
        false
    }

    /// The fault that this effect meets, if any.
    pub(super) fn fault(&mut self, effect: &str) -> Option<Fault> {
        let met = self.faults.iter_mut().find(|(prefix, left, _)| *left > 0 && effect.starts_with(prefix.as_str()))?;
        met.1 -= 1;
        Some(met.2)
    }

    /// Adds a line, and looks whether every site that ever served still does.
    pub(super) fn record(&mut self, target: &TargetName, effect: &str) {
        let whose = if target.project.as_str() == "shop" { String::new() } else { format!("{}: ", target.project) };
        self.record.push(format!("{whose}{effect}"));
        let is_served = self.sites.get(target).is_some_and(|site| site.marker.is_some() && site.is_loaded);
        let got = self.traffic(target);
        let is_answer = self.commits.values().any(|commit| commit.name == got);
        if is_served && !is_answer {
            self.violations.push(format!("after `{effect}` a visitor of {target} got {got}"));
        }
    }

    /// What containers do by themselves.
    fn let_time_pass(&mut self, now: Timestamp) {
        let commits = &self.commits;
        for (target, host) in &mut self.hosts {
            let marker = self.sites.get(target).and_then(|site| site.marker);
            for (seat, started) in host.live.slots.iter_mut().zip(host.started) {
                let SlotState::Ours(container) = seat else { continue };
                let revision = container.revision.as_ref();
                let behaviour = revision.and_then(|sha| commits.get(sha)).map(|commit| commit.behaviour);
                let is_due = started.is_some_and(|started| now.duration_since(started).as_secs() >= 1);
                if let (Some(Behaviour::Crashes(code)), true, true) = (behaviour, is_due, container.run.is_running()) {
                    container.run = RunState::Exited { code, is_out_of_memory: false };
                }
                if is_due && self.removes_candidates && marker != Some(container.spec.slot) {
                    *seat = SlotState::Empty;
                }
            }
        }
    }

    /// The commit that answers on a loopback port, with how long it has run.
    fn listener(&self, port: u16, now: Timestamp) -> Option<(&Commit, &Sha, Duration)> {
        for host in self.hosts.values() {
            for (seat, started) in host.live.slots.iter().zip(host.started) {
                let SlotState::Ours(container) = seat else { continue };
                if container.run.is_running() && container.spec.host_port == port {
                    let sha = container.revision.as_ref()?;
                    let up = started.map_or(Duration::MAX, |started| {
                        Duration::try_from(now.duration_since(started)).unwrap_or_default()
                    });
                    return self.commits.get(sha).map(|commit| (commit, sha, up));
                }
            }
        }
        None
    }

    /// One GET on a slot's port, or through the edge.
    pub(super) fn ask(&self, port: u16, path: &str, (is_public, now): (bool, Timestamp)) -> Sample {
        let Some((commit, sha, up)) = self.listener(port, now) else {
            return silence(SilenceKind::Connection, "connection refused");
        };
        if up < commit.healthy_after || matches!(commit.behaviour, Behaviour::Crashes(_)) {
            return silence(SilenceKind::Connection, "connection reset");
        }
        let health = |sha: &str| answer(200, &format!("{{\"ok\":true,\"sha\":\"{sha}\"}}"));
        match (commit.behaviour, path) {
            (Behaviour::RefusesHosts, _) if is_public => answer(400, "this host is not mine"),
            (Behaviour::NeverHealthy, "/healthz") => answer(503, "starting"),
            (Behaviour::WrongSha, "/healthz") => health(&"0".repeat(40)),
            (_, "/healthz") => health(sha.as_str()),
            (Behaviour::SmokeFails, _) => answer(500, "broken"),
            (Behaviour::FailsInPublic, _) if is_public => answer(500, "broken"),
            _ => answer(200, &format!("hello from {}", commit.name)),
        }
    }

    /// One GET through the edge.
    pub(super) fn ask_edge(&self, host: &str, path: &str, now: Timestamp) -> Sample {
        let site = self.sites.values().find(|site| site.is_loaded && site.hosts.iter().any(|known| known == host));
        let Some(site) = site else { return answer(404, "") };
        let Some(slot) = site.marker else { return answer(503, "not released yet") };
        let text = site.vhost.as_deref().unwrap_or_default();
        match port_of(text, slot).map(|port| self.ask(port, path, (true, now))) {
            Some(Sample::Silence { .. }) | None => answer(502, ""),
            Some(sample) => sample,
        }
    }

    /// What a visitor of a target's first host sees.
    pub(crate) fn traffic(&self, target: &TargetName) -> String {
        let Some(site) = self.sites.get(target).filter(|site| site.is_loaded) else { return "no site".to_owned() };
        let Some(slot) = site.marker else { return "503".to_owned() };
        let port = port_of(site.vhost.as_deref().unwrap_or_default(), slot);
        let forever = Timestamp::MAX;
        let Some((commit, _, _)) = port.and_then(|port| self.listener(port, forever)) else { return "502".to_owned() };
        commit.name.clone()
    }

    pub(crate) fn running(&self, target: &TargetName) -> usize {
        let seats = self.hosts.get(target).map(|host| host.live.slots.clone()).unwrap_or_default();
        seats.iter().filter(|seat| seat.ours().is_some_and(|container| container.run.is_running())).count()
    }

    /// The seats and the marker, in two or three lines.
    pub(crate) fn seats(&self, target: &TargetName) -> String {
        let host = self.hosts.get(target).cloned().unwrap_or_default();
        let site = self.sites.get(target).cloned().unwrap_or_default();
        let name = |sha: Option<&Sha>| {
            sha.and_then(|sha| self.commits.get(sha)).map_or("?".to_owned(), |commit| commit.name.clone())
        };
        let seat = |slot: Slot| match host.live.slot(slot) {
            SlotState::Empty => format!("{slot} empty"),
            SlotState::Foreign { .. } => format!("{slot} foreign"),
            SlotState::Ours(container) => {
                let run = if container.run.is_running() { "running" } else { "stopped" };
                let kept = if container.is_kept { ", kept" } else { "" };
                format!("{slot} {} {run}{kept}", name(container.revision.as_ref()))
            }
        };
        let marker = site.marker.map_or("nowhere".to_owned(), |slot| slot.to_string());
        format!("{}; {}; traffic: {marker}", seat(Slot::A), seat(Slot::B))
    }

    /// Whether nobody out there reaches the edge.
    pub(super) fn is_dark(&self) -> bool {
        let has_switched = self.sites.values().any(|site| site.marker == Some(Slot::B));
        self.public == PublicPath::Silent || self.is_silent_after_switch && has_switched
    }

    pub(super) fn down(&self) -> Reason {
        Reason::new(ReasonCode::EngineUnavailable, "the engine does not answer")
    }
}

/// The port that a vhost's text proxies to for a slot.
pub(super) fn port_of(text: &str, slot: Slot) -> Option<u16> {
    let name = match slot {
        Slot::A => "handle @released {",
        Slot::B => "handle @b {",
    };
    let rest = &text[text.find(name)?..];
    let rest = &rest[rest.find("127.0.0.1:")? + "127.0.0.1:".len()..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

pub(super) fn silence(kind: SilenceKind, detail: &str) -> Sample {
    Sample::Silence { kind, detail: detail.to_owned() }
}

pub(super) fn answer(status: u16, body: &str) -> Sample {
    Sample::Answer(Answer { status, headers: Vec::new(), body: body.as_bytes().to_vec(), is_truncated: false })
}

//! Questions to a candidate, to the edge and to the public path: samples by `probe`, judged by `verify`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::Timestamp;

use crate::edge::EdgePath;
use crate::model::desired::SmokeCheck;
use crate::model::live::RunState;
use crate::model::{Class, Reason, ReasonCode, Sha, Slot};
use crate::plan::Step;
use crate::probe::{HttpProbe, Sample, Trust};
use crate::store::record::Section;
use crate::verify::{self, Expectation, Verdict};

use super::ports::{Halt, PublicChecks, StepError};
use super::run::Run;

/// One sample of a health check: an answer that takes longer is no answer.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// One smoke check. Source: app.toml contract, `[[smoke]]`.
const SMOKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Log lines that a failure keeps as evidence.
const EVIDENCE_LINES: u32 = 20;

/// How often a candidate is started again that may have been stopped from outside: once, since an
/// engine's restart stops it once.
const RESTARTS: u32 = 1;

type Done = Result<Result<Option<String>, StepError>, Halt>;

/// How an address is reached.
struct Way<'a> {
    scheme: &'a str,
    host: &'a str,
    connect: Option<SocketAddr>,
    trust: Trust,
}

impl Way<'_> {
    fn probe(&self, path: &str, timeout: Duration, body_limit: usize) -> HttpProbe {
        HttpProbe {
            url: format!("{}://{}{path}", self.scheme, self.host),
            connect: self.connect,
            headers: std::collections::BTreeMap::new(),
            trust: self.trust.clone(),
            timeout,
            body_limit,
        }
    }

    fn health(&self, path: &str) -> HttpProbe {
        self.probe(path, HEALTH_TIMEOUT, verify::health::HEALTH_BODY_LIMIT)
    }

    fn smoke(&self, check: &SmokeCheck) -> HttpProbe {
        let mut probe = self.probe(&check.path, SMOKE_TIMEOUT, verify::smoke::SMOKE_BODY_LIMIT);
        probe.headers.extend(check.request_headers.clone());
        probe
    }
}

fn slot_way(port: u16) -> Way<'static> {
    let connect = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    Way { scheme: "http", host: "127.0.0.1", connect, trust: Trust::System }
}

fn edge_way<'a>(path: &'a EdgePath, host: &'a str) -> Way<'a> {
    Way { scheme: path.scheme, host, connect: Some(path.socket), trust: path.trust.clone() }
}

/// What one look at a container's state tells a health check.
enum Look {
    At(RunState),
    Restarted,
    Away(StepError),
}

impl Run {
    /// The contract's 30 s rule, cut short when another commit is wanted (field report 39).
    pub(super) async fn await_health(&mut self, step: &Step, slot: Slot, section: Section) -> Done {
        let Step::AwaitHealth { port, path, revision, within_seconds, .. } = step else {
            return Ok(Err(StepError::bug("not a health step")));
        };
        let within = Duration::from_secs(u64::from(*within_seconds));
        let probe = HttpProbe { url: format!("http://127.0.0.1:{port}{path}"), ..slot_way(*port).health(path) };
        let (mut began, mut restarts) = (self.now(), 0);
        loop {
            if section == Section::Converge
                && let Some(why) = self.superseded()?
            {
                return Ok(Err(StepError::stalled(why)));
            }
            let sample = self.ports.probe.get(&probe).await;
            let (run_state, away) = match self.container_state(slot, &mut restarts).await {
                Ok(Look::At(run_state)) => (Some(run_state), None),
                Ok(Look::Away(error)) => (None, Some(error)),
                Ok(Look::Restarted) => {
                    began = self.now();
                    continue;
                }
                Err(error) => return Ok(Err(error)),
            };
            let expectation = Expectation { revision: revision.clone(), elapsed: self.since(began), within };
            match verify::health(&sample, &expectation, run_state.as_ref()) {
                Verdict::Passed(healthy) => {
                    if section == Section::Converge {
                        return Ok(self.healthy(healthy));
                    }
                    return Ok(Ok(None));
                }
                Verdict::Waiting { after, .. } => self.ports.clock.sleep(after).await,
                Verdict::Failed(reason) => {
                    // Silence says nothing about the commit while the engine is away.
                    return Ok(Err(match away.filter(|_| matches!(sample, Sample::Silence { .. })) {
                        Some(error) => error,
                        None => StepError::stalled(self.with_log(reason, slot).await),
                    }));
                }
            }
        }
    }

    /// Without smoke checks the health check alone is the proof.
    fn healthy(&mut self, healthy: verify::Healthy) -> Result<Option<String>, StepError> {
        if self.desired.smoke.is_empty() {
            let proof = verify::verified(healthy, &[], &[]).map_err(StepError::stalled)?;
            self.proof = Some(proof);
        } else {
            self.healthy = Some(healthy);
        }
        Ok(None)
    }

    /// What the container does. One that ended in the way that an engine's restart ends it is started
    /// again, once: that end says nothing about the commit.
    async fn container_state(&mut self, slot: Slot, restarts: &mut u32) -> Result<Look, StepError> {
        let target = self.target().clone();
        let live = match self.ports.target.observe(&target).await {
            Ok(live) => live,
            // The engine is away for a moment; the health bound still counts.
            Err(error) if error.class == Class::Transient => return Ok(Look::Away(error.into())),
            Err(error) => return Err(error.into()),
        };
        let Some(container) = live.slot(slot).ours() else {
            let gone = format!("the container of slot {slot} is gone: something else removed it");
            return Err(StepError::stalled(Reason::new(ReasonCode::Interrupted, gone)));
        };
        let was_stopped_from_outside =
            matches!(container.run, RunState::Exited { code: 0 | 137 | 143, is_out_of_memory: false });
        if was_stopped_from_outside && *restarts < RESTARTS {
            *restarts += 1;
            self.ports.target.apply(&target, &Step::ResumeSlot { slot }).await?;
            return Ok(Look::Restarted);
        }
        Ok(Look::At(container.run.clone()))
    }

    async fn with_log(&self, reason: Reason, slot: Slot) -> Reason {
        let lines = self.ports.target.log_tail(self.target(), slot, EVIDENCE_LINES).await.unwrap_or_default();
        if lines.is_empty() {
            return reason;
        }
        let seen = reason.evidence.clone().map(|evidence| format!("{evidence}\n")).unwrap_or_default();
        reason.with_evidence(format!("{seen}last lines of the container's log:\n{}", lines.join("\n")))
    }

    pub(super) async fn smoke_slot(&mut self, step: &Step) -> Result<Option<String>, StepError> {
        let Step::SmokeSlot { slot, port, host, checks } = step else {
            return Err(StepError::bug("not a smoke step"));
        };
        let Some(healthy) = self.healthy.take() else {
            return Err(StepError::bug("smoke checks were about to run on a slot that was not healthy"));
        };
        let way = Way { host, ..slot_way(*port) };
        let mut samples = Vec::with_capacity(checks.len());
        for check in checks {
            let mut probe = way.smoke(check);
            // Over loopback the candidate sees what it will see behind the edge.
            probe.headers.insert("x-forwarded-proto".to_owned(), "https".to_owned());
            samples.push(self.ports.probe.get(&probe).await);
        }
        match verify::verified(healthy, checks, &samples) {
            Ok(proof) => {
                self.proof = Some(proof);
                Ok(None)
            }
            Err(reason) => Err(StepError::stalled(self.with_log(reason, *slot).await)),
        }
    }

    /// Asks every host through the edge until the commit answers.
    pub(super) async fn confirm_edge(&mut self, step: &Step) -> Done {
        let Step::ConfirmEdge { hosts, path, revision, within_seconds } = step else {
            return Ok(Err(StepError::bug("not a confirm step")));
        };
        let (began, within) = (self.now(), Duration::from_secs(u64::from(*within_seconds)));
        for host in hosts {
            let question = Question { path, revision, began, within };
            if let Err(error) = self.confirm_host(host, &question).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(None))
    }

    async fn confirm_host(&self, host: &str, question: &Question<'_>) -> Result<Result<(), StepError>, Halt> {
        loop {
            let path = match self.ports.edge.path(host).await {
                Ok(path) => path,
                Err(error) => return Ok(Err(error.into())),
            };
            let sample = self.ports.probe.get(&edge_way(&path, host).health(question.path)).await;
            match verify::edge_health(&sample, &self.expectation(question)) {
                Verdict::Passed(()) => return Ok(Ok(())),
                Verdict::Waiting { after, .. } => self.ports.clock.sleep(after).await,
                Verdict::Failed(reason) => return Ok(Err(StepError::stalled(reason))),
            }
            if self.is_shutdown() {
                return Err(Halt::Shutdown);
            }
        }
    }

    fn expectation(&self, question: &Question<'_>) -> Expectation {
        Expectation {
            revision: question.revision.clone(),
            elapsed: self.since(question.began),
            within: question.within,
        }
    }

    /// Health on every host and smoke on the first, the way the public comes (ruling 36).
    pub(super) async fn prove_public(&mut self, step: &Step) -> Done {
        let Step::ProvePublic { hosts, path, revision, checks, within_seconds } = step else {
            return Ok(Err(StepError::bug("not a public step")));
        };
        let (began, within) = (self.now(), Duration::from_secs(u64::from(*within_seconds)));
        let question = Question { path, revision, began, within };
        let failed = self.first_public_failure(hosts, checks, &question).await?;
        let Err(error) = failed else { return Ok(Ok(None)) };
        // The direct path was confirmed a moment ago; a public path that was bad before the switch
        // proves nothing against this release.
        if error.reason.code == ReasonCode::PublicUnproven && self.was_public_good == Some(false) {
            self.unproven = Some(error.reason.clone());
            return Ok(Ok(Some(error.reason.to_string())));
        }
        Ok(Err(error))
    }

    async fn first_public_failure(
        &self,
        hosts: &[String],
        checks: &[SmokeCheck],
        question: &Question<'_>,
    ) -> Result<Result<(), StepError>, Halt> {
        for host in hosts {
            if let Err(error) = self.ask_public(host, None, question).await? {
                return Ok(Err(error));
            }
        }
        for check in checks {
            let Some(host) = hosts.first() else { break };
            if let Err(error) = self.ask_public(host, Some(check), question).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    async fn ask_public(
        &self,
        host: &str,
        check: Option<&SmokeCheck>,
        question: &Question<'_>,
    ) -> Result<Result<(), StepError>, Halt> {
        loop {
            let sample = match self.public_sample(host, check, question.path).await {
                Ok(sample) => sample,
                Err(error) => return Ok(Err(error)),
            };
            let expectation = self.expectation(question);
            let verdict = match check {
                None => verify::public_health(&sample, &expectation),
                Some(check) => verify::public_smoke(check, &sample, &expectation),
            };
            match verdict {
                Verdict::Passed(()) => return Ok(Ok(())),
                Verdict::Waiting { after, .. } => self.ports.clock.sleep(after).await,
                Verdict::Failed(reason) => return Ok(Err(StepError::stalled(reason))),
            }
            if self.is_shutdown() {
                return Err(Halt::Shutdown);
            }
        }
    }

    async fn public_sample(&self, host: &str, check: Option<&SmokeCheck>, health: &str) -> Result<Sample, StepError> {
        let direct;
        let way = match self.ports.settings.public_checks {
            PublicChecks::Direct => {
                direct = self.ports.edge.path(host).await?;
                edge_way(&direct, host)
            }
            PublicChecks::Public => Way { scheme: "https", host, connect: None, trust: Trust::System },
        };
        let probe = match check {
            None => way.health(health),
            Some(check) => way.smoke(check),
        };
        Ok(self.ports.probe.get(&probe).await)
    }

    /// Before the switch: whether the old release can be seen in public at all. Only for public checks,
    /// since the direct path is the edge on this machine.
    pub(super) async fn look_in_public_before(&mut self) {
        if self.ports.settings.public_checks == PublicChecks::Direct || self.plan.serving.is_none() {
            return;
        }
        let Some(host) = self.desired.policy.hosts.first().cloned() else { return };
        let health = self.desired.health.clone();
        let sample = self.public_sample(&host, None, &health).await;
        self.was_public_good = sample.ok().map(|sample| match sample {
            Sample::Answer(answer) => answer.status < 500,
            Sample::Silence { .. } => false,
        });
    }

    fn since(&self, began: Timestamp) -> Duration {
        Duration::from_millis(super::millis_between(began, self.now()))
    }
}

/// What is asked of one host, and until when.
struct Question<'a> {
    path: &'a str,
    revision: &'a Sha,
    began: Timestamp,
    within: Duration,
}

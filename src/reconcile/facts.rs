//! What a pass asks before it may plan: the branch, the CI run, and the gate.

use jiff::{SignedDuration, Timestamp};

use crate::gate::{self, CiFailure, CiKnowledge, Facts, Verdict};
use crate::model::policy::{NoCiRun, Repository};
use crate::model::{BranchName, Reason, ReasonCode, Sha};
use crate::source::{Ancestry, Look};
use crate::store::record::{CiRecord, Condition, ObservedRef, Pin, QuarantineEntry};

use super::pass::{Admitted, Pass, Stop, Subject};
use super::ports::{Halt, StepError};

/// How long a move of the branch that is no fast-forward waits for a second look, since replicas of a
/// remote lag (ruling 10).
const SECOND_LOOK: SignedDuration = SignedDuration::from_secs(10);

impl Pass<'_> {
    pub(super) fn branch<'s>(&self, subject: &'s Subject) -> &'s BranchName {
        subject.policy.branch.as_ref().unwrap_or(&subject.project.branch)
    }

    /// One look at the branch; gives what is wanted: the pin, or the tip.
    pub(super) async fn look(&mut self, subject: &Subject) -> Result<Sha, Stop> {
        let branch = self.branch(subject);
        let seen = self.ports.store.observed_ref(self.target).await?.filter(|seen| seen.branch == *branch);
        let looked = self.ports.source.look(&subject.project.repo, branch).await;
        let now = self.ports.clock.now();
        let tip = match looked {
            Ok(Look::At(tip)) => tip,
            Ok(Look::Gone) => return Err(self.branch_gone(subject, seen, now).await?),
            Err(error) => {
                self.note(("SourceReady", false), &error.reason.code.to_string(), &error.reason.message).await?;
                // A rollback, a pin or a pass that only the registry asks for need no Git (field report 24).
                return match self.wanted_without_git(subject).await? {
                    Some(wanted) => Ok(wanted),
                    None => Err(Stop::from(StepError::from(error))),
                };
            }
        };
        let before = seen.as_ref().and_then(|seen| seen.tip.clone());
        let moved = self.accept(subject, &tip, (seen, now)).await?;
        if moved.tip != before && !self.is_preview {
            // Also one that is overtaken before anything came of it can be asked about (promise P11).
            self.audit("branch-moved", &format!("`{branch}` is at {}", tip.short()), (Some(&tip), None)).await?;
        }
        self.ports.store.put_observed_ref(self.target, &moved).await?;
        self.note(("SourceReady", true), "Seen", &format!("`{branch}` is at {}", tip.short())).await?;
        if let Some(at) = moved.suspect.map(|(_, at)| at) {
            return Err(suspicious(branch, &tip, at));
        }
        Ok(self.pinned(subject, &tip).await?.unwrap_or(tip))
    }

    /// What is live needs no look at Git to stay what is wanted.
    async fn wanted_without_git(&self, subject: &Subject) -> Result<Option<Sha>, Halt> {
        let pin = self.ports.store.pin(self.target).await?;
        if let Some(Pin { sha, tip: None, .. }) = pin {
            return Ok(Some(sha));
        }
        let Some(live) = &subject.serving else { return Ok(None) };
        let seen = self.ports.store.observed_ref(self.target).await?.and_then(|seen| seen.tip);
        let pin = pin.map(|pin| pin.sha);
        Ok(pin.or(seen).filter(|wanted| *wanted == live.new.revision))
    }

    async fn branch_gone(&self, subject: &Subject, seen: Option<ObservedRef>, now: Timestamp) -> Result<Stop, Halt> {
        let branch = self.branch(subject);
        let message = format!(
            "`{branch}` does not exist in {}: what runs keeps running, and the branch is taken up again when it returns",
            subject.project.repo
        );
        let moved_at = seen.as_ref().filter(|seen| seen.tip.is_none()).map_or(now, |seen| seen.moved_at);
        let gone = ObservedRef { branch: branch.clone(), tip: None, looked_at: now, moved_at, suspect: None };
        self.ports.store.put_observed_ref(self.target, &gone).await?;
        self.note(("SourceReady", false), "BranchGone", &message).await?;
        Ok(Stop::Held { reason: Reason::new(ReasonCode::BranchGone, message), until: None, plan: None })
    }

    /// Accepts a tip, or marks it as suspect when it does not descend from the one seen last.
    async fn accept(
        &self,
        subject: &Subject,
        tip: &Sha,
        (seen, now): (Option<ObservedRef>, Timestamp),
    ) -> Result<ObservedRef, Stop> {
        let branch = self.branch(subject);
        let fresh = |moved_at: Timestamp| ObservedRef {
            branch: branch.clone(),
            tip: Some(tip.clone()),
            looked_at: now,
            moved_at,
            suspect: None,
        };
        let Some(seen) = seen else { return Ok(fresh(now)) };
        let Some(old) = seen.tip.clone() else { return Ok(fresh(now)) };
        if old == *tip {
            return Ok(fresh(seen.moved_at));
        }
        let repo = &subject.project.repo;
        self.ports.source.fetch(repo, branch, tip).await.map_err(StepError::from)?;
        let forward = self.ports.source.ancestry(repo, branch, (&old, tip)).await.map_err(StepError::from)?;
        let since = seen.suspect.as_ref().filter(|(suspect, _)| suspect == tip).map(|(_, at)| *at);
        let is_agreed = since.is_some_and(|since| now.duration_since(since) >= SECOND_LOOK);
        if forward == Ancestry::Ancestor || is_agreed {
            if is_agreed {
                let message = format!("`{branch}` was moved from {} to {}, not forward", old.short(), tip.short());
                self.audit("branch-forced", &message, (Some(tip), None)).await?;
            }
            return Ok(fresh(now));
        }
        Ok(ObservedRef { looked_at: now, suspect: Some((tip.clone(), since.unwrap_or(now))), ..seen })
    }

    /// Says no early for a sha that failed, before its manifest is read again.
    pub(super) async fn is_quarantined(&self, subject: &Subject, wanted: &Sha) -> Result<(), Stop> {
        let entry = self.ports.store.quarantine(self.target, wanted).await?;
        let Some(entry) = entry.filter(|entry| entry.registry == subject.registry) else { return Ok(()) };
        let quarantined = quarantines(&[entry]);
        let facts = self.gate_facts(subject, wanted, &quarantined);
        match gate::admit(&facts, self.ports.clock.now()) {
            Verdict::Held { reason, until, .. } => Err(Stop::Held { reason, until, plan: None }),
            Verdict::Denied { reason } => Err(Stop::Denied(reason)),
            Verdict::Admitted(_) => Ok(()),
        }
    }

    fn gate_facts<'f>(
        &'f self,
        subject: &'f Subject,
        wanted: &'f Sha,
        quarantine: &'f [gate::Quarantine],
    ) -> Facts<'f> {
        Facts {
            target: self.target,
            policy: &subject.policy,
            repo: &subject.project.repo,
            branch: self.branch(subject),
            sha: wanted,
            tip: wanted,
            registry: &subject.registry,
            paused: None,
            pin: None,
            quarantine,
            ci: None,
            release_paths_unchanged: None,
        }
    }

    /// Asks the gate with fresh facts.
    pub(super) async fn admit(&self, subject: &Subject, wanted: &Sha) -> Result<Admitted, Stop> {
        let store = &self.ports.store;
        let paused = store.pause(self.target).await?;
        let pin = store.pin(self.target).await?.map(gate_pin);
        let seen = store.observed_ref(self.target).await?;
        let tip = seen.and_then(|seen| seen.tip).filter(|tip| subject.stands_for.as_ref() != Some(tip));
        let tip = tip.unwrap_or_else(|| wanted.clone());
        let quarantine = quarantines(&store.quarantines(self.target).await?);
        let ci = self.ci(subject, wanted).await?;
        let unchanged = self.is_unchanged(subject, wanted).await;
        let facts = Facts {
            tip: &tip,
            paused: paused.as_ref(),
            pin: pin.as_ref(),
            ci: ci.as_ref(),
            release_paths_unchanged: unchanged,
            ..self.gate_facts(subject, wanted, &quarantine)
        };
        let now = self.ports.clock.now();
        let verdict = gate::admit(&facts, now);
        if let Some(ci) = &ci {
            self.remember_ci(wanted, ci, (&verdict, now)).await?;
        }
        match verdict {
            Verdict::Admitted(admitted) => Ok(admitted),
            Verdict::Held { reason, until, .. } => Err(Stop::Held { reason, until, plan: None }),
            Verdict::Denied { reason } => Err(Stop::Denied(reason)),
        }
    }

    /// Asks for the commit's CI run, where the registry requires one.
    async fn ci(&self, subject: &Subject, wanted: &Sha) -> Result<Option<CiKnowledge>, Halt> {
        let Repository::GitHub { .. } = subject.project.repo else { return Ok(None) };
        if !subject.policy.require_ci {
            return Ok(None);
        }
        let now = self.ports.clock.now();
        let known = self.ports.store.ci(self.target, wanted).await?;
        let branch = self.branch(subject);
        let asked = self.ports.checks.runs(&subject.project.repo, &subject.policy.ci_workflow, (branch, wanted)).await;
        Ok(Some(CiKnowledge {
            sha: wanted.clone(),
            first_asked: known.map_or(now, |known| known.first_asked_at),
            answer: asked.map_err(|error| CiFailure { reason: error.reason, class: error.class, until: error.until }),
        }))
    }

    async fn remember_ci(
        &self,
        wanted: &Sha,
        ci: &CiKnowledge,
        (verdict, now): (&Verdict, Timestamp),
    ) -> Result<(), Halt> {
        let (reason, message, link) = match verdict {
            Verdict::Admitted(admitted) => (None, "green".to_owned(), ci_link(admitted.ci())),
            Verdict::Held { reason, link, .. } => (Some(reason.code), reason.message.clone(), link.clone()),
            Verdict::Denied { reason } => (Some(reason.code), reason.message.clone(), None),
        };
        let record = CiRecord {
            target: self.target.clone(),
            sha: wanted.clone(),
            first_asked_at: ci.first_asked,
            asked_at: now,
            reason,
            message,
            link,
        };
        Ok(self.ports.store.put_ci(&record).await?)
    }

    /// Whether nothing that the release is made of differs from the live revision: its tree is the same.
    /// Asked only where `no_ci_run` makes use of the answer.
    async fn is_unchanged(&self, subject: &Subject, wanted: &Sha) -> Option<bool> {
        if subject.policy.no_ci_run != NoCiRun::AllowIfReleasePathsUnchanged {
            return None;
        }
        let live = subject.serving.as_ref()?.new.desired.as_ref()?.get("tree")?.as_str()?.to_owned();
        let facts = self.ports.source.fetch(&subject.project.repo, self.branch(subject), wanted).await.ok()?;
        Some(facts.tree.as_str() == live)
    }

    pub(super) async fn note_held(&self, reason: Option<&Reason>) -> Result<(), Halt> {
        match reason {
            Some(reason) => {
                let is_new = self.note(("Held", true), &reason.code.to_string(), &reason.message).await?;
                if is_new {
                    self.audit("held", &reason.to_string(), (None, None)).await?;
                }
            }
            None => {
                self.note(("Held", false), "Free", "nothing holds this target").await?;
            }
        }
        Ok(())
    }

    pub(super) async fn note_ready(&self, is_ready: bool, reason: &str, message: &str) -> Result<(), Halt> {
        self.note(("Ready", is_ready), reason, message).await.map(|_| ())
    }

    pub(super) async fn note(&self, (kind, is_true): (&str, bool), reason: &str, message: &str) -> Result<bool, Halt> {
        let condition = Condition {
            kind: kind.to_owned(),
            is_true,
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: self.ports.clock.now(),
        };
        Ok(self.ports.store.put_condition(self.target, &condition).await?)
    }
}

fn suspicious(branch: &BranchName, tip: &Sha, since: Timestamp) -> Stop {
    let until = since.checked_add(SECOND_LOOK).unwrap_or(since);
    let message = format!(
        "`{branch}` moved to {}, which does not descend from what was seen before: acted on once a second look agrees, at {until}",
        tip.short()
    );
    Stop::Held { reason: Reason::new(ReasonCode::NonFastForward, message), until: Some(until), plan: None }
}

fn ci_link(proof: &gate::CiProof) -> Option<String> {
    match proof {
        gate::CiProof::Green { link, .. } => Some(link.clone()),
        gate::CiProof::NotRequired | gate::CiProof::NothingChanged => None,
    }
}

fn gate_pin(pin: Pin) -> gate::Pin {
    gate::Pin { sha: pin.sha, by: pin.by, at: pin.at, note: pin.note }
}

fn quarantines(entries: &[QuarantineEntry]) -> Vec<gate::Quarantine> {
    entries
        .iter()
        .map(|entry| gate::Quarantine {
            sha: entry.sha.clone(),
            registry: entry.registry.clone(),
            reason: entry.reason.clone(),
            at: entry.at,
            release: Some(entry.release),
            is_lifted: entry.lifted.is_some(),
        })
        .collect()
}

//! Going back, as far as Git is concerned: a person's rollback and the answer to a release that failed are
//! written by the same few steps, and neither ever overwrites anybody's commit.

use serde::{Deserialize, Serialize};

use crate::model::policy::{OnFailure, Project, TargetPolicy};
use crate::model::{BranchName, Reason, Sha, TargetName};
use crate::release::Phase;
use crate::release::revert::{self, Cause, Decision, Facts, Grounds, Order, Survey};
use crate::source::{Reverts, SourceError, WriteError, Written};
use crate::store::record::{AuditEvent, RevertRecord};

use super::pass::Pass;
use super::ports::{Halt, Ports};

/// How often a branch that moves meanwhile is read again.
const TRIES: u32 = 5;

/// What somebody wants Git to agree with.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The revision that is good.
    pub good: Sha,
    /// The newest commit that is undone.
    pub bad: Sha,
    /// Who wants it, and why.
    pub cause: Cause,
    /// Whether a pull request is wished for in any case.
    pub is_proposal_wanted: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Answer {
    /// It is in Git.
    Written {
        /// The commit, if it is known.
        commit: Option<Sha>,
        /// The branch that it is on.
        branch: String,
        /// The pull request's page.
        link: Option<String>,
        /// In one sentence.
        message: String,
    },
    /// Nothing is to be written.
    Nothing {
        /// Why.
        message: String,
    },
    /// A person must write it.
    ByHand {
        /// Why.
        message: String,
        /// How.
        commands: Vec<String>,
    },
    /// It could not be written now; for an automatic one it is tried again.
    Failed {
        /// Why.
        message: String,
    },
}

impl Answer {
    /// In one sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Written { message, .. }
            | Self::Nothing { message }
            | Self::ByHand { message, .. }
            | Self::Failed { message } => message,
        }
    }
}

/// What a target's reverts are about.
struct Place {
    project: Project,
    policy: TargetPolicy,
    branch: BranchName,
    grounds: Grounds,
}

fn place(ports: &Ports, target: &TargetName) -> Option<Place> {
    let catalog = ports.catalog.borrow().clone();
    let (project, policy) = catalog.find(target)?;
    Some(Place {
        branch: policy.branch.clone().unwrap_or_else(|| project.branch.clone()),
        grounds: Grounds::of(project, catalog.projects.values()),
        project: project.clone(),
        policy: policy.clone(),
    })
}

/// Writes to Git what makes it agree with a wish.
///
/// # Errors
/// [`Halt`] when the store fails.
pub async fn write(ports: &Ports, target: &TargetName, wish: &Wish) -> Result<Answer, Halt> {
    let Some(place) = place(ports, target) else {
        return Ok(Answer::Nothing { message: format!("{target} is no longer in the registry") });
    };
    let Some(reverts) = ports.source.reverts() else {
        return Ok(Answer::Failed { message: "nothing can be written to Git from here".to_owned() });
    };
    let repo = place.project.repo.to_string();
    let is_answered = ports.store.revert(&repo, &place.branch, &wish.bad).await?.is_some();
    let asking = Asking { ports, target, place: &place, reverts, wish, is_answered };
    let (answer, record) = asking.write().await;
    if let Some(record) = record {
        ports.store.put_revert(&record).await?;
    }
    let (by, kind) = match (&wish.cause, &answer) {
        (Cause::Person { by }, _) => (by.clone(), "revert"),
        (Cause::Failure { .. }, _) => ("daemon".to_owned(), "automatic-revert"),
    };
    let event = AuditEvent {
        at: ports.clock.now(),
        target: Some(target.clone()),
        by,
        kind: kind.to_owned(),
        message: answer.message().to_owned(),
        sha: Some(wish.bad.clone()),
        release: None,
    };
    ports.store.audit(&event).await?;
    Ok(answer)
}

struct Asking<'a> {
    ports: &'a Ports,
    target: &'a TargetName,
    place: &'a Place,
    reverts: &'a dyn Reverts,
    wish: &'a Wish,
    is_answered: bool,
}

impl Asking<'_> {
    async fn write(&self) -> (Answer, Option<RevertRecord>) {
        let mut is_protected = match self.reverts.is_protected(&self.place.project.repo, &self.place.branch).await {
            Ok(is_protected) => is_protected,
            // Unreadable is not "no": a token with an owner's rights would pass a protection by.
            Err(error) => {
                tracing::warn!(target = %self.target, reason = %error.reason, "whether the branch is protected is not known");
                true
            }
        };
        for _ in 0..TRIES {
            let (survey, bad) = match self.survey().await {
                Ok(found) => found,
                Err(error) => return (self.unread(&error), None),
            };
            let facts = self.facts(&survey, (&bad, is_protected));
            let order = match revert::decide(&facts) {
                Decision::Nothing(message) => return (Answer::Nothing { message }, None),
                Decision::Stuck(message) => return (by_hand(&facts, message), None),
                Decision::Write(order) => order,
            };
            let now = self.ports.clock.now();
            match self.reverts.write(&self.place.project.repo, (&order, now)).await {
                Ok(written) => return self.written(&order, written, &bad),
                Err(WriteError::Moved) => {}
                Err(WriteError::Protected(reason)) if is_protected => return (by_hand(&facts, reason.message), None),
                Err(WriteError::Protected(_)) => is_protected = true,
                Err(WriteError::NoRight(reason)) => return (by_hand(&facts, reason.message), None),
                Err(WriteError::Failed(error)) => return (failed(&error.reason), None),
            }
        }
        let message = format!("`{}` moved {TRIES} times while a revert was written to it", self.place.branch);
        (Answer::Failed { message }, None)
    }

    /// What lies between; where the bad revision does not lie on the way to the tip, all of it counts as undone.
    async fn survey(&self) -> Result<(Survey, Sha), SourceError> {
        let (repo, branch) = (&self.place.project.repo, &self.place.branch);
        let survey = self.reverts.survey(repo, branch, (&self.wish.good, &self.wish.bad)).await?;
        let is_person = matches!(self.wish.cause, Cause::Person { .. });
        if survey.is_one_line || survey.tip == self.wish.bad || !is_person {
            return Ok((survey, self.wish.bad.clone()));
        }
        let tip = survey.tip.clone();
        let survey = self.reverts.survey(repo, branch, (&self.wish.good, &tip)).await?;
        Ok((survey, tip))
    }

    fn facts<'f>(&'f self, survey: &'f Survey, (bad, is_protected): (&'f Sha, bool)) -> Facts<'f> {
        Facts {
            target: self.target,
            branch: &self.place.branch,
            good: &self.wish.good,
            bad,
            survey,
            grounds: &self.place.grounds,
            is_protected,
            is_proposal_wanted: self.wish.is_proposal_wanted,
            cause: &self.wish.cause,
            is_answered: self.is_answered,
        }
    }

    fn unread(&self, error: &SourceError) -> Answer {
        let wish = self.wish;
        Answer::ByHand {
            message: format!("what to undo could not be read: {}", error.reason.message),
            commands: vec![
                format!("git fetch origin {}", self.place.branch),
                format!("git switch --detach origin/{}", self.place.branch),
                format!("git revert {}..{}", wish.good, wish.bad),
                format!("git push origin HEAD:refs/heads/{}", self.place.branch),
            ],
        }
    }

    fn written(&self, order: &Order, written: Written, bad: &Sha) -> (Answer, Option<RevertRecord>) {
        let record = RevertRecord {
            repo: self.place.project.repo.to_string(),
            branch: self.place.branch.clone(),
            bad: bad.clone(),
            good: self.wish.good.clone(),
            target: self.target.clone(),
            by: match &self.wish.cause {
                Cause::Person { by } => by.clone(),
                Cause::Failure { .. } => "daemon".to_owned(),
            },
            at: self.ports.clock.now(),
            commit: written.commit.clone(),
            on_branch: written.branch.clone(),
            link: written.link.clone(),
        };
        let good = self.wish.good.short();
        let message = match (&order.proposal, &written) {
            (None, _) => format!("`{}` has a commit on top that goes back to {good}", written.branch),
            (Some(proposal), Written { link: Some(link), is_old, .. }) => {
                let word = if *is_old { "is there already" } else { "is open" };
                format!("a pull request {word}, since {}: {link}", proposal.why)
            }
            (Some(proposal), Written { link: None, .. }) => {
                format!("`{}` holds the revert and waits to be merged, since {}", written.branch, proposal.why)
            }
        };
        let Written { commit, branch, link, .. } = written;
        (Answer::Written { commit, branch, link, message }, Some(record))
    }
}

fn by_hand(facts: &Facts<'_>, message: String) -> Answer {
    Answer::ByHand { message, commands: revert::commands(facts) }
}

fn failed(reason: &Reason) -> Answer {
    Answer::Failed { message: reason.message.clone() }
}

impl Pass<'_> {
    /// Answers a release that failed by its commit's own fault, as `on_failure` says; never pins (ruling 17).
    ///
    /// Asked at each pass that is held by a quarantine, so that an outage costs delay and no more.
    pub(super) async fn answer_in_git(&mut self) -> Result<(), Halt> {
        let Some(place) = place(self.ports, self.target) else { return Ok(()) };
        if place.policy.on_failure == OnFailure::None {
            return Ok(());
        }
        let Some(wish) = self.failed_tip(&place).await? else { return Ok(()) };
        if self.memory.answered.as_ref() == Some(&wish.bad) {
            return Ok(());
        }
        let repo = place.project.repo.to_string();
        if self.ports.store.revert(&repo, &place.branch, &wish.bad).await?.is_some() {
            self.memory.answered = Some(wish.bad);
            return Ok(());
        }
        let bad = wish.bad.clone();
        match write(self.ports, self.target, &wish).await? {
            Answer::Written { message, .. } | Answer::Nothing { message } => {
                tracing::info!(target = %self.target, sha = %bad, "{message}");
                self.memory.answered = Some(bad);
            }
            Answer::ByHand { message, .. } => {
                tracing::error!(target = %self.target, sha = %bad, "a person must write the revert: {message}");
                self.memory.answered = Some(bad);
            }
            Answer::Failed { message } => {
                tracing::warn!(target = %self.target, sha = %bad, "the revert is tried again: {message}");
            }
        }
        Ok(())
    }

    /// The tip, if a release of it failed and was undone while another one serves, and nobody pinned anything.
    async fn failed_tip(&self, place: &Place) -> Result<Option<Wish>, Halt> {
        let store = &self.ports.store;
        if store.pin(self.target).await?.is_some() {
            return Ok(None);
        }
        let Some(tip) = store.observed_ref(self.target).await?.and_then(|seen| seen.tip) else { return Ok(None) };
        let Some(entry) = store.quarantine(self.target, &tip).await? else { return Ok(None) };
        let Some(live) = store.live_release(self.target).await? else { return Ok(None) };
        let release = store.release(self.target, entry.release).await?;
        let is_undone =
            release.is_some_and(|release| matches!(release.phase, Phase::NothingActivated(_) | Phase::Reverted(_)));
        if !is_undone || live.new.revision == tip {
            return Ok(None);
        }
        Ok(Some(Wish {
            good: live.new.revision,
            bad: tip,
            cause: Cause::Failure { why: entry.reason.to_string() },
            is_proposal_wanted: place.policy.on_failure == OnFailure::PullRequest,
        }))
    }
}

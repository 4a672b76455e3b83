//! Revisions that need no new proof: a pin that a revert makes unneeded, and a revert commit for which an
//! older release stands in.

use crate::model::policy::TargetKind;
use crate::model::{Sha, TargetName};
use crate::release::{Phase, revert};
use crate::source::{Ancestry, CommitFacts};
use crate::store::record::{Pin, ReleaseRecord};

use super::history::HISTORY;
use super::pass::{Pass, Stop, Subject};
use super::ports::Halt;

impl Pass<'_> {
    /// The pin in force. One of `sync --sha` ends when the branch moves on, one of a rollback when the revert
    /// is there (ruling 17).
    pub(super) async fn pinned(&mut self, subject: &Subject, tip: &Sha) -> Result<Option<Sha>, Halt> {
        let Some(pin) = self.ports.store.pin(self.target).await? else { return Ok(None) };
        let is_needed = match &pin.tip {
            Some(then) => then == tip,
            None => !self.is_undone(subject, &pin, tip).await?,
        };
        if is_needed {
            return Ok(Some(pin.sha));
        }
        self.ports.store.put_pin(self.target, None).await?;
        let why = if pin.tip.is_some() { "the branch moved on to" } else { "the revert is there with" };
        let message = format!("{why} {}: the pin on {} is lifted", tip.short(), pin.sha.short());
        self.audit("pin-lifted", &message, (Some(tip), None)).await?;
        Ok(None)
    }

    /// Whether the tip has undone what a rollback went back from: it has the good tree, or a revert of ours is
    /// in its history. What cannot be read keeps the pin.
    async fn is_undone(&mut self, subject: &Subject, pin: &Pin, tip: &Sha) -> Result<bool, Halt> {
        if *tip == pin.sha {
            return Ok(true);
        }
        // The rollback comes first: without the pin, its release would wait for consent like any other.
        if subject.serving.as_ref().is_none_or(|live| live.new.revision != pin.sha) {
            return Ok(false);
        }
        if self.memory.pin_needed_at.as_ref() == Some(tip) {
            return Ok(false);
        }
        let (repo, branch) = (&subject.project.repo, self.branch(subject).clone());
        let good = self.ports.source.fetch(repo, &branch, &pin.sha).await;
        let (Ok(good), Ok(new)) = (good, self.ports.source.fetch(repo, &branch, tip).await) else { return Ok(false) };
        if good.tree == new.tree {
            return Ok(true);
        }
        let written = self.ports.store.revert_to(&repo.to_string(), &branch, &pin.sha).await?;
        // The write follows the pin: until it is on record, the question stays open.
        let Some(written) = written.filter(|written| written.at >= pin.at) else { return Ok(false) };
        if revert::undone_by(&new.message).any(|sha| sha == written.bad) {
            return Ok(true);
        }
        if let Some(commit) = &written.commit {
            match self.ports.source.ancestry(repo, &branch, (commit, tip)).await {
                Ok(Ancestry::Ancestor) => return Ok(true),
                Ok(Ancestry::Unrelated) => {}
                Err(_) => return Ok(false),
            }
        }
        self.memory.pin_needed_at = Some(tip.clone());
        Ok(false)
    }

    /// What was live on this target before needs no CI run and, for a person's rollback, no second consent.
    /// A tip with the tree of a kept older release is served by that release's own revision (ruling 18).
    pub(super) async fn proven_before(
        &self,
        subject: &mut Subject,
        wanted: Sha,
        facts: CommitFacts,
    ) -> Result<(Sha, CommitFacts), Stop> {
        let store = &self.ports.store;
        let history = store.releases(self.target, HISTORY).await.map_err(Halt::from)?;
        let live: Vec<&ReleaseRecord> = history.iter().filter(|record| record.phase == Phase::Live).collect();
        match store.pin(self.target).await.map_err(Halt::from)? {
            Some(Pin { sha, tip: None, .. }) if sha == wanted => {
                if live.iter().any(|record| record.new.revision == wanted) {
                    subject.is_rollback = true;
                    subject.policy.require_ci = false;
                }
                return Ok((wanted, facts));
            }
            Some(_) => return Ok((wanted, facts)),
            None => {}
        }
        let Some(older) = older_with(subject, &live, (&wanted, &facts)) else { return Ok((wanted, facts)) };
        if store.quarantine(self.target, &older).await.map_err(Halt::from)?.is_some() {
            return Ok((wanted, facts));
        }
        let older_facts = self.fetch(subject, &older).await?;
        tracing::info!(target = %self.target, sha = %wanted, by = %older, "an older release has this tree");
        subject.policy.require_ci = false;
        subject.stands_for = Some(wanted);
        Ok((older, older_facts))
    }
}

/// The revision of a kept older release with the same tree.
fn older_with(subject: &Subject, live: &[&ReleaseRecord], (wanted, facts): (&Sha, &CommitFacts)) -> Option<Sha> {
    let kept = match subject.policy.kind {
        TargetKind::Host(ref host) => usize::try_from(host.keep_releases).unwrap_or(usize::MAX),
        TargetKind::Cluster(_) => return None,
    };
    let mut seen: Vec<&Sha> = Vec::new();
    for record in live {
        let revision = &record.new.revision;
        if !seen.contains(&revision) {
            seen.push(revision);
        }
        if seen.len() > kept {
            return None;
        }
        let tree = record.new.desired.as_ref().and_then(|desired| desired.get("tree")?.as_str());
        if tree == Some(facts.tree.as_str()) {
            return (revision != wanted).then(|| revision.clone());
        }
    }
    None
}

/// How a rollback's pin reads to people.
#[must_use]
pub(super) fn pin_words(target: &TargetName, pin: &Pin) -> String {
    format!(
        "{} holds {target} at {}; `trueup resume {} {}` lifts it",
        pin.by,
        pin.sha.short(),
        target.project,
        target.target
    )
}

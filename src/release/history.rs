//! What the journal says: where to go on after a crash, and what there is to roll back to.
//!
//! Nothing here knows what a step does. A step may run twice (invariant I4), so only a `Done`
//! line counts: an `Intent` or a `Failed` without one is run again.

use std::collections::BTreeSet;

use super::phase::{Event, Phase};
use super::record::{JournalEntry, ReleaseRecord, Section, StepState};
use crate::model::Sha;

/// How many steps each list of a plan has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanShape {
    /// Steps of `converge`, those that verify included.
    pub converge: u32,
    /// Steps of `commit`.
    pub commit: u32,
    /// Steps of `retire`.
    pub retire: u32,
    /// Steps of `undo_before`.
    pub undo_before: u32,
    /// Steps of `undo_after`.
    pub undo_after: u32,
}

impl PlanShape {
    /// How many steps one list has.
    #[must_use]
    pub fn steps_in(&self, section: Section) -> u32 {
        match section {
            Section::Converge => self.converge,
            Section::Commit => self.commit,
            Section::Retire => self.retire,
            Section::UndoBefore => self.undo_before,
            Section::UndoAfter => self.undo_after,
        }
    }
}

/// What is to be done with a release that a restart found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// Run this step and those after it.
    Continue {
        /// Which list.
        section: Section,
        /// 0-based place in the list; always inside it.
        ordinal: u32,
    },
    /// The phase's steps are all done: only this event was not recorded yet.
    Advance(Event),
    /// It is live and every retiring step is done: only that was not recorded yet.
    NoteRetired,
    /// It ended, and nothing is left of it.
    Nothing,
}

/// Decides where an interrupted release goes on.
///
/// Pure: equal inputs give equal answers. Lines of other releases in `journal`, and lines of steps
/// that the plan does not have, are passed over.
///
/// The answer says what was done, not what holds now: evidence of health from before the restart
/// is for the loop to take again before traffic moves (invariant I3).
#[must_use]
pub fn resume(release: &ReleaseRecord, shape: &PlanShape, journal: &[JournalEntry]) -> Resume {
    let go_on = |section, moves_on| match first_not_done(release, shape, (section, journal)) {
        Some(ordinal) => Resume::Continue { section, ordinal },
        None => Resume::Advance(moves_on),
    };
    match &release.phase {
        // Nothing was recorded as begun: the whole list is run, whatever its lines say.
        Phase::Planned if shape.converge > 0 => Resume::Continue { section: Section::Converge, ordinal: 0 },
        Phase::Planned => Resume::Advance(Event::Started),
        Phase::Converging => go_on(Section::Converge, Event::Converged),
        Phase::Verifying => go_on(Section::Converge, Event::Verified),
        Phase::Switching => go_on(Section::Commit, Event::Switched),
        Phase::Proving => go_on(Section::Commit, Event::Proved),
        Phase::Undoing(_) => go_on(Section::UndoBefore, Event::Undone),
        Phase::Reverting(_) => go_on(Section::UndoAfter, Event::Undone),
        Phase::Live if release.retired_at.is_none() => {
            match first_not_done(release, shape, (Section::Retire, journal)) {
                Some(ordinal) => Resume::Continue { section: Section::Retire, ordinal },
                None => Resume::NoteRetired,
            }
        }
        Phase::Live | Phase::NothingActivated(_) | Phase::Reverted(_) | Phase::Refused(_) | Phase::Stuck(_) => {
            Resume::Nothing
        }
    }
}

/// The first step of a list that has no `Done` line; none when all have one.
fn first_not_done(
    release: &ReleaseRecord,
    shape: &PlanShape,
    (section, journal): (Section, &[JournalEntry]),
) -> Option<u32> {
    let done: BTreeSet<u32> = journal
        .iter()
        .filter(|line| line.target == release.new.target && line.release == release.number)
        .filter(|line| line.section == section && line.state == StepState::Done)
        .map(|line| line.ordinal)
        .collect();
    (0..shape.steps_in(section)).find(|ordinal| !done.contains(ordinal))
}

/// The releases that a person can go back to: those that were live before the newest live one, of
/// other revisions than it and than each other (the newest of each), newest first.
///
/// `releases` are of one target, in any order. How many of their images are kept is the policy's
/// `keep_releases` (ruling 40).
#[must_use]
pub fn rollback_candidates(releases: &[ReleaseRecord]) -> Vec<&ReleaseRecord> {
    let mut live: Vec<&ReleaseRecord> = releases.iter().filter(|release| release.phase == Phase::Live).collect();
    live.sort_by_key(|release| std::cmp::Reverse(release.number));
    let mut seen: BTreeSet<&Sha> = BTreeSet::new();
    let mut candidates: Vec<&ReleaseRecord> =
        live.into_iter().filter(|release| seen.insert(&release.new.revision)).collect();
    if !candidates.is_empty() {
        candidates.remove(0);
    }
    candidates
}

#[cfg(test)]
mod tests;

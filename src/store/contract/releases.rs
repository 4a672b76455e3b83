//! The checks of releases and their journal.

use super::{at, new_release, target, why};
use crate::model::{ReleaseNumber, TargetName};
use crate::release::Phase;
use crate::store::record::{JournalEntry, ReleaseRecord, Section, StepState};
use crate::store::{Store, StoreError};

pub(crate) async fn a_release_is_counted_moved_and_found(store: &dyn Store) {
    let target = target("releases");
    let new = new_release(&target, 'a');
    let begun = store.begin_release(&new).await.expect("begin");
    let number = begun.number;
    assert_eq!((number, &begun.phase), (ReleaseNumber(1), &Phase::Planned));
    assert_eq!(begun.new, new);
    let next = store.begin_release(&new_release(&target, 'b')).await;
    assert_eq!(next.expect("begin").number, ReleaseNumber(2));

    store.put_image(&target, number, "sha256:1").await.expect("put");
    for (second, phase) in
        [Phase::Converging, Phase::Proving, Phase::Proving, Phase::Live, Phase::Live].into_iter().enumerate()
    {
        let second = i64::try_from(second).expect("small");
        store.put_phase(&target, number, &phase, at(second)).await.expect("put");
    }
    let unfinished = of(store.unfinished().await.expect("read"), &target);
    assert_eq!(unfinished, [1, 2], "live, and not retired yet");
    store.put_retired(&target, number, at(7)).await.expect("put");
    store.put_retired(&target, number, at(8)).await.expect("again");
    let found = store.release(&target, number).await.expect("read");
    let wanted = ReleaseRecord {
        phase: Phase::Live,
        image_id: Some("sha256:1".to_owned()),
        switched_at: Some(at(1)),
        ended_at: Some(at(3)),
        retired_at: Some(at(7)),
        ..begun
    };
    assert_eq!(found.as_ref(), Some(&wanted));
    assert_eq!(store.live_release(&target).await.expect("read"), found);
}

pub(crate) async fn releases_come_newest_first(store: &dyn Store) {
    let target = target("newest");
    for digit in ['a', 'b', 'c'] {
        let begun = store.begin_release(&new_release(&target, digit)).await;
        let failed = Phase::NothingActivated(why());
        let number = begun.expect("begin").number;
        let put = store.put_phase(&target, number, &failed, at(9)).await;
        put.expect("put");
    }
    let newest = store.releases(&target, 2).await.expect("read");
    assert_eq!(of(newest, &target), [3, 2]);
    let all = store.releases(&target, u32::MAX).await.expect("read");
    assert_eq!(of(all, &target), [3, 2, 1]);
    assert_eq!(store.live_release(&target).await.expect("read"), None);
    let unfinished = store.unfinished().await.expect("read");
    assert!(of(unfinished, &target).is_empty());
}

fn of(releases: Vec<ReleaseRecord>, target: &TargetName) -> Vec<u64> {
    releases.into_iter().filter(|release| release.new.target == *target).map(|release| release.number.0).collect()
}

pub(crate) async fn every_phase_is_unfinished_exactly_until_it_has_an_outcome(store: &dyn Store) {
    let target = target("unfinished");
    let phases = [
        Phase::Planned,
        Phase::Converging,
        Phase::Verifying,
        Phase::Switching,
        Phase::Proving,
        Phase::Undoing(why()),
        Phase::NothingActivated(why()),
        Phase::Reverting(why()),
        Phase::Reverted(why()),
        Phase::Refused(why()),
        Phase::Stuck(why()),
    ];
    let mut wanted = Vec::new();
    for phase in phases {
        let begun = store.begin_release(&new_release(&target, 'a')).await;
        let number = begun.expect("begin").number;
        store.put_phase(&target, number, &phase, at(1)).await.expect("put");
        let found = store.release(&target, number).await.expect("read");
        assert_eq!(found.map(|found| found.phase), Some(phase.clone()));
        wanted.extend(phase.outcome().is_none().then_some(number.0));
    }
    let found = of(store.unfinished().await.expect("read"), &target);
    assert_eq!(found, wanted);
}

pub(crate) async fn a_journal_keeps_its_order_and_needs_its_release(store: &dyn Store) {
    let target = target("journal");
    let number = store.begin_release(&new_release(&target, 'a')).await.expect("begin").number;
    let line = |section, state, note: Option<&str>| JournalEntry {
        target: target.clone(),
        release: number,
        section,
        ordinal: 4,
        step: "start b".to_owned(),
        state,
        at: at(0),
        note: note.map(str::to_owned),
    };
    let lines = [
        line(Section::Converge, StepState::Intent, None),
        line(Section::Converge, StepState::Failed, Some("exit code 1")),
        line(Section::UndoBefore, StepState::Intent, None),
        line(Section::UndoBefore, StepState::Intent, None),
        line(Section::UndoBefore, StepState::Done, None),
    ];
    for line in &lines {
        store.journal(line).await.expect("put");
    }
    assert_eq!(store.journal_of(&target, number).await.expect("read"), lines);
    let mut orphan = line(Section::Commit, StepState::Intent, None);
    orphan.release = ReleaseNumber(99);
    let refused = store.journal(&orphan).await;
    assert!(matches!(refused, Err(StoreError::Unknown { .. })), "{refused:?}");
}

pub(crate) async fn what_names_no_release_changes_nothing_and_says_so(store: &dyn Store) {
    let target = target("nothing");
    for number in [ReleaseNumber(1), ReleaseNumber(u64::MAX)] {
        let answers = [
            store.put_phase(&target, number, &Phase::Live, at(0)).await,
            store.put_retired(&target, number, at(0)).await,
            store.put_image(&target, number, "sha256:1").await,
        ];
        for answer in answers {
            assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        }
    }
    let mut unplanned = new_release(&target, 'a');
    unplanned.plan_id = Some("a plan that was never stored".to_owned());
    assert!(store.begin_release(&unplanned).await.is_err(), "invariant I2");
    let first = store.begin_release(&new_release(&target, 'a')).await;
    assert_eq!(first.expect("begin").number, ReleaseNumber(1));
}

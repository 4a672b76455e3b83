//! Every phase after a restart, and what there is to roll back to.

use jiff::Timestamp;
use proptest::prelude::*;

use super::{PlanShape, Resume, resume, rollback_candidates};
use crate::model::{Digest, Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};
use crate::release::Phase;
use crate::release::record::{JournalEntry, NewRelease, ReleaseRecord, Section, StepState};

const SHAPE: PlanShape = PlanShape { converge: 4, commit: 3, retire: 2, undo_before: 2, undo_after: 3 };

fn target() -> TargetName {
    "shop/prod".parse().expect("a name")
}

fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().expect("a sha")
}

fn release(number: u64, digit: char, phase: Phase) -> ReleaseRecord {
    ReleaseRecord {
        number: ReleaseNumber(number),
        new: NewRelease {
            target: target(),
            revision: sha(digit),
            slot: Some(Slot::A),
            plan_id: None,
            manifest: None,
            registry: Digest::of(b"registry"),
            desired: None,
            trigger: "commit".to_owned(),
            at: Timestamp::UNIX_EPOCH,
        },
        phase,
        image_id: None,
        switched_at: None,
        ended_at: None,
        retired_at: None,
    }
}

fn line(section: Section, ordinal: u32, state: StepState) -> JournalEntry {
    JournalEntry {
        target: target(),
        release: ReleaseNumber(7),
        section,
        ordinal,
        step: "start b".to_owned(),
        state,
        at: Timestamp::UNIX_EPOCH,
        note: None,
    }
}

/// The phase that a line of the table names, and the section it is in.
fn phase(word: &str) -> Phase {
    let why = Reason::new(ReasonCode::DiskFull, "no space is left");
    let reason = match word {
        "undoing" | "nothing-activated" | "reverting" | "reverted" | "refused" | "stuck" => Some(why),
        _ => None,
    };
    serde_json::from_value(serde_json::json!({ "phase": word, "reason": reason })).expect("a phase's word")
}

fn section(word: &str) -> Section {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).expect("a section's word")
}

/// `converge:0=done` and the like, in the order of the journal; `-` for none.
fn journal(text: &str) -> Vec<JournalEntry> {
    text.split_whitespace()
        .filter(|word| *word != "-")
        .map(|word| {
            let (place, state) = word.split_once('=').expect("`place=state`");
            let (list, ordinal) = place.split_once(':').expect("`section:ordinal`");
            let state = serde_json::from_value(serde_json::Value::String(state.to_owned())).expect("a state's word");
            line(section(list), ordinal.parse().expect("a number"), state)
        })
        .collect()
}

fn shown(resume: &Resume) -> String {
    match resume {
        Resume::Continue { section, ordinal } => {
            let word = serde_json::to_value(section).expect("plain data");
            format!("{}:{ordinal}", word.as_str().expect("a word"))
        }
        Resume::Advance(event) => format!("{event:?}").to_lowercase(),
        Resume::NoteRetired => "note-retired".to_owned(),
        Resume::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn every_phase_goes_on_as_the_table_says() {
    let mut words = std::collections::BTreeSet::new();
    for row in include_str!("../../../testdata/release/resume.tsv").lines() {
        if row.starts_with('#') {
            continue;
        }
        let [word, retired, lines, wanted] = row.split('\t').collect::<Vec<_>>().try_into().expect("four fields");
        let mut found = release(7, 'a', phase(word));
        found.retired_at = (retired == "retired").then_some(Timestamp::UNIX_EPOCH);
        let answer = resume(&found, &SHAPE, &journal(lines));
        assert_eq!(shown(&answer), wanted, "{row}");
        words.insert(word);
    }
    assert_eq!(words.len(), 12, "every phase is in the table: {words:?}");
}

#[test]
fn a_plan_with_empty_lists_only_has_its_events_left() {
    let empty = PlanShape::default();
    let answers: Vec<String> = ["planned", "converging", "switching", "undoing", "live"]
        .into_iter()
        .map(|word| shown(&resume(&release(7, 'a', phase(word)), &empty, &[])))
        .collect();
    assert_eq!(answers, ["started", "converged", "switched", "undone", "note-retired"]);
}

#[test]
fn lines_of_another_release_say_nothing_of_this_one() {
    let mut other_number = line(Section::Converge, 0, StepState::Done);
    other_number.release = ReleaseNumber(6);
    let mut other_target = line(Section::Converge, 0, StepState::Done);
    other_target.target = "shop/staging".parse().expect("a name");
    let answer = resume(&release(7, 'a', Phase::Converging), &SHAPE, &[other_number, other_target]);
    assert_eq!(shown(&answer), "converge:0");
}

#[test]
fn what_can_be_gone_back_to_was_live_and_is_another_revision() {
    let why = Reason::new(ReasonCode::SmokeFailed, "`/` answered 500");
    let releases = [
        release(1, 'a', Phase::Live),
        release(2, 'b', Phase::Live),
        release(3, 'c', Phase::Reverted(why.clone())),
        release(4, 'b', Phase::Live),
        release(5, 'd', Phase::Live),
        release(6, 'd', Phase::Live),
        release(7, 'e', Phase::NothingActivated(why)),
        release(8, 'f', Phase::Converging),
    ];
    let numbers: Vec<u64> = rollback_candidates(&releases).into_iter().map(|release| release.number.0).collect();
    assert_eq!(numbers, [4, 1], "6 serves, 5 is the same revision");
    assert!(rollback_candidates(&[]).is_empty());
    assert!(rollback_candidates(&[release(1, 'a', Phase::Live)]).is_empty());
}

proptest! {
    #[test]
    fn a_step_to_go_on_with_is_in_the_plan_and_everything_before_it_is_done(
        counts in proptest::array::uniform5(0_u32..6),
        done in proptest::collection::vec((0_usize..5, 0_u32..8, 0_usize..3), 0..20),
        word in proptest::sample::select(vec![
            "planned", "converging", "verifying", "switching", "proving", "live", "undoing",
            "reverting", "stuck",
        ]),
    ) {
        let sections = [
            Section::Converge, Section::Commit, Section::Retire, Section::UndoBefore, Section::UndoAfter,
        ];
        let states = [StepState::Intent, StepState::Done, StepState::Failed];
        let journal: Vec<JournalEntry> = done
            .iter()
            .map(|(section, ordinal, state)| line(sections[*section], *ordinal, states[*state]))
            .collect();
        let [converge, commit, retire, undo_before, undo_after] = counts;
        let shape = PlanShape { converge, commit, retire, undo_before, undo_after };
        let answer = resume(&release(7, 'a', phase(word)), &shape, &journal);
        let is_done = |section: Section, ordinal: u32| journal.iter().any(|line| {
            (line.section, line.ordinal, line.state) == (section, ordinal, StepState::Done)
        });
        if let Resume::Continue { section, ordinal } = answer {
            prop_assert!(ordinal < shape.steps_in(section));
            prop_assert!(word == "planned" || !is_done(section, ordinal));
            prop_assert!((0..ordinal).all(|earlier| is_done(section, earlier)));
        }
    }
}

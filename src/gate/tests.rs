use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Approval, CI_GRACE, CiProof, Consent, Facts, Pin, REASONS, Verdict, admit, consent};
use crate::model::policy::Approve;
use crate::model::{BranchName, ReasonCode, TargetName};

mod case;
use case::{Case, digest, knowledge, policy, quarantine, repository, sha};

const NOW: &str = "2026-11-30T10:00:00Z";
const APPROVAL: &str = include_str!("../../testdata/gate/approval.toml");
const ADMISSION: [(&str, &str); 3] = [
    ("freeze", include_str!("../../testdata/gate/freeze.toml")),
    ("quarantine", include_str!("../../testdata/gate/quarantine.toml")),
    ("checks", include_str!("../../testdata/gate/checks.toml")),
];

#[derive(Deserialize)]
struct Table<T> {
    case: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalCase {
    name: String,
    approve: Approve,
    decisions: Vec<Approval>,
    consent: String,
    code: Option<ReasonCode>,
    #[serde(default)]
    says: Vec<String>,
    by: Option<String>,
}

fn verdict(case: &mut Case, is_about_ci: bool) -> Verdict {
    let target = TargetName::new("shop".parse().unwrap(), "prod".parse().unwrap());
    let branch: BranchName = "main".parse().unwrap();
    let ci = knowledge(case);
    let pin =
        case.pin.as_ref().map(|pin| Pin { sha: sha(pin.sha), by: pin.by.clone(), at: pin.at, note: pin.note.clone() });
    let facts = Facts {
        target: &target,
        policy: &policy(case, is_about_ci),
        repo: &repository(&case.repo),
        branch: &branch,
        sha: &sha(case.sha),
        tip: &sha('a'),
        registry: &digest(case.registry),
        paused: case.paused.as_ref(),
        pin: pin.as_ref(),
        quarantine: &quarantine(&case.quarantine),
        ci: ci.as_ref(),
        release_paths_unchanged: case.unchanged,
    };
    let verdict = admit(&facts, NOW.parse().unwrap());
    if let Verdict::Admitted(admitted) = &verdict {
        assert_eq!((admitted.target(), admitted.sha()), (&target, facts.sha), "{}", case.name);
    }
    verdict
}

fn proof(ci: &CiProof) -> String {
    match ci {
        CiProof::NotRequired => "not required".to_owned(),
        CiProof::Green { number, attempt, .. } => format!("green {number}.{attempt}"),
        CiProof::NothingChanged => "nothing changed".to_owned(),
    }
}

fn assert_answers(case: &Case, verdict: &Verdict) {
    let (word, reason, until, link) = match verdict {
        Verdict::Admitted(admitted) => {
            assert_eq!(proof(admitted.ci()), case.proof.as_deref().unwrap_or("not required"), "{}", case.name);
            ("admitted", None, None, None)
        }
        Verdict::Held { reason, until, link } => ("held", Some(reason), *until, link.clone()),
        Verdict::Denied { reason } => ("denied", Some(reason), None, None),
    };
    assert_eq!((word, reason.map(|reason| reason.code)), (case.verdict.as_str(), case.code), "{}", case.name);
    if case.any_until {
        assert!(until.is_some(), "{}", case.name);
    } else {
        assert_eq!(until, case.until, "{}", case.name);
    }
    assert_eq!(link, case.link, "{}", case.name);
    for part in &case.says {
        let message = reason.map_or("", |reason| reason.message.as_str());
        assert!(message.contains(part), "{}: `{part}` is not in: {message}", case.name);
    }
}

fn cases() -> impl Iterator<Item = (bool, Case)> {
    ADMISSION.into_iter().flat_map(|(file, text)| {
        let table: Table<Case> = toml::from_str(text).unwrap();
        table.case.into_iter().map(move |case| (file == "checks", case))
    })
}

#[test]
fn admission_answers_as_its_tables_say() {
    for (is_about_ci, mut case) in cases() {
        let verdict = verdict(&mut case, is_about_ci);
        assert_answers(&case, &verdict);
    }
}

#[test]
fn consent_answers_as_its_table_says() {
    let table: Table<ApprovalCase> = toml::from_str(APPROVAL).unwrap();
    for case in table.case {
        let mut decisions = case.decisions;
        for decision in &mut decisions {
            decision.plan = decision.plan.repeat(64);
        }
        let plan = "a".repeat(64);
        let consent = consent(case.approve, &plan, &decisions);
        let (word, reason) = match &consent {
            Consent::Given(consented) => {
                assert_eq!((consented.plan(), consented.by()), (plan.as_str(), case.by.as_deref()), "{}", case.name);
                ("given", None)
            }
            Consent::Held { reason } => ("held", Some(reason)),
            Consent::Denied { reason } => ("denied", Some(reason)),
        };
        assert_eq!((word, reason.map(|reason| reason.code)), (case.consent.as_str(), case.code), "{}", case.name);
        for part in &case.says {
            let message = reason.map_or("", |reason| reason.message.as_str());
            assert!(message.contains(part), "{}: `{part}` is not in: {message}", case.name);
        }
    }
}

#[test]
fn every_reason_the_gate_can_give_has_a_case_and_no_case_gives_another() {
    let admission = cases().filter_map(|(_, case)| case.code);
    let approval: Table<ApprovalCase> = toml::from_str(APPROVAL).unwrap();
    let given: BTreeSet<ReasonCode> = admission.chain(approval.case.into_iter().filter_map(|case| case.code)).collect();
    assert_eq!(given, REASONS.iter().copied().collect());
}

#[test]
fn the_grace_time_is_two_minutes() {
    assert_eq!(CI_GRACE.as_secs(), 120);
}

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;

use super::{
    Approval, CI_GRACE, CiFailure, CiKnowledge, CiProof, Consent, Facts, Pause, Pin, Quarantine,
    REASONS, Verdict, admit, consent,
};
use crate::model::ci::{CiFacts, CiRun};
use crate::model::policy::{
    Approve, ClusterPolicy, DriftPolicy, NoCiRun, OnFailure, Repository, TargetKind, TargetPolicy,
    WindowEffect, WindowRule,
};
use crate::model::{BranchName, Class, Digest, Reason, ReasonCode, ReleaseNumber, Sha, TargetName};

const NOW: &str = "2026-11-30T10:00:00Z";
const APPROVAL: &str = include_str!("../../testdata/gate/approval.toml");
const ADMISSION: [(&str, &str); 3] = [
    ("freeze", include_str!("../../testdata/gate/freeze.toml")),
    (
        "quarantine",
        include_str!("../../testdata/gate/quarantine.toml"),
    ),
    ("checks", include_str!("../../testdata/gate/checks.toml")),
];

#[derive(Deserialize)]
struct Table<T> {
    case: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "letter_a")]
    sha: char,
    #[serde(default = "acme_shop")]
    repo: String,
    #[serde(default = "letter_1")]
    registry: char,
    require_ci: Option<bool>,
    #[serde(default)]
    no_ci_run: Option<NoCiRun>,
    unchanged: Option<bool>,
    paused: Option<Pause>,
    pin: Option<CasePin>,
    #[serde(default)]
    quarantine: Vec<CaseQuarantine>,
    #[serde(default)]
    allow: Vec<(String, u32)>,
    #[serde(default)]
    deny: Vec<(String, u32)>,
    // What GitHub said.
    asked_sha: Option<char>,
    first_asked: Option<Timestamp>,
    runs: Option<Vec<CaseRun>>,
    #[serde(default)]
    is_disabled: bool,
    renamed_to: Option<String>,
    names: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    failure: Option<CaseFailure>,
    // The answer.
    verdict: String,
    code: Option<ReasonCode>,
    #[serde(default)]
    says: Vec<String>,
    until: Option<Timestamp>,
    #[serde(default)]
    any_until: bool,
    link: Option<String>,
    proof: Option<String>,
}

#[derive(Deserialize)]
struct CasePin {
    sha: char,
    by: String,
    at: Timestamp,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
struct CaseQuarantine {
    sha: char,
    registry: char,
    #[serde(default)]
    message: String,
    release: Option<u64>,
    #[serde(default)]
    is_lifted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseRun {
    number: u64,
    attempt: Option<u64>,
    workflow_id: Option<u64>,
    head_sha: Option<String>,
    head_branch: Option<String>,
    event: Option<String>,
    head_repository: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
}

#[derive(Deserialize)]
struct CaseFailure {
    class: Class,
    until: Option<Timestamp>,
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

fn letter_a() -> char {
    'a'
}

fn letter_1() -> char {
    '1'
}

fn acme_shop() -> String {
    "acme/shop".to_owned()
}

fn sha(letter: char) -> Sha {
    letter.to_string().repeat(40).parse().unwrap()
}

fn digest(letter: char) -> Digest {
    letter.to_string().repeat(64).parse().unwrap()
}

/// An empty text stands for `null`.
fn or_null(value: Option<String>, default: &str) -> Option<String> {
    Some(value.unwrap_or_else(|| default.to_owned())).filter(|text| !text.is_empty())
}

fn run(case: CaseRun) -> CiRun {
    let head_sha = match case.head_sha.as_deref() {
        None => sha('a').to_string(),
        Some("") => sha('a').short().to_owned(),
        Some(letter) => letter.repeat(40),
    };
    CiRun {
        id: 1000 + case.number,
        number: case.number,
        attempt: case.attempt.unwrap_or(1),
        workflow_id: case.workflow_id.unwrap_or(11),
        head_sha,
        head_branch: or_null(case.head_branch, "main"),
        event: case.event.unwrap_or_else(|| "push".to_owned()),
        head_repository: or_null(case.head_repository, "acme/shop"),
        status: case.status.unwrap_or_else(|| "completed".to_owned()),
        conclusion: or_null(case.conclusion, "success"),
        link: format!("https://github.test/runs/{}", case.number),
    }
}

fn policy(case: &Case, is_about_ci: bool) -> TargetPolicy {
    let rule = |effect: WindowEffect| {
        move |(cron, duration_seconds): &(String, u32)| WindowRule {
            effect,
            cron: cron.clone(),
            duration_seconds: *duration_seconds,
            time_zone: "UTC".to_owned(),
        }
    };
    let allow = case.allow.iter().map(rule(WindowEffect::Allow));
    let deny = case.deny.iter().map(rule(WindowEffect::Deny));
    TargetPolicy {
        branch: None,
        approve: Approve::Never,
        require_ci: case.require_ci.unwrap_or(is_about_ci),
        ci_workflow: "ci".to_owned(),
        no_ci_run: case.no_ci_run.unwrap_or(NoCiRun::Hold),
        drift: DriftPolicy::Report,
        windows: allow.chain(deny).collect(),
        on_failure: OnFailure::None,
        kind: TargetKind::Cluster(ClusterPolicy {
            cluster: "c".to_owned(),
            environment: "e".to_owned(),
        }),
    }
}

fn quarantine(cases: &[CaseQuarantine]) -> Vec<Quarantine> {
    let start: Timestamp = "2026-11-29T00:00:00Z".parse().unwrap();
    let entry = |(hour, case): (i64, &CaseQuarantine)| Quarantine {
        sha: sha(case.sha),
        registry: digest(case.registry),
        reason: Reason::new(ReasonCode::NeverHealthy, case.message.clone()),
        at: start + jiff::SignedDuration::from_hours(hour),
        release: case.release.map(ReleaseNumber),
        is_lifted: case.is_lifted,
    };
    (0..).zip(cases).map(entry).collect()
}

fn knowledge(case: &mut Case) -> Option<CiKnowledge> {
    let answer = if let Some(failure) = case.failure.take() {
        let reason = Reason::new(ReasonCode::GithubUnavailable, "GitHub said no");
        Err(CiFailure {
            reason,
            class: failure.class,
            until: failure.until,
        })
    } else if let Some(names) = case.names.take() {
        Ok(CiFacts::NoSuchWorkflow { names })
    } else if let Some(paths) = case.paths.take() {
        Ok(CiFacts::Ambiguous { paths })
    } else {
        Ok(CiFacts::Runs {
            workflow_id: 11,
            is_disabled: case.is_disabled,
            renamed_to: case.renamed_to.take(),
            runs: case.runs.take()?.into_iter().map(run).collect(),
        })
    };
    let first_asked = case
        .first_asked
        .unwrap_or_else(|| "2026-11-30T09:00:00Z".parse().unwrap());
    Some(CiKnowledge {
        sha: sha(case.asked_sha.unwrap_or('a')),
        first_asked,
        answer,
    })
}

fn repository(text: &str) -> Repository {
    match text.split_once('/') {
        Some((owner, name)) if !text.contains(':') => Repository::GitHub {
            owner: owner.to_owned(),
            name: name.to_owned(),
        },
        Some(_) | None => Repository::Url(text.to_owned()),
    }
}

fn verdict(case: &mut Case, is_about_ci: bool) -> Verdict {
    let target = TargetName::new("shop".parse().unwrap(), "prod".parse().unwrap());
    let branch: BranchName = "main".parse().unwrap();
    let ci = knowledge(case);
    let pin = case.pin.as_ref().map(|pin| Pin {
        sha: sha(pin.sha),
        by: pin.by.clone(),
        at: pin.at,
        note: pin.note.clone(),
    });
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
        assert_eq!(
            (admitted.target(), admitted.sha()),
            (&target, facts.sha),
            "{}",
            case.name
        );
    }
    verdict
}

fn proof(ci: &CiProof) -> String {
    match ci {
        CiProof::NotRequired => "not required".to_owned(),
        CiProof::Green {
            number, attempt, ..
        } => format!("green {number}.{attempt}"),
        CiProof::NothingChanged => "nothing changed".to_owned(),
    }
}

fn assert_answers(case: &Case, verdict: &Verdict) {
    let (word, reason, until, link) = match verdict {
        Verdict::Admitted(admitted) => {
            assert_eq!(
                proof(admitted.ci()),
                case.proof.as_deref().unwrap_or("not required"),
                "{}",
                case.name
            );
            ("admitted", None, None, None)
        }
        Verdict::Held {
            reason,
            until,
            link,
        } => ("held", Some(reason), *until, link.clone()),
        Verdict::Denied { reason } => ("denied", Some(reason), None, None),
    };
    assert_eq!(
        (word, reason.map(|reason| reason.code)),
        (case.verdict.as_str(), case.code),
        "{}",
        case.name
    );
    if case.any_until {
        assert!(until.is_some(), "{}", case.name);
    } else {
        assert_eq!(until, case.until, "{}", case.name);
    }
    assert_eq!(link, case.link, "{}", case.name);
    for part in &case.says {
        let message = reason.map_or("", |reason| reason.message.as_str());
        assert!(
            message.contains(part),
            "{}: `{part}` is not in: {message}",
            case.name
        );
    }
}

fn cases() -> impl Iterator<Item = (bool, Case)> {
    ADMISSION.into_iter().flat_map(|(file, text)| {
        let table: Table<Case> = toml::from_str(text).unwrap();
        table
            .case
            .into_iter()
            .map(move |case| (file == "checks", case))
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
                assert_eq!(
                    (consented.plan(), consented.by()),
                    (plan.as_str(), case.by.as_deref()),
                    "{}",
                    case.name
                );
                ("given", None)
            }
            Consent::Held { reason } => ("held", Some(reason)),
            Consent::Denied { reason } => ("denied", Some(reason)),
        };
        assert_eq!(
            (word, reason.map(|reason| reason.code)),
            (case.consent.as_str(), case.code),
            "{}",
            case.name
        );
        for part in &case.says {
            let message = reason.map_or("", |reason| reason.message.as_str());
            assert!(
                message.contains(part),
                "{}: `{part}` is not in: {message}",
                case.name
            );
        }
    }
}

#[test]
fn every_reason_the_gate_can_give_has_a_case_and_no_case_gives_another() {
    let admission = cases().filter_map(|(_, case)| case.code);
    let approval: Table<ApprovalCase> = toml::from_str(APPROVAL).unwrap();
    let given: BTreeSet<ReasonCode> = admission
        .chain(approval.case.into_iter().filter_map(|case| case.code))
        .collect();
    assert_eq!(given, REASONS.iter().copied().collect());
}

#[test]
fn the_grace_time_is_two_minutes() {
    assert_eq!(CI_GRACE.as_secs(), 120);
}

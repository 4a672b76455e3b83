//! One case of an admission table, and the facts that it stands for.

use jiff::Timestamp;
use serde::Deserialize;

use super::super::{CiFailure, CiKnowledge, Pause, Quarantine};
use crate::model::ci::{CiFacts, CiRun};
use crate::model::policy::{
    Approve, ClusterPolicy, DriftPolicy, NoCiRun, OnFailure, Repository, TargetKind, TargetPolicy, WindowEffect,
    WindowRule,
};
use crate::model::{Class, Digest, Reason, ReasonCode, ReleaseNumber, Sha};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    #[serde(default = "letter_a")]
    pub(super) sha: char,
    #[serde(default = "acme_shop")]
    pub(super) repo: String,
    #[serde(default = "letter_1")]
    pub(super) registry: char,
    pub(super) require_ci: Option<bool>,
    #[serde(default)]
    pub(super) no_ci_run: Option<NoCiRun>,
    pub(super) unchanged: Option<bool>,
    pub(super) paused: Option<Pause>,
    pub(super) pin: Option<CasePin>,
    #[serde(default)]
    pub(super) quarantine: Vec<CaseQuarantine>,
    #[serde(default)]
    pub(super) allow: Vec<(String, u32)>,
    #[serde(default)]
    pub(super) deny: Vec<(String, u32)>,
    // What GitHub said.
    pub(super) asked_sha: Option<char>,
    pub(super) first_asked: Option<Timestamp>,
    pub(super) runs: Option<Vec<CaseRun>>,
    #[serde(default)]
    pub(super) is_disabled: bool,
    pub(super) renamed_to: Option<String>,
    pub(super) names: Option<Vec<String>>,
    pub(super) paths: Option<Vec<String>>,
    pub(super) failure: Option<CaseFailure>,
    // The answer.
    pub(super) verdict: String,
    pub(super) code: Option<ReasonCode>,
    #[serde(default)]
    pub(super) says: Vec<String>,
    pub(super) until: Option<Timestamp>,
    #[serde(default)]
    pub(super) any_until: bool,
    pub(super) link: Option<String>,
    pub(super) proof: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CasePin {
    pub(super) sha: char,
    pub(super) by: String,
    pub(super) at: Timestamp,
    #[serde(default)]
    pub(super) note: String,
}

#[derive(Deserialize)]
pub(super) struct CaseQuarantine {
    pub(super) sha: char,
    pub(super) registry: char,
    #[serde(default)]
    pub(super) message: String,
    pub(super) release: Option<u64>,
    #[serde(default)]
    pub(super) is_lifted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseRun {
    pub(super) number: u64,
    pub(super) attempt: Option<u64>,
    pub(super) workflow_id: Option<u64>,
    pub(super) head_sha: Option<String>,
    pub(super) head_branch: Option<String>,
    pub(super) event: Option<String>,
    pub(super) head_repository: Option<String>,
    pub(super) status: Option<String>,
    pub(super) conclusion: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CaseFailure {
    pub(super) class: Class,
    pub(super) until: Option<Timestamp>,
}

pub(super) fn letter_a() -> char {
    'a'
}

pub(super) fn letter_1() -> char {
    '1'
}

pub(super) fn acme_shop() -> String {
    "acme/shop".to_owned()
}

pub(super) fn sha(letter: char) -> Sha {
    letter.to_string().repeat(40).parse().unwrap()
}

pub(super) fn digest(letter: char) -> Digest {
    letter.to_string().repeat(64).parse().unwrap()
}

/// An empty text stands for `null`.
pub(super) fn or_null(value: Option<String>, default: &str) -> Option<String> {
    Some(value.unwrap_or_else(|| default.to_owned())).filter(|text| !text.is_empty())
}

pub(super) fn run(case: CaseRun) -> CiRun {
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

pub(super) fn policy(case: &Case, is_about_ci: bool) -> TargetPolicy {
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
            smoke: Vec::new(),
        }),
    }
}

pub(super) fn quarantine(cases: &[CaseQuarantine]) -> Vec<Quarantine> {
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

pub(super) fn knowledge(case: &mut Case) -> Option<CiKnowledge> {
    let answer = if let Some(failure) = case.failure.take() {
        let reason = Reason::new(ReasonCode::GithubUnavailable, "GitHub said no");
        Err(CiFailure { reason, class: failure.class, until: failure.until })
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
    let first_asked = case.first_asked.unwrap_or_else(|| "2026-11-30T09:00:00Z".parse().unwrap());
    Some(CiKnowledge { sha: sha(case.asked_sha.unwrap_or('a')), first_asked, answer })
}

pub(super) fn repository(text: &str) -> Repository {
    match text.split_once('/') {
        Some((owner, name)) if !text.contains(':') => {
            Repository::GitHub { owner: owner.to_owned(), name: name.to_owned() }
        }
        Some(_) | None => Repository::Url(text.to_owned()),
    }
}

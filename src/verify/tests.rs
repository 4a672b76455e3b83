//! Every judgement over its table in `testdata/verify/`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::*;
use crate::model::live::RunState;
use crate::model::sample::{Answer, SilenceKind};

/// `aaaa…`: the sha that every case asks for; `AAAA` in a body stands for it.
const REVISION: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    judge: String,
    status: Option<u16>,
    #[serde(default)]
    body: String,
    #[serde(default)]
    pad_bytes: usize,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    headers: Vec<(String, String)>,
    silence: Option<String>,
    container: Option<String>,
    #[serde(default)]
    elapsed_ms: u64,
    check: Option<Check>,
    expect: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Check {
    status: Option<u16>,
    contains: Option<String>,
    headers: BTreeMap<String, String>,
    headers_absent: Vec<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let path = format!("{}/testdata/verify/{file}", env!("CARGO_MANIFEST_DIR"));
    let table: Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    table.case
}

impl Case {
    fn sample(&self) -> Sample {
        let Some(status) = self.status else {
            let kind = match self.silence.as_deref() {
                Some("name") => SilenceKind::Name,
                Some("connection") => SilenceKind::Connection,
                Some("tls") => SilenceKind::Tls,
                Some("timeout") => SilenceKind::Timeout,
                other => panic!("{}: silence {other:?}", self.name),
            };
            return Sample::Silence { kind, detail: "refused".into() };
        };
        let mut body = self.body.replace("AAAA", REVISION).into_bytes();
        body.resize(body.len() + self.pad_bytes, b' ');
        Sample::Answer(Answer { status, headers: self.headers.clone(), body, is_truncated: self.truncated })
    }

    fn expectation(&self) -> Expectation {
        Expectation {
            revision: REVISION.parse().unwrap(),
            elapsed: Duration::from_millis(self.elapsed_ms),
            within: HEALTH_BOUND,
        }
    }

    fn container(&self) -> Option<RunState> {
        self.container.as_deref().map(|state| match state {
            "running" => RunState::Running { since: None },
            "created" => RunState::Created,
            "oom" => RunState::Exited { code: 137, is_out_of_memory: true },
            code => RunState::Exited { code: code.parse().unwrap(), is_out_of_memory: false },
        })
    }

    fn smoke_check(&self) -> SmokeCheck {
        let check = self.check.as_ref().unwrap();
        SmokeCheck {
            path: "/".into(),
            status: check.status.unwrap_or(200),
            contains: check.contains.clone(),
            headers: check.headers.clone(),
            headers_absent: check.headers_absent.clone(),
            request_headers: BTreeMap::new(),
        }
    }
}

fn told<T>(verdict: Verdict<T>) -> String {
    match verdict {
        Verdict::Passed(_) => "passed".into(),
        Verdict::Waiting { after, why } => format!("waiting {} ms: {why}", after.as_millis()),
        Verdict::Failed(reason) => format!("failed {reason}"),
    }
}

#[test]
fn health_answers_are_judged_by_the_contracts_rule() {
    for case in cases("health.toml") {
        let verdict = health(&case.sample(), &case.expectation(), case.container().as_ref());
        assert_eq!(told(verdict), case.expect, "{}", case.name);
    }
}

#[test]
fn smoke_checks_are_judged_by_status_body_and_headers() {
    for case in cases("smoke.toml") {
        let verdict = match smoke(&case.smoke_check(), &case.sample()) {
            Ok(()) => Verdict::Passed(()),
            Err(reason) => Verdict::Failed(reason),
        };
        assert_eq!(told(verdict), case.expect, "{}", case.name);
    }
}

#[test]
fn public_answers_are_judged_by_who_made_them() {
    for case in cases("public.toml") {
        let (sample, expectation) = (case.sample(), case.expectation());
        let verdict = match case.judge.as_str() {
            "edge" => edge_health(&sample, &expectation),
            "health" => public_health(&sample, &expectation),
            "smoke" => public_smoke(&case.smoke_check(), &sample, &expectation),
            other => panic!("{}: judge {other:?}", case.name),
        };
        assert_eq!(told(verdict), case.expect, "{}", case.name);
    }
}

fn healthy() -> Healthy {
    Healthy { revision: REVISION.parse().unwrap() }
}

fn check(path: &str) -> SmokeCheck {
    SmokeCheck {
        path: path.into(),
        status: 200,
        contains: None,
        headers: BTreeMap::new(),
        headers_absent: Vec::new(),
        request_headers: BTreeMap::new(),
    }
}

fn answer(status: u16) -> Sample {
    Sample::Answer(Answer { status, headers: Vec::new(), body: Vec::new(), is_truncated: false })
}

#[test]
fn traffic_moves_only_with_health_and_every_smoke_check() {
    assert!(verified(healthy(), &[], &[]).is_ok());
    assert!(verified(healthy(), &[check("/a"), check("/b")], &[answer(200), answer(200)]).is_ok());
    let failed = verified(healthy(), &[check("/a"), check("/b")], &[answer(200), answer(500)]).unwrap_err();
    assert_eq!(failed.to_string(), "SmokeFailed: smoke check `/b`: expected status 200, got 500");
    let missing = verified(healthy(), &[check("/a"), check("/b")], &[answer(200)]).unwrap_err();
    assert_eq!(missing.code, ReasonCode::Bug);
}

#[test]
fn evidence_is_short_and_printable() {
    let shown = evidence::printable("\u{1b}[31mred\u{202e}\r\n\ttext".as_bytes());
    assert_eq!(shown, "[31mred text");
    let long = evidence::printable("é".repeat(5000).as_bytes());
    assert_eq!(long.chars().count(), evidence::BODY_GLANCE + 1);
    assert!(long.ends_with('…'));
    assert_eq!(evidence::printable(&[0xff, b'a']), "\u{fffd}a");
}

//! What every engine has to do, as checks over `&dyn Store`.
//!
//! Each check uses targets of its own, so that one store can serve all of them, in any order.

pub(crate) mod deliveries;
pub(crate) mod releases;

use jiff::Timestamp;
use serde_json::json;

use super::record::{
    Approval, AuditEvent, CiRecord, Condition, DriftFinding, ManifestRecord, NewRelease, ObservedRef, Pause, Pin,
    PlanRecord, QuarantineEntry,
};
use super::{Store, StoreError};
use crate::model::{Digest, Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};

pub(crate) fn target(name: &str) -> TargetName {
    format!("contract/{name}").parse().expect("a name")
}

pub(crate) fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().expect("a sha")
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("in range")
}

fn why() -> Reason {
    Reason::new(ReasonCode::NeverHealthy, "`/healthz` answered 503 for 30 s")
        .with_evidence("panic: no database\nexit code 1")
}

pub(crate) fn new_release(target: &TargetName, digit: char) -> NewRelease {
    NewRelease {
        target: target.clone(),
        revision: sha(digit),
        slot: Some(Slot::B),
        plan_id: None,
        manifest: Some(Digest::of(b"manifest")),
        registry: Digest::of(b"registry"),
        desired: Some(json!({ "slots": [8001, 8002], "hosts": ["shop.example"] })),
        trigger: "commit".to_owned(),
        at: at(0),
    }
}

pub(crate) fn new_plan(target: &TargetName, id: &str) -> PlanRecord {
    PlanRecord {
        id: id.to_owned(),
        target: target.clone(),
        revision: sha('a'),
        at: at(0),
        plan: json!({ "converge": ["start b"], "commit": ["route b"] }),
        difference: "-image a\n+image b\n".to_owned(),
    }
}

pub(crate) async fn the_instance_is_made_once(store: &dyn Store) {
    let first = store.instance().await.expect("an id");
    assert_eq!(first.len(), 16, "{first}");
    assert_eq!(store.instance().await.expect("an id"), first);
}

pub(crate) async fn the_last_look_at_a_branch_replaces_the_one_before(store: &dyn Store) {
    let target = target("refs");
    assert_eq!(store.observed_ref(&target).await.expect("a read"), None);
    let mut seen = ObservedRef {
        branch: "main".parse().expect("a branch"),
        tip: Some(sha('a')),
        looked_at: at(2),
        moved_at: at(1),
        suspect: Some((sha('b'), at(2))),
    };
    for tip in [Some(sha('a')), None] {
        seen.tip = tip;
        store.put_observed_ref(&target, &seen).await.expect("put");
        let found = store.observed_ref(&target).await.expect("a read");
        assert_eq!(found.as_ref(), Some(&seen));
        seen.suspect = None;
    }
}

pub(crate) async fn pauses_and_pins_are_set_and_lifted(store: &dyn Store) {
    let (target, other) = (target("controls"), target("controls-other"));
    let pause = Pause { by: "uid 0".to_owned(), at: at(1), note: String::new() };
    let pin =
        Pin { sha: sha('a'), tip: None, by: "uid 1000".to_owned(), at: at(2), note: "the importer broke".to_owned() };
    store.put_pause(&target, Some(&pause)).await.expect("put");
    store.put_pin(&target, Some(&pin)).await.expect("put");
    assert_eq!(store.pause(&target).await.expect("read"), Some(pause));
    assert_eq!(store.pin(&target).await.expect("read"), Some(pin));
    assert_eq!(store.pause(&other).await.expect("read"), None);
    store.put_pause(&target, None).await.expect("put");
    store.put_pin(&target, None).await.expect("put");
    store.put_pin(&target, None).await.expect("again");
    assert_eq!(store.pause(&target).await.expect("read"), None);
    assert_eq!(store.pin(&target).await.expect("read"), None);
}

pub(crate) async fn a_quarantined_sha_stays_until_it_is_lifted(store: &dyn Store) {
    let target = target("quarantine");
    let entry = |digit, second| QuarantineEntry {
        target: target.clone(),
        sha: sha(digit),
        registry: Digest::of(b"registry"),
        reason: why(),
        release: ReleaseNumber(3),
        at: at(second),
        lifted: None,
    };
    store.put_quarantine(&entry('a', 1)).await.expect("put");
    store.put_quarantine(&entry('b', 2)).await.expect("put");
    let found = store.quarantine(&target, &sha('a')).await.expect("read");
    assert_eq!(found, Some(entry('a', 1)));
    assert_eq!(store.quarantines(&target).await.expect("read"), [entry('b', 2), entry('a', 1)]);

    let by = ("uid 0", at(9));
    let a = sha('a');
    assert!(store.lift_quarantine(&target, &a, by).await.expect("lift"));
    assert!(!store.lift_quarantine(&target, &a, by).await.expect("lift"));
    assert_eq!(store.quarantine(&target, &a).await.expect("read"), None);
    let all = store.quarantines(&target).await.expect("read");
    let lifted = all.last().and_then(|entry| entry.lifted.clone());
    assert_eq!(lifted, Some(("uid 0".to_owned(), at(9))));

    store.put_quarantine(&entry('a', 10)).await.expect("put");
    let again = store.quarantine(&target, &a).await.expect("read");
    assert_eq!(again, Some(entry('a', 10)), "it failed again");
}

pub(crate) async fn plans_are_found_by_id_and_prefix_and_the_last_stored_is_the_latest(store: &dyn Store) {
    let target = target("plans");
    let first = new_plan(&target, "0123456789abcdef");
    let second = new_plan(&target, "0123456789fedcba");
    for plan in [&first, &second] {
        store.put_plan(plan).await.expect("put");
        store.put_plan(plan).await.expect("put again");
        let latest = store.latest_plan(&target).await.expect("read");
        assert_eq!(latest.as_ref(), Some(plan));
    }
    let by = |id: &'static str| store.plan(id);
    assert_eq!(by("0123456789abcdef").await.expect("read").as_ref(), Some(&first));
    assert_eq!(by("0123456789a").await.expect("read").as_ref(), Some(&first));
    assert_eq!(by("0123456789").await.expect("read"), None, "fits two");
    assert_eq!(by("0123").await.expect("read"), None, "too short");
    assert_eq!(by("%%%%%%%%%").await.expect("read"), None);

    let later = PlanRecord { at: at(99), ..first.clone() };
    store.put_plan(&later).await.expect("put");
    let latest = store.latest_plan(&target).await.expect("read");
    assert_eq!(latest, Some(first.clone()), "as it was made first");

    let mut foreign = first;
    foreign.target = self::target("plans-other");
    let refused = store.put_plan(&foreign).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

pub(crate) async fn the_last_decision_on_a_plan_counts(store: &dyn Store) {
    let target = target("approvals");
    let mut approval = Approval {
        target: target.clone(),
        plan_hash: "0123456789abcdef".to_owned(),
        is_approved: true,
        by: "uid 0".to_owned(),
        at: at(1),
    };
    for is_approved in [true, false] {
        approval.is_approved = is_approved;
        store.put_approval(&approval).await.expect("put");
        let found = store.approval(&target, &approval.plan_hash).await;
        assert_eq!(found.expect("read").as_ref(), Some(&approval));
    }
    assert_eq!(store.approval(&target, "other").await.expect("read"), None);
}

pub(crate) async fn manifests_and_ci_answers_are_kept(store: &dyn Store) {
    let target = target("known");
    let manifest = ManifestRecord {
        digest: Digest::of(b"[app]\n"),
        path: "deploy/app.toml".to_owned(),
        text: "[app]\n".to_owned(),
    };
    store.put_manifest(&manifest).await.expect("put");
    store.put_manifest(&manifest).await.expect("again");
    let found = store.manifest(manifest.digest.as_str()).await.expect("read");
    assert_eq!(found, Some(manifest));
    let mut record = CiRecord {
        target: target.clone(),
        sha: sha('a'),
        first_asked_at: at(0),
        asked_at: at(1),
        reason: Some(ReasonCode::CiPending),
        message: "`test` has not finished".to_owned(),
        link: Some("https://git.example/runs/1".to_owned()),
    };
    for reason in [Some(ReasonCode::CiPending), None] {
        record.reason = reason;
        store.put_ci(&record).await.expect("put");
        let found = store.ci(&target, &sha('a')).await.expect("read");
        assert_eq!(found.as_ref(), Some(&record));
    }
    assert_eq!(store.ci(&target, &sha('b')).await.expect("read"), None);
}

pub(crate) async fn a_condition_is_since_its_status_or_reason_changed(store: &dyn Store) {
    let target = target("conditions");
    let condition = |is_true, reason: &str, second| Condition {
        kind: "Ready".to_owned(),
        is_true,
        reason: reason.to_owned(),
        message: format!("looked at second {second}"),
        since: at(second),
    };
    let steps = [
        (condition(true, "Live", 1), true, 1),
        (condition(true, "Live", 2), false, 1),
        (condition(true, "PublicUnproven", 3), true, 3),
        (condition(false, "PublicUnproven", 4), true, 4),
        (condition(false, "PublicUnproven", 5), false, 4),
    ];
    for (given, is_changed, since) in steps {
        let changed = store.put_condition(&target, &given).await.expect("put");
        assert_eq!(changed, is_changed, "{given:?}");
        let wanted = Condition { since: at(since), ..given };
        assert_eq!(store.conditions(&target).await.expect("read"), [wanted]);
    }
}

pub(crate) async fn equal_drift_keeps_its_beginning(store: &dyn Store) {
    let target = target("drift");
    let finding = |line: &str, second| DriftFinding {
        revision: sha('a'),
        difference: format!("-{line}\n"),
        summary: vec![line.to_owned()],
        since: at(second),
        looked_at: at(second),
    };
    for (given, since) in [(finding("x", 1), 1), (finding("x", 2), 1), (finding("y", 3), 3)] {
        store.put_drift(&target, Some(&given)).await.expect("put");
        let wanted = DriftFinding { since: at(since), ..given };
        assert_eq!(store.drift(&target).await.expect("read"), Some(wanted));
    }
    store.put_drift(&target, None).await.expect("put");
    assert_eq!(store.drift(&target).await.expect("read"), None);
}

pub(crate) async fn audit_events_come_newest_first_and_by_target(store: &dyn Store) {
    let target = target("audit");
    let event = |kind: &str, target: Option<&TargetName>| AuditEvent {
        at: at(0),
        target: target.cloned(),
        by: "uid 0".to_owned(),
        kind: kind.to_owned(),
        message: "a person paused it".to_owned(),
        sha: Some(sha('a')),
        release: Some(ReleaseNumber(2)),
    };
    let (first, daemon, last) =
        (event("paused", Some(&target)), event("started", None), event("resumed", Some(&target)));
    for event in [&first, &daemon, &last] {
        store.audit(event).await.expect("put");
    }
    let of_target = store.audit_events(Some(&target), 9).await.expect("read");
    assert_eq!(of_target, [last.clone(), first]);
    let newest = store.audit_events(Some(&target), 1).await.expect("read");
    assert_eq!(newest.first(), Some(&last));
    assert_eq!(newest.len(), 1);
    let all = store.audit_events(None, 100).await.expect("read");
    let place = |wanted: &AuditEvent| all.iter().position(|event| event == wanted);
    assert!(place(&last) < place(&daemon), "{all:?}");
}

pub(crate) async fn known_targets_are_remembered_by_name(store: &dyn Store) {
    let (one, two) = (target("known-a"), target("known-b"));
    store.put_known_target(&two, false).await.expect("put");
    store.put_known_target(&one, false).await.expect("put");
    store.put_known_target(&one, true).await.expect("put");
    let known = store.known_targets().await.expect("read");
    let ours: Vec<_> = known.into_iter().filter(|(name, _)| *name == one || *name == two).collect();
    assert_eq!(ours, [(one, true), (two, false)]);
}

//! Every record comes back as it was put, whatever its texts and times are.

use jiff::Timestamp;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::{directory, opened};
use crate::model::{Digest, Reason, ReasonCode, ReleaseNumber, Sha, Slot, TargetName};
use crate::release::Phase;
use crate::store::record::{
    Approval, AuditEvent, CiRecord, Condition, DriftFinding, JournalEntry, ManifestRecord, NewRelease, ObservedRef,
    Pause, Pin, PlanRecord, QuarantineEntry, Section, StepState,
};
use crate::store::sqlite::SqliteStore;
use crate::store::{Store as _, contract};

/// Each case writes some twenty records, each with a flush to the disk.
const CASES: u32 = 16;

/// What the records of one case are made from.
#[derive(Debug, Clone)]
struct Seeds {
    texts: [String; 3],
    maybe: Option<String>,
    times: [Timestamp; 2],
    shas: [Sha; 2],
    is_so: bool,
    code: ReasonCode,
    count: u32,
    release: ReleaseNumber,
    json: Value,
}

fn time() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.as_microsecond() + 1..Timestamp::MAX.as_microsecond();
    range.prop_map(|micros| Timestamp::from_microsecond(micros).expect("in range"))
}

fn sha() -> impl Strategy<Value = Sha> {
    "[0-9a-f]{40}|[0-9a-f]{64}".prop_map(|text| text.parse().expect("a sha"))
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn seeds()(
        texts in proptest::array::uniform3(any::<String>()),
        maybe in option::of(any::<String>()),
        times in proptest::array::uniform2(time()),
        shas in proptest::array::uniform2(sha()),
        is_so in any::<bool>(),
        code in proptest::sample::select(ReasonCode::ALL),
        count in any::<u32>(),
        release in 1..=i64::MAX.unsigned_abs(),
        json in json(),
    ) -> Seeds {
        Seeds { texts, maybe, times, shas, is_so, code, count, release: ReleaseNumber(release), json }
    }
}

impl Seeds {
    fn text(&self, index: usize) -> String {
        self.texts[index].clone()
    }

    fn reason(&self) -> Reason {
        Reason { code: self.code, message: self.text(0), evidence: self.maybe.clone() }
    }

    fn pair(&self) -> Option<(String, Timestamp)> {
        self.is_so.then(|| (self.text(2), self.times[1]))
    }
}

async fn controls(store: &SqliteStore, target: &TargetName, seeds: &Seeds) {
    let [at, later] = seeds.times;
    let [sha, other] = seeds.shas.clone();
    let seen = ObservedRef {
        branch: "main".parse().expect("a branch"),
        tip: seeds.is_so.then(|| sha.clone()),
        looked_at: at,
        moved_at: later,
        suspect: seeds.is_so.then(|| (other.clone(), later)),
    };
    store.put_observed_ref(target, &seen).await.expect("put");
    assert_eq!(store.observed_ref(target).await.expect("read"), Some(seen));
    let (by, note) = (seeds.text(0), seeds.text(1));
    let pause = Pause { by: by.clone(), at, note: note.clone() };
    store.put_pause(target, Some(&pause)).await.expect("put");
    assert_eq!(store.pause(target).await.expect("read"), Some(pause));
    let tip = seeds.is_so.then_some(other);
    let pin = Pin { sha: sha.clone(), tip, by, at, note };
    store.put_pin(target, Some(&pin)).await.expect("put");
    assert_eq!(store.pin(target).await.expect("read"), Some(pin));
    let entry = QuarantineEntry {
        target: target.clone(),
        sha,
        registry: Digest::of(seeds.text(0).as_bytes()),
        reason: seeds.reason(),
        release: seeds.release,
        at,
        lifted: seeds.pair(),
    };
    store.put_quarantine(&entry).await.expect("put");
    let all = store.quarantines(target).await.expect("read");
    assert!(all.contains(&entry), "{entry:?}");
    let approval =
        Approval { target: target.clone(), plan_hash: seeds.text(2), is_approved: seeds.is_so, by: seeds.text(0), at };
    store.put_approval(&approval).await.expect("put");
    let found = store.approval(target, &approval.plan_hash).await;
    assert_eq!(found.expect("read"), Some(approval));
}

async fn releases(store: &SqliteStore, target: &TargetName, seeds: &Seeds) {
    let [at, later] = seeds.times;
    let plan = PlanRecord {
        id: Digest::of(format!("{seeds:?}").as_bytes()).to_string(),
        target: target.clone(),
        revision: seeds.shas[0].clone(),
        at,
        plan: seeds.json.clone(),
        difference: seeds.text(0),
    };
    store.put_plan(&plan).await.expect("put");
    assert_eq!(store.plan(&plan.id).await.expect("read").as_ref(), Some(&plan));
    let new = NewRelease {
        target: target.clone(),
        revision: seeds.shas[1].clone(),
        slot: seeds.is_so.then_some(Slot::A),
        plan_id: seeds.is_so.then(|| plan.id.clone()),
        manifest: seeds.is_so.then(|| Digest::of(b"manifest")),
        registry: Digest::of(b"registry"),
        desired: Some(seeds.json.clone()),
        trigger: seeds.text(1),
        at,
    };
    let mut begun = store.begin_release(&new).await.expect("begin");
    assert_eq!(begun.new, new);
    begun.phase = Phase::Stuck(seeds.reason());
    begun.ended_at = Some(later);
    store.put_phase(target, begun.number, &begun.phase, later).await.expect("put");
    let found = store.release(target, begun.number).await.expect("read");
    assert_eq!(found.as_ref(), Some(&begun));
    let entry = JournalEntry {
        target: target.clone(),
        release: begun.number,
        section: Section::UndoAfter,
        ordinal: seeds.count,
        step: seeds.text(2),
        state: StepState::Failed,
        at,
        note: seeds.maybe.clone(),
    };
    store.journal(&entry).await.expect("put");
    let found = store.journal_of(target, begun.number).await.expect("read");
    assert_eq!(found, [entry]);
}

async fn facts(store: &SqliteStore, target: &TargetName, seeds: &Seeds) {
    let [since, looked_at] = seeds.times;
    let sha = seeds.shas[0].clone();
    let text = seeds.text(0);
    let manifest = ManifestRecord { digest: Digest::of(text.as_bytes()), path: seeds.text(1), text };
    store.put_manifest(&manifest).await.expect("put");
    let found = store.manifest(manifest.digest.as_str()).await.expect("read");
    assert_eq!(found, Some(manifest));
    let ci = CiRecord {
        target: target.clone(),
        sha: sha.clone(),
        first_asked_at: since,
        asked_at: looked_at,
        reason: seeds.is_so.then_some(seeds.code),
        message: seeds.text(0),
        link: seeds.maybe.clone(),
    };
    store.put_ci(&ci).await.expect("put");
    assert_eq!(store.ci(target, &sha).await.expect("read"), Some(ci));
    let condition =
        Condition { kind: seeds.text(1), is_true: seeds.is_so, reason: seeds.text(2), message: seeds.text(0), since };
    if store.put_condition(target, &condition).await.expect("put") {
        let all = store.conditions(target).await.expect("read");
        assert!(all.contains(&condition), "{condition:?}");
    }
    let finding = DriftFinding {
        revision: sha.clone(),
        difference: seeds.text(1),
        summary: seeds.texts.to_vec(),
        since,
        looked_at,
    };
    store.put_drift(target, None).await.expect("put");
    store.put_drift(target, Some(&finding)).await.expect("put");
    assert_eq!(store.drift(target).await.expect("read"), Some(finding));
    let event = AuditEvent {
        at: since,
        target: seeds.is_so.then(|| target.clone()),
        by: seeds.text(0),
        kind: seeds.text(1),
        message: seeds.text(2),
        sha: seeds.is_so.then_some(sha),
        release: seeds.is_so.then_some(seeds.release),
    };
    store.audit(&event).await.expect("put");
    let newest = store.audit_events(None, 1).await.expect("read");
    assert_eq!(newest, [event]);
}

#[test]
fn every_record_comes_back_as_it_was_put() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = directory();
    let store = runtime.block_on(opened(directory.path()));
    let target = contract::target("seeds");
    let mut runner = TestRunner::new(Config::with_cases(CASES));
    let outcome = runner.run(&seeds(), |seeds| {
        runtime.block_on(async {
            controls(&store, &target, &seeds).await;
            releases(&store, &target, &seeds).await;
            facts(&store, &target, &seeds).await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

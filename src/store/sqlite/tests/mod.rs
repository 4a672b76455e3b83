//! The embedded engine: the contract of every store, and what is its own.

mod crash;
mod looks;
mod opening;
mod room;
mod round_trip;

use std::path::Path;

use super::SqliteStore;
use crate::store::contract::{self, deliveries, releases};
use crate::store::{Store as _, StoreError};

pub(super) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

pub(super) async fn opened(state_dir: &Path) -> SqliteStore {
    SqliteStore::open(state_dir).await.expect("a store")
}

/// Runs a statement beside the store's own, as a mishap would.
pub(super) async fn run(store: &SqliteStore, statement: &'static str) -> Result<u64, StoreError> {
    let writer = store.writer().expect("it owns the directory");
    writer.run("meddle", sqlx::query(statement)).await
}

macro_rules! contract {
    ($($module:ident::$name:ident,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let directory = directory();
                $module::$name(&opened(directory.path()).await).await;
            }
        )*

        #[tokio::test]
        async fn one_store_serves_the_whole_contract_and_still_does_when_opened_again() {
            let directory = directory();
            let store = opened(directory.path()).await;
            $($module::$name(&store).await;)*
            let instance = store.instance().await.expect("an id");
            let events = store.audit_events(None, 100).await.expect("a read");
            store.close().await;
            let store = opened(directory.path()).await;
            assert_eq!(store.instance().await.expect("an id"), instance);
            assert_eq!(store.audit_events(None, 100).await.expect("a read"), events);
        }
    };
}

contract! {
    contract::the_instance_is_made_once,
    contract::the_last_look_at_a_branch_replaces_the_one_before,
    contract::pauses_and_pins_are_set_and_lifted,
    contract::a_quarantined_sha_stays_until_it_is_lifted,
    contract::plans_are_found_by_id_and_prefix_and_the_last_stored_is_the_latest,
    contract::the_last_decision_on_a_plan_counts,
    contract::manifests_and_ci_answers_are_kept,
    contract::a_condition_is_since_its_status_or_reason_changed,
    contract::equal_drift_keeps_its_beginning,
    contract::audit_events_come_newest_first_and_by_target,
    contract::known_targets_are_remembered_by_name,
    releases::a_release_is_counted_moved_and_found,
    releases::releases_come_newest_first,
    releases::every_phase_is_unfinished_exactly_until_it_has_an_outcome,
    releases::a_journal_keeps_its_order_and_needs_its_release,
    releases::what_names_no_release_changes_nothing_and_says_so,
    deliveries::a_delivery_is_new_once_for_each_hook_and_comes_back_as_it_was_put,
    deliveries::old_deliveries_are_forgotten_first,
    deliveries::the_names_of_a_repository_are_kept,
}

#[tokio::test]
async fn audit_events_can_neither_be_changed_nor_removed() {
    let directory = directory();
    let store = opened(directory.path()).await;
    contract::audit_events_come_newest_first_and_by_target(&store).await;
    let before = store.audit_events(None, 9).await.expect("a read");
    for statement in [
        "UPDATE audit SET message = 'nothing happened'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit (seq, at, by, kind, message) VALUES (1, 0, 'x', 'x', 'x')",
    ] {
        let refused = run(&store, statement).await;
        assert!(refused.is_err(), "{statement}");
    }
    assert_eq!(store.audit_events(None, 9).await.expect("a read"), before);
}

#[tokio::test]
async fn a_release_number_is_not_used_again_when_its_release_is_gone() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let new = contract::new_release(&contract::target("counted"), 'a');
    for wanted in 1..=3 {
        let begun = store.begin_release(&new).await.expect("begin");
        assert_eq!(begun.number.0, wanted);
    }
    assert_eq!(run(&store, "DELETE FROM releases").await.expect("gone"), 3);
    let begun = store.begin_release(&new).await.expect("begin");
    assert_eq!(begun.number.0, 4);
}

#[tokio::test]
async fn many_releases_begun_at_once_get_a_number_each() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let new = contract::new_release(&contract::target("crowd"), 'a');
    let begun = futures_util::future::join_all((0..20).map(|_| store.begin_release(&new))).await;
    let mut numbers: Vec<u64> = begun.into_iter().map(|begun| begun.expect("begin").number.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_row_that_does_not_read_is_an_error_and_never_a_default() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let target = contract::target("corrupt");
    let new = contract::new_release(&target, 'a');
    let number = store.begin_release(&new).await.expect("begin").number;
    for statement in [
        "UPDATE releases SET phase = 'flying'",
        "UPDATE releases SET phase = 'stuck', reason = NULL",
        "UPDATE releases SET phase = 'live', reason = '{\"code\":\"Bug\",\"message\":\"\"}'",
        "UPDATE releases SET phase = 'live', reason = '{'",
        "UPDATE releases SET reason = NULL, slot = 'c'",
        "UPDATE releases SET slot = 'a', revision = 'main'",
        "UPDATE releases SET revision = registry, at = 9223372036854775807",
        "UPDATE releases SET at = 0, desired = 'not json'",
    ] {
        run(&store, statement).await.expect("meddled");
        let answer = store.release(&target, number).await;
        assert!(matches!(answer, Err(StoreError::Corrupt { what: "release", .. })), "{statement}: {answer:?}");
    }
    run(&store, "UPDATE releases SET desired = NULL").await.expect("mended");
    assert!(store.release(&target, number).await.expect("a read").is_some());
}

#[test]
fn every_error_says_why_and_what_to_do_without_a_value() {
    let path = || "/var/lib/trueup/trueup.db".to_owned();
    let errors = [
        StoreError::Full { what: "record a pin", path: path() },
        StoreError::Damaged { path: path(), detail: "it is empty".to_owned() },
        StoreError::NewerSchema { path: path(), found: 9, known: 1 },
        StoreError::OlderSchema { path: path(), found: 1, known: 2 },
        StoreError::Corrupt { what: "pin", detail: "`sha`: not hex".to_owned() },
        StoreError::Unknown { what: "release", key: "7 of shop/prod".to_owned() },
        StoreError::ReadOnly { path: path() },
        StoreError::Locked { path: path(), pid: "17".to_owned() },
    ];
    for error in errors {
        assert!(!error.why().is_empty() && !error.fix().is_empty(), "{error}");
    }
}

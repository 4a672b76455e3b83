//! Which state directories are taken, and which are refused.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{directory, opened, run};
use crate::store::record::Pause;
use crate::store::sqlite::{RESERVE_BYTES, SqliteStore};
use crate::store::{Store, StoreError, contract, schema};

fn mode(path: &Path) -> u32 {
    let found = std::fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o7777
}

/// Every file of a directory with its bytes.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name().into_string().expect("text"), entry.path()))
        .map(|(name, path)| (name, std::fs::read(path).expect("a file")))
        .collect()
}

fn noted(note: &str) -> Pause {
    Pause { by: "uid 0".to_owned(), at: contract::at(1), note: note.to_owned() }
}

async fn note_of(store: &dyn Store) -> Option<String> {
    let found = store.pause(&contract::target("noted")).await;
    found.expect("a read").map(|pause| pause.note)
}

async fn note(store: &dyn Store, note: &str) {
    let target = contract::target("noted");
    let put = store.put_pause(&target, Some(&noted(note))).await;
    put.expect("put");
}

#[tokio::test]
async fn a_state_directory_lets_others_pass_and_its_files_are_ours_alone() {
    let directory = directory();
    let state_dir = directory.path().join("lib").join("trueup");
    let store = opened(&state_dir).await;
    note(&store, "so that there is a log").await;
    assert_eq!(mode(&state_dir), 0o711);
    for name in ["trueup.db", "trueup.db-wal", "trueup.db-shm", "lock", "reserve"] {
        assert_eq!(mode(&state_dir.join(name)), 0o600, "{name}");
    }
    let reserve = std::fs::metadata(state_dir.join("reserve")).expect("it is there");
    assert_eq!(reserve.len(), RESERVE_BYTES);
    assert!(!state_dir.join("trueup.db.new").exists());
}

#[tokio::test]
async fn the_writer_flushes_every_commit_and_minds_its_foreign_keys() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let writer = store.writer().expect("it owns the directory");
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&writer.pool).await.expect("an answer");
    assert_eq!(mode, "wal");
    for (question, wanted) in [
        ("PRAGMA synchronous", 2),
        ("PRAGMA foreign_keys", 1),
        ("PRAGMA busy_timeout", 5000),
        ("PRAGMA user_version", i64::from(schema::newest())),
        ("PRAGMA application_id", i64::from(schema::APPLICATION_ID)),
    ] {
        let answer: i64 = sqlx::query_scalar(question).fetch_one(&writer.pool).await.expect("an answer");
        assert_eq!(answer, wanted, "{question}");
    }
}

#[tokio::test]
// Field report 62.
async fn a_second_daemon_is_told_who_holds_the_directory() {
    let directory = directory();
    let store = opened(directory.path()).await;
    let refused = SqliteStore::open(directory.path()).await;
    match refused {
        Err(StoreError::Locked { path, pid }) => {
            assert!(path.ends_with("/lock"), "{path}");
            assert_eq!(pid, std::process::id().to_string());
        }
        other => panic!("{other:?}"),
    }
    std::fs::write(directory.path().join("lock"), "pid 1\nboot of-another-time\n").expect("written");
    let refused = SqliteStore::open(directory.path()).await;
    assert!(matches!(refused, Err(StoreError::Locked { pid, .. }) if pid == "unknown"));
    drop(store);
    opened(directory.path()).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_name() {
    let directory = directory();
    let store = opened(directory.path()).await;
    run(&store, "PRAGMA user_version = 99").await.expect("set");
    store.close().await;
    let database = || std::fs::read(directory.path().join("trueup.db")).expect("a file");
    let before = database();
    let answers = [SqliteStore::open(directory.path()).await, SqliteStore::open_read_only(directory.path()).await];
    for answer in answers {
        let error = answer.expect_err("it is newer");
        assert!(matches!(error, StoreError::NewerSchema { found: 99, known, .. } if known == schema::newest()));
        assert!(error.to_string().contains("schema 99"), "{error}");
    }
    assert!(database() == before);
}

#[tokio::test]
async fn what_is_damaged_or_not_ours_is_refused_and_left_as_it_is() {
    let whole = directory();
    let store = opened(whole.path()).await;
    contract::plans_are_found_by_id_and_prefix_and_the_last_stored_is_the_latest(&store).await;
    store.close().await;
    let good = std::fs::read(whole.path().join("trueup.db")).expect("a file");

    let cut = good[..good.len() / 2].to_vec();
    let mut scribbled = good.clone();
    scribbled[4096..].fill(0x5a);
    let mut other_program = good.clone();
    other_program[68..72].copy_from_slice(b"abcd");
    let cases: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("text", b"this is no database, but it is long enough to have a header".repeat(9)),
        ("cut", cut),
        ("scribbled", scribbled),
        ("another program's", other_program),
    ];
    for (name, bytes) in cases {
        let directory = directory();
        let database = directory.path().join("trueup.db");
        std::fs::write(&database, &bytes).expect("written");
        for answer in [SqliteStore::open(directory.path()).await, SqliteStore::open_read_only(directory.path()).await] {
            let error = answer.expect_err(name);
            assert!(matches!(error, StoreError::Damaged { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains("trueup.db"), "{name}: {error}");
        }
        assert!(std::fs::read(&database).expect("a file") == bytes, "{name}");
    }
}

#[tokio::test]
async fn a_log_whose_database_is_gone_is_not_played_into_a_new_one() {
    let directory = directory();
    let log = directory.path().join("trueup.db-wal");
    std::fs::write(&log, b"frames").expect("written");
    let refused = SqliteStore::open(directory.path()).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    assert!(log.exists() && !directory.path().join("trueup.db").exists());
}

#[tokio::test]
async fn a_start_that_was_interrupted_while_making_the_database_makes_it_again() {
    let directory = directory();
    std::fs::write(directory.path().join("trueup.db.new"), b"half").expect("written");
    std::fs::write(directory.path().join("trueup.db.new-journal"), b"half").expect("written");
    contract::the_instance_is_made_once(&opened(directory.path()).await).await;
}

#[tokio::test]
async fn a_reader_follows_a_running_daemon_and_can_write_nothing() {
    let directory = directory();
    let daemon = opened(directory.path()).await;
    let reader = SqliteStore::open_read_only(directory.path()).await.expect("a reader");
    assert_eq!(note_of(&reader).await, None, "nothing was written yet");
    note(&daemon, "first").await;
    assert_eq!(note_of(&reader).await.as_deref(), Some("first"));
    note(&daemon, "second").await;
    assert_eq!(note_of(&reader).await.as_deref(), Some("second"));
    let refused = reader.put_pause(&contract::target("noted"), None).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
    daemon.close().await;
    assert_eq!(note_of(&reader).await.as_deref(), Some("second"));
}

#[tokio::test]
async fn a_reader_of_a_dead_daemon_sees_all_and_leaves_every_file_as_it_is() {
    let living = directory();
    let daemon = opened(living.path()).await;
    note(&daemon, "only in the log").await;
    // What a power cut leaves, with and without the log's index.
    for is_indexed in [true, false] {
        let dead = directory();
        for (name, bytes) in content(living.path()) {
            if is_indexed || name != "trueup.db-shm" {
                std::fs::write(dead.path().join(name), bytes).expect("written");
            }
        }
        let before = content(dead.path());
        let reader = SqliteStore::open_read_only(dead.path()).await.expect("a reader");
        assert_eq!(note_of(&reader).await.as_deref(), Some("only in the log"));
        reader.close().await;
        let mut after = content(dead.path());
        if !is_indexed {
            after.remove("trueup.db-shm").expect("the engine has to make one");
        }
        assert!(after == before, "{:?}", after.keys());
        let next = opened(dead.path()).await;
        assert_eq!(note_of(&next).await.as_deref(), Some("only in the log"));
    }
}

#[tokio::test]
async fn a_reader_of_a_daemon_that_was_stopped_leaves_nothing_behind() {
    let directory = directory();
    let daemon = opened(directory.path()).await;
    note(&daemon, "at rest").await;
    daemon.close().await;
    let before = content(directory.path());
    assert!(!before.contains_key("trueup.db-wal"), "{:?}", before.keys());
    let reader = SqliteStore::open_read_only(directory.path()).await.expect("a reader");
    assert_eq!(note_of(&reader).await.as_deref(), Some("at rest"));
    reader.close().await;
    assert!(content(directory.path()) == before);
}

#[tokio::test]
async fn there_is_nothing_to_read_where_no_store_is_and_none_is_made() {
    let directory = directory();
    let refused = SqliteStore::open_read_only(&directory.path().join("nowhere")).await;
    assert!(matches!(refused, Err(StoreError::File { .. })), "{refused:?}");
    assert!(content(directory.path()).is_empty());
}

#[tokio::test]
async fn a_path_with_odd_characters_is_read_too() {
    let directory = directory();
    let state_dir = directory.path().join("a b?c#d%20&é");
    let daemon = opened(&state_dir).await;
    note(&daemon, "found").await;
    let reader = SqliteStore::open_read_only(&state_dir).await.expect("a reader");
    assert_eq!(note_of(&reader).await.as_deref(), Some("found"));
}

#[test]
fn each_migration_names_the_schema_it_leads_to() {
    for (index, migration) in schema::MIGRATIONS.iter().enumerate() {
        let wanted = format!("PRAGMA user_version = {};", index + 1);
        assert_eq!(migration.matches("user_version").count(), 1);
        assert!(migration.contains(&wanted), "migration {}", index + 1);
        let created = migration.matches("CREATE TABLE").count();
        assert_eq!(migration.matches(") STRICT").count(), created, "strict tables only");
    }
    assert!(schema::MIGRATIONS[0].contains("application_id = 0x74727570;"));
}

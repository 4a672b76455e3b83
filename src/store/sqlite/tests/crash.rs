//! What was acknowledged is there after a crash.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{directory, opened};
use crate::store::record::{JournalEntry, Section, StepState};
use crate::store::{Store as _, contract};

/// Names the state directory to the process that is going to be killed.
const DOOMED: &str = "TRUEUP_TEST_DOOMED_STATE_DIR";
/// How many lines are acknowledged before the kill.
const ACKNOWLEDGED: u32 = 25;

fn line(ordinal: u32) -> JournalEntry {
    JournalEntry {
        target: contract::target("doomed"),
        release: crate::model::ReleaseNumber(1),
        section: Section::Converge,
        ordinal,
        step: "start b".to_owned(),
        state: StepState::Done,
        at: contract::at(0),
        note: None,
    }
}

/// Writes lines for ever and says each one that it wrote.
async fn write_until_killed(state_dir: &Path) {
    let store = opened(state_dir).await;
    let new = contract::new_release(&contract::target("doomed"), 'a');
    store.begin_release(&new).await.expect("begin");
    for ordinal in 0..u32::MAX {
        store.journal(&line(ordinal)).await.expect("put");
        println!("\nwrote {ordinal}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

/// The same test in a process of its own; kills it with SIGKILL after enough lines.
fn kill_a_writer(state_dir: &Path) -> u32 {
    let mut writer = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "--nocapture"])
        .arg("store::sqlite::tests::crash::every_acknowledged_write_outlives_a_kill")
        .env(DOOMED, state_dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let said = BufReader::new(writer.stdout.take().expect("piped"));
    let wrote = said
        .lines()
        .map_while(Result::ok)
        .filter_map(|said| said.strip_prefix("wrote ")?.parse::<u32>().ok())
        .find(|ordinal| *ordinal >= ACKNOWLEDGED);
    writer.kill().expect("ours to kill");
    writer.wait().expect("it ended");
    wrote.expect("it wrote enough lines")
}

#[tokio::test]
async fn every_acknowledged_write_outlives_a_kill() {
    if let Some(state_dir) = std::env::var_os(DOOMED) {
        return write_until_killed(Path::new(&state_dir)).await;
    }
    let directory = directory();
    let acknowledged = kill_a_writer(directory.path());
    // The lock went with its process.
    let store = opened(directory.path()).await;
    let found = store.journal_of(&contract::target("doomed"), crate::model::ReleaseNumber(1)).await.expect("a read");
    let ordinals: Vec<u32> = found.iter().map(|line| line.ordinal).collect();
    let last = ordinals.last().copied().expect("lines");
    assert!(last >= acknowledged, "{last} < {acknowledged}");
    assert_eq!(ordinals, (0..=last).collect::<Vec<u32>>());
    assert_eq!(store.unfinished().await.expect("a read").len(), 1);
}

#[tokio::test]
async fn a_write_is_in_the_files_when_it_returns() {
    let living = directory();
    let store = opened(living.path()).await;
    let new = contract::new_release(&contract::target("doomed"), 'a');
    store.begin_release(&new).await.expect("begin");
    for ordinal in 0..3 {
        store.journal(&line(ordinal)).await.expect("put");
        let cut = directory();
        for name in ["trueup.db", "trueup.db-wal"] {
            std::fs::copy(living.path().join(name), cut.path().join(name)).expect("copied");
        }
        let found = opened(cut.path()).await.journal_of(&new.target, line(0).release).await;
        let wanted: Vec<JournalEntry> = (0..=ordinal).map(line).collect();
        assert_eq!(found.expect("a read"), wanted);
    }
}

#[tokio::test]
async fn a_store_that_was_dropped_without_closing_is_whole() {
    let directory = directory();
    let new = contract::new_release(&contract::target("doomed"), 'a');
    for wanted in 1..=5 {
        let store = opened(directory.path()).await;
        let begun = store.begin_release(&new).await.expect("begin");
        assert_eq!(begun.number.0, wanted);
        drop(store);
    }
}

//! What was seen of a branch, and what people and failures hold back: refs, pauses, pins,
//! quarantine, approvals.

use jiff::Timestamp;
use sqlx::query;
use sqlx::sqlite::SqliteRow;

use super::db::{Db, Fields, json, micros, numbered};
use crate::model::{Sha, TargetName};
use crate::store::StoreError;
use crate::store::record::{Approval, ObservedRef, Pause, Pin, QuarantineEntry};

/// How many quarantine entries are listed.
const QUARANTINE_LISTED: i64 = 100;

pub(super) async fn observed_ref(db: &Db, target: &TargetName) -> Result<Option<ObservedRef>, StoreError> {
    let question = query("SELECT * FROM observed_refs WHERE target = ?1").bind(target.to_string());
    db.first("read an observed ref", question, |row| {
        let row = Fields::of(row, "observed ref");
        let suspect = match (row.maybe_parsed("suspect_sha")?, row.maybe_time("suspect_at")?) {
            (Some(sha), Some(at)) => Some((sha, at)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(row.corrupt("suspect_at", &"a sha and a time come together"));
            }
        };
        Ok(ObservedRef {
            branch: row.parsed("branch")?,
            tip: row.maybe_parsed("tip")?,
            looked_at: row.time("looked_at")?,
            moved_at: row.time("moved_at")?,
            suspect,
        })
    })
    .await
}

pub(super) async fn put_observed_ref(db: &Db, target: &TargetName, seen: &ObservedRef) -> Result<(), StoreError> {
    let statement = query(
        "INSERT OR REPLACE INTO observed_refs
             (target, branch, tip, looked_at, moved_at, suspect_sha, suspect_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(target.to_string())
    .bind(seen.branch.as_str())
    .bind(seen.tip.as_ref().map(Sha::as_str))
    .bind(micros(seen.looked_at))
    .bind(micros(seen.moved_at))
    .bind(seen.suspect.as_ref().map(|(sha, _)| sha.as_str()))
    .bind(seen.suspect.as_ref().map(|(_, at)| micros(*at)));
    db.run("record an observed ref", statement).await?;
    Ok(())
}

pub(super) async fn pause(db: &Db, target: &TargetName) -> Result<Option<Pause>, StoreError> {
    let question = query("SELECT * FROM pauses WHERE target = ?1").bind(target.to_string());
    db.first("read a pause", question, |row| {
        let row = Fields::of(row, "pause");
        Ok(Pause { by: row.text("by")?, at: row.time("at")?, note: row.text("note")? })
    })
    .await
}

pub(super) async fn put_pause(db: &Db, target: &TargetName, pause: Option<&Pause>) -> Result<(), StoreError> {
    let statement = match pause {
        None => query("DELETE FROM pauses WHERE target = ?1").bind(target.to_string()),
        Some(pause) => query("INSERT OR REPLACE INTO pauses (target, by, at, note) VALUES (?1, ?2, ?3, ?4)")
            .bind(target.to_string())
            .bind(&pause.by)
            .bind(micros(pause.at))
            .bind(&pause.note),
    };
    db.run("record a pause", statement).await?;
    Ok(())
}

pub(super) async fn pin(db: &Db, target: &TargetName) -> Result<Option<Pin>, StoreError> {
    let question = query("SELECT * FROM pins WHERE target = ?1").bind(target.to_string());
    db.first("read a pin", question, |row| {
        let row = Fields::of(row, "pin");
        Ok(Pin {
            sha: row.parsed("sha")?,
            tip: row.maybe_parsed("tip")?,
            by: row.text("by")?,
            at: row.time("at")?,
            note: row.text("note")?,
        })
    })
    .await
}

pub(super) async fn put_pin(db: &Db, target: &TargetName, pin: Option<&Pin>) -> Result<(), StoreError> {
    let statement = match pin {
        None => query("DELETE FROM pins WHERE target = ?1").bind(target.to_string()),
        Some(pin) => query(
            "INSERT OR REPLACE INTO pins (target, sha, tip, by, at, note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .bind(target.to_string())
        .bind(pin.sha.as_str())
        .bind(pin.tip.as_ref().map(Sha::as_str))
        .bind(&pin.by)
        .bind(micros(pin.at))
        .bind(&pin.note),
    };
    db.run("record a pin", statement).await?;
    Ok(())
}

fn read_quarantine(row: &SqliteRow) -> Result<QuarantineEntry, StoreError> {
    let row = Fields::of(row, "quarantine entry");
    let lifted = match (row.maybe_text("lifted_by")?, row.maybe_time("lifted_at")?) {
        (Some(by), Some(at)) => Some((by, at)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(row.corrupt("lifted_at", &"who and when come together"));
        }
    };
    Ok(QuarantineEntry {
        target: row.parsed("target")?,
        sha: row.parsed("sha")?,
        registry: row.parsed("registry")?,
        reason: row.json("reason")?,
        release: row.number("release")?,
        at: row.time("at")?,
        lifted,
    })
}

pub(super) async fn quarantine(db: &Db, target: &TargetName, sha: &Sha) -> Result<Option<QuarantineEntry>, StoreError> {
    let question = query("SELECT * FROM quarantine WHERE target = ?1 AND sha = ?2 AND lifted_at IS NULL")
        .bind(target.to_string())
        .bind(sha.as_str());
    db.first("read a quarantine entry", question, read_quarantine).await
}

pub(super) async fn quarantines(db: &Db, target: &TargetName) -> Result<Vec<QuarantineEntry>, StoreError> {
    let question = query("SELECT * FROM quarantine WHERE target = ?1 ORDER BY at DESC, release DESC, sha LIMIT ?2")
        .bind(target.to_string())
        .bind(QUARANTINE_LISTED);
    db.all("read the quarantine", question, read_quarantine).await
}

pub(super) async fn put_quarantine(db: &Db, entry: &QuarantineEntry) -> Result<(), StoreError> {
    const WHAT: &str = "record a quarantine entry";
    let statement = query(
        "INSERT OR REPLACE INTO quarantine
             (target, sha, registry, reason, release, at, lifted_by, lifted_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .bind(entry.target.to_string())
    .bind(entry.sha.as_str())
    .bind(entry.registry.as_str())
    .bind(json(WHAT, &entry.reason)?)
    .bind(numbered(entry.release)?)
    .bind(micros(entry.at))
    .bind(entry.lifted.as_ref().map(|(by, _)| by))
    .bind(entry.lifted.as_ref().map(|(_, at)| micros(*at)));
    db.run(WHAT, statement).await?;
    Ok(())
}

pub(super) async fn lift_quarantine(
    db: &Db,
    (target, sha): (&TargetName, &Sha),
    (by, at): (&str, Timestamp),
) -> Result<bool, StoreError> {
    let statement = query(
        "UPDATE quarantine SET lifted_by = ?3, lifted_at = ?4
         WHERE target = ?1 AND sha = ?2 AND lifted_at IS NULL",
    )
    .bind(target.to_string())
    .bind(sha.as_str())
    .bind(by)
    .bind(micros(at));
    Ok(db.run("lift a quarantine entry", statement).await? > 0)
}

pub(super) async fn approval(db: &Db, target: &TargetName, plan_hash: &str) -> Result<Option<Approval>, StoreError> {
    let question =
        query("SELECT * FROM approvals WHERE target = ?1 AND plan_hash = ?2").bind(target.to_string()).bind(plan_hash);
    db.first("read an approval", question, |row| {
        let row = Fields::of(row, "approval");
        Ok(Approval {
            target: row.parsed("target")?,
            plan_hash: row.text("plan_hash")?,
            is_approved: row.flag("is_approved")?,
            by: row.text("by")?,
            at: row.time("at")?,
        })
    })
    .await
}

pub(super) async fn put_approval(db: &Db, approval: &Approval) -> Result<(), StoreError> {
    let statement = query(
        "INSERT OR REPLACE INTO approvals (target, plan_hash, is_approved, by, at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(approval.target.to_string())
    .bind(&approval.plan_hash)
    .bind(i64::from(approval.is_approved))
    .bind(&approval.by)
    .bind(micros(approval.at));
    db.run("record an approval", statement).await?;
    Ok(())
}

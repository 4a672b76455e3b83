//! Plans, releases and their journal.

use jiff::Timestamp;
use sqlx::query;
use sqlx::sqlite::SqliteRow;

use super::db::{Db, Fields, json, micros, no_such_release, numbered, word};
use crate::model::{Digest, ReleaseNumber, TargetName};
use crate::release::Phase;
use crate::store::StoreError;
use crate::store::record::{JournalEntry, NewRelease, PlanRecord, ReleaseRecord};

/// The shortest part of a plan's id that is taken for it, in characters.
const PLAN_PREFIX: usize = 8;

fn read_plan(row: &SqliteRow) -> Result<PlanRecord, StoreError> {
    let row = Fields::of(row, "plan");
    Ok(PlanRecord {
        id: row.text("id")?,
        target: row.parsed("target")?,
        revision: row.parsed("revision")?,
        at: row.time("at")?,
        plan: row.json("plan")?,
        difference: row.text("difference")?,
    })
}

pub(super) async fn put_plan(db: &Db, plan: &PlanRecord) -> Result<(), StoreError> {
    const WHAT: &str = "record a plan";
    // The newest plan of a target that is stored again changes nothing.
    let statement = query(
        "INSERT INTO plans (id, target, seq, revision, at, plan, difference)
         VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM plans WHERE target = ?2),
                 ?3, ?4, ?5, ?6)
         ON CONFLICT (id) DO UPDATE SET seq = excluded.seq
         WHERE plans.target = excluded.target AND plans.seq < excluded.seq - 1",
    )
    .bind(&plan.id)
    .bind(plan.target.to_string())
    .bind(plan.revision.as_str())
    .bind(micros(plan.at))
    .bind(json(WHAT, &plan.plan)?)
    .bind(&plan.difference);
    if db.run(WHAT, statement).await? > 0 {
        return Ok(());
    }
    match self::plan(db, &plan.id).await? {
        Some(found) if found.target == plan.target => Ok(()),
        Some(_) | None => {
            Err(StoreError::Corrupt { what: "plan", detail: "its id is also a plan's of another target".to_owned() })
        }
    }
}

pub(super) async fn plan(db: &Db, id: &str) -> Result<Option<PlanRecord>, StoreError> {
    const WHAT: &str = "read a plan";
    let exact = query("SELECT * FROM plans WHERE id = ?1").bind(id);
    let found = db.first(WHAT, exact, read_plan).await?;
    if found.is_some() || id.chars().count() < PLAN_PREFIX {
        return Ok(found);
    }
    let prefix = query("SELECT * FROM plans WHERE id > ?1 AND id < ?1 || char(0x10FFFF) ORDER BY id LIMIT 2").bind(id);
    let mut fitting = db.all(WHAT, prefix, read_plan).await?;
    Ok(fitting.pop().filter(|_| fitting.is_empty()))
}

pub(super) async fn latest_plan(db: &Db, target: &TargetName) -> Result<Option<PlanRecord>, StoreError> {
    let question = query("SELECT * FROM plans WHERE target = ?1 ORDER BY seq DESC LIMIT 1").bind(target.to_string());
    db.first("read the latest plan", question, read_plan).await
}

fn read_release(row: &SqliteRow) -> Result<ReleaseRecord, StoreError> {
    let row = Fields::of(row, "release");
    let reason: Option<serde_json::Value> = row.maybe_json("reason")?;
    let phase = serde_json::json!({ "phase": row.text("phase")?, "reason": reason });
    Ok(ReleaseRecord {
        number: row.number("number")?,
        new: NewRelease {
            target: row.parsed("target")?,
            revision: row.parsed("revision")?,
            slot: row.maybe_word("slot")?,
            plan_id: row.maybe_text("plan_id")?,
            manifest: row.maybe_parsed("manifest")?,
            registry: row.parsed("registry")?,
            desired: row.maybe_json("desired")?,
            trigger: row.text("trigger")?,
            at: row.time("at")?,
        },
        phase: serde_json::from_value(phase).map_err(|error| row.corrupt("phase", &error))?,
        image_id: row.maybe_text("image_id")?,
        switched_at: row.maybe_time("switched_at")?,
        ended_at: row.maybe_time("ended_at")?,
        retired_at: row.maybe_time("retired_at")?,
    })
}

pub(super) async fn begin_release(db: &Db, new: &NewRelease) -> Result<ReleaseRecord, StoreError> {
    const WHAT: &str = "begin a release";
    let desired = new.desired.as_ref();
    let statement = query(
        "INSERT INTO releases
             (target, number, revision, slot, plan_id, manifest, registry, desired, trigger, at, phase)
         VALUES (?1, 1 + coalesce((SELECT last FROM release_counters WHERE target = ?1), 0),
                 ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         RETURNING *",
    )
    .bind(new.target.to_string())
    .bind(new.revision.as_str())
    .bind(new.slot.map(crate::model::Slot::as_str))
    .bind(&new.plan_id)
    .bind(new.manifest.as_ref().map(Digest::as_str))
    .bind(new.registry.as_str())
    .bind(desired.map(|value| json(WHAT, value)).transpose()?)
    .bind(&new.trigger)
    .bind(micros(new.at))
    .bind(Phase::Planned.word());
    let begun = db.first(WHAT, statement, read_release).await?;
    begun.ok_or_else(|| StoreError::Corrupt {
        what: "release",
        detail: "the one that was just begun did not come back".to_owned(),
    })
}

/// Inserts a release that is live already, under its own number.
pub(super) async fn restore_release(
    db: &Db,
    new: &NewRelease,
    (number, image_id): (ReleaseNumber, Option<&str>),
) -> Result<ReleaseRecord, StoreError> {
    const WHAT: &str = "record a release that serves already";
    let statement = query(
        "INSERT INTO releases
             (target, number, revision, slot, manifest, registry, desired, trigger, at, phase, image_id,
              switched_at, ended_at, retired_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?9, ?9, ?9)
         RETURNING *",
    )
    .bind(new.target.to_string())
    .bind(i64::try_from(number.0).unwrap_or(i64::MAX))
    .bind(new.revision.as_str())
    .bind(new.slot.map(crate::model::Slot::as_str))
    .bind(new.manifest.as_ref().map(Digest::as_str))
    .bind(new.registry.as_str())
    .bind(new.desired.as_ref().map(|value| json(WHAT, value)).transpose()?)
    .bind(&new.trigger)
    .bind(micros(new.at))
    .bind(Phase::Live.word())
    .bind(image_id);
    let restored = db.first(WHAT, statement, read_release).await?;
    restored.ok_or_else(|| StoreError::Corrupt {
        what: "release",
        detail: "the one that was just recorded did not come back".to_owned(),
    })
}

/// One release of one target.
type Which<'a> = (&'a TargetName, ReleaseNumber);

fn changed((target, number): Which<'_>, rows: u64) -> Result<(), StoreError> {
    if rows == 0 {
        return Err(no_such_release(target, number));
    }
    Ok(())
}

pub(super) async fn put_phase(db: &Db, which: Which<'_>, (phase, at): (&Phase, Timestamp)) -> Result<(), StoreError> {
    const WHAT: &str = "record a release's phase";
    let reason = phase.reason().map(|reason| json(WHAT, reason)).transpose()?;
    let statement = query(
        "UPDATE releases SET phase = ?3, reason = ?4,
             switched_at = CASE WHEN ?5 THEN coalesce(switched_at, ?7) ELSE switched_at END,
             ended_at = CASE WHEN ?6 THEN coalesce(ended_at, ?7) ELSE ended_at END
         WHERE target = ?1 AND number = ?2",
    )
    .bind(which.0.to_string())
    .bind(numbered(which.1)?)
    .bind(phase.word())
    .bind(reason)
    .bind(i64::from(matches!(phase, Phase::Proving)))
    .bind(i64::from(phase.outcome().is_some()))
    .bind(micros(at));
    changed(which, db.run(WHAT, statement).await?)
}

pub(super) async fn put_retired(db: &Db, which: Which<'_>, at: Timestamp) -> Result<(), StoreError> {
    let statement = query(
        "UPDATE releases SET retired_at = coalesce(retired_at, ?3)
         WHERE target = ?1 AND number = ?2",
    )
    .bind(which.0.to_string())
    .bind(numbered(which.1)?)
    .bind(micros(at));
    changed(which, db.run("note that a release is retired", statement).await?)
}

pub(super) async fn put_image(db: &Db, which: Which<'_>, image_id: &str) -> Result<(), StoreError> {
    let statement = query("UPDATE releases SET image_id = ?3 WHERE target = ?1 AND number = ?2")
        .bind(which.0.to_string())
        .bind(numbered(which.1)?)
        .bind(image_id);
    changed(which, db.run("note a release's image", statement).await?)
}

pub(super) async fn release(db: &Db, (target, number): Which<'_>) -> Result<Option<ReleaseRecord>, StoreError> {
    let question = query("SELECT * FROM releases WHERE target = ?1 AND number = ?2")
        .bind(target.to_string())
        .bind(numbered(number)?);
    db.first("read a release", question, read_release).await
}

pub(super) async fn releases(db: &Db, target: &TargetName, limit: u32) -> Result<Vec<ReleaseRecord>, StoreError> {
    let question = query("SELECT * FROM releases WHERE target = ?1 ORDER BY number DESC LIMIT ?2")
        .bind(target.to_string())
        .bind(i64::from(limit));
    db.all("read the releases", question, read_release).await
}

pub(super) async fn live_release(db: &Db, target: &TargetName) -> Result<Option<ReleaseRecord>, StoreError> {
    let question = query("SELECT * FROM releases WHERE target = ?1 AND phase = 'live' ORDER BY number DESC LIMIT 1")
        .bind(target.to_string());
    db.first("read the live release", question, read_release).await
}

pub(super) async fn unfinished(db: &Db) -> Result<Vec<ReleaseRecord>, StoreError> {
    let question = query(
        "SELECT * FROM releases
         WHERE retired_at IS NULL AND (ended_at IS NULL OR phase = 'live')
         ORDER BY at, target, number",
    );
    db.all("read the unfinished releases", question, read_release).await
}

pub(super) async fn journal(db: &Db, entry: &JournalEntry) -> Result<(), StoreError> {
    const WHAT: &str = "write a release's journal";
    let statement = query(
        "INSERT INTO journal (target, release, seq, section, ordinal, step, state, at, note)
         SELECT target, number,
                (SELECT coalesce(max(seq), 0) + 1 FROM journal WHERE target = ?1 AND release = ?2),
                ?3, ?4, ?5, ?6, ?7, ?8
         FROM releases WHERE target = ?1 AND number = ?2",
    )
    .bind(entry.target.to_string())
    .bind(numbered(entry.release)?)
    .bind(word(WHAT, &entry.section)?)
    .bind(i64::from(entry.ordinal))
    .bind(&entry.step)
    .bind(word(WHAT, &entry.state)?)
    .bind(micros(entry.at))
    .bind(&entry.note);
    changed((&entry.target, entry.release), db.run(WHAT, statement).await?)
}

pub(super) async fn journal_of(db: &Db, (target, number): Which<'_>) -> Result<Vec<JournalEntry>, StoreError> {
    let question = query("SELECT * FROM journal WHERE target = ?1 AND release = ?2 ORDER BY seq")
        .bind(target.to_string())
        .bind(numbered(number)?);
    db.all("read a release's journal", question, |row| {
        let row = Fields::of(row, "journal line");
        Ok(JournalEntry {
            target: row.parsed("target")?,
            release: row.number("release")?,
            section: row.word("section")?,
            ordinal: row.count("ordinal")?,
            step: row.text("step")?,
            state: row.word("state")?,
            at: row.time("at")?,
            note: row.maybe_text("note")?,
        })
    })
    .await
}

//! What is known and what happened: manifests, CI, conditions, drift, the audit log, known targets.

use sqlx::query;

use super::db::{Db, Fields, failed, json, micros, numbered};
use crate::model::{ReasonCode, Sha, TargetName};
use crate::store::StoreError;
use crate::store::record::{AuditEvent, CiRecord, Condition, DriftFinding, ManifestRecord};

pub(super) async fn instance(db: &Db) -> Result<String, StoreError> {
    let question = query("SELECT value FROM meta WHERE key = 'instance'");
    let found =
        db.first("read the installation's id", question, |row| Fields::of(row, "installation id").text("value"));
    found.await?.ok_or_else(|| StoreError::Corrupt { what: "installation id", detail: "it is gone".to_owned() })
}

pub(super) async fn put_manifest(db: &Db, manifest: &ManifestRecord) -> Result<(), StoreError> {
    let statement = query("INSERT OR REPLACE INTO manifests (digest, path, text) VALUES (?1, ?2, ?3)")
        .bind(manifest.digest.as_str())
        .bind(&manifest.path)
        .bind(&manifest.text);
    db.run("keep a manifest", statement).await?;
    Ok(())
}

pub(super) async fn manifest(db: &Db, digest: &str) -> Result<Option<ManifestRecord>, StoreError> {
    let question = query("SELECT * FROM manifests WHERE digest = ?1").bind(digest);
    db.first("read a manifest", question, |row| {
        let row = Fields::of(row, "manifest");
        Ok(ManifestRecord { digest: row.parsed("digest")?, path: row.text("path")?, text: row.text("text")? })
    })
    .await
}

pub(super) async fn ci(db: &Db, target: &TargetName, sha: &Sha) -> Result<Option<CiRecord>, StoreError> {
    let question = query("SELECT * FROM ci WHERE target = ?1 AND sha = ?2").bind(target.to_string()).bind(sha.as_str());
    db.first("read a CI record", question, |row| {
        let row = Fields::of(row, "CI record");
        Ok(CiRecord {
            target: row.parsed("target")?,
            sha: row.parsed("sha")?,
            first_asked_at: row.time("first_asked_at")?,
            asked_at: row.time("asked_at")?,
            reason: row.maybe_word("reason")?,
            message: row.text("message")?,
            link: row.maybe_text("link")?,
        })
    })
    .await
}

pub(super) async fn put_ci(db: &Db, record: &CiRecord) -> Result<(), StoreError> {
    let statement = query(
        "INSERT OR REPLACE INTO ci (target, sha, first_asked_at, asked_at, reason, message, link)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(record.target.to_string())
    .bind(record.sha.as_str())
    .bind(micros(record.first_asked_at))
    .bind(micros(record.asked_at))
    .bind(record.reason.map(ReasonCode::as_str))
    .bind(&record.message)
    .bind(&record.link);
    db.run("record a CI answer", statement).await?;
    Ok(())
}

pub(super) async fn conditions(db: &Db, target: &TargetName) -> Result<Vec<Condition>, StoreError> {
    let question = query("SELECT * FROM conditions WHERE target = ?1 ORDER BY kind").bind(target.to_string());
    db.all("read the conditions", question, |row| {
        let row = Fields::of(row, "condition");
        Ok(Condition {
            kind: row.text("kind")?,
            is_true: row.flag("is_true")?,
            reason: row.text("reason")?,
            message: row.text("message")?,
            since: row.time("since")?,
        })
    })
    .await
}

pub(super) async fn put_condition(db: &Db, target: &TargetName, condition: &Condition) -> Result<bool, StoreError> {
    const WHAT: &str = "record a condition";
    let fail = |error| failed(&db.path, WHAT, error);
    // Both statements run on the one writing connection: nobody writes in between.
    let mut connection = db.pool.acquire().await.map_err(fail)?;
    let same = query(
        "SELECT message = ?5 AS is_equal FROM conditions
         WHERE target = ?1 AND kind = ?2 AND is_true = ?3 AND reason = ?4",
    )
    .bind(target.to_string())
    .bind(&condition.kind)
    .bind(i64::from(condition.is_true))
    .bind(&condition.reason)
    .bind(&condition.message)
    .fetch_all(&mut *connection)
    .await
    .map_err(fail)?;
    // Most passes find what is already noted: nothing is written, so nothing is flushed.
    if let Some(row) = same.first()
        && Fields::of(row, "condition").flag("is_equal")?
    {
        return Ok(false);
    }
    query(
        "INSERT INTO conditions (target, kind, is_true, reason, message, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (target, kind) DO UPDATE SET
             since = CASE WHEN is_true = excluded.is_true AND reason = excluded.reason
                          THEN since ELSE excluded.since END,
             is_true = excluded.is_true, reason = excluded.reason, message = excluded.message",
    )
    .bind(target.to_string())
    .bind(&condition.kind)
    .bind(i64::from(condition.is_true))
    .bind(&condition.reason)
    .bind(&condition.message)
    .bind(micros(condition.since))
    .execute(&mut *connection)
    .await
    .map_err(fail)?;
    Ok(same.is_empty())
}

pub(super) async fn drift(db: &Db, target: &TargetName) -> Result<Option<DriftFinding>, StoreError> {
    let question = query("SELECT * FROM drift WHERE target = ?1").bind(target.to_string());
    db.first("read the drift", question, |row| {
        let row = Fields::of(row, "drift finding");
        Ok(DriftFinding {
            revision: row.parsed("revision")?,
            difference: row.text("difference")?,
            summary: row.json("summary")?,
            since: row.time("since")?,
            looked_at: row.time("looked_at")?,
        })
    })
    .await
}

pub(super) async fn put_drift(db: &Db, target: &TargetName, finding: Option<&DriftFinding>) -> Result<(), StoreError> {
    const WHAT: &str = "record drift";
    let statement = match finding {
        None => query("DELETE FROM drift WHERE target = ?1").bind(target.to_string()),
        Some(finding) => query(
            "INSERT INTO drift (target, revision, difference, summary, since, looked_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (target) DO UPDATE SET
                 since = CASE WHEN revision = excluded.revision
                               AND difference = excluded.difference
                               AND summary = excluded.summary
                              THEN since ELSE excluded.since END,
                 revision = excluded.revision, difference = excluded.difference,
                 summary = excluded.summary, looked_at = excluded.looked_at",
        )
        .bind(target.to_string())
        .bind(finding.revision.as_str())
        .bind(&finding.difference)
        .bind(json(WHAT, &finding.summary)?)
        .bind(micros(finding.since))
        .bind(micros(finding.looked_at)),
    };
    db.run(WHAT, statement).await?;
    Ok(())
}

pub(super) async fn audit(db: &Db, event: &AuditEvent) -> Result<(), StoreError> {
    let statement = query(
        "INSERT INTO audit (at, target, by, kind, message, sha, release)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(micros(event.at))
    .bind(event.target.as_ref().map(TargetName::to_string))
    .bind(&event.by)
    .bind(&event.kind)
    .bind(&event.message)
    .bind(event.sha.as_ref().map(Sha::as_str))
    .bind(event.release.map(numbered).transpose()?);
    db.run("append to the audit log", statement).await?;
    Ok(())
}

pub(super) async fn audit_events(
    db: &Db,
    target: Option<&TargetName>,
    limit: u32,
) -> Result<Vec<AuditEvent>, StoreError> {
    let question = match target {
        None => query("SELECT * FROM audit ORDER BY seq DESC LIMIT ?1").bind(i64::from(limit)),
        Some(target) => query("SELECT * FROM audit WHERE target = ?2 ORDER BY seq DESC LIMIT ?1")
            .bind(i64::from(limit))
            .bind(target.to_string()),
    };
    db.all("read the audit log", question, |row| {
        let row = Fields::of(row, "audit event");
        Ok(AuditEvent {
            at: row.time("at")?,
            target: row.maybe_parsed("target")?,
            by: row.text("by")?,
            kind: row.text("kind")?,
            message: row.text("message")?,
            sha: row.maybe_parsed("sha")?,
            release: row.maybe_number("release")?,
        })
    })
    .await
}

pub(super) async fn put_known_target(db: &Db, target: &TargetName, is_orphaned: bool) -> Result<(), StoreError> {
    let statement = query(
        "INSERT INTO known_targets (target, is_orphaned) VALUES (?1, ?2)
         ON CONFLICT (target) DO UPDATE SET is_orphaned = excluded.is_orphaned
             WHERE is_orphaned <> excluded.is_orphaned",
    )
    .bind(target.to_string())
    .bind(i64::from(is_orphaned));
    db.run("remember a target", statement).await?;
    Ok(())
}

pub(super) async fn known_targets(db: &Db) -> Result<Vec<(TargetName, bool)>, StoreError> {
    let question = query("SELECT * FROM known_targets ORDER BY target");
    db.all("read the known targets", question, |row| {
        let row = Fields::of(row, "known target");
        Ok((row.parsed("target")?, row.flag("is_orphaned")?))
    })
    .await
}

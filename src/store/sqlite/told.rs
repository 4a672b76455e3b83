//! What was told to others: reverts written to Git, and states reported to GitHub.

use sqlx::query;
use sqlx::sqlite::SqliteRow;

use super::db::{Db, Fields, micros};
use crate::model::{BranchName, Sha};
use crate::store::StoreError;
use crate::store::record::{ReportRecord, RevertRecord};

fn read_revert(row: &SqliteRow) -> Result<RevertRecord, StoreError> {
    let row = Fields::of(row, "revert");
    Ok(RevertRecord {
        repo: row.text("repo")?,
        branch: row.parsed("branch")?,
        bad: row.parsed("bad")?,
        good: row.parsed("good")?,
        target: row.parsed("target")?,
        by: row.text("by")?,
        at: row.time("at")?,
        commit: row.maybe_parsed("commit_id")?,
        on_branch: row.text("on_branch")?,
        link: row.maybe_text("link")?,
    })
}

pub(super) async fn revert(
    db: &Db,
    (repo, branch): (&str, &BranchName),
    bad: &Sha,
) -> Result<Option<RevertRecord>, StoreError> {
    let question = query("SELECT * FROM reverts WHERE repo = ?1 AND branch = ?2 AND bad = ?3")
        .bind(repo)
        .bind(branch.as_str())
        .bind(bad.as_str());
    db.first("read a revert", question, read_revert).await
}

pub(super) async fn revert_to(
    db: &Db,
    (repo, branch): (&str, &BranchName),
    good: &Sha,
) -> Result<Option<RevertRecord>, StoreError> {
    let question =
        query("SELECT * FROM reverts WHERE repo = ?1 AND branch = ?2 AND good = ?3 ORDER BY at DESC, bad LIMIT 1")
            .bind(repo)
            .bind(branch.as_str())
            .bind(good.as_str());
    db.first("read a revert", question, read_revert).await
}

pub(super) async fn put_revert(db: &Db, revert: &RevertRecord) -> Result<(), StoreError> {
    let statement = query(
        "INSERT OR REPLACE INTO reverts
             (repo, branch, bad, good, target, by, at, commit_id, on_branch, link)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .bind(&revert.repo)
    .bind(revert.branch.as_str())
    .bind(revert.bad.as_str())
    .bind(revert.good.as_str())
    .bind(revert.target.to_string())
    .bind(&revert.by)
    .bind(micros(revert.at))
    .bind(revert.commit.as_ref().map(Sha::as_str))
    .bind(&revert.on_branch)
    .bind(&revert.link);
    db.run("record a revert", statement).await?;
    Ok(())
}

pub(super) async fn report(
    db: &Db,
    (repo, sha): (&str, &Sha),
    context: &str,
) -> Result<Option<ReportRecord>, StoreError> {
    let question = query("SELECT * FROM reports WHERE repo = ?1 AND sha = ?2 AND context = ?3")
        .bind(repo)
        .bind(sha.as_str())
        .bind(context);
    db.first("read a report", question, |row| {
        let row = Fields::of(row, "report");
        Ok(ReportRecord {
            repo: row.text("repo")?,
            sha: row.parsed("sha")?,
            context: row.text("context")?,
            state: row.text("state")?,
            description: row.text("description")?,
            at: row.time("at")?,
            deployment: row.maybe_number("deployment")?.map(|number| number.0),
            is_full: row.flag("is_full")?,
        })
    })
    .await
}

pub(super) async fn put_report(db: &Db, report: &ReportRecord) -> Result<(), StoreError> {
    let deployment = report
        .deployment
        .map(i64::try_from)
        .transpose()
        .map_err(|_| StoreError::Corrupt { what: "report", detail: "a deployment's number does not fit".to_owned() })?;
    let statement = query(
        "INSERT OR REPLACE INTO reports (repo, sha, context, state, description, at, deployment, is_full)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .bind(&report.repo)
    .bind(report.sha.as_str())
    .bind(&report.context)
    .bind(&report.state)
    .bind(&report.description)
    .bind(micros(report.at))
    .bind(deployment)
    .bind(i64::from(report.is_full));
    db.run("record a report", statement).await?;
    Ok(())
}

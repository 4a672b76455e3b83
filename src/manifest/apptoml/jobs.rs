//! `[[jobs]]`: commands that run on a schedule in the live release's image.

use super::TOP_LEVEL;
use crate::model::desired::JobRequest;
use crate::model::document::{Refusal, Table, Value, form};
use crate::schedule::field::calendar_expression;

/// The contract's most jobs.
const MAX_JOBS: usize = 20;
/// The contract's longest timeout, 6 hours in seconds.
const MAX_TIMEOUT_SECONDS: u32 = 6 * 3600;
/// The contract's default timeout, 10 minutes in seconds.
const DEFAULT_TIMEOUT_SECONDS: u32 = 600;

const KEYS: [&str; 5] = ["name", "cmd", "schedule", "timeout", "after_release"];

/// Reads the jobs; an absent key is no job.
pub(super) fn read(value: Option<Value<'_>>) -> Option<Vec<JobRequest>> {
    let Some(value) = value else {
        return Some(Vec::new());
    };
    let items = value.items()?;
    if items.len() > MAX_JOBS {
        value.refuse(Refusal::new(
            format!("has {} jobs, more than {MAX_JOBS}", items.len()),
            "the host runs the jobs of every project",
            "join commands that run at the same time",
        ));
        return None;
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut jobs = Vec::new();
    for item in &items {
        let Some(table) = item.table() else { continue };
        jobs.extend(job(&table, &mut seen));
    }
    (jobs.len() == items.len()).then_some(jobs)
}

fn job<'d>(table: &Table<'d>, seen: &mut Vec<&'d str>) -> Option<JobRequest> {
    table.only(&KEYS, &TOP_LEVEL);
    let name = table.need("name", "add a name, for example `name = \"cleanup\"`").and_then(|value| {
        let name = value.read(form::label)?;
        if seen.contains(&name) {
            value.refuse(Refusal::new(
                "is the name of another job too",
                "a job is started, logged and given its secrets by its name",
                "choose a name of its own",
            ));
            return None;
        }
        seen.push(name);
        Some(name.to_owned())
    });
    let cmd = table.need("cmd", "add the command, for example `cmd = [\"node\", \"jobs/cleanup.mjs\"]`");
    let cmd = cmd.and_then(|value| command(&value));
    let schedule = table.need("schedule", "add a schedule, for example `schedule = \"*-*-* 03:10:00\"`");
    let schedule = schedule.and_then(|value| value.read(calendar_expression));
    let timeout_seconds = match table.get("timeout") {
        Some(value) => value.read(|text| form::seconds(text, (1, MAX_TIMEOUT_SECONDS), "smh")),
        None => Some(DEFAULT_TIMEOUT_SECONDS),
    };
    let after_release = match table.get("after_release") {
        Some(value) => value.boolean(),
        None => Some(false),
    };
    Some(JobRequest {
        name: name?,
        cmd: cmd?,
        schedule: schedule?,
        timeout_seconds: timeout_seconds?,
        after_release: after_release?,
    })
}

/// An argument vector: at least the program, and no NUL, which would end an argument early.
fn command(value: &Value<'_>) -> Option<Vec<String>> {
    let arguments = value.each(|item| {
        item.read(|text| {
            if text.contains('\0') {
                return Err(Refusal::new("has a NUL character", "it would end the argument there", "remove it"));
            }
            Ok(text.to_owned())
        })
    })?;
    if arguments.first().is_none_or(|program| program.trim().is_empty()) {
        value.refuse(Refusal::new(
            "must begin with a program",
            "it is the argument vector that runs in the image; no shell is added",
            "write for example `cmd = [\"node\", \"jobs/cleanup.mjs\"]`",
        ));
        return None;
    }
    Some(arguments)
}

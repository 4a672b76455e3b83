//! Work that runs to its end: once with each release, or on a schedule.
//!
//! Source: `spec/hakopod-kubernetes`, section 9. A changed Job template is a new Job: whoever applies
//! removes the old one first.

use serde_json::{Value, json};

use super::context::View;
use super::pod;
use crate::model::hakopod::{Job, Schedule, Service};

pub(super) const CRON_JOB: &str = "CronJob";
pub(super) const CRON_VERSIONS: [&str; 2] = ["batch/v1", "batch/v1beta1"];
/// How late a run may begin; later ones are left out.
const STARTING_DEADLINE_SECONDS: u32 = 60;

/// The Job or CronJob of a workload.
pub(super) fn job(view: &View<'_>, workload: (&str, &Service), job: &Job) -> Value {
    let (name, _) = workload;
    match &job.schedule {
        Some(schedule) => cron_job(view, workload, (job, schedule)),
        None => json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": view.released(&format!("{name}-job"), Some(name)),
            "spec": spec(view, workload, job),
        }),
    }
}

fn spec(view: &View<'_>, workload: (&str, &Service), job: &Job) -> Value {
    json!({
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": job.retries,
        "activeDeadlineSeconds": job.timeout_seconds,
        "template": pod::template(view, workload.0, workload.1),
    })
}

fn cron_job(view: &View<'_>, workload: (&str, &Service), job: (&Job, &Schedule)) -> Value {
    let (name, service) = workload;
    let (job, schedule) = job;
    let server = view.context.server;
    let version = server.first(CRON_JOB, &CRON_VERSIONS).unwrap_or("batch/v1");
    json!({
        "apiVersion": version,
        "kind": CRON_JOB,
        "metadata": view.released(&format!("{name}-cron"), Some(name)),
        "spec": {
            "schedule": schedule.cron,
            "timeZone": server.knows_time_zones().then_some(&schedule.timezone),
            "suspend": service.suspended,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": STARTING_DEADLINE_SECONDS,
            "successfulJobsHistoryLimit": schedule.history_limit,
            "failedJobsHistoryLimit": schedule.history_limit,
            "jobTemplate": {
                "metadata": { "labels": view.names.labels(Some(name)) },
                "spec": spec(view, workload, job),
            },
        },
    })
}

//! The namespace's budget: what the application needs, at least the contract's numbers, exactly the
//! operator's where the settings name a line.
//!
//! Quotas are not seen by a dry-run (ruling 48), so what exceeds a line is refused here.
//!
//! Source: `spec/hakopod-kubernetes`, section 3; Hakopod TOML schema v1, 'Namespace budgets account
//! for explicit resources and rollout overlap'.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::View;
use super::{container, probe};
use crate::model::Problem;
use crate::model::cluster::{QUOTA_LINES, QuotaUnit as Unit};
use crate::model::hakopod::Service;

/// The quota's name.
const NAME: &str = "trueup-budget";
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One line: its name, unit, least value, and what the application needs.
struct Line {
    name: &'static str,
    unit: Unit,
    least: u64,
    need: u64,
}

/// The sums over all workloads, rollout overlap and sidecars included.
#[derive(Debug, Default)]
struct Need {
    cpu_request: u64,
    cpu_limit: u64,
    memory_request: u64,
    memory_limit: u64,
    ephemeral_request: u64,
    ephemeral_limit: u64,
    pods: u64,
    gpus: u64,
}

/// Pods that exist at once: the most replicas, and one more while a rolling update runs.
fn most_pods(service: &Service) -> u64 {
    let replicas = service.autoscaling.map_or(service.replicas, |scaling| scaling.max_replicas.max(service.replicas));
    let surge = u64::from(service.job.is_none() && !service.is_recreated());
    u64::from(replicas).saturating_add(surge)
}

impl Need {
    fn add(&mut self, service: &Service) {
        let pods = most_pods(service);
        let own = std::iter::once(service.profile());
        let beside = service.sidecars.iter().map(|sidecar| sidecar.size.profile().with(sidecar.resources.as_ref()));
        let add = |sum: &mut u64, each: u64| *sum = sum.saturating_add(each.saturating_mul(pods));
        for profile in own.chain(beside) {
            add(&mut self.cpu_request, u64::from(profile.cpu_request.milli()));
            add(&mut self.cpu_limit, u64::from(profile.cpu_limit.milli()));
            add(&mut self.memory_request, profile.memory_request.bytes());
            add(&mut self.memory_limit, profile.memory_limit.bytes());
            add(&mut self.ephemeral_request, u64::from(container::EPHEMERAL_REQUEST_MIB).saturating_mul(MIB));
            add(&mut self.ephemeral_limit, u64::from(container::EPHEMERAL_LIMIT_MIB).saturating_mul(MIB));
        }
        let scratch = u64::from(container::scratch_mib(service)).saturating_mul(MIB);
        add(&mut self.ephemeral_request, scratch);
        add(&mut self.ephemeral_limit, scratch);
        if probe::needs_helper(service) {
            add(&mut self.ephemeral_request, u64::from(container::HELPER_MIB).saturating_mul(MIB));
        }
        add(&mut self.pods, 1);
        add(&mut self.gpus, service.gpu.map_or(0, |gpu| u64::from(gpu.count)));
    }
}

/// Objects that are counted one by one.
struct Counted {
    services: u64,
    claims: u64,
    schedules: u64,
}

impl Counted {
    fn of(view: &View<'_>) -> Self {
        let count = |is_meant: fn(&Service) -> bool| {
            let meant = view.application.services.values().filter(|service| is_meant(service));
            meant.fold(0_u64, |sum, _| sum.saturating_add(1))
        };
        let named = view.application.volumes.values().fold(0_u64, |sum, _| sum.saturating_add(1));
        Self {
            services: count(|service| service.port.is_some() || !service.ports.is_empty()),
            claims: named.saturating_add(count(|service| service.volume.is_some())),
            schedules: count(|service| service.job.as_ref().is_some_and(|job| job.schedule.is_some())),
        }
    }
}

fn lines(view: &View<'_>) -> Vec<Line> {
    let services = view.application.services.values();
    let mut need = Need::default();
    services.clone().for_each(|service| need.add(service));
    let has_gpu = services.clone().any(|service| service.gpu.is_some());
    let is_persistent = services.clone().any(Service::is_persistent);
    let pick = |plain: u64, gpu: u64| if has_gpu { gpu } else { plain };
    let schedules = services.filter_map(|service| service.job.as_ref()?.schedule.as_ref());
    let counted = Counted::of(view);
    let runs = schedules.fold(20, |sum, schedule| {
        u64::from(schedule.history_limit).saturating_mul(2).saturating_add(1).saturating_add(sum)
    });
    let storage_least = if is_persistent { 8 } else { 4 } * GIB;
    let numbers = |name: &str| match name {
        "requests.cpu" => (pick(8000, 32000), need.cpu_request),
        "limits.cpu" => (pick(16000, 64000), need.cpu_limit),
        "requests.memory" => (pick(8, 64) * GIB, need.memory_request),
        "limits.memory" => (pick(16, 128) * GIB, need.memory_limit),
        "requests.ephemeral-storage" => (storage_least, need.ephemeral_request),
        "limits.ephemeral-storage" => (8 * GIB, need.ephemeral_limit),
        "pods" => (64, need.pods),
        "services" => (25, counted.services),
        "persistentvolumeclaims" => (20, counted.claims),
        "count/cronjobs.batch" => (20, counted.schedules),
        "requests.storage" => (200 * GIB, storage(view)),
        "count/jobs.batch" => (runs, 0),
        "requests.nvidia.com/gpu" => (8, need.gpus),
        // ConfigMaps and Secrets, whose old versions are kept while pods use them.
        _ => (256, 0),
    };
    let wanted = QUOTA_LINES.iter().filter(|(name, _)| has_gpu || !name.contains("gpu"));
    wanted
        .map(|(name, unit)| {
            let (least, need) = numbers(name);
            Line { name, unit: *unit, least, need }
        })
        .collect()
}

/// What all claims ask for, in bytes.
fn storage(view: &View<'_>) -> u64 {
    let named = view.application.volumes.values().map(|volume| volume.size_gib);
    let own = view.application.services.values().filter_map(|service| service.volume.as_ref()).map(|own| own.size_gib);
    named.chain(own).fold(0, |sum, gib| u64::from(gib).saturating_mul(GIB).saturating_add(sum))
}

impl Line {
    fn value(&self, view: &View<'_>) -> String {
        match view.context.settings.limits.quota.get(self.name) {
            Some(bound) => bound.text.clone(),
            None => shown(self.unit, self.least.max(self.need)),
        }
    }
}

/// The shortest exact text of a quantity.
fn shown(unit: Unit, number: u64) -> String {
    match unit {
        Unit::Milli if !number.is_multiple_of(1000) => format!("{number}m"),
        Unit::Milli => format!("{}", number / 1000),
        Unit::Bytes if number.is_multiple_of(GIB) => format!("{}Gi", number / GIB),
        Unit::Bytes if number.is_multiple_of(MIB) => format!("{}Mi", number / MIB),
        Unit::Bytes | Unit::Count => number.to_string(),
    }
}

pub(super) fn quota(view: &View<'_>) -> Value {
    let hard: BTreeMap<&str, String> = lines(view).iter().map(|line| (line.name, line.value(view))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": view.metadata(NAME, None),
        "spec": { "hard": hard },
    })
}

/// The lines that the operator bounds below what the application needs.
pub(super) fn problems(view: &View<'_>) -> Vec<Problem> {
    let settings = view.context.settings;
    let over = lines(view).into_iter().filter_map(|line| {
        let bound = settings.limits.quota.get(line.name)?;
        (line.need > bound.number).then(|| Problem {
            place: None,
            key: "services".to_owned(),
            message: format!(
                "the application needs {} of {}, and the cluster allows {}",
                shown(line.unit, line.need),
                line.name,
                bound.text
            ),
            why: format!("{} bounds every application's namespace", settings.key(&format!("limits.\"{}\"", line.name))),
            fix: "ask for less, or raise the limit in the cluster's settings".to_owned(),
        })
    });
    over.collect()
}

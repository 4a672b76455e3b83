//! What this version does not do yet is refused when planned, naming the key (ruling 11).

use crate::model::desired::DesiredState;
use crate::model::policy::ImageFrom;
use crate::model::{Reason, ReasonCode};

/// Gives the first key of manifest or registry that uses what is not built yet.
#[must_use]
pub fn unsupported(desired: &DesiredState) -> Option<Reason> {
    let policy = &desired.policy;
    let uses = [
        (desired.data.is_some() || policy.data.is_some(), "data", "data volumes"),
        (!desired.jobs.is_empty(), "[[jobs]]", "jobs"),
        (!policy.secrets.is_empty(), "secrets", "secrets"),
        (!policy.job_secrets.is_empty(), "job_secrets", "secrets of jobs"),
        (!policy.egress.is_empty(), "egress", "the way out through the egress proxy"),
        (!policy.upstreams.is_empty(), "upstreams", "services of the host"),
        (policy.adopt.is_some(), "adopt", "taking over a running site"),
        (desired.image.policy.from == ImageFrom::Registry, "image.from = \"registry\"", "pulling from a registry"),
    ];
    uses.into_iter().find(|(is_used, _, _)| *is_used).map(|(_, key, what)| {
        Reason::new(
            ReasonCode::NotBuilt,
            format!(
                "`{key}` is set, and this version of trueup does not do {what} yet: nothing was changed; take the key out to release {}",
                desired.target
            ),
        )
    })
}

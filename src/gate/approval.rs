//! A person's consent to exactly one plan (ruling 6).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::policy::Approve;
use crate::model::{Reason, ReasonCode};

/// A person's decision on a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The plan's hash.
    pub plan: String,
    /// Approved, or denied.
    pub is_approved: bool,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// The plan may run.
    Given(Consented),
    /// A person has to decide first.
    Held {
        /// Why.
        reason: Reason,
    },
    /// A person said no.
    Denied {
        /// Why.
        reason: Reason,
    },
}

/// The permission to run one plan. Only [`consent`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consented {
    plan: String,
    by: Option<String>,
}

impl Consented {
    /// The hash of the plan it was given for.
    #[must_use]
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// Who consented; absent when the registry asks nobody.
    #[must_use]
    pub fn by(&self) -> Option<&str> {
        self.by.as_deref()
    }
}

/// Decides whether the plan with this hash may run.
///
/// Among the decisions on exactly this hash the latest counts; decisions on other plans never do,
/// but are named. A denial holds even where nobody has to be asked.
#[must_use]
pub fn consent(approve: Approve, plan: &str, decisions: &[Approval]) -> Consent {
    let latest = decisions.iter().filter(|decision| decision.plan == plan).max_by_key(|decision| decision.at);
    match (latest, approve) {
        (Some(decision), _) if !decision.is_approved => {
            let message = format!("{} denied plan {} at {}", decision.by, short(plan), decision.at);
            Consent::Denied { reason: Reason::new(ReasonCode::Denied, message) }
        }
        (Some(decision), _) => Consent::Given(Consented { plan: plan.to_owned(), by: Some(decision.by.clone()) }),
        (None, Approve::Never) => Consent::Given(Consented { plan: plan.to_owned(), by: None }),
        (None, Approve::Always) => {
            Consent::Held { reason: Reason::new(ReasonCode::NeedsApproval, waits(plan, decisions)) }
        }
    }
}

fn waits(plan: &str, decisions: &[Approval]) -> String {
    let plan_short = short(plan);
    let earlier = decisions.iter().filter(|decision| decision.is_approved).max_by_key(|decision| decision.at);
    let before = earlier.map_or_else(String::new, |decision| {
        format!(
            " {} approved plan {} at {}, but the plan has changed since, and an approval counts for one plan only.",
            decision.by,
            short(&decision.plan),
            decision.at
        )
    });
    format!(
        "plan {plan_short} waits for a person.{before} `trueup approve {plan_short}` or `trueup deny {plan_short}` decides"
    )
}

fn short(plan: &str) -> &str {
    plan.get(..12).unwrap_or(plan)
}

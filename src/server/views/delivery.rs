//! What became of a webhook delivery.

use serde::{Deserialize, Serialize};

use crate::server::webhook::refusals::Refusal;
use crate::store::deliveries::DeliveryRecord;
use crate::store::{Store, StoreError};

/// An answer about one delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The delivery's id.
    pub id: String,
    /// The answer, in one or two sentences.
    pub answer: String,
    /// What to do; empty when nothing is to be done.
    pub advice: String,
    /// What is stored: one for each hook that delivered it, newest first.
    pub records: Vec<DeliveryRecord>,
}

/// Answers about a delivery by its id, or a prefix of at least 8 characters; none when nothing is stored.
///
/// # Errors
/// When the store cannot be read.
pub async fn delivery(store: &dyn Store, id: &str) -> Result<Option<Delivered>, StoreError> {
    let Some(deliveries) = store.deliveries() else { return Ok(None) };
    let mut records = deliveries.deliveries_by_id(id).await?;
    let Some(newest) = records.first().cloned() else { return Ok(None) };
    records.retain(|record| record.id == newest.id);
    let answer = records.iter().map(sentence).collect::<Vec<_>>().join("; ");
    Ok(Some(Delivered { id: newest.id, answer, advice: advice(&newest.reason).to_owned(), records }))
}

fn sentence(record: &DeliveryRecord) -> String {
    let hook = if record.hook.is_empty() { String::new() } else { format!(" by hook {}", record.hook) };
    let action = record.action.as_ref().map(|action| format!(" {action}")).unwrap_or_default();
    let copies = match record.copies {
        1 => String::new(),
        copies => format!(" It came {copies} times, last at {}; copies wake nobody.", record.last_at),
    };
    format!(
        "`{}{action}`{hook} came at {}, signed with secret {}. {}.{copies}",
        record.event, record.received_at, record.secret_slot, record.message
    )
}

fn advice(reason: &str) -> &'static str {
    match reason {
        "UnknownRepository" => "if a target should follow it, put `repo` into its file of the registry",
        "OtherRef" => "if a target should follow that branch, set its `branch` in the registry",
        "EventNotUsed" => "nothing; the hook may leave the event out",
        "Unreadable" => "set the hook's content type to application/json, and look at what a proxy changes on the way",
        _ => "",
    }
}

/// Answers about a delivery that was turned away: of that nothing is stored.
#[must_use]
pub fn refused(refusal: &Refusal) -> Delivered {
    let advice = match refusal.status {
        401 => "give the hook the secret that is in the first file of `[github] webhook_secret_files`, then redeliver",
        413 => "raise `[github] webhook_limit`; polling finds the commit all the same",
        _ => "redeliver it at the hook's page; polling finds the commit all the same",
    };
    Delivered {
        id: refusal.id.clone(),
        answer: format!(
            "a delivery that called itself {} (event `{}`, hook `{}`) was refused with {} at {}: {}",
            refusal.id, refusal.event, refusal.hook, refusal.status, refusal.at, refusal.message
        ),
        advice: advice.to_owned(),
        records: Vec::new(),
    }
}

//! What the records say of earlier releases, for a plan.

use crate::model::desired::DesiredState;
use crate::plan::Serving;
use crate::release::Phase;
use crate::store::record::ReleaseRecord;

/// Releases that a plan looks back over for images to keep.
pub(super) const HISTORY: u32 = 100;

/// The release that serves, with the image tags of the target's live releases, newest first.
pub(super) fn serving(record: &ReleaseRecord, history: &[ReleaseRecord]) -> Option<Serving> {
    let desired: DesiredState = serde_json::from_value(record.new.desired.clone()?).ok()?;
    Some(Serving { number: record.number, slot: record.new.slot?, desired, kept: live_tags(history) })
}

/// The image tags of what was live, each once, in the order of the records.
pub(super) fn live_tags(history: &[ReleaseRecord]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for live in history.iter().filter(|record| record.phase == Phase::Live) {
        let short = live.new.revision.short().to_owned();
        if !kept.contains(&short) {
            kept.push(short);
        }
    }
    kept
}

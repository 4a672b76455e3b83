//! Drift: a difference between what was released and what runs, that no new revision explains.

use crate::model::Slot;
use crate::model::desired::{ContainerSpec, NetworkSpec, Vhost};
use crate::model::live::{LiveEdge, LiveState, SlotState};

use super::render::{Document, unified};

/// What a released target must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The slot that serves.
    pub slot: Slot,
    /// Its container, labels and image id included.
    pub container: ContainerSpec,
    /// The bridge.
    pub network: NetworkSpec,
    /// The vhost.
    pub vhost: Vhost,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// One line a difference, for `status`.
    pub summary: Vec<String>,
    /// The unified difference: `a` is what was released, `b` what runs.
    pub difference: String,
}

impl Drift {
    /// Whether everything is as it was released.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.is_empty()
    }
}

/// How specifications are written out: `render::container::text` and its kin, handed in because
/// differences know nothing of engines.
#[derive(Clone, Copy)]
pub struct Texts {
    /// A container, a setting a line.
    pub container: fn(&ContainerSpec) -> String,
    /// A bridge, a setting a line.
    pub network: fn(&NetworkSpec) -> String,
}

/// Compares a released target with what runs.
///
/// Only what we set is compared (promise P9). The text is for people; the summary has one line for
/// each document that differs.
#[must_use]
pub fn drift(expected: &Expected, live: &LiveState, edge: &LiveEdge, texts: Texts) -> Drift {
    let documents = [
        container_document(expected, live.slot(expected.slot), texts),
        Document {
            name: format!("network {}", expected.network.name),
            before: Some((texts.network)(&expected.network)),
            after: live.network.as_ref().map(texts.network),
        },
        isolation_document(expected, live),
        Document {
            name: format!("vhost {}", expected.vhost.file),
            before: Some(expected.vhost.text.clone()),
            after: edge.vhost.clone(),
        },
        loaded_document(expected, edge),
        marker_document(expected.slot, edge.serving),
    ];
    let summary = documents.iter().filter(|document| !document.is_unchanged()).map(line).collect();
    Drift { summary, difference: unified(&documents) }
}

fn line(document: &Document) -> String {
    match &document.after {
        None => format!("{} is gone", document.name),
        Some(_) => format!("{} differs", document.name),
    }
}

fn container_document(expected: &Expected, state: &SlotState, texts: Texts) -> Document {
    let state_line = |run: &str, kept: bool| format!("state: {run}\nstarts after a reboot: {kept}\n");
    let before = format!("{}{}", (texts.container)(&expected.container), state_line("running", true));
    let after = match state {
        SlotState::Empty => None,
        SlotState::Foreign { id } => Some(format!("a container that trueup did not make: {id}\n")),
        SlotState::Ours(container) => {
            let run = if container.run.is_running() { "running" } else { "not running" };
            Some(format!("{}{}", (texts.container)(&container.spec), state_line(run, container.is_kept)))
        }
    };
    Document { name: format!("container {}", expected.container.name), before: Some(before), after }
}

fn isolation_document(expected: &Expected, live: &LiveState) -> Document {
    let after = if live.isolation_missing.is_empty() {
        "complete\n".to_owned()
    } else {
        live.isolation_missing.iter().map(|missing| format!("missing: {missing}\n")).collect()
    };
    Document {
        name: format!("isolation {}", expected.network.bridge),
        before: Some("complete\n".to_owned()),
        after: Some(after),
    }
}

fn loaded_document(expected: &Expected, edge: &LiveEdge) -> Document {
    let text = |is_loaded: bool| if is_loaded { "served by Caddy\n" } else { "not served by Caddy\n" }.to_owned();
    Document {
        name: format!("edge {}", expected.vhost.hosts.join(",")),
        before: Some(text(true)),
        after: Some(text(edge.is_loaded)),
    }
}

fn marker_document(expected: Slot, serving: Option<Slot>) -> Document {
    let text = |slot: Option<Slot>| match slot {
        Some(slot) => format!("traffic goes to slot {slot}\n"),
        None => "traffic goes nowhere: 503 `not released yet`\n".to_owned(),
    };
    Document { name: "marker".to_owned(), before: Some(text(Some(expected))), after: Some(text(serving)) }
}

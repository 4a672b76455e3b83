//! The engine's events: what tells the loop to look for drift at once.

use std::collections::HashMap;
use std::path::Path;

use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt as _;

use super::engine::{Engine, READ_DEADLINE};
use crate::model::TargetName;
use crate::render::container::LABEL_TARGET;
use crate::target::TargetError;

/// Calls `on_event` with the target of each event about a container or network of ours, until the
/// engine's stream ends.
///
/// # Errors
/// [`TargetError`] when the engine does not answer, or ends the stream.
pub async fn follow(socket: &Path, on_event: impl Fn(TargetName) + Send) -> Result<(), TargetError> {
    let engine = Engine::new(socket.to_owned());
    let client = engine.client().await?;
    let filters = HashMap::from([
        ("type".to_owned(), vec!["container".to_owned(), "network".to_owned()]),
        (
            "event".to_owned(),
            ["die", "destroy", "start", "stop", "update", "rename", "pause", "unpause", "connect", "disconnect"]
                .map(str::to_owned)
                .to_vec(),
        ),
    ]);
    let mut events = client.events(Some(EventsOptions { filters: Some(filters), ..EventsOptions::default() }));
    while let Some(event) = events.next().await {
        let event = engine.bounded("send its events", READ_DEADLINE, async { event }).await?;
        let attributes = event.actor.and_then(|actor| actor.attributes).unwrap_or_default();
        let label = attributes.get(LABEL_TARGET).cloned();
        // A network's event carries its name and no labels.
        let name = label.or_else(|| attributes.get("name").map(|name| name.replacen('.', "/", 1)));
        if let Some(target) = name.and_then(|name| name.parse().ok()) {
            on_event(target);
        }
    }
    Ok(())
}

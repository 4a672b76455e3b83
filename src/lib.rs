//! trueup keeps hosts and clusters true to Git.
//!
//! One pass, for one target, from the trigger to the record:
//!
//! | stage | module | kind |
//! |---|---|---|
//! | trigger | [`trigger`], [`server`] | effect: puts a target's name on the queue, no more |
//! | fetch | [`source`] | effect: a ref becomes a revision, a revision becomes bytes |
//! | manifest | [`manifest`], [`config`] | decision: bytes become a desired state |
//! | gate | [`gate`] | decision: admitted, held or denied |
//! | plan | [`diff`], [`plan`] | decision: desired and live become steps, undo included |
//! | converge | [`target`], [`image`], [`edge`] | effect: the steps, on the idle slot |
//! | verify | [`probe`], then [`verify`] | effect, then decision |
//! | commit or revert | [`edge`], [`target`] | effect |
//! | record | [`release`], [`store`] | decision, then effect |
//!
//! Decisions (layers 0 and 1) are pure functions over plain data; effects (layer 2) stand behind
//! narrow traits; the loop (layer 3) joins them. `docs/ARCHITECTURE.md` has the map and the
//! invariants, `src/tests/architecture.rs` holds the imports to it.

// Layer 5: wiring.
pub mod app;
pub mod cli;
// Layer 4: faces.
pub mod server;
pub mod trigger;
// Layer 3: the loop.
pub mod reconcile;
// Layer 2: effects.
pub mod clock;
pub mod edge;
pub mod image;
pub mod probe;
pub mod report;
pub mod source;
pub mod store;
pub mod target;
// Layer 1: decisions.
pub mod config;
pub mod diff;
pub mod gate;
pub mod manifest;
pub mod plan;
pub mod release;
pub mod render;
pub mod schedule;
pub mod verify;
// Layer 0: words.
pub mod model;

#[cfg(test)]
mod tests;

//! Releases: the state machine of one, and what is to be done after a crash.

pub mod history;
pub mod phase;
pub mod record;
pub mod revert;

pub use phase::{Event, IllegalTransition, Phase};

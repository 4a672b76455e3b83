//! The loop: one pass for one target, serial for each target, parallel across targets.

pub mod backoff;
pub mod progress;
pub mod queue;

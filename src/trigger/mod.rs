//! Triggers: what puts a target's name on the queue, no more.

pub mod watch;

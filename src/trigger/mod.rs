//! Triggers: what puts a target's name on the queue, and what is read on the way.

pub mod config_dir;
pub mod follow;
pub mod watch;

//! What puts a target on the queue, and what is read on the way.

pub mod config_dir;

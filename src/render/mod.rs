//! Desired state as the documents that an engine and an edge take. Pure: equal inputs give equal text.

pub mod container;
pub mod kubernetes;
pub mod vhost;

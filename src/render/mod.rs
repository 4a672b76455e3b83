//! Desired state as the documents that an engine and an edge take.

pub mod container;

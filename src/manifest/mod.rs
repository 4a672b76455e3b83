//! From a manifest's bytes to the desired state of one target.
//!
//! The repository asks, the operator decides: [`apptoml`] reads what a commit asks for,
//! [`desired`] joins it with what the registry gives. Neither reads files, knows the time, or lets
//! the repository widen anything.

pub mod apptoml;
pub mod hakopod;
mod join;

pub use apptoml::AppManifest;
pub use join::{Commit, desired};

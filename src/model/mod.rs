//! Layer 0, the words: the nouns of the field as types that guard their own invariants.
//!
//! Nothing here does I/O, knows the time, or imports anything of ours.

pub mod ci;
pub mod cluster;
pub mod desired;
pub mod document;
pub mod fault;
pub mod hakopod;
pub mod live;
pub mod name;
pub mod outcome;
pub mod policy;
pub mod problem;
pub mod revision;
pub mod sample;
pub mod secret;

pub use fault::{Class, Fault, Reason, ReasonCode};
pub use name::{BranchName, ProjectName, RepoPath, Slot, TargetLabel, TargetName};
pub use problem::{Place, Problem, Problems};
pub use revision::{Digest, ImageId, ReleaseNumber, Sha};
pub use secret::Secret;

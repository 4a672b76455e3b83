//! What the operator writes: `huta.toml` ([`host`]) and `projects.d/*.toml` ([`registry`]).
//!
//! Parse, defaults, validation; no file is read here, and nothing is looked up. Both are strict,
//! and both report all problems of a file at once.
//!
//! Source: app.toml contract, 'Host side: registry'; `DESIGN` section 4 for the own keys.

pub mod cluster;
pub mod host;
pub mod registry;

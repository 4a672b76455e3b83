//! Tests that span modules, and what they share.

pub(crate) mod app;
mod architecture;
mod cluster;
pub(crate) mod corpus;
mod docs;
pub(crate) mod edits;
pub(crate) mod git_http;
pub(crate) mod git_repo;
pub(crate) mod github;
mod scenario;
pub(crate) mod world;

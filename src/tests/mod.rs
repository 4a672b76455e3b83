//! Tests that span modules, and what they share.

pub(crate) mod app;
mod architecture;
pub(crate) mod git_http;
pub(crate) mod git_repo;
pub(crate) mod github;
mod scenario;
pub(crate) mod world;

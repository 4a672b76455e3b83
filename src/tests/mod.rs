//! Tests that span modules.

pub(crate) mod git_http;
pub(crate) mod git_repo;

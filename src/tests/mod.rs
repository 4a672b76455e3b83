//! Tests that span modules.

pub(crate) mod github;

//! Tests that span modules.

pub(crate) mod edits;

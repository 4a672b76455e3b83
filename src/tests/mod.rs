//! Tests that span modules.

mod docs;
pub(crate) mod edits;

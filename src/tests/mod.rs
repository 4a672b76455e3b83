//! Tests that span modules.

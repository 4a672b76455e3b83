//! Tests that span modules.

mod architecture;

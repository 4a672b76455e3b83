//! Tests that span modules, and what they share.

pub(crate) mod app;
mod architecture;

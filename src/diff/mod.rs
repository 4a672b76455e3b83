//! Differences, as text that people read and as facts that decisions use.

pub mod drift;
pub mod manifest;
pub mod render;
#[cfg(test)]
mod tests;

pub use render::{Document, unified};

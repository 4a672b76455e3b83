//! From a difference to steps, the undo included.

pub mod step;

pub use step::Step;

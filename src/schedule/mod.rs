//! Schedules, as questions about a given instant.

pub mod windows;

//! Schedules, as questions about a given instant.
//!
//! Nothing here knows what time it is, waits or runs anything: an expression and an instant go
//! in, the next instant comes out.

pub mod field;
pub mod instant;
pub mod oncalendar;
pub mod windows;

pub use instant::{InstantError, parse_instant};
pub use oncalendar::{ElapseError, OnCalendar, ParseError, Problem};

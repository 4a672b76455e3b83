//! Docker through its engine API.

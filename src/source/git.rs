//! Git through gix.

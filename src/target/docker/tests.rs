//! Live tests.

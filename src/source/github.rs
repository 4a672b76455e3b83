//! GitHub through octocrab.

//! The whole daemon on real parts: the built `trueup`, Docker, Caddy and git, each test in a private world.
//!
//! A part that is missing fails the test and says what to do; nothing is skipped. Waiting is always for
//! the thing itself, with a bound.

#![expect(clippy::disallowed_methods, reason = "waits for real processes have real bounds")]

// Every module is marked as test code, since the lints do not take a test target as a whole for it.
// What these helpers name as `crate::…` comes from the library here.
use trueup::{image, model};

#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../app.rs"]
#[cfg(test)]
mod app;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../git_http.rs"]
#[cfg(test)]
mod git_http;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../git_repo.rs"]
#[cfg(test)]
mod git_repo;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../github.rs"]
#[cfg(test)]
mod github;

#[cfg(test)]
mod client;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod http;
#[cfg(test)]
mod process;
#[cfg(test)]
mod world;

#[cfg(test)]
mod ci;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod drift;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod people;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod rollback;
#[cfg(test)]
mod surroundings;

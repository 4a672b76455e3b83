//! The whole daemon on real parts: the built `trueup`, Docker, Caddy and git, each test in a private world.
//!
//! A part that is missing fails the test and says what to do; nothing is skipped. Waiting is always for
//! the thing itself, with a bound.

// What these helpers name as `crate::…` comes from the library here.
use trueup::{image, model};

#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../app.rs"]
mod app;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../git_http.rs"]
mod git_http;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../git_repo.rs"]
mod git_repo;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest")]
#[path = "../github.rs"]
mod github;

mod client;
mod engine;
mod http;
mod process;
mod world;

mod ci;
mod crashes;
mod drift;
mod failures;
mod moves;
mod people;
mod releases;
mod surroundings;

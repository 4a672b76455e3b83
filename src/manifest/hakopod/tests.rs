//! The rule table over its cases, real files, the import step, targeted releases.

mod cases;
mod docs;
mod imported;
mod normal;
mod targets;

use super::parse;
use crate::model::hakopod::Application;

/// Reads a document that must be good.
fn good(text: &str) -> Application {
    match parse(text.as_bytes(), "hakopod.toml") {
        Ok(application) => application,
        Err(problems) => panic!("refused: {problems:#?}\n{text}"),
    }
}

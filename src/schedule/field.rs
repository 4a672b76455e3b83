//! Calendar expressions as values of files: the manifest's and the registry's.

use super::oncalendar::{OnCalendar, Problem};
use crate::model::document::Refusal;

/// Reads an OnCalendar expression and gives its normal form.
///
/// # Errors
/// What is wrong with it, without the expression itself.
///
/// Source: app.toml contract, `schedule` and `data.backup`.
pub fn calendar_expression(text: &str) -> Result<String, Refusal> {
    OnCalendar::parse(text).map(|expression| expression.to_string()).map_err(|error| {
        let problem = error.problem();
        let what = if matches!(problem, Problem::UnknownZone { .. }) {
            "names no known time zone".to_owned()
        } else {
            format!("is not an OnCalendar expression: at its character {}, {problem}", error.character())
        };
        Refusal::new(what, problem.why(), problem.advice())
    })
}

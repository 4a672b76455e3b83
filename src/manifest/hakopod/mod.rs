//! `hakopod.toml`, the cluster manifest, schema v1: strict, and never half understood.
//!
//! It reads, judges and normalises; it resolves no image, reads no secret and asks no cluster.
//! `env_file` is refused by [`parse`] and replaced by [`import()`] first, from files of the same
//! commit that the caller hands over.
//!
//! | file | what it does |
//! |---|---|
//! | `raw` | the file with strict types, nothing decided |
//! | `form` | the forms of single values |
//! | `rules` | the rule table, beside the rule book's sections |
//! | `normal` | defaults and order |
//! | `import` | `env_file` becomes values and references |
//! | `targeted` | a release of some services only |
//!
//! Source: Hakopod TOML schema v1, and its rule book to section 26.

mod form;
mod import;
mod normal;
mod raw;
mod rules;
mod targeted;
#[cfg(test)]
mod tests;

pub use import::{Imported, ImportedSecret, Lookup, import};
pub use targeted::{TargetedError, resolved_from, targeted};

use std::collections::BTreeSet;

use crate::model::document::{self, FileName, MAX_BYTES, Table};
use crate::model::hakopod::Application;
use crate::model::{Problem, Problems};
use raw::RawApplication;
use rules::Rule;

/// What every message begins with, whatever the file is called.
pub(super) const LABEL: &str = "hakopod.toml";

/// Parses, checks and normalises one `hakopod.toml` of at most 256 KiB.
///
/// `file` is its name for the reader.
///
/// # Errors
/// All problems of the file, each with its field's path and place, none with a value.
pub fn parse(bytes: &[u8], file: &str) -> Result<Application, Problems> {
    let application = document::read(bytes, FileName { file, label: LABEL }, |root| {
        let (raw, failed) = raw::read(root);
        judged(root, raw, &failed)
    })?;
    bounded(application, file)
}

/// Says what keeps an application from being a preview, beside every other rule; nothing when it may be one.
///
/// Source: rule book, section 26.
///
/// # Errors
/// All problems.
pub fn preview(application: &Application, file: &str) -> Result<(), Problems> {
    let text = application.to_toml().map_err(|error| whole(file, error.to_string()))?;
    document::read(text.as_bytes(), FileName { file, label: LABEL }, |root| {
        let (raw, failed) = raw::read(root);
        noted(root, &raw, &failed, rules::PREVIEW).then_some(())
    })
    .map_err(|mut problems| {
        // The places are those of the normal form, which nobody has before them.
        problems.list.iter_mut().for_each(|problem| problem.place = None);
        problems
    })
}

/// What parses here and is refused when it is planned: not built, and never half done (rulings 11 and 53).
///
/// Each entry is the path of a field.
#[must_use]
pub fn unplannable(application: &Application) -> Vec<String> {
    let field = |(name, service): (&String, &crate::model::hakopod::Service)| {
        (!service.database_client_profiles.is_empty()).then(|| format!("services.{name}.database_client_profiles"))
    };
    application.services.iter().filter_map(field).collect()
}

/// The rule table in the order in which it is looked at: section of the rule book, name of the rule.
pub fn rule_table() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::RULES.iter().chain(rules::PREVIEW).map(|rule| (rule.section, rule.name))
}

/// Every rule; the normal form when none is broken and everything could be read.
fn judged(root: &Table<'_>, raw: RawApplication, failed: &BTreeSet<String>) -> Option<Application> {
    let is_good = noted(root, &raw, failed, rules::RULES);
    (is_good && failed.is_empty()).then(|| normal::application(raw))
}

/// Notes what rules find, and says whether that is nothing.
fn noted(root: &Table<'_>, raw: &RawApplication, failed: &BTreeSet<String>, rules: &[Rule]) -> bool {
    let findings = rules::check(raw, failed, rules);
    let is_good = findings.is_empty();
    for finding in findings {
        root.refuse_at(&finding.path, finding.on_key, finding.refusal);
    }
    is_good
}

/// The normal form as JSON is bounded like the file.
fn bounded(application: Application, file: &str) -> Result<Application, Problems> {
    let length = application.to_json().map_err(|error| whole(file, error.to_string()))?.len();
    if length > MAX_BYTES {
        return Err(whole(file, format!("the specification has {length} bytes with defaults, more than {MAX_BYTES}")));
    }
    Ok(application)
}

fn whole(file: &str, message: String) -> Problems {
    Problems {
        file: file.to_owned(),
        list: vec![Problem {
            place: None,
            key: String::new(),
            message: format!("{LABEL}: {message}"),
            why: "specifications are stored whole, in a bounded form".to_owned(),
            fix: "make it smaller: move large file contents into images, and services into other applications"
                .to_owned(),
        }],
    }
}

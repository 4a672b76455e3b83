//! Sections 1 and 2: the document, its name, its services.

use super::super::form::is_name;
use super::{App, One};

/// The most services of one application.
const MAX_SERVICES: usize = 20;
/// What is said of every text that breaks `NAME`.
pub(super) const NAME: &str =
    "names match ^[a-z][a-z0-9-]{0,38}[a-z0-9]$ (or one letter): they become names of Kubernetes objects";
/// What to do about it.
pub(super) const NAME_FIX: &str =
    "use 1 to 40 lower-case letters, digits or hyphens, first a letter, last a letter or digit";

pub(super) fn env_file(app: &App<'_>) {
    let refuse = |path| {
        app.refuse(
            path,
            "is only for the import step",
            "`env_file` is replaced by values and references before a specification is read",
            "import the file first, or write its entries as `env` and `secrets`",
        );
    };
    if app.raw.env_file.is_some() {
        refuse(app.at("env_file"));
    }
    app.each(|service| {
        if service.raw.env_file.is_some() {
            refuse(service.at("env_file"));
        }
    });
}

pub(super) fn recovery(app: &App<'_>) {
    let is_word = |word: &str| matches!(word, "safe" | "disabled");
    if app.raw.recovery.as_ref().is_some_and(|recovery| !is_word(&recovery.on_failure)) {
        app.refuse(
            app.at("recovery").key("on_failure"),
            "must be \"safe\" or \"disabled\"",
            "a recovery table must say what happens after a failed release",
            "write one of the two, or remove the table, which means \"safe\"",
        );
    }
}

pub(super) fn schema_version(app: &App<'_>) {
    if !matches!(app.raw.schema_version, 0 | 1) {
        app.refuse(
            app.at("schema_version"),
            "is an unsupported version",
            "this reader knows version 1 only, and a later one could mean something else",
            "write `schema_version = 1`",
        );
    }
}

pub(super) fn name(app: &App<'_>) {
    if app.raw.name.is_empty() {
        app.refuse(app.at("name"), "is missing", "it is required and has no default", "add `name = \"…\"`");
    } else if !is_name(&app.raw.name) {
        app.refuse(app.at("name"), "is not a name", NAME, NAME_FIX);
    }
}

pub(super) fn services(app: &App<'_>) {
    let path = app.at("services");
    match &app.raw.services {
        None => app.refuse(
            path,
            "is missing",
            "an empty table removes every service, so leaving it out must not mean the same",
            "add `[services.<name>]`, or an empty `[services]` to remove all",
        ),
        Some(services) if services.len() > MAX_SERVICES => app.refuse(
            path,
            format!("has {} services, more than {MAX_SERVICES}", services.len()),
            "one application is one unit of release",
            "move services to another application",
        ),
        Some(_) => {}
    }
}

pub(super) fn service_name(one: &One<'_>) {
    if !is_name(one.name) {
        one.app.refuse_key(one.path(), "is not a name", NAME, NAME_FIX);
    }
}

pub(super) fn actions(one: &One<'_>) {
    if one.raw.actions.is_some() {
        one.refuse(
            "actions",
            "is not built",
            "pools of CI runners are another kind of workload, and are never run half",
            "remove the table",
        );
    }
}

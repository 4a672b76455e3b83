//! What several rules say in the same words.

use super::super::form::is_name;
use super::document::{NAME, NAME_FIX};
use super::{App, One};
use crate::model::document::KeyPath;

/// More members than allowed.
pub(super) fn too_many(app: &App<'_>, path: &KeyPath, count: usize, most: usize) {
    if count > most {
        app.refuse(
            path.clone(),
            format!("has {count} entries, more than {most}"),
            "the schema bounds it",
            "remove some, or spread them over several services or applications",
        );
    }
}

/// Members that are there twice.
pub(super) fn repeated(app: &App<'_>, path: &KeyPath, members: &[String]) {
    for (index, member) in members.iter().enumerate() {
        if members.iter().take(index).any(|earlier| earlier == member) {
            app.refuse(path.index(index), "is repeated", "each entry counts once", "remove one of the two");
        }
    }
}

/// Members that are not names.
pub(super) fn names(app: &App<'_>, path: &KeyPath, members: &[String]) {
    for (index, _) in members.iter().enumerate().filter(|(_, member)| !is_name(member)) {
        app.refuse(path.index(index), "is not a name", NAME, NAME_FIX);
    }
}

/// Identities: `least` to `most` unique texts of 32 hex digits.
pub(super) fn identities(one: &One<'_>, path: &KeyPath, members: &[String], most: usize) {
    if members.is_empty() || members.len() > most {
        one.app.refuse(
            path.clone(),
            format!("must have 1 to {most} entries"),
            "somebody must be allowed, and the list is bounded",
            "list the identities",
        );
    }
    for (index, _) in members.iter().enumerate().filter(|(_, member)| !super::super::form::is_identity(member)) {
        one.app.refuse(
            path.index(index),
            "is not an identity",
            "an identity has 32 lower-case hex digits",
            "copy it from the identity's page",
        );
    }
    repeated(one.app, path, members);
}

//! What changes between two manifests: fields with what each change does, and text.
//!
//! Compared are normal forms, so that another order of the same set is no difference. Values of
//! variables, contents of files and whatever looks like a credential are masked on both sides before
//! anything else is done with them.
//!
//! Source: rule book, section 25.1; Hakopod TOML schema v1, "Existing claim size, storage class and
//! access mode cannot change".

mod effect;
mod mask;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Map, Value};

use super::render::{Document, unified};
use crate::model::hakopod::{Application, WriteError};

/// What a change does to what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// No running container is replaced.
    None,
    /// The same containers start again.
    Restart,
    /// New containers take over from old ones.
    Rollout,
    /// The old ones stop before the new ones start, or a job's object is made anew.
    Recreate,
    /// It cannot change through a release.
    Refused,
}

impl Effect {
    /// The word that is shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Restart => "restart",
            Self::Rollout => "rollout",
            Self::Recreate => "recreate",
            Self::Refused => "refused",
        }
    }
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// The dotted path.
    pub path: String,
    /// The value before, masked where it must be; absent when it was not set.
    pub before: Option<Value>,
    /// The value after, masked where it must be; absent when it is not set.
    pub after: Option<Value>,
    /// What the change does.
    pub effect: Effect,
    /// For a refused change: how to get there all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<&'static str>,
}

/// Everything that differs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Difference {
    /// By path.
    pub fields: Vec<FieldChange>,
    /// The unified difference of the two normal forms, masked.
    pub text: String,
}

impl Difference {
    /// Whether both say the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// What differs between two Hakopod applications.
///
/// # Errors
/// [`WriteError`] when one of them cannot be written out.
pub fn hakopod(old: &Application, new: &Application) -> Result<Difference, WriteError> {
    let tree = |application: &Application| {
        serde_json::to_value(application).map_err(|error| WriteError {
            application: application.name.clone(),
            form: "JSON",
            why: error.to_string(),
        })
    };
    let (mut before, mut after) = (tree(old)?, tree(new)?);
    mask::hakopod(&mut before, &mut after);
    let effect = |path: &[&str]| effect::hakopod(path, old, new);
    Ok(difference("hakopod.toml", &before, &after, &effect))
}

/// What differs between two valid `app.toml`, given as trees.
#[must_use]
pub fn app(old: &Value, new: &Value) -> Difference {
    let (mut before, mut after) = (old.clone(), new.clone());
    mask::app(&mut before, &mut after);
    difference("app.toml", &before, &after, &effect::app)
}

fn difference(name: &str, before: &Value, after: &Value, effect: &dyn Fn(&[&str]) -> effect::Answer) -> Difference {
    let mut fields = Vec::new();
    walk(&mut Vec::new(), (Some(before), Some(after)), &mut |path, before, after| {
        let (effect, way_out) = effect(path);
        fields.push(FieldChange {
            path: path.join("."),
            before: before.cloned(),
            after: after.cloned(),
            effect,
            way_out,
        });
    });
    let document = Document { name: name.to_owned(), before: Some(text(before)), after: Some(text(after)) };
    Difference { fields, text: unified(&[document]) }
}

/// The TOML text of a masked tree.
fn text(tree: &Value) -> String {
    toml::Table::try_from(tree).ok().and_then(|table| toml::to_string(&table).ok()).unwrap_or_default()
}

type Found<'f> = dyn FnMut(&[&str], Option<&Value>, Option<&Value>) + 'f;

/// Calls `found` for each leaf that differs. Tables are entered on both sides, also where one is
/// not there; arrays and whole services that come or go are leaves.
fn walk<'a>(path: &mut Vec<&'a str>, sides: (Option<&'a Value>, Option<&'a Value>), found: &mut Found<'_>) {
    let (before, after) = sides;
    if before == after {
        return;
    }
    let is_whole = path.len() == 2 && (before.is_none() || after.is_none());
    let (old, new) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
    if is_whole || (old.is_none() && new.is_none()) {
        found(path, before, after);
        return;
    }
    let mut keys: Vec<&str> = old.into_iter().chain(new).flat_map(Map::keys).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        found(path, before, after);
    }
    for key in keys {
        path.push(key);
        let one = |side: Option<&'a Value>| side.and_then(Value::as_object).and_then(|table| table.get(key));
        walk(path, (one(before), one(after)), found);
        path.pop();
    }
}

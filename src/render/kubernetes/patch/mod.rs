//! `kubernetes` patches: YAML, merged strategically into what was generated, never into what is protected.
//!
//! | file | what it does |
//! |---|---|
//! | `merge` | strategic merge: maps by key, lists by their merge key, directives |
//! | `protect` | what a patch may not touch |
//!
//! Source: Hakopod TOML schema v1, key `kubernetes`; rule book, section 24.

mod merge;
mod protect;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::model::Problem;

/// What is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Deployment,
    Service,
    Ingress,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::Service => "service",
            Self::Ingress => "ingress",
        }
    }
}

/// Where a patch stands.
pub(super) struct Place {
    /// Its dotted path.
    pub(super) key: String,
    pub(super) kind: Kind,
    /// Without the grant nothing is applied; that is refused elsewhere.
    pub(super) is_granted: bool,
}

impl Place {
    fn problem(&self, what: &str, why: String, fix: &str) -> Problem {
        let message = format!("{} {what}", self.key);
        Problem { place: None, key: self.key.clone(), message, why, fix: fix.to_owned() }
    }
}

/// The object with its patch, if there is one; what is wrong with the patch goes to `list`.
pub(super) fn apply(object: Value, text: Option<&str>, place: &Place, list: &mut Vec<Problem>) -> Value {
    let Some(text) = text.filter(|text| place.is_granted && !text.trim().is_empty()) else { return object };
    let Some(patch) = read(text, place, list) else { return object };
    let object = super::without_nulls(object);
    let merged = match merge::merge(&object, &patch) {
        Ok(merged) => merged,
        Err(why) => {
            list.push(place.problem("cannot be merged", why, "write it as a strategic-merge patch"));
            return object;
        }
    };
    let touched = protect::touched(place.kind, (&object, &patch), &merged);
    let is_clean = touched.is_empty();
    list.extend(touched.into_iter().map(|field| {
        let why = "the platform sets it, and relies on what it set".to_owned();
        place.problem(&format!("changes the protected field `{field}`"), why, "leave that field out of the patch")
    }));
    if is_clean { merged } else { object }
}

/// One YAML document with a table at its top; aliases, depth and size are bounded by the reader.
fn read(text: &str, place: &Place, list: &mut Vec<Problem>) -> Option<Value> {
    match serde_saphyr::from_str::<Value>(text) {
        Ok(patch @ Value::Object(_)) => Some(patch),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let why = "a patch has the shape of the object that it changes".to_owned();
            list.push(place.problem("is not a table", why, "begin with `spec:` or `metadata:`"));
            None
        }
        Err(error) => {
            // The reader's own text would show a piece of the document.
            let at = error.location().map(|at| format!("line {}, column {}", at.line(), at.column()));
            let why =
                format!("it is not one readable YAML document{}", at.map(|at| format!(": {at}")).unwrap_or_default());
            list.push(place.problem("is not YAML", why, "write one YAML document without repeated keys"));
            None
        }
    }
}

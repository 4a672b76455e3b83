//! Hides what may be secret, on both sides at once, so that a change stays visible and a value not.

use serde_json::Value;

use crate::model::hakopod::credential::{is_credential_name, is_credential_value};

const HIDDEN: &str = "<hidden>";
const CHANGED: &str = "<hidden, changed>";

/// Hides values of variables, contents of files, and credentials anywhere.
pub(super) fn hakopod(before: &mut Value, after: &mut Value) {
    hide_env(Some(&mut *before), Some(&mut *after));
    let names = |tree: &Value| -> Vec<String> {
        tree.get("services").and_then(Value::as_object).map(|map| map.keys().cloned().collect()).unwrap_or_default()
    };
    for name in names(before).into_iter().chain(names(after)) {
        fn service<'v>(tree: &'v mut Value, name: &str) -> Option<&'v mut Value> {
            tree.get_mut("services")?.get_mut(name)
        }
        hide_env(service(before, &name), service(after, &name));
        hide_files(service(before, &name), service(after, &name));
        let count = |tree: &mut Value| service(tree, &name)?.get("sidecars")?.as_array().map(Vec::len);
        for index in 0..count(before).max(count(after)).unwrap_or_default() {
            let before = service(before, &name).and_then(|one| one.get_mut("sidecars")?.get_mut(index));
            let after = service(after, &name).and_then(|one| one.get_mut("sidecars")?.get_mut(index));
            hide_env(before, after);
        }
    }
    credentials("", before);
    credentials("", after);
}

/// Hides credentials anywhere.
pub(super) fn app(before: &mut Value, after: &mut Value) {
    credentials("", before);
    credentials("", after);
}

fn hide_env(before: Option<&mut Value>, after: Option<&mut Value>) {
    hide_members(before.and_then(|one| one.get_mut("env")), after.and_then(|one| one.get_mut("env")));
}

fn hide_files(before: Option<&mut Value>, after: Option<&mut Value>) {
    let mut none = Value::Null;
    let mut other = Value::Null;
    let before = before.and_then(|one| one.get_mut("files")).unwrap_or(&mut none);
    let after = after.and_then(|one| one.get_mut("files")).unwrap_or(&mut other);
    let names: Vec<String> =
        [&*before, &*after].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys().cloned()).collect();
    for name in names {
        let content = |tree: &mut Value| tree.get(&name).and_then(|file| file.get("content")).cloned();
        let (old, new) = (content(before), content(after));
        hide(before.get_mut(&name).and_then(|file| file.get_mut("content")), new.as_ref(), HIDDEN);
        hide(after.get_mut(&name).and_then(|file| file.get_mut("content")), old.as_ref(), CHANGED);
    }
}

/// Hides each member of two tables.
fn hide_members(before: Option<&mut Value>, after: Option<&mut Value>) {
    let (mut none, mut other) = (Value::Null, Value::Null);
    let (before, after) = (before.unwrap_or(&mut none), after.unwrap_or(&mut other));
    let old = before.clone();
    for (key, value) in before.as_object_mut().into_iter().flatten() {
        hide(Some(value), after.get(key), HIDDEN);
    }
    for (key, value) in after.as_object_mut().into_iter().flatten() {
        hide(Some(value), old.get(key), CHANGED);
    }
}

/// Hides a value; where the other side has another one, with the word that makes them differ.
fn hide(value: Option<&mut Value>, other: Option<&Value>, otherwise: &str) {
    let Some(value) = value else { return };
    // Both sides may be hidden already, when a service is looked at twice.
    if value.as_str().is_some_and(|text| text == HIDDEN || text == CHANGED) {
        return;
    }
    let is_same = other.is_none_or(|other| other == value || other.as_str() == Some(HIDDEN) && otherwise == HIDDEN);
    *value = Value::from(if is_same { HIDDEN } else { otherwise });
}

/// Hides strings that look like credentials, or stand under a name that does.
fn credentials(key: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            if is_credential_value(text) || is_credential_name(key) || has_credential_argument(text) {
                *text = HIDDEN.to_owned();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|member| credentials("", member)),
        Value::Object(map) => map.iter_mut().for_each(|(key, member)| credentials(key, member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `--password=…`, `API_TOKEN=…` as one argument.
fn has_credential_argument(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        let name = name.trim_start_matches('-').replace('-', "_");
        !value.is_empty() && name.len() <= 64 && is_credential_name(&name)
    })
}

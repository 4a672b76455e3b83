//! Strategic merge.
//!
//! Maps are merged key by key and `null` removes. Lists of tables with a merge key are merged by it;
//! all others are replaced. `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…` are obeyed,
//! `$setElementOrder/…` is taken note of and changes nothing: kubectl writes it for the order alone.
//!
//! Source: Kubernetes, 'Notes on the strategic merge patch', and the merge keys of the API types.

use serde_json::{Map, Value};

/// What every list of a pod, Service or Ingress is merged by, found by the list's own field and the
/// field above it; lists that are not here are replaced as a whole.
const MERGE_KEYS: [(&str, &str, &str); 14] = [
    ("spec", "containers", "name"),
    ("spec", "initContainers", "name"),
    ("spec", "ephemeralContainers", "name"),
    ("spec", "volumes", "name"),
    ("spec", "imagePullSecrets", "name"),
    ("spec", "hostAliases", "ip"),
    ("spec", "topologySpreadConstraints", "topologyKey"),
    ("containers", "env", "name"),
    ("containers", "ports", "containerPort"),
    ("containers", "volumeMounts", "mountPath"),
    ("containers", "volumeDevices", "devicePath"),
    ("spec", "ports", "port"),
    ("metadata", "ownerReferences", "uid"),
    ("resources", "claims", "name"),
];
/// Lists of texts that are merged as sets.
const SETS: [&str; 1] = ["finalizers"];
/// How deep a patch may go: deeper than any field of these objects.
const MAX_DEPTH: u32 = 32;

fn merge_key(above: &str, field: &str) -> Option<&'static str> {
    let above = if above == "initContainers" { "containers" } else { above };
    MERGE_KEYS.iter().find(|(parent, list, _)| (*parent, *list) == (above, field)).map(|(_, _, key)| *key)
}

/// `object` with `patch`.
///
/// # Errors
/// Why the patch cannot be merged; no value of it is shown.
pub(super) fn merge(object: &Value, patch: &Value) -> Result<Value, String> {
    merged(Some(object), patch, ("", 0))
}

fn merged(object: Option<&Value>, patch: &Value, at: (&str, u32)) -> Result<Value, String> {
    if at.1 > MAX_DEPTH {
        return Err(format!("it goes deeper than {MAX_DEPTH} levels"));
    }
    match patch {
        Value::Object(patch) => {
            let empty = Map::new();
            let object = object.and_then(Value::as_object).unwrap_or(&empty);
            table(object, patch, at)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Ok(patch.clone()),
    }
}

/// Fields that are instructions, not values.
fn is_directive(key: &str) -> bool {
    key.starts_with('$')
}

fn table(object: &Map<String, Value>, patch: &Map<String, Value>, at: (&str, u32)) -> Result<Value, String> {
    let (field, depth) = at;
    let mut result = match patch.get("$patch").map(|word| word.as_str().unwrap_or_default()) {
        None | Some("merge") => object.clone(),
        Some("replace") => Map::new(),
        Some("delete") => return Ok(Value::Null),
        Some(_) => return Err("`$patch` is not `merge`, `replace` or `delete`".to_owned()),
    };
    for (key, value) in patch {
        match key.split_once('/') {
            _ if !is_directive(key) => {
                let inner = (key.as_str(), depth.saturating_add(1));
                let new = match value {
                    Value::Array(items) => list(result.get(key), items, (field, inner))?,
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                        merged(result.get(key), value, inner)?
                    }
                };
                if new.is_null() {
                    result.remove(key);
                } else {
                    result.insert(key.clone(), new);
                }
            }
            None if key == "$patch" || key == "$retainKeys" => {}
            Some(("$setElementOrder", _)) => {}
            Some(("$deleteFromPrimitiveList", list)) => remove_items(&mut result, list, value),
            None | Some(_) => return Err("it has a directive that is not known".to_owned()),
        }
    }
    if let Some(retained) = patch.get("$retainKeys").and_then(Value::as_array) {
        result.retain(|key, _| retained.iter().any(|kept| kept.as_str() == Some(key)));
    }
    Ok(Value::Object(result))
}

fn remove_items(object: &mut Map<String, Value>, list: &str, gone: &Value) {
    if let (Some(items), Some(gone)) = (object.get_mut(list).and_then(Value::as_array_mut), gone.as_array()) {
        items.retain(|item| !gone.contains(item));
    }
}

/// A list below `field`: by its merge key, as a set, or replaced.
fn list(object: Option<&Value>, patch: &[Value], at: (&str, (&str, u32))) -> Result<Value, String> {
    let (above, (field, depth)) = at;
    let current = object.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if SETS.contains(&field) {
        let new = patch.iter().filter(|item| !current.contains(item));
        return Ok(Value::Array(current.iter().chain(new).cloned().collect()));
    }
    let Some(key) = merge_key(above, field) else { return Ok(Value::Array(patch.to_vec())) };
    let is_replaced = |item: &Value| item.get("$patch").and_then(Value::as_str) == Some("replace");
    let bare = |item: &Value| item.as_object().is_some_and(|map| map.keys().all(|key| is_directive(key)));
    let mut items =
        if patch.iter().any(|item| is_replaced(item) && bare(item)) { Vec::new() } else { current.to_vec() };
    for item in patch.iter().filter(|item| !bare(item)) {
        let Some(id) = item.get(key) else { return Err(format!("an entry of `{field}` has no `{key}`")) };
        let at = items.iter().position(|known| known.get(key) == Some(id));
        let new = merged(at.and_then(|at| items.get(at)), item, (field, depth.saturating_add(1)))?;
        match (at, new.is_null()) {
            (Some(at), true) => {
                items.remove(at);
            }
            (Some(at), false) => {
                if let Some(place) = items.get_mut(at) {
                    *place = new;
                }
            }
            (None, true) => {}
            (None, false) => items.push(new),
        }
    }
    Ok(Value::Array(items))
}

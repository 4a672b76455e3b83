//! `schema`: which form of a file this is.

use super::report::Refusal;
use super::view::{Table, Value};

/// Notes a `schema` that is not 1; `fix` is what to do when it is missing.
///
/// Gives nothing for another number: a file of a later form is not judged by the rules of this
/// one. After a missing or mistyped `schema` the rest is still looked at.
pub fn schema(root: &Table<'_>, fix: String) -> Option<()> {
    let value = root.get("schema");
    let number = value.as_ref().and_then(Value::whole);
    if number == Some(1) {
        return Some(());
    }
    let refusal = |fix: String| Refusal::new("must be 1", "1 is the only form of this file there is", fix);
    match value {
        Some(value) => value.refuse(refusal("write `schema = 1`".to_owned())),
        None => root.refuse("schema", refusal(fix)),
    }
    number.is_none().then_some(())
}

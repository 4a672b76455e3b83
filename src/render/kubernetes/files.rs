//! Files whose text stands in the manifest, as an immutable ConfigMap named by its content.
//!
//! Source: `spec/hakopod-kubernetes`, section 6.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::View;
use super::names;
use crate::model::hakopod::Service;

/// The files with text: name → text.
fn contents(service: &Service) -> BTreeMap<&str, &str> {
    let files = service.files.iter();
    files.filter_map(|(name, file)| Some((name.as_str(), file.content.as_deref()?))).collect()
}

/// The name of the ConfigMap, which changes with the content.
pub(super) fn config_map_name(name: &str, service: &Service) -> String {
    names::of_service(name, "files", Some(&names::content_version(&contents(service))))
}

/// Nothing without such files.
pub(super) fn config_map(view: &View<'_>, name: &str, service: &Service) -> Option<Value> {
    let contents = contents(service);
    (!contents.is_empty()).then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": view.metadata(&config_map_name(name, service), Some(name)),
            "immutable": true,
            "data": contents,
        })
    })
}

//! Claims: made when missing, never changed by a release, never removed with what used them.
//!
//! Source: `spec/hakopod-kubernetes`, section 5.

use serde_json::{Value, json};

use super::Object;
use super::context::View;
use super::names::{self, ANNOTATION_RETAIN};
use crate::model::hakopod::{AccessMode, Service};

/// The claims of named volumes, used or not.
pub(super) fn named(view: &View<'_>) -> Vec<Object> {
    let claims = view.application.volumes.iter().map(|(name, volume)| {
        let metadata = view.metadata(&names::named_claim(name), None);
        let class = volume.storage_class.as_deref();
        view.object(None, claim(view, metadata, (volume.access_mode, class, volume.size_gib)))
    });
    claims.collect()
}

/// The claim of a service's own volume.
pub(super) fn own(view: &View<'_>, name: &str, service: &Service) -> Option<Value> {
    let volume = service.volume.as_ref()?;
    let metadata = view.metadata(&names::own_claim(name), Some(name));
    let class = volume.storage_class.as_deref();
    Some(claim(view, metadata, (AccessMode::ReadWriteOnce, class, volume.size_gib)))
}

fn claim(view: &View<'_>, mut metadata: Value, wanted: (AccessMode, Option<&str>, u32)) -> Value {
    let (mode, class, size_gib) = wanted;
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("annotations".to_owned(), json!({ ANNOTATION_RETAIN: "true" }));
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": [access_mode(mode)],
            "storageClassName": class.or(view.context.settings.storage_class.as_deref()),
            "resources": { "requests": { "storage": format!("{size_gib}Gi") } },
        },
    })
}

fn access_mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::ReadWriteOnce => "ReadWriteOnce",
        AccessMode::ReadWriteMany => "ReadWriteMany",
    }
}

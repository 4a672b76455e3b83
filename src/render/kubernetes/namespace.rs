//! The namespace.
//!
//! Source: `spec/hakopod-kubernetes`, section 3.

use serde_json::{Value, json};

use super::context::View;
use super::names::{ANNOTATION_APPLICATION, LABEL_SCOPE};

/// The newest Pod Security profile that the pods were held to; an older server takes its own.
const POD_SECURITY_MINOR: u32 = 35;

pub(super) fn namespace(view: &View<'_>) -> Value {
    let context = view.context;
    let mut labels = view.names.labels(None);
    let level = |key: &str| format!("pod-security.kubernetes.io/{key}");
    labels.insert(LABEL_SCOPE.to_owned(), view.names.scope.clone());
    labels.insert(level("enforce"), "restricted".to_owned());
    labels.insert(level("enforce-version"), format!("v1.{}", context.server.minor.min(POD_SECURITY_MINOR)));
    labels.insert(level("warn"), "restricted".to_owned());
    let mut annotations = view.release_annotations();
    let readable = format!("{}/{}/{}", context.project, context.environment, view.application.name);
    annotations.insert(ANNOTATION_APPLICATION.to_owned(), readable);
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": view.names.namespace, "labels": labels, "annotations": annotations },
    })
}

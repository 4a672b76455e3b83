//! Scaling by CPU, in the newest version that the server serves.
//!
//! Source: `spec/hakopod-kubernetes`, section 11.

use serde_json::{Value, json};

use super::context::View;
use crate::model::hakopod::Service;

pub(super) const KIND: &str = "HorizontalPodAutoscaler";
pub(super) const VERSIONS: [&str; 3] = ["autoscaling/v2", "autoscaling/v2beta2", "autoscaling/v1"];
/// How long the need must be lower before replicas go.
const SCALE_DOWN_SECONDS: u32 = 300;

/// Nothing for a service that does not scale, or is suspended.
pub(super) fn autoscaler(view: &View<'_>, name: &str, service: &Service) -> Option<Value> {
    let scaling = service.autoscaling.filter(|_| !service.suspended)?;
    let version = view.context.server.first(KIND, &VERSIONS)?;
    let mut spec = json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
    });
    let more = if version == "autoscaling/v1" {
        json!({ "targetCPUUtilizationPercentage": scaling.target_cpu })
    } else {
        json!({
            "metrics": [{ "type": "Resource", "resource": {
                "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": scaling.target_cpu },
            }}],
            "behavior": { "scaleDown": { "stabilizationWindowSeconds": SCALE_DOWN_SECONDS } },
        })
    };
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    Some(json!({
        "apiVersion": version,
        "kind": KIND,
        "metadata": view.metadata(name, Some(name)),
        "spec": spec,
    }))
}

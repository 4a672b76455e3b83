//! A release of some services only: they are taken from the new configuration, everything else
//! stays as the accepted revision has it.
//!
//! Source: Hakopod TOML schema v1, "Staging, targeting and rollback".

use std::collections::{BTreeMap, BTreeSet};

use super::form::is_digest;
use super::{judged, raw};
use crate::model::Problems;
use crate::model::document::{self, FileName};
use crate::model::hakopod::{Application, DEFAULT_NETWORK, Network};

/// The most services of one selection.
const MAX_SELECTED: usize = 20;

/// Why a targeted release is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetedError {
    /// `service` and `services` at once.
    #[error("give either `service` or `services`, never both")]
    Both,
    /// An empty list.
    #[error("`services` is empty; leave it out to release the whole application")]
    Empty,
    /// More than 20 names.
    #[error("`services` has {0} names, more than {MAX_SELECTED}")]
    Many(usize),
    /// An empty name.
    #[error("`services[{0}]` is empty")]
    EmptyName(usize),
    /// A name that is there twice.
    #[error("`services[{0}]` is repeated")]
    Repeated(usize),
    /// A name that the submitted configuration does not have.
    #[error("`services[{0}]` is not in the submitted configuration")]
    Unknown(usize),
    /// The submitted configuration is another application.
    #[error("the submitted configuration has another `name` than the accepted one")]
    OtherApplication,
    /// Something shared differs.
    #[error("`{0}` is shared by all services and differs; change it with a release of the whole application")]
    Shared(&'static str),
    /// An untouched service has no digest yet.
    #[error("the image of `services.{0}` has not been resolved yet; wait for the accepted release")]
    Unresolved(String),
    /// What comes of it breaks a rule.
    #[error("the merged configuration is refused: {0}")]
    Refused(#[source] Problems),
}

/// The names that a request selects: nothing means the whole application.
///
/// # Errors
/// [`TargetedError`] for a selection that breaks its form.
fn selection(service: Option<&str>, services: Option<&[String]>) -> Result<Option<Vec<String>>, TargetedError> {
    let names = match (service, services) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(TargetedError::Both),
        (Some(name), None) => vec![name.to_owned()],
        (None, Some(names)) => names.to_vec(),
    };
    match names.len() {
        0 => return Err(TargetedError::Empty),
        many if many > MAX_SELECTED => return Err(TargetedError::Many(many)),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(TargetedError::EmptyName(index));
        }
        if !seen.insert(name) {
            return Err(TargetedError::Repeated(index));
        }
    }
    Ok(Some(names))
}

/// Merges the selected services of `submitted` into `accepted`.
///
/// Without a selection the submitted configuration is the answer. `accepted` must hold resolved
/// images for everything that is not selected; see [`resolved_from`].
///
/// # Errors
/// [`TargetedError`] for every refusal of the contract.
pub fn targeted(
    accepted: &Application,
    submitted: &Application,
    service: Option<&str>,
    services: Option<&[String]>,
) -> Result<Application, TargetedError> {
    let Some(names) = selection(service, services)? else { return Ok(submitted.clone()) };
    if let Some(index) = names.iter().position(|name| !submitted.services.contains_key(name)) {
        return Err(TargetedError::Unknown(index));
    }
    if accepted.name != submitted.name {
        return Err(TargetedError::OtherApplication);
    }
    if let Some(field) = shared_difference(accepted, submitted) {
        return Err(TargetedError::Shared(field));
    }
    let mut merged = accepted.clone();
    for name in &names {
        if let Some(service) = submitted.services.get(name) {
            merged.services.insert(name.clone(), service.clone());
        }
    }
    merge_domains(&mut merged, submitted, &names);
    let is_resolved = |image: &str| image.split_once('@').is_some_and(|(_, digest)| is_digest(digest));
    let open = merged.services.iter().find(|(name, service)| {
        let sidecars = service.sidecars.iter().map(|sidecar| sidecar.image.as_str());
        !names.contains(name) && !std::iter::once(service.image.as_str()).chain(sidecars).all(is_resolved)
    });
    if let Some((name, _)) = open {
        return Err(TargetedError::Unresolved(name.clone()));
    }
    rechecked(&merged)
}

/// What the submitted configuration says about shared things must be what is accepted already; what
/// it leaves out stays.
fn shared_difference(accepted: &Application, submitted: &Application) -> Option<&'static str> {
    fn within<T: PartialEq>(new: &BTreeMap<String, T>, old: &BTreeMap<String, T>) -> bool {
        new.iter().all(|(key, value)| old.get(key) == Some(value))
    }
    let declared =
        |(name, network): &(&String, &Network)| name.as_str() != DEFAULT_NETWORK || **network != Network::default();
    let mut networks = submitted.networks.iter().filter(declared);
    let shared = [
        ("env", within(&submitted.env, &accepted.env)),
        ("inject_env", !submitted.inject_env || accepted.inject_env),
        ("secrets", within(&submitted.secrets, &accepted.secrets)),
        ("networks", networks.all(|(name, network)| accepted.networks.get(name) == Some(network))),
        ("volumes", within(&submitted.volumes, &accepted.volumes)),
    ];
    shared.into_iter().find(|(_, is_same)| !is_same).map(|(field, _)| field)
}

/// Host names that lead to a selected service are its own configuration.
fn merge_domains(merged: &mut Application, submitted: &Application, names: &[String]) {
    merged.domains.retain(|_, service| !names.contains(service));
    for (host, service) in submitted.domains.iter().filter(|(_, service)| names.contains(service)) {
        merged.domains.entry(host.clone()).or_insert_with(|| service.clone());
    }
}

/// Holds a merged application to every rule again: parts that were right alone may not be together.
fn rechecked(merged: &Application) -> Result<Application, TargetedError> {
    let text = merged.to_toml().map_err(|error| TargetedError::Refused(super::whole("", error.to_string())))?;
    let name = FileName { file: "merged configuration", label: super::LABEL };
    document::read(text.as_bytes(), name, |root| {
        let (raw, failed) = raw::read(root);
        judged(root, raw, &failed)
    })
    .map_err(|mut problems| {
        problems.list.iter_mut().for_each(|problem| problem.place = None);
        TargetedError::Refused(problems)
    })
}

/// The application with the images that a release resolved, by service name and, for sidecars,
/// `<service>/<sidecar>`. Names that are not given keep their reference.
#[must_use]
pub fn resolved_from(application: &Application, images: &BTreeMap<String, String>) -> Application {
    let mut resolved = application.clone();
    for (name, service) in &mut resolved.services {
        if let Some(image) = images.get(name) {
            service.image.clone_from(image);
        }
        for sidecar in &mut service.sidecars {
            if let Some(image) = images.get(&format!("{name}/{}", sidecar.name)) {
                sidecar.image.clone_from(image);
            }
        }
    }
    resolved
}

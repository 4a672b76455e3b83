//! Which Secrets the objects name, and what those must hold. Values are never here.
//!
//! Source: `spec/hakopod-kubernetes`, section 6; rule book, section 17 for the URLs of bindings.

use std::collections::BTreeMap;

use super::context::View;
use super::{ingress, names};
use crate::model::hakopod::{Binding, BindingProtocol, SecretRef, Service};

/// One Secret of the application's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretShape {
    /// Its name.
    pub name: String,
    /// The service that it belongs to.
    pub service: String,
    /// Key → where its value comes from.
    pub keys: BTreeMap<String, SecretSource>,
}

/// Where the value of one key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A stored secret.
    Reference(SecretRef),
    /// The URL of a binding to the port: [`binding_url`] with the password's value.
    Url(Binding, u16),
    /// The chain or key of the uploaded certificate of this name.
    Certificate(String),
    /// The `.dockerconfigjson` of the registry credential of this name.
    RegistryCredential(String),
}

/// The Secret with what a service's containers get as variables.
pub(super) fn environment_name(view: &View<'_>, service: &str) -> String {
    names::of_service(service, "environment", version(view, service))
}

/// The Secret with a service's files.
pub(super) fn files_name(view: &View<'_>, service: &str) -> String {
    names::of_service(service, "secret-files", version(view, service))
}

fn version<'v>(view: &'v View<'_>, service: &str) -> Option<&'v str> {
    view.context.secret_versions.get(service).map(String::as_str)
}

/// The key of a sidecar's variable: variables have no dots.
pub(super) fn sidecar_key(sidecar: &str, variable: &str) -> String {
    format!("{sidecar}.{variable}")
}

/// The Secrets of one service.
pub(super) fn shapes(view: &View<'_>, name: &str) -> Vec<SecretShape> {
    let Some(service) = view.application.services.get(name) else { return Vec::new() };
    let shape = |secret: String, keys: BTreeMap<String, SecretSource>| {
        (!keys.is_empty()).then(|| SecretShape { name: secret, service: name.to_owned(), keys })
    };
    let files = service
        .files
        .iter()
        .filter_map(|(file, value)| Some((file.clone(), SecretSource::Reference(value.secret.clone()?))));
    let mut shapes = vec![
        shape(environment_name(view, name), environment(view, service)),
        shape(files_name(view, name), files.collect()),
    ];
    let mounted = service.certificate_mounts.iter().filter_map(|mount| mount.certificate.as_ref());
    let mut certificates: Vec<&String> = mounted.chain(ingress::uploaded(service)).collect();
    certificates.sort();
    certificates.dedup();
    shapes.extend(certificates.into_iter().map(|certificate| {
        let key = |key: &str| (key.to_owned(), SecretSource::Certificate(certificate.clone()));
        shape(names::certificate(name, certificate), [key("tls.crt"), key("tls.key")].into())
    }));
    shapes.extend(service.registry_credential.iter().map(|credential| {
        let source = SecretSource::RegistryCredential(credential.clone());
        shape(names::registry_credential(credential), [(".dockerconfigjson".to_owned(), source)].into())
    }));
    shapes.into_iter().flatten().collect()
}

fn environment(view: &View<'_>, service: &Service) -> BTreeMap<String, SecretSource> {
    let own = view.application.effective_secrets(service);
    let mut keys: BTreeMap<String, SecretSource> =
        own.into_iter().map(|(key, reference)| (key, SecretSource::Reference(reference))).collect();
    let port = |binding: &Binding| view.application.services.get(&binding.service)?.port;
    let urls = service.bindings.iter();
    keys.extend(
        urls.filter_map(|(key, binding)| Some((key.clone(), SecretSource::Url(binding.clone(), port(binding)?)))),
    );
    for sidecar in &service.sidecars {
        let references = sidecar.secrets.iter();
        keys.extend(
            references
                .map(|(key, reference)| (sidecar_key(&sidecar.name, key), SecretSource::Reference(reference.clone()))),
        );
    }
    keys
}

/// The URL of a binding. `password` is not looked at where the protocol has none.
///
/// Source: rule book, section 17.
#[must_use]
pub fn binding_url(binding: &Binding, port: u16, password: &str) -> String {
    let service = &binding.service;
    let user = || escaped(binding.username.as_deref().unwrap_or_default(), "");
    let password = || escaped(password, "");
    let database = binding.database.as_deref().map(|database| format!("/{}", escaped(database, ":@")));
    let scheme = match binding.protocol {
        BindingProtocol::Http => return format!("http://{service}:{port}"),
        BindingProtocol::Postgres => "postgres",
        BindingProtocol::Mysql => "mysql",
        BindingProtocol::Redis => "redis",
        BindingProtocol::Amqp => "amqp",
    };
    format!("{scheme}://{}:{}@{service}:{port}{}", user(), password(), database.unwrap_or_default())
}

/// Percent-encodes everything but unreserved characters, `$&+,;=` and `more`.
fn escaped(text: &str, more: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || "-_.~$&+,;=".contains(letter) || more.contains(letter) {
            escaped.push(letter);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(protocol: BindingProtocol, username: Option<&str>, database: Option<&str>) -> Binding {
        Binding {
            service: "db".to_owned(),
            protocol,
            database: database.map(str::to_owned),
            username: username.map(str::to_owned),
            password: None,
        }
    }

    #[test]
    fn the_urls_of_bindings_are_encoded_as_the_contract_says() {
        let postgres = binding(BindingProtocol::Postgres, Some("app"), Some("shop:a@b c"));
        let url = binding_url(&postgres, 5432, "p@ss:/?#word");
        assert_eq!(url, "postgres://app:p%40ss%3A%2F%3F%23word@db:5432/shop:a@b%20c");
        assert_eq!(binding_url(&binding(BindingProtocol::Redis, None, None), 6379, "x"), "redis://:x@db:6379");
        assert_eq!(binding_url(&binding(BindingProtocol::Http, None, None), 80, "unused"), "http://db:80");
    }
}

//! Which targets follow which ref of which repository: built when the registry changes, asked by each delivery.
//!
//! A delivery costs as much as it has matches, however many targets there are (field report 1). Refs are
//! compared whole, so that a tag never stands for the branch of the same name (field report 15).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::payload::Repo;
use crate::model::TargetName;
use crate::model::policy::Repository;
use crate::reconcile::ports::Catalog;

/// The targets that follow one ref.
pub type Followers = Arc<[TargetName]>;

/// Repository → ref → targets.
#[derive(Debug, Clone, Default)]
pub struct Index {
    repositories: HashMap<String, HashMap<String, Followers>>,
}

impl Index {
    /// The index of a registry.
    #[must_use]
    pub fn new(catalog: &Catalog) -> Self {
        let mut found: BTreeMap<(String, String), Vec<TargetName>> = BTreeMap::new();
        for project in catalog.projects.values() {
            let key = key_of(&project.repo);
            for (label, policy) in &project.targets {
                let branch = policy.branch.as_ref().unwrap_or(&project.branch);
                let name = TargetName::new(project.name.clone(), label.clone());
                found.entry((key.clone(), branch.full_ref())).or_default().push(name);
            }
        }
        let mut repositories: HashMap<String, HashMap<String, Followers>> = HashMap::new();
        for ((key, reference), targets) in found {
            repositories.entry(key).or_default().insert(reference, targets.into());
        }
        Self { repositories }
    }

    /// Whether any target follows the repository.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.repositories.contains_key(key)
    }

    /// The targets that follow one ref of a repository.
    #[must_use]
    pub fn followers(&self, key: &str, reference: &str) -> Option<&Followers> {
        self.repositories.get(key)?.get(reference)
    }

    /// The targets that follow any ref of a repository.
    pub fn all_followers(&self, key: &str) -> impl Iterator<Item = &Followers> {
        self.repositories.get(key).into_iter().flat_map(HashMap::values)
    }

    /// The refs of a repository that are followed, in order.
    #[must_use]
    pub fn refs(&self, key: &str) -> Vec<&str> {
        let mut refs: Vec<&str> =
            self.repositories.get(key).into_iter().flat_map(|refs| refs.keys().map(String::as_str)).collect();
        refs.sort_unstable();
        refs
    }
}

/// How a repository of the registry is found.
#[must_use]
pub fn key_of(repository: &Repository) -> String {
    match repository {
        Repository::GitHub { owner, name } => format!("{owner}/{name}").to_lowercase(),
        Repository::Url(url) => url_key(url),
    }
}

/// The keys under which a payload's repository may be in the registry.
#[must_use]
pub fn keys_of(repository: &Repo) -> Vec<String> {
    let name = repository.full_name.iter().map(|name| name.to_lowercase());
    let urls = repository.clone_url.iter().chain(&repository.ssh_url).map(|url| url_key(url));
    let mut keys: Vec<String> = name.chain(urls).collect();
    keys.dedup();
    keys
}

/// `host/path` of a remote, however it is written: without scheme, user, port, `.git` and case.
fn url_key(url: &str) -> String {
    let (host, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').unwrap_or((rest, "")),
        // The short form of SSH: `git@host:owner/name`.
        None => url.split_once(':').unwrap_or(("", url)),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    let path = path.trim_matches('/');
    format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path)).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_remote_has_one_key_however_it_is_written() {
        for url in [
            "https://git.example.org/Acme/Shop.git",
            "https://user@git.example.org:443/acme/shop/",
            "ssh://git@git.example.org:2222/acme/shop.git",
            "git@git.example.org:acme/shop.git",
        ] {
            assert_eq!(url_key(url), "git.example.org/acme/shop", "{url}");
        }
        assert_eq!(url_key("file:///srv/git/shop.git"), "/srv/git/shop");
        for odd in ["", "://", ":", "@", "a@:b"] {
            drop(url_key(odd));
        }
    }
}

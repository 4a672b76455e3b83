//! `env_file`: files of the same commit become variables and references before anything is judged.
//!
//! Pure: the caller hands over a way to read a file of the commit's tree. Nothing outside of the
//! manifest's own directory can be named. Messages hold file names' places and line numbers, never values.
//!
//! Source: rule book, section 7.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::raw::{FileNames, Map, RawApplication, RawSecretRef};
use super::{LABEL, bounded, judged, raw};
use crate::model::document::{self, FileName, KeyPath, Refusal, Table};
use crate::model::hakopod::Application;
use crate::model::hakopod::credential::{is_credential_name, is_credential_value};
use crate::model::{Problems, RepoPath, Secret};
use dotenv::Entry;

mod dotenv;

/// The most names of one `env_file`.
const MAX_NAMES: usize = 8;
/// The most files of an application.
const MAX_FILES: usize = 8;
/// The longest name, in bytes.
const MAX_NAME: usize = 200;
/// The most bytes of all files together.
const MAX_TOTAL: usize = 128 * 1024;
/// The longest name of a secret.
const MAX_REFERENCE: usize = 40;

/// A credential that stood in an environment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSecret {
    /// The name that the specification refers to it by.
    pub name: String,
    /// The value, which the specification does not hold.
    pub value: Secret,
}

/// What came of a file and of the environment files that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The normal form.
    pub application: Application,
    /// Values to store before the first release, by name.
    pub secrets: Vec<ImportedSecret>,
}

/// Reads a file of the commit's tree; the error says why it cannot be read, without its content.
pub type Lookup<'a> = &'a dyn Fn(&RepoPath) -> Result<Vec<u8>, String>;

/// Parses, imports, checks and normalises one `hakopod.toml`.
///
/// `lookup` is asked for paths relative to the manifest's own directory, each at most once.
///
/// # Errors
/// All problems of the file; of environment files the first of each.
pub fn import(bytes: &[u8], file: &str, lookup: Lookup<'_>) -> Result<Imported, Problems> {
    let (application, secrets) = document::read(bytes, FileName { file, label: LABEL }, |root| {
        let (mut raw, failed) = raw::read(root);
        let mut import = Import {
            root,
            lookup,
            files: BTreeMap::new(),
            total: 0,
            is_good: true,
            secrets: Map::new(),
            taken: references(&raw),
        };
        import.all(&mut raw);
        let Import { is_good, secrets, .. } = import;
        let application = judged(root, raw, &failed);
        application.filter(|_| is_good).map(|application| (application, secrets))
    })?;
    let secrets = secrets.into_iter().map(|(name, value)| ImportedSecret { name, value }).collect();
    Ok(Imported { application: bounded(application, file)?, secrets })
}

struct Import<'a, 'd> {
    root: &'a Table<'d>,
    lookup: Lookup<'a>,
    /// Entries by file name; nothing for a file that was refused.
    files: BTreeMap<String, Option<Vec<Entry>>>,
    total: usize,
    is_good: bool,
    /// Values by the name of their reference.
    secrets: Map<Secret>,
    /// Names of secrets that the document refers to itself.
    taken: BTreeSet<String>,
}

/// The application, or one service of it.
struct Level<'l> {
    path: KeyPath,
    service: Option<&'l str>,
    env: &'l mut Map<String>,
    secrets: &'l mut Map<RawSecretRef>,
}

impl Import<'_, '_> {
    fn refuse(&mut self, path: &KeyPath, refusal: Refusal) {
        self.is_good = false;
        self.root.refuse_at(path, false, refusal);
    }

    fn all(&mut self, raw: &mut RawApplication) {
        if let Some(names) = raw.env_file.take() {
            let path = KeyPath::default();
            if raw.inject_env == Some(false) {
                self.refuse(
                    &path.key("inject_env"),
                    Refusal::new(
                        "must not be false beside `env_file`",
                        "an imported file is meant for every service",
                        "remove `inject_env = false`, or import the file in single services",
                    ),
                );
            }
            raw.inject_env = Some(true);
            let level = Level { path, service: None, env: &mut raw.env, secrets: &mut raw.secrets };
            self.table(&names, level);
        }
        for (name, service) in raw.services.iter_mut().flatten() {
            if let Some(names) = service.env_file.take() {
                let path = KeyPath::default().key("services").key(name);
                let level = Level { path, service: Some(name), env: &mut service.env, secrets: &mut service.secrets };
                self.table(&names, level);
            }
        }
    }

    /// Imports the files of one level. Later files win over earlier ones, the table over all of them.
    fn table(&mut self, names: &FileNames, level: Level<'_>) {
        let Level { path, service, env, secrets } = level;
        let path = path.key("env_file");
        if names.0.is_empty() || names.0.len() > MAX_NAMES {
            self.refuse(
                &path,
                Refusal::new(
                    format!("must name 1 to {MAX_NAMES} files"),
                    "the list is bounded",
                    "join files, or remove the key",
                ),
            );
        }
        let mut entries: Map<Entry> = Map::new();
        for (index, name) in names.0.iter().enumerate() {
            let at = if names.0.len() == 1 { path.clone() } else { path.index(index) };
            if names.0.iter().take(index).any(|earlier| earlier == name) {
                self.refuse(&at, Refusal::new("is repeated", "each file is imported once", "remove one of the two"));
            } else if let Some(file) = self.file(&at, name) {
                entries.extend(file.into_iter().map(|entry| (entry.name.clone(), entry)));
            }
        }
        for (key, entry) in entries {
            if env.contains_key(&key) || secrets.contains_key(&key) {
                continue;
            }
            if !is_credential_name(&key) && !is_credential_value(&entry.value) {
                env.insert(key, entry.value);
            } else if entry.value.is_empty() {
                self.refuse(
                    &path,
                    Refusal::new(
                        format!("has an empty credential in line {} of its file", entry.line),
                        "a credential becomes a secret, and an empty one would only look like one",
                        "give it a value, or remove the line",
                    ),
                );
            } else {
                let name = self.reference(service, &key, &entry.value);
                secrets.insert(key, RawSecretRef { name, ..RawSecretRef::default() });
            }
        }
    }

    /// The entries of one file, read once.
    fn file(&mut self, path: &KeyPath, name: &str) -> Option<Vec<Entry>> {
        if let Some(known) = self.files.get(name) {
            return known.clone();
        }
        let read = self.read(path, name);
        if read.is_none() {
            self.is_good = false;
        }
        self.files.insert(name.to_owned(), read.clone());
        read
    }

    fn read(&mut self, path: &KeyPath, name: &str) -> Option<Vec<Entry>> {
        let read = self.bytes(name).and_then(|bytes| {
            dotenv::parse(&bytes).map_err(|error| {
                Refusal::new(error.to_string(), "nothing is imported from a file that is not understood", "correct it")
            })
        });
        match read {
            Ok(entries) => Some(entries),
            Err(refusal) => {
                self.refuse(path, refusal);
                None
            }
        }
    }

    /// The bytes of one file, counted.
    fn bytes(&mut self, name: &str) -> Result<Vec<u8>, Refusal> {
        if !is_file_name(name) {
            return Err(Refusal::new(
                "is not a clean relative file name",
                "files lie in the manifest's directory or below: at most 200 bytes, no `..`, backslash or colon",
                "write for example \".env\" or \"env/shared.env\"",
            ));
        }
        if self.files.len() >= MAX_FILES {
            return Err(Refusal::new(
                format!("is one file more than the {MAX_FILES} of an application"),
                "the import is bounded",
                "join files",
            ));
        }
        let repo_path = name.parse().map_err(|_| "it is no path of the repository".to_owned());
        let bytes = repo_path.and_then(|repo_path| (self.lookup)(&repo_path)).map_err(|why| {
            Refusal::new(
                format!("cannot be read: {why}"),
                "environment files come from the same commit as the manifest",
                "commit the file beside the manifest, or correct its name",
            )
        })?;
        self.total = self.total.saturating_add(bytes.len());
        if self.total > MAX_TOTAL {
            return Err(Refusal::new(
                format!("makes the environment files larger than {MAX_TOTAL} bytes together"),
                "the import is bounded",
                "remove what no service needs",
            ));
        }
        Ok(bytes)
    }

    /// A name for a credential's value: readable, and its own.
    fn reference(&mut self, service: Option<&str>, key: &str, value: &str) -> String {
        let whole = service.map_or_else(|| key.to_owned(), |service| format!("{service}-{key}"));
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let readable: String = whole.chars().map(plain).collect();
        let readable = readable.trim_matches('-');
        let readable = if readable.starts_with(|c: char| c.is_ascii_lowercase()) {
            readable.to_owned()
        } else {
            format!("env-{readable}")
        };
        let is_free = !self.taken.contains(readable.as_str()) && !self.secrets.contains_key(readable.as_str());
        let name = if readable.len() <= MAX_REFERENCE && is_free {
            readable
        } else {
            let place = format!("{}\0{key}", service.unwrap_or_default());
            let hash = hex::encode(Sha256::digest(place.as_bytes()));
            let short = readable.get(..readable.len().min(27)).unwrap_or("env").trim_end_matches('-');
            format!("{short}-{}", hash.get(..12).unwrap_or_default())
        };
        self.secrets.insert(name.clone(), Secret::new(value.to_owned()));
        name
    }
}

/// Names of secrets that the document refers to itself.
fn references(raw: &RawApplication) -> BTreeSet<String> {
    let services = raw.services.iter().flatten().flat_map(|(_, service)| {
        let files = service.files.values().filter_map(|file| file.secret.as_ref());
        let bindings = service.bindings.values().filter_map(|binding| binding.password.as_ref());
        let sidecars = service.sidecars.iter().flat_map(|sidecar| sidecar.secrets.values());
        service.secrets.values().chain(files).chain(bindings).chain(sidecars)
    });
    raw.secrets.values().chain(services).map(|reference| reference.name.clone()).collect()
}

/// Relative, already clean, below the manifest's directory.
fn is_file_name(name: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..");
    name.len() <= MAX_NAME && name.split('/').all(part) && !name.contains(['\\', ':', '\0', '\r', '\n'])
}

//! Reads the operator's files: `huta.toml` and `projects.d/*.toml` of one directory.
//!
//! It reads and hands bytes to [`crate::config`]; it decides nothing. A broken file does not hide
//! the good ones, and what could not be read is said, never taken for absent (promise P7).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::config::host::{self, HostConfig};
use crate::config::registry::{self, Entry};
use crate::model::document::MAX_BYTES;
use crate::model::policy::Project;
use crate::model::{Problem, Problems, ProjectName};

/// What a configuration directory says.
#[derive(Debug, Clone, Default)]
pub struct LoadedConfig {
    /// `huta.toml`; none when it is missing or broken, which `problems` says.
    pub host: Option<HostConfig>,
    /// The projects of the good files.
    pub projects: BTreeMap<ProjectName, Project>,
    /// Projects whose file is there and broken: they are not gone, their last good file rules.
    pub broken: Vec<String>,
    /// Whether all of `projects.d` could be listed; when not, no project may be taken for gone.
    pub is_complete: bool,
    /// The problems of each broken file.
    pub problems: Vec<Problems>,
}

/// One file of a registry, read.
#[derive(Debug, Clone)]
pub struct RegistryFile {
    /// Its name for the reader.
    pub file: String,
    /// Its name without `.toml`.
    pub stem: String,
    /// What it says.
    pub entry: Result<Entry, Problems>,
}

/// Reads `huta.toml` and `projects.d/*.toml` in `dir`.
#[must_use]
pub fn load(dir: &Path) -> LoadedConfig {
    let mut problems = Vec::new();
    let host = load_host(&dir.join("huta.toml")).map_err(|found| problems.push(found)).ok();
    let listing = list_toml(&dir.join("projects.d"));
    let is_complete = listing.is_ok();
    let paths = listing.unwrap_or_else(|found| {
        problems.push(found);
        Vec::new()
    });
    let mut projects = BTreeMap::new();
    let mut broken = Vec::new();
    for file in load_registry(&paths, host.as_ref()) {
        match file.entry {
            Ok(entry) => {
                projects.insert(entry.project.name.clone(), entry.project);
            }
            Err(found) => {
                broken.push(file.stem);
                problems.push(found);
            }
        }
    }
    LoadedConfig { host, projects, broken, is_complete, problems }
}

/// Reads one `huta.toml`.
///
/// # Errors
/// It cannot be read, or breaks a rule.
pub fn load_host(path: &Path) -> Result<HostConfig, Problems> {
    host::parse(&read_bounded(path)?, &shown(path))
}

/// Reads registry files and checks them against each other.
#[must_use]
pub fn load_registry(paths: &[PathBuf], host: Option<&HostConfig>) -> Vec<RegistryFile> {
    let mut files: Vec<RegistryFile> = paths
        .iter()
        .map(|path| {
            let file = shown(path);
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let entry = read_bounded(path).and_then(|bytes| registry::read(&bytes, &file, &stem, host));
            RegistryFile { file, stem, entry }
        })
        .collect();
    let good: Vec<(&str, &Entry)> =
        files.iter().filter_map(|file| Some((file.file.as_str(), file.entry.as_ref().ok()?))).collect();
    let clashes = registry::cross_check(&good);
    for clash in clashes {
        if let Some(file) = files.iter_mut().find(|file| file.file == clash.file) {
            file.entry = Err(clash);
        }
    }
    files
}

/// The `*.toml` files of a directory by name; hidden files are an editor's.
///
/// # Errors
/// The directory cannot be read to its end.
pub fn list_toml(dir: &Path) -> Result<Vec<PathBuf>, Problems> {
    let unreadable = |error: std::io::Error| unreadable(dir, &error, "directory");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".toml") && !name.starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file's bytes, at most one more than [`MAX_BYTES`], so that a larger one is still noticed.
///
/// # Errors
/// The file cannot be read.
pub fn read_bounded(path: &Path) -> Result<Vec<u8>, Problems> {
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error, "file"))?;
    Ok(bytes)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn unreadable(path: &Path, error: &std::io::Error, kind: &str) -> Problems {
    Problems {
        file: shown(path),
        list: vec![Problem {
            place: None,
            key: String::new(),
            message: format!("the {kind} cannot be read: {}", error.kind()),
            why: "nothing is assumed about what cannot be read".to_owned(),
            fix: "check the path and its permissions".to_owned(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::edits;

    /// A configuration directory with a good host file and the projects `shop` and `cafe`.
    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("projects.d")).unwrap();
        let shop = edits::text("config/registry/minimal.toml");
        let cafe = shop
            .replace("\"shop\"", "\"cafe\"")
            .replace("20001", "20002")
            .replace("shop.example.org", "cafe.example.org")
            .replace("[18300, 18301]", "[18400, 18401]");
        write(&dir, "huta.toml", &edits::text("config/host/base.toml"));
        write(&dir, "projects.d/shop.toml", &shop);
        write(&dir, "projects.d/cafe.toml", &cafe);
        dir
    }

    fn write(dir: &tempfile::TempDir, file: &str, text: &str) {
        std::fs::write(dir.path().join(file), text).unwrap();
    }

    fn names(loaded: &LoadedConfig) -> Vec<&str> {
        loaded.projects.keys().map(ProjectName::as_str).collect()
    }

    #[test]
    fn a_good_directory_gives_the_host_and_every_project() {
        let dir = directory();
        write(&dir, "projects.d/notes.txt", "not TOML");
        write(&dir, "projects.d/.shop.toml.swp.toml", "not TOML");
        let loaded = load(dir.path());
        assert_eq!(loaded.problems, []);
        assert_eq!(names(&loaded), ["cafe", "shop"]);
        assert!(loaded.is_complete && loaded.host.is_some());
    }

    #[test]
    fn a_broken_project_does_not_hide_the_good_ones() {
        let dir = directory();
        write(&dir, "projects.d/broken.toml", "schema = 1\nproject = ");
        let loaded = load(dir.path());
        assert_eq!(names(&loaded), ["cafe", "shop"]);
        assert_eq!(loaded.broken, ["broken"]);
        assert!(loaded.problems[0].file.ends_with("projects.d/broken.toml"));
    }

    #[test]
    fn a_broken_host_file_does_not_hide_the_projects() {
        let dir = directory();
        write(&dir, "huta.toml", "schema = 1\nnonsense = 1\n");
        let loaded = load(dir.path());
        assert_eq!((loaded.host, loaded.projects.len(), loaded.problems.len()), (None, 2, 1));
    }

    #[test]
    fn a_clash_refuses_both_files_and_no_other() {
        let dir = directory();
        let club = edits::text("config/registry/minimal.toml").replace("\"shop\"", "\"club\"");
        write(&dir, "projects.d/club.toml", &club);
        let loaded = load(dir.path());
        assert_eq!(names(&loaded), ["cafe"]);
        assert_eq!(loaded.broken, ["club", "shop"]);
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_not_taken_for_empty() {
        let dir = directory();
        std::fs::rename(dir.path().join("projects.d"), dir.path().join("away")).unwrap();
        let loaded = load(dir.path());
        assert!(!loaded.is_complete);
        assert!(loaded.problems[0].file.ends_with("projects.d"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_said() {
        let dir = directory();
        std::fs::create_dir(dir.path().join("projects.d/club.toml")).unwrap();
        let loaded = load(dir.path());
        assert_eq!(loaded.broken, ["club"]);
        assert!(loaded.problems[0].list[0].message.contains("cannot be read"));
    }
}

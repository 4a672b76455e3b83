//! Published files of the Hakopod catalog, which lie beside the checkout and are never copied into it.
//!
//! They are looked for in `$TRUEUP_SHARED`, then in `shared` beside the checkout and beside each
//! directory above it. Without them the tests that read them fail, and say so.

use std::path::{Path, PathBuf};

use crate::manifest::hakopod;
use crate::model::hakopod::Application;

fn directory() -> PathBuf {
    let given = std::env::var_os("TRUEUP_SHARED").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1).map(|parent| parent.join("shared"));
    let found = given.into_iter().chain(above).map(|shared| shared.join("corpus/hakopod")).find(|path| path.is_dir());
    found.expect("the corpus is missing: put `shared/corpus/hakopod` beside the checkout, or set TRUEUP_SHARED")
}

/// Every application file: its name and text. Virtual networks are another kind of file.
pub(crate) fn texts() -> Vec<(String, String)> {
    let paths = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_application = |name: &str| name.ends_with(".toml") && !name.starts_with("network-");
    let mut files: Vec<(String, String)> = paths
        .filter(|path| is_application(&name(path)))
        .map(|path| (name(&path), std::fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Every file that the parser accepts.
pub(crate) fn applications() -> Vec<(String, Application)> {
    let parsed = texts().into_iter().filter_map(|(file, text)| {
        let application = hakopod::parse(text.as_bytes(), &file).ok()?;
        Some((file, application))
    });
    parsed.collect()
}

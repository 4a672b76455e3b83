//! Manifests in files of this machine, read with what they name beside them.

use std::path::Path;

use crate::manifest::hakopod::{self, Imported};
use crate::model::hakopod::Application;
use crate::model::{Problems, RepoPath};
use crate::trigger::config_dir;

/// Reads a `hakopod.toml` and the environment files that it names.
pub(super) fn hakopod(file: &Path) -> Result<Application, Problems> {
    let bytes = config_dir::read_bounded(file)?;
    let directory = file.parent().unwrap_or(Path::new(""));
    let lookup = |path: &RepoPath| beside(directory, path);
    let Imported { application, .. } = hakopod::import(&bytes, &file.display().to_string(), &lookup)?;
    Ok(application)
}

/// A plain file in the manifest's directory or below, never through a link.
fn beside(directory: &Path, path: &RepoPath) -> Result<Vec<u8>, String> {
    let mut whole = directory.to_path_buf();
    for part in path.as_str().split('/') {
        whole.push(part);
        let about = std::fs::symlink_metadata(&whole).map_err(|error| error.kind().to_string())?;
        if about.is_symlink() {
            return Err("it is a symbolic link, or lies behind one".to_owned());
        }
    }
    config_dir::read_bounded(&whole).map_err(|_| "it is no regular file of at most 256 KiB".to_owned())
}

//! What holds for deliveries now: the secrets, out of their files, and the cap.
//!
//! Secrets are read at the start and again when a file or the list of files changes. A file that cannot be
//! read, or that is empty, keeps the secret it had: unreadable is not empty (promise P7).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::verify::Keys;
use crate::config::host::GitHub;
use crate::model::Secret;

/// A secret shorter than this is guessed sooner than it should be; it is taken, with a warning.
const SHORTEST_GOOD: usize = 16;

/// The largest secret file that is read, in bytes.
const LARGEST_FILE: u64 = 4096;

/// The rules in force.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Which secrets are accepted; none = the provider is off.
    pub keys: Keys,
    /// The largest body, in bytes.
    pub cap: usize,
}

/// Why a secret's file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It cannot be read.
    #[error("the webhook secret `{path}` cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// There is nothing in it: everybody could sign with nothing.
    #[error("the webhook secret `{path}` is empty: write the secret that the hook has into it")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It is no secret of a hook.
    #[error("the webhook secret `{path}` has more than {LARGEST_FILE} bytes: name the file with the hook's secret")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// How a file is recognised as unchanged.
type Stamp = (u64, Option<SystemTime>);

/// The files, and what was last read from each.
#[derive(Debug, Default)]
pub struct SecretFiles {
    read: BTreeMap<PathBuf, (Stamp, Secret)>,
}

impl SecretFiles {
    /// Reads all files of a configuration, for a start.
    ///
    /// # Errors
    /// [`SecretFileError`] for the first that is of no use.
    pub fn open(github: &GitHub) -> Result<(Self, Rules), SecretFileError> {
        let mut files = Self::default();
        for path in paths(github) {
            let found = read(&path)?;
            files.read.insert(path, found);
        }
        let rules = files.rules(github);
        Ok((files, rules))
    }

    /// Reads again what changed; gives the rules, and what is wrong with files that keep their last secret.
    pub fn refresh(&mut self, github: &GitHub) -> (Rules, Vec<SecretFileError>) {
        let mut problems = Vec::new();
        for path in paths(github) {
            let is_same = self.read.get(&path).is_some_and(|(stamp, _)| stamp_of(&path).is_ok_and(|now| now == *stamp));
            if is_same {
                continue;
            }
            match read(&path) {
                Ok(found) => drop(self.read.insert(path, found)),
                Err(error) => problems.push(error),
            }
        }
        (self.rules(github), problems)
    }

    fn rules(&mut self, github: &GitHub) -> Rules {
        let paths = paths(github);
        self.read.retain(|path, _| paths.contains(path));
        let secrets: Vec<Secret> =
            paths.iter().filter_map(|path| self.read.get(path)).map(|(_, secret)| secret.clone()).collect();
        Rules { keys: Keys::new(&secrets), cap: usize::try_from(github.webhook_limit_bytes).unwrap_or(usize::MAX) }
    }
}

fn paths(github: &GitHub) -> Vec<PathBuf> {
    github.webhook_secret_files.iter().map(PathBuf::from).collect()
}

fn stamp_of(path: &Path) -> std::io::Result<Stamp> {
    let found = std::fs::metadata(path)?;
    Ok((found.len(), found.modified().ok()))
}

fn read(path: &Path) -> Result<(Stamp, Secret), SecretFileError> {
    let at = || path.to_owned();
    let unreadable = |source| SecretFileError::Unreadable { path: at(), source };
    let stamp = stamp_of(path).map_err(unreadable)?;
    if stamp.0 > LARGEST_FILE {
        return Err(SecretFileError::TooLarge { path: at() });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(SecretFileError::Empty { path: at() });
    }
    if secret.len() < SHORTEST_GOOD {
        tracing::warn!(path = %path.display(), "the webhook secret is shorter than {SHORTEST_GOOD} characters: make one with `openssl rand -hex 32`");
    }
    Ok((stamp, Secret::new(secret.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::super::verify::sign;
    use super::*;

    fn github(files: &[&Path]) -> GitHub {
        GitHub {
            webhook_secret_files: files.iter().map(|path| path.to_str().unwrap().to_owned()).collect(),
            ..GitHub::default()
        }
    }

    fn accepts(rules: &Rules, secret: &str) -> Option<u8> {
        rules.keys.begin().finish(&sign(&Secret::new(secret.to_owned()), b""))
    }

    #[test]
    fn secrets_are_read_again_when_their_files_change_and_kept_when_those_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        std::fs::write(&first, "the first secret of the hook\n").unwrap();
        let (mut files, rules) = SecretFiles::open(&github(&[&first])).unwrap();
        assert_eq!(accepts(&rules, "the first secret of the hook"), Some(1));
        std::fs::write(&second, "the second secret of the hook, longer\r\n").unwrap();
        let both = github(&[&second, &first]);
        let (rules, problems) = files.refresh(&both);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(accepts(&rules, "the second secret of the hook, longer"), Some(1));
        assert_eq!(accepts(&rules, "the first secret of the hook"), Some(2));

        std::fs::write(&second, "").unwrap();
        std::fs::remove_file(&first).unwrap();
        let (rules, problems) = files.refresh(&both);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(accepts(&rules, "the first secret of the hook"), Some(2), "unreadable is not empty");
        std::fs::write(&second, "a third secret").unwrap();
        let (rules, _) = files.refresh(&both);
        assert_eq!(accepts(&rules, "a third secret"), Some(1));
        assert_eq!(accepts(&rules, "the second secret of the hook, longer"), None);

        let (rules, _) = files.refresh(&github(&[]));
        assert!(rules.keys.is_empty(), "no file, no provider");
    }

    #[test]
    fn a_start_refuses_an_empty_or_missing_secret_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hook.secret");
        for (text, says) in
            [(None, "cannot be read"), (Some("\n".to_owned()), "is empty"), (Some("x".repeat(5000)), "5000")]
        {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let error = SecretFiles::open(&github(&[&path])).unwrap_err().to_string();
            assert!(error.contains("hook.secret"), "{error}");
            assert!(error.contains(says) || error.contains("more than 4096"), "{error}");
        }
    }
}

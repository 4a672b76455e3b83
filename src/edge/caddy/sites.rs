//! The vhost's file in Caddy's sites directory: written whole or not at all, and put back when a load fails.
//!
//! Beside `shop.prod.caddy` a load in progress has `.shop.prod.caddy.previous`, the text to go back to (empty: there was
//! none). A name that does not end in `.caddy` is never imported.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::marker::sync_directory;

/// Caddy's user reads the vhost; it holds nothing secret.
const VHOST_FILE: u32 = 0o644;

/// One vhost file.
#[derive(Debug, Clone)]
pub(super) struct SiteFile {
    dir: PathBuf,
    name: String,
}

impl SiteFile {
    pub(super) fn new(dir: &Path, name: &str) -> Self {
        Self { dir: dir.to_owned(), name: name.to_owned() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.dir.join(format!(".{}.{ending}", self.name))
    }

    /// The text; none when there is no file.
    ///
    /// # Errors
    /// When it cannot be read: that is not absence.
    pub(super) fn read(&self) -> io::Result<Option<String>> {
        optional(fs::read_to_string(self.path()))
    }

    /// The text before a load that has not ended well yet; none when there is no such load.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn previous(&self) -> io::Result<Option<String>> {
        optional(fs::read_to_string(self.beside("previous")))
    }

    /// Puts the new text in place and keeps the old one beside it, both durably. An older kept text stays: it is the
    /// last one that was loaded.
    ///
    /// # Errors
    /// Of the file system; the vhost is then the old one or the new one, whole.
    pub(super) fn replace(&self, text: &str) -> io::Result<()> {
        if self.previous()?.is_none() {
            let old = self.read()?.unwrap_or_default();
            self.write_as(&self.beside("previous"), &old)?;
        }
        self.write_as(&self.path(), text)
    }

    /// The new text is loaded: forgets the old one.
    ///
    /// # Errors
    /// Of the file system.
    pub(super) fn settle(&self) -> io::Result<()> {
        gone(fs::remove_file(self.beside("previous")))?;
        sync_directory(&self.dir)
    }

    /// Goes back to the kept text; does nothing when none is kept.
    ///
    /// # Errors
    /// Of the file system.
    pub(super) fn restore(&self) -> io::Result<()> {
        match self.previous()? {
            None => return Ok(()),
            Some(old) if old.is_empty() => gone(fs::remove_file(self.path()))?,
            Some(_) => fs::rename(self.beside("previous"), self.path())?,
        }
        self.settle()
    }

    fn write_as(&self, path: &Path, text: &str) -> io::Result<()> {
        let temporary = self.beside("new");
        gone(fs::remove_file(&temporary))?;
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(VHOST_FILE).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_directory(&self.dir)
    }
}

fn optional(read: io::Result<String>) -> io::Result<Option<String>> {
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_settled_or_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = SiteFile::new(dir.path(), "shop.prod.caddy");
        file.replace("one").unwrap();
        assert_eq!(file.previous().unwrap().as_deref(), Some(""));
        file.restore().unwrap();
        assert_eq!((file.read().unwrap(), file.previous().unwrap()), (None, None));
        file.replace("one").unwrap();
        file.settle().unwrap();
        file.replace("two").unwrap();
        file.replace("three").unwrap();
        assert_eq!(file.previous().unwrap().as_deref(), Some("one"), "the last text that was loaded");
        file.restore().unwrap();
        file.restore().unwrap();
        assert_eq!((file.read().unwrap().as_deref(), file.previous().unwrap()), (Some("one"), None));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

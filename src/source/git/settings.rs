//! What the operator says about Git, and every bound.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::model::Secret;
use crate::model::policy::Repository;

/// How long one look may take, waiting for a free place included.
pub const LOOK_BOUND: Duration = Duration::from_secs(30);
/// How long fetching a commit, walking its history or exporting its tree may take.
pub const FETCH_BOUND: Duration = Duration::from_secs(600);
/// How long reading one file may take.
pub const READ_BOUND: Duration = Duration::from_secs(30);
/// Looks at the same moment: a look that hangs costs one place for at most [`LOOK_BOUND`] (field report 41).
pub const LOOKS_AT_ONCE: usize = 64;
/// Looks over `ssh://` at the same moment: `sshd` drops connections past ten that have not logged in yet.
///
/// Source: sshd_config(5), `MaxStartups`.
pub const SSH_LOOKS_AT_ONCE: usize = 8;
/// Fetches at the same moment (field report 2).
pub const FETCHES_AT_ONCE: usize = 16;
/// The largest single object that is read.
pub(super) const OBJECT_LIMIT_BYTES: usize = 1 << 30;
/// The most that one fetch may receive.
pub(super) const FETCH_LIMIT_BYTES: u64 = 8 << 30;
/// The most that is copied for one commit of a `file://` remote.
pub(super) const COPY_LIMIT_BYTES: u64 = 8 << 30;

/// Gives the token of `[github]`, asked anew for each request, since installation tokens end within the hour.
#[derive(Clone)]
pub struct Token(Arc<Give>);

type Give = dyn Fn(&Repository) -> Option<Secret> + Send + Sync;

impl Token {
    /// A token that never changes.
    #[must_use]
    pub fn fixed(secret: Secret) -> Self {
        Self::from_fn(move || Some(secret.clone()))
    }

    /// A token that somebody else keeps fresh; `give` must not block.
    pub fn from_fn(give: impl Fn() -> Option<Secret> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |_: &Repository| give()))
    }

    /// As [`Token::from_fn`], with a token for each repository.
    pub fn per_repository(give: impl Fn(&Repository) -> Option<Secret> + Send + Sync + 'static) -> Self {
        Self(Arc::new(give))
    }

    /// The same token, for one repository alone.
    pub(super) fn bound(self, repository: &Repository) -> Self {
        let repository = repository.clone();
        Self(Arc::new(move |_: &Repository| (self.0)(&repository)))
    }

    /// The token of a bound one; what it is asked for here does not matter.
    pub(super) fn read(&self) -> Option<Secret> {
        (self.0)(&Repository::Url(String::new()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[token]")
    }
}

/// What the operator says about Git.
#[derive(Debug, Clone)]
pub struct GitSettings {
    /// `state_dir`: mirrors are made below `git/`, known SSH hosts are read from `ssh/known_hosts`.
    pub state_dir: PathBuf,
    /// `[github] git_url`, for example `https://github.com`.
    pub git_url: String,
    /// Sent to `git_url` alone, as the password of `x-access-token`.
    pub token: Option<Token>,
    /// The SSH key of each repository that has its own; without one `ssh` has no key.
    pub identity_files: BTreeMap<Repository, PathBuf>,
}

//! Names of projects, targets, branches and slots: parsed once, at the boundary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::revision::Digest;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A project, target, component, image or job name breaks `^[a-z][a-z0-9-]{0,30}$`.
    #[error("`{0}` is not a name: a lower-case letter, then at most 30 lower-case letters, digits or hyphens")]
    Label(String),
    /// A branch name breaks the rules of git-check-ref-format.
    #[error("`{0}` is not a branch name")]
    Branch(String),
    /// A target's full name is not `<project>/<target>`.
    #[error("`{0}` is not a target: write `<project>/<target>`")]
    Target(String),
}

/// Says whether `text` matches `^[a-z][a-z0-9-]{0,30}$`, the contract's form of every name.
///
/// Source: app.toml contract, `[images.<name>]`, `[components.<name>]`, `targets.<name>`.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && text.len() <= 31
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                if is_label(text) { Ok(Self(text.to_owned())) } else { Err(NameError::Label(text.to_owned())) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

label! {
    /// The name of a project: its registry file's name.
    ProjectName
}
label! {
    /// A target's own name inside its project, for example `prod`.
    TargetLabel
}

/// One of a host target's two seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    /// The seat that serves when only `released` is marked.
    A,
    /// The seat that serves when `b` is marked.
    B,
}

impl Slot {
    /// Both seats, in order.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other seat.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// `a` or `b`, as in `HUTA_SLOT`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The seat's member of a pair `[a, b]`.
    pub fn of<T>(self, pair: &[T; 2]) -> &T {
        let [a, b] = pair;
        match self {
            Self::A => a,
            Self::B => b,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A target's full name: `<project>/<target>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName {
    /// The project.
    pub project: ProjectName,
    /// The target inside it.
    pub target: TargetLabel,
}

impl TargetName {
    /// Joins the two names.
    #[must_use]
    pub fn new(project: ProjectName, target: TargetLabel) -> Self {
        Self { project, target }
    }

    /// The container's name in one slot: `<project>.<target>.<slot>`.
    ///
    /// Names have no dot, so two targets never share one (ruling 1).
    #[must_use]
    pub fn container(&self, slot: Slot) -> String {
        format!("{}.{}.{slot}", self.project, self.target)
    }

    /// The Docker network's name: `<project>.<target>`.
    #[must_use]
    pub fn network(&self) -> String {
        format!("{}.{}", self.project, self.target)
    }

    /// The bridge's name: `tu-` and 10 hex of a hash, since an interface name has at most 15
    /// characters (ruling 1).
    #[must_use]
    pub fn bridge(&self) -> String {
        let digest = Digest::of(format!("{}\0{}", self.project, self.target).as_bytes());
        format!("tu-{}", digest.prefix(10))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.project, self.target)
    }
}

impl FromStr for TargetName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (project, target) = text.split_once('/').ok_or_else(|| NameError::Target(text.to_owned()))?;
        Ok(Self { project: project.parse()?, target: target.parse()? })
    }
}

impl TryFrom<String> for TargetName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<TargetName> for String {
    fn from(name: TargetName) -> Self {
        name.to_string()
    }
}

/// The short name of a branch, for example `main`; its full ref is `refs/heads/main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchName(String);

impl BranchName {
    /// The short name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full ref: short names can be ambiguous, so nothing else is ever asked for.
    #[must_use]
    pub fn full_ref(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl FromStr for BranchName {
    type Err = NameError;

    /// Source: git-check-ref-format(1), the rules for one branch name.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let forbidden = |c: char| c.is_ascii_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
        let is_name = text.len() <= 255
            && !text.starts_with('-')
            && !text.starts_with("refs/")
            && text != "@"
            && !text.ends_with('.')
            && !text.contains("..")
            && !text.contains("@{")
            && !text.chars().any(forbidden)
            && text.split('/').all(component);
        if is_name { Ok(Self(text.to_owned())) } else { Err(NameError::Branch(text.to_owned())) }
    }
}

impl TryFrom<String> for BranchName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<BranchName> for String {
    fn from(name: BranchName) -> Self {
        name.0
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A path inside a repository: relative, `/`-separated, never leaving the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// Why a text is not a path inside a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path inside the repository: relative, without `..`, `.git`, empty parts or backslashes")]
pub struct RepoPathError(String);

impl RepoPath {
    /// The path, without a leading slash; `.` for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says whether this is the root of the tree.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }
}

impl FromStr for RepoPath {
    type Err = RepoPathError;

    /// `./` in front and one `/` behind are dropped; `.` alone is the root.
    fn from_str(text: &str) -> Result<Self, RepoPathError> {
        let trimmed = text.strip_prefix("./").unwrap_or(text);
        let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
        if trimmed == "." || (trimmed.is_empty() && text == "./") {
            return Ok(Self(".".to_owned()));
        }
        let part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git");
        let is_path = trimmed.len() <= 1024
            && !trimmed.chars().any(|c| c.is_control() || c == '\\')
            && trimmed.split('/').all(part);
        if is_path { Ok(Self(trimmed.to_owned())) } else { Err(RepoPathError(text.to_owned())) }
    }
}

impl TryFrom<String> for RepoPath {
    type Error = RepoPathError;
    fn try_from(text: String) -> Result<Self, RepoPathError> {
        text.parse()
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

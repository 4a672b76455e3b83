//! The few fields of a payload that are looked at, each optional: nothing is indexed, nothing is required.
//!
//! A payload is a hint (I7). It says where to look, never what to do, so what is absent only makes the
//! hint weaker. It is read after its bytes were verified, and never before.
//!
//! Source: `github-facts`, sections 1 and 2; GitHub, "Webhook events and payloads".

use serde::Deserialize;

use crate::model::Sha;

/// A payload of any of the events that we look at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Payload {
    /// What happened, where the event has kinds.
    pub action: Option<String>,
    /// `push`: the full ref.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// `push`: where the ref points now; 40 zeros when it is gone.
    pub after: Option<String>,
    /// `push`: whether the ref is new.
    pub created: Option<bool>,
    /// `push`: whether the ref is gone.
    pub deleted: Option<bool>,
    /// `push`: whether history was rewritten.
    pub forced: Option<bool>,
    /// The repository it is about.
    pub repository: Option<Repo>,
    /// `workflow_run`.
    pub workflow_run: Option<Run>,
    /// `check_suite`.
    pub check_suite: Option<Suite>,
    /// `repository`: what was there before.
    pub changes: Option<Changes>,
    /// `installation`: the repositories it reaches.
    pub repositories: Option<Vec<Repo>>,
    /// `installation_repositories`.
    pub repositories_added: Option<Vec<Repo>>,
    /// `installation_repositories`.
    pub repositories_removed: Option<Vec<Repo>>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Repo {
    /// Stays the same when it is renamed or transferred.
    pub id: Option<i64>,
    /// `owner/name`.
    pub full_name: Option<String>,
    /// Its HTTPS remote.
    pub clone_url: Option<String>,
    /// Its SSH remote.
    pub ssh_url: Option<String>,
}

/// A workflow's run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Run {
    /// What started it: `push`, `pull_request`, …
    pub event: Option<String>,
    /// Without `refs/heads/`.
    pub head_branch: Option<String>,
    /// The commit.
    pub head_sha: Option<String>,
    /// An open set of words; null while it runs.
    pub conclusion: Option<String>,
    /// Where the commit comes from: a fork, or the repository itself.
    pub head_repository: Option<Repo>,
}

/// A suite of checks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Suite {
    /// Without `refs/heads/`; null when no branch points to the commit.
    pub head_branch: Option<String>,
    /// The commit.
    pub head_sha: Option<String>,
    /// An open set of words; null while it runs.
    pub conclusion: Option<String>,
    /// Whose suite it is.
    pub app: Option<App>,
}

/// An App.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct App {
    /// Its name in addresses.
    pub slug: Option<String>,
}

/// What a `repository` event changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Changes {
    /// A rename.
    pub repository: Option<RenamedFrom>,
    /// A transfer.
    pub owner: Option<OwnedFrom>,
}

/// A rename.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct RenamedFrom {
    /// Around the old name.
    pub name: Option<OldName>,
}

/// The old name, without its owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct OldName {
    /// The old name.
    pub from: Option<String>,
}

/// A transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct OwnedFrom {
    /// Around the old owner.
    pub from: Option<OldOwner>,
}

/// The old owner: a user or an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct OldOwner {
    /// A user.
    pub user: Option<Login>,
    /// An organisation.
    pub organization: Option<Login>,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Login {
    /// Its name.
    pub login: Option<String>,
}

impl Payload {
    /// Reads verified bytes.
    ///
    /// # Errors
    /// When they are not a JSON object, or a field that we look at is of another kind; says where, without
    /// the content.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(json).map_err(|error| {
            let kind = match error.classify() {
                serde_json::error::Category::Eof => "it ends too early",
                serde_json::error::Category::Io | serde_json::error::Category::Syntax => "it is not JSON",
                serde_json::error::Category::Data => "a field is of another kind than documented",
            };
            format!("{kind} (line {}, column {})", error.line(), error.column())
        })
    }
}

/// A commit out of a payload; none for 40 zeros, or for what is no sha.
#[must_use]
pub fn commit(text: Option<&str>) -> Option<Sha> {
    text.filter(|text| text.bytes().any(|byte| byte != b'0'))?.parse().ok()
}

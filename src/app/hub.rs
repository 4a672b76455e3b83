//! GitHub, wired once: one client, one credential, one memory of the rate limit for all who ask it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{AppError, secret_file};
use crate::config::host::HostConfig;
use crate::model::policy::{Project, Repository};
use crate::model::{ProjectName, Reason, ReasonCode};
use crate::source::git::Token;
use crate::source::github::{
    AppSettings, AppTokens, CALL_DEADLINE, GithubChecks, GithubReverts, GithubSettings, is_loopback,
};
use crate::source::http::{self, Roots};
use crate::source::{ChecksError, Tokens};

/// What talks to GitHub.
pub(crate) struct Hub {
    /// All calls go through it.
    pub(crate) checks: Arc<GithubChecks>,
    /// An App's tokens; none for a fixed one.
    pub(crate) tokens: Option<Arc<AppTokens>>,
    /// Authorities beside the system's.
    pub(crate) roots: Roots,
    /// What Git sends.
    pub(super) git_token: Option<Token>,
}

impl Hub {
    /// Reads the secrets and makes the client; asks nothing yet.
    pub(crate) fn of(host: &HostConfig) -> Result<Self, AppError> {
        let refused = |error: ChecksError| AppError::Source { reason: error.reason };
        let roots = host.github.ca_file.as_deref().map(roots).transpose()?.unwrap_or_default();
        let settings = GithubSettings {
            api_url: host.github.api_url.clone(),
            call_deadline: CALL_DEADLINE,
            now: Arc::new(crate::clock::now),
        };
        let agent = concat!("trueup/", env!("CARGO_PKG_VERSION"));
        let client = http::client(is_loopback(&settings.api_url), &roots, agent).map_err(config_error)?;
        let fixed = host.github.token_file.as_deref().map(secret_file).transpose()?;
        let app = match &host.github.app {
            Some(app) => Some(AppSettings {
                app_id: app.app_id,
                installation_id: app.installation_id,
                private_key: secret_file(&app.private_key_file)?,
            }),
            None => None,
        };
        let tokens = app.map(|app| AppTokens::new(&app, settings.clone(), client.clone())).transpose();
        let tokens = tokens.map_err(refused)?.map(Arc::new);
        let git_token = match &tokens {
            Some(tokens) => {
                let tokens = Arc::clone(tokens);
                Some(Token::per_repository(move |repository| tokens.peek(repository)))
            }
            None => fixed.clone().map(Token::fixed),
        };
        let checks = GithubChecks::with_client(settings, client, fixed).map_err(refused)?;
        let checks = match &tokens {
            Some(tokens) => {
                let tokens: Arc<dyn Tokens> = tokens.clone();
                checks.with_tokens(tokens)
            }
            None => checks,
        };
        Ok(Self { checks: Arc::new(checks), tokens, roots, git_token })
    }

    /// Who writes reverts; nobody without a credential.
    pub(super) fn reverts(&self) -> Option<GithubReverts> {
        let forge: Arc<dyn crate::source::Forge> = self.checks.clone();
        self.git_token.as_ref().map(|_| GithubReverts::new(forge))
    }
}

fn roots(path: &str) -> Result<Roots, AppError> {
    let pem = std::fs::read(path).map_err(|source| AppError::SecretFile { path: path.to_owned(), source })?;
    Roots::from_pem(&pem).map_err(|why| config_error(format!("`[github] ca_file` {path}: {why}")))
}

fn config_error(message: String) -> AppError {
    AppError::Source { reason: Reason::new(ReasonCode::ConfigInvalid, message) }
}

/// The deploy key of each repository whose project names a credential.
pub(super) fn identities(
    host: &HostConfig,
    projects: &BTreeMap<ProjectName, Project>,
) -> BTreeMap<Repository, PathBuf> {
    let mut files = BTreeMap::new();
    for project in projects.values() {
        let Some(name) = &project.credential else { continue };
        match host.credentials.get(name) {
            Some(path) => {
                files.insert(project.repo.clone(), PathBuf::from(path));
            }
            None => {
                tracing::error!(project = %project.name, "`credential` names `{name}`, and huta.toml has no [credentials.{name}]")
            }
        }
    }
    files
}

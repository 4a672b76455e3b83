//! One token's client of GitHub's REST API.

use http_body_util::{BodyExt as _, Limited};
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH};
use octocrab::Octocrab;

use super::pages::Answer;
use super::{API_VERSION, ChecksError, chain, failure};
use crate::model::{Class, Digest, Secret};

/// Bytes of one answer: 100 runs are about 2 MB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

const API_VERSION_HEADER: HeaderName = HeaderName::from_static("x-github-api-version");

/// The key is a digest, so that maps can be keyed without holding the token.
pub(super) struct Credential {
    pub(super) key: Digest,
    token: Option<Secret>,
    client: Octocrab,
}

impl Credential {
    pub(super) fn new((api_url, client): (&str, &reqwest::Client), token: Option<Secret>) -> Result<Self, ChecksError> {
        let key = Self::key_of(token.as_ref());
        let is_header = |token: &Secret| HeaderValue::from_str(token.expose()).is_ok() && !token.expose().is_empty();
        if token.as_ref().is_some_and(|token| !is_header(token)) {
            let message = "GitHub's token is empty or has a line break in it; look at its file";
            return Err(failure(Class::Stalled, message.to_owned()));
        }
        let mut builder = Octocrab::builder();
        if let Some(token) = &token {
            builder = builder.personal_token(token.expose().to_owned());
        }
        let built = builder.base_uri(api_url).and_then(|builder| builder.build_with_reqwest(client.clone()));
        let client = built.map_err(|error| {
            failure(Class::Stalled, format!("no client for {api_url} can be made: {}", chain(&error)))
        })?;
        Ok(Self { key, token, client })
    }

    /// What a token is known by.
    pub(super) fn key_of(token: Option<&Secret>) -> Digest {
        Digest::of(token.map_or("", Secret::expose).as_bytes())
    }

    pub(super) async fn get(&self, url: &str, etag: Option<&str>) -> Result<Answer, ChecksError> {
        self.send(("GET", url), etag, None).await
    }

    /// Sends one request. Built here and not by octocrab's own methods: those add the API version that it was
    /// made for.
    pub(super) async fn send(
        &self,
        (method, url): (&str, &str),
        etag: Option<&str>,
        body: Option<&serde_json::Value>,
    ) -> Result<Answer, ChecksError> {
        let lost = |error: octocrab::Error| {
            self.redact(failure(Class::Transient, format!("GitHub could not be asked: {}", chain(&error))))
        };
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(ACCEPT, "application/vnd.github+json")
            .header(API_VERSION_HEADER, API_VERSION);
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(body.map(ToString::to_string).unwrap_or_default())
            .map_err(|error| failure(Class::Bug, format!("no request can be made of `{url}`: {error}")))?;
        let response = self.client.execute(request).await.map_err(lost)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|error| {
            self.redact(failure(Class::Transient, format!("GitHub's answer broke off or is too large: {error}")))
        })?;
        Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() })
    }

    /// Nobody is known to send a token back; should it happen, it ends here (promise P10).
    pub(super) fn redact(&self, mut error: ChecksError) -> ChecksError {
        if let Some(token) = &self.token {
            error.reason.message = error.reason.message.replace(token.expose(), "[secret]");
        }
        error
    }
}

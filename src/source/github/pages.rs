//! Answers, and those that may be asked for conditionally, by credential and URL.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ETAG, HeaderName, LINK};
use hyper::{HeaderMap, StatusCode};

use super::wire::{Body, next};
use super::{ChecksError, failure};
use crate::model::{Class, Digest};

/// Pages kept: two for each of 1,000 targets, and some.
const MAX_PAGES_KEPT: usize = 4_096;

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn into_page(self) -> Result<Page, ChecksError> {
        let body = serde_json::from_slice(&self.body).map_err(|error| {
            failure(Class::Transient, format!("GitHub's answer is not the JSON that it promises: {error}"))
        })?;
        let text = |name: HeaderName| Some(self.headers.get(name)?.to_str().ok()?.to_owned());
        Ok(Page { etag: text(ETAG), next: text(LINK).and_then(|link| next(&link)), body })
    }
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    /// What to send along to hear "not modified".
    pub(super) etag: Option<String>,
    /// The next page, as GitHub gives it.
    pub(super) next: Option<String>,
    pub(super) body: Body,
}

/// The pages; the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Pages {
    kept: HashMap<(Digest, String), Arc<Page>>,
    order: VecDeque<(Digest, String)>,
}

impl Pages {
    pub(super) fn get(&self, credential: &Digest, url: &str) -> Option<Arc<Page>> {
        self.kept.get(&(credential.clone(), url.to_owned())).cloned()
    }

    pub(super) fn put(&mut self, credential: &Digest, url: &str, page: &Arc<Page>) {
        let key = (credential.clone(), url.to_owned());
        if self.kept.insert(key.clone(), Arc::clone(page)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_PAGES_KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.kept.remove(&oldest);
            }
        }
    }

    pub(super) fn forget(&mut self, credential: &Digest) {
        self.kept.retain(|(key, _), _| key != credential);
        self.order.retain(|(key, _)| key != credential);
    }

    pub(super) fn keep_only(&mut self, credential: &Digest) {
        self.kept.retain(|(key, _), _| key == credential);
        self.order.retain(|(key, _)| key == credential);
    }
}

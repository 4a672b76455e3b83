//! Opening conversations with a remote, and keeping those that are worth it.

use std::sync::Arc;

use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::http;

use super::abort::Abort;
use super::fault::{Fault, hold};
use super::place::Way;
use super::repo::Repo;
use super::ssh;
use super::talk::Talk;
use super::wire::{Link, Wire};

impl Repo {
    /// Talks to the remote over the kept connection, or over a new one if there is none or it fails.
    pub(super) fn converse<T>(
        &self,
        bounds: (u64, &Arc<Abort>),
        mut run: impl FnMut(&mut Talk) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (limit, abort) = bounds;
        let kept = hold(&self.talk).take();
        if let Some(mut talk) = kept {
            talk.link.begin(abort, limit);
            if let Ok(answer) = run(&mut talk) {
                *hold(&self.talk) = Some(talk);
                return Ok(answer);
            }
            abort.check()?;
        }
        let link = Arc::new(Link::default());
        link.begin(abort, limit);
        match &self.remote.way {
            Way::Http { url, .. } => {
                let wire = Wire {
                    client: self.client.clone(),
                    handle: self.handle.clone(),
                    token: self.token.clone(),
                    link: Arc::clone(&link),
                };
                let url = gix::url::parse(url.as_str()).map_err(|error| Fault::remote(format!("{error:?}")))?;
                let mut talk = Talk::open(Box::new(http::connect_http(wire, url, Protocol::V2, false)), link)?;
                if !talk.is_v2() {
                    return Err(Fault::refused(
                        "the server does not speak protocol version 2",
                        "serve it with Git 2.18 or newer",
                    ));
                }
                let answer = run(&mut talk)?;
                *hold(&self.talk) = Some(talk);
                Ok(answer)
            }
            Way::Ssh { .. } => self.converse_ssh(abort, link, run),
            Way::File(_) => Err(Fault::remote("a `file://` remote is not talked to")),
        }
    }

    fn converse_ssh<T>(
        &self,
        abort: &Arc<Abort>,
        link: Arc<Link>,
        mut run: impl FnMut(&mut Talk) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let started = ssh::start(&self.remote.way, &self.keys, &link, abort)?;
        let result = Talk::open(started.transport, link).and_then(|mut talk| run(&mut talk));
        abort.reap();
        abort.check()?;
        match result {
            Err(fault @ Fault::Remote { .. }) => {
                Err(started.complaint.fault(&self.remote.way, &self.keys).unwrap_or(fault))
            }
            other => other,
        }
    }
}

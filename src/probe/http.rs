//! HTTP samples through reqwest.
//!
//! Every sample has a connection of its own: a kept one could outlive the container that it led to. Redirects are not
//! followed, nothing is decoded, and `Cache-Control` is not sent: the sample is what a visitor would get, and `verify`
//! sees by `Age` whether a cache made it (ruling 36).
//!
//! The process installs its TLS provider once, at its start.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

use super::{Answer, HttpProbe, Probe, Sample, SilenceKind, Trust};
use tls::exactly;

mod tls;

#[cfg(test)]
mod tests;

/// Sent with each sample.
const USER_AGENT: &str = concat!("trueup/", env!("CARGO_PKG_VERSION"));
/// Clients that are kept: building one that knows the system's roots takes milliseconds. When more are needed, all
/// are forgotten.
const CLIENTS: usize = 256;

/// Takes HTTP samples.
#[derive(Debug, Default)]
pub struct HttpProbeClient {
    clients: Mutex<HashMap<Key, Client>>,
}

/// What a client is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    connect: Option<SocketAddr>,
    is_direct: bool,
    trust: TrustKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TrustKey {
    /// Plain HTTP: no certificate is looked at.
    Nothing,
    System,
    AlsoRoots(String),
    Exactly(String),
}

impl HttpProbeClient {
    /// A client without connections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn client(&self, key: Key) -> Result<Client, String> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= CLIENTS {
            clients.clear();
        }
        let client = build(&key)?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    async fn sample(&self, probe: &HttpProbe) -> Result<Answer, Silence> {
        let (url, host) = destination(probe).map_err(Silence::invalid)?;
        let key = Key {
            connect: probe.connect,
            is_direct: probe.connect.is_some() || is_loopback(&url),
            trust: if url.scheme() == "http" { TrustKey::Nothing } else { TrustKey::from(&probe.trust) },
        };
        let client = self.client(key).map_err(|detail| Silence { kind: SilenceKind::Tls, detail })?;
        let headers = headers(probe, host).map_err(Silence::invalid)?;
        let response = client.get(url).headers(headers).send().await.map_err(|error| Silence::from(&error))?;
        read(response, probe.body_limit).await
    }
}

#[async_trait]
impl Probe for HttpProbeClient {
    async fn get(&self, probe: &HttpProbe) -> Sample {
        match tokio::time::timeout(probe.timeout, self.sample(probe)).await {
            Ok(Ok(answer)) => Sample::Answer(answer),
            Ok(Err(silence)) => Sample::Silence { kind: silence.kind, detail: silence.detail },
            Err(_) => {
                let detail = format!("no whole answer within {} ms", probe.timeout.as_millis());
                Sample::Silence { kind: SilenceKind::Timeout, detail }
            }
        }
    }
}

struct Silence {
    kind: SilenceKind,
    detail: String,
}

impl Silence {
    /// A probe that cannot be sent: nobody is reached.
    fn invalid(detail: String) -> Self {
        Self { kind: SilenceKind::Connection, detail }
    }
}

impl From<&reqwest::Error> for Silence {
    fn from(error: &reqwest::Error) -> Self {
        let mut chain: Vec<&(dyn StdError + 'static)> = Vec::new();
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(link) = next {
            chain.push(link);
            next = below(link);
        }
        let kind = if chain.iter().any(|link| link.is::<Unresolved>()) {
            SilenceKind::Name
        } else if chain.iter().any(|link| link.is::<rustls::Error>()) {
            SilenceKind::Tls
        } else if error.is_timeout() {
            SilenceKind::Timeout
        } else {
            SilenceKind::Connection
        };
        // The outermost says only "error sending request for url"; the innermost says what happened.
        let mut words: Vec<String> = chain.iter().skip(1).map(ToString::to_string).collect();
        words.dedup();
        Self { kind, detail: words.join(": ") }
    }
}

/// The cause of an error; an I/O error's own inner error is its cause too.
fn below<'error>(link: &'error (dyn StdError + 'static)) -> Option<&'error (dyn StdError + 'static)> {
    let inner = link.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match inner {
        Some(inner) => Some(inner),
        None => link.source(),
    }
}

/// The URL to ask for, and the `Host` header when it is not the URL's own.
///
/// A client connects to the URL's port when it names one, and to the URL's host when it is an address. So with
/// `connect`, such a URL loses both, and its `Host` header keeps them.
fn destination(probe: &HttpProbe) -> Result<(Url, Option<String>), String> {
    let mut url = Url::parse(&probe.url).map_err(|error| format!("`{}`: {error}", probe.url))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}`: only http and https are asked", probe.url));
    }
    let Some(connect) = probe.connect else {
        return Ok((url, None));
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let is_address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let has_port = url.port().is_some();
    if !is_address && !has_port {
        return Ok((url, None));
    }
    let authority = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    let moved = if is_address {
        url.set_ip_host(connect.ip()).and_then(|()| url.set_port(Some(connect.port())))
    } else {
        url.set_port(None)
    };
    moved.map_err(|()| format!("`{}` cannot be asked at {connect}", probe.url))?;
    Ok((url, Some(authority)))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn headers(probe: &HttpProbe, host: Option<String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if let Some(host) = host {
        headers.insert(HOST, HeaderValue::from_str(&host).map_err(|error| error.to_string())?);
    }
    for (name, value) in &probe.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("header `{name}`: {error}"))?;
        let value = HeaderValue::from_str(value).map_err(|error| format!("header `{name}`: {error}"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Reads at most `limit` bytes and hangs up when there are more.
async fn read(mut response: Response, limit: usize) -> Result<Answer, Silence> {
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let mut answer = Answer { status, headers, body: Vec::new(), is_truncated: false };
    while let Some(chunk) = response.chunk().await.map_err(|error| Silence::from(&error))? {
        let room = limit.saturating_sub(answer.body.len());
        answer.body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            answer.is_truncated = true;
            break;
        }
    }
    Ok(answer)
}

fn build(key: &Key) -> Result<Client, String> {
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(0)
        .dns_resolver(Arc::new(Resolver { connect: key.connect }));
    if key.is_direct {
        builder = builder.no_proxy();
    }
    builder = match &key.trust {
        TrustKey::System => builder,
        TrustKey::Nothing => builder.tls_certs_only([]),
        TrustKey::AlsoRoots(pem) => {
            let roots = reqwest::Certificate::from_pem_bundle(pem.as_bytes()).map_err(|error| error.to_string())?;
            builder.tls_certs_merge(roots)
        }
        TrustKey::Exactly(pem) => builder.tls_backend_preconfigured(exactly(pem)?),
    };
    builder.build().map_err(|error| Silence::from(&error).detail)
}

impl From<&Trust> for TrustKey {
    fn from(trust: &Trust) -> Self {
        match trust {
            Trust::System => Self::System,
            Trust::AlsoRoots(pem) => Self::AlsoRoots(pem.clone()),
            Trust::Exactly(pem) => Self::Exactly(pem.clone()),
        }
    }
}

/// Resolves to one address, whatever the name, or asks the system.
struct Resolver {
    connect: Option<SocketAddr>,
}

/// The name does not resolve.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` does not resolve: {reason}")]
struct Unresolved {
    name: String,
    reason: String,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let connect = self.connect;
        Box::pin(async move {
            if let Some(socket) = connect {
                let only: Addrs = Box::new(std::iter::once(socket));
                return Ok(only);
            }
            let name = name.as_str().to_owned();
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>);
            match found {
                Ok(found) => {
                    let found: Addrs = Box::new(found.into_iter());
                    Ok(found)
                }
                Err(error) => {
                    let unresolved: Box<dyn StdError + Send + Sync> =
                        Box::new(Unresolved { name, reason: error.to_string() });
                    Err(unresolved)
                }
            }
        })
    }
}

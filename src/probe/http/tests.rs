//! Samples of a server of our own; certificates are tried with the real Caddy, beside the edge.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Answers every connection with these bytes, `{request}` replaced by what was asked, and hangs up; or, with none, stays silent.
async fn server(answer: Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut asked = vec![0; 8192];
                let length = stream.read(&mut asked).await.unwrap();
                let Some(answer) = answer else {
                    return std::future::pending().await;
                };
                let asked = String::from_utf8_lossy(&asked[..length]).to_lowercase();
                stream.write_all(answer.replace("{request}", &asked).as_bytes()).await.unwrap();
            });
        }
    });
    socket
}

async fn get(probe: HttpProbe) -> Sample {
    drop(rustls::crypto::ring::default_provider().install_default());
    HttpProbeClient::new().get(&probe).await
}

fn probe(url: &str, connect: Option<SocketAddr>) -> HttpProbe {
    HttpProbe {
        url: url.into(),
        connect,
        headers: BTreeMap::new(),
        trust: Trust::System,
        timeout: Duration::from_secs(20),
        body_limit: 4096,
    }
}

fn answered(sample: Sample) -> Answer {
    match sample {
        Sample::Answer(answer) => answer,
        silence @ Sample::Silence { .. } => panic!("{silence:?}"),
    }
}

fn silent(sample: Sample) -> (SilenceKind, String) {
    match sample {
        Sample::Silence { kind, detail } => (kind, detail),
        answer @ Sample::Answer(_) => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn the_host_of_the_url_is_asked_wherever_the_probe_connects() {
    let socket = server(Some("HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\n\r\n{request}")).await;
    for (url, host) in [
        ("http://shop.example.org/p?q=1", "shop.example.org"),
        ("http://shop.example.org:8080/p?q=1", "shop.example.org:8080"),
        ("http://192.0.2.1:8080/p?q=1", "192.0.2.1:8080"),
        ("http://[2001:db8::1]/p?q=1", "[2001:db8::1]"),
    ] {
        let mut asked = probe(url, Some(socket));
        asked.headers.insert("X-Forwarded-Proto".into(), "https".into());
        let answer = answered(get(asked).await);
        let request = String::from_utf8(answer.body.clone()).unwrap();
        let agent = format!("user-agent: trueup/{}", env!("CARGO_PKG_VERSION"));
        for line in ["get /p?q=1 http/1.1", &format!("host: {host}"), "x-forwarded-proto: https", &agent] {
            assert!(request.lines().any(|known| known == line), "{url}: {line} in {request}");
        }
        assert!(!request.contains("cache-control") && !request.contains("accept-encoding"), "{request}");
        assert_eq!(answer.header("x-a").collect::<Vec<_>>(), ["1", "2"]);
    }
}

#[tokio::test]
async fn redirects_are_answers() {
    let socket =
        server(Some("HTTP/1.1 302 Found\r\nLocation: http://shop.example.org/\r\nContent-Length: 0\r\n\r\n")).await;
    let answer = answered(get(probe(&format!("http://{socket}/"), None)).await);
    assert_eq!((answer.status, answer.header("location").next()), (302, Some("http://shop.example.org/")));
}

#[tokio::test]
async fn a_body_is_read_up_to_the_limit() {
    let socket = server(Some("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")).await;
    for (limit, body, is_truncated) in [(9, "012345678", true), (10, "0123456789", false), (0, "", true)] {
        let mut asked = probe(&format!("http://{socket}/"), None);
        asked.body_limit = limit;
        let answer = answered(get(asked).await);
        assert_eq!((answer.body.as_slice(), answer.is_truncated), (body.as_bytes(), is_truncated));
    }
}

#[tokio::test]
async fn silence_says_what_kind_it_is() {
    let silence = server(None).await;
    let mut asked = probe(&format!("http://{silence}/"), None);
    asked.timeout = Duration::from_millis(30);
    let (kind, detail) = silent(get(asked).await);
    assert_eq!((kind, detail.as_str()), (SilenceKind::Timeout, "no whole answer within 30 ms"));

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (kind, detail) = silent(get(probe(&format!("http://{gone}/"), None)).await);
    assert_eq!(kind, SilenceKind::Connection);
    assert!(detail.contains("refused"), "{detail}");

    let cut = server(Some("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123")).await;
    assert_eq!(silent(get(probe(&format!("http://{cut}/"), None)).await).0, SilenceKind::Connection);

    let plain = server(Some("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let (kind, detail) = silent(get(probe("https://shop.example.org/", Some(plain))).await);
    assert_eq!(kind, SilenceKind::Tls, "{detail}");

    // RFC 6761: nothing below `.invalid` ever resolves.
    let (kind, detail) = silent(get(probe("http://shop.invalid/", None)).await);
    assert_eq!(kind, SilenceKind::Name, "{detail}");
    assert!(detail.contains("`shop.invalid` does not resolve"), "{detail}");

    let (_, detail) = silent(get(probe("ftp://shop.example.org/", None)).await);
    assert_eq!(detail, "`ftp://shop.example.org/`: only http and https are asked");
}

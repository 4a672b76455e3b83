//! A small HTTP server that behaves as a test tells it to, and a probe for use inside containers.
//!
//! Standard library only. Compiled by `src/tests/app.rs`, which also writes the file that sets its
//! behaviour: one `key value` a line in `/behaviour.conf`, then `;`-separated in the variable
//! `APP_BEHAVIOUR`; later ones win.
//!
//! | key | value | meaning |
//! |---|---|---|
//! | `port` | number | where it listens (8080) |
//! | `listen` | address | `0.0.0.0`; `127.0.0.1` makes it unreachable from the host |
//! | `start` | `ok`, `crash CODE`, `mute` | ends at once; or runs without listening |
//! | `health` | `ok`, `unhealthy`, `not-ok`, `wrong-sha SHA`, `hang`, `redirect`, `huge`, `text` | what the health path answers |
//! | `edge-health` | as `health` | the same, for requests that came through a proxy (`X-Forwarded-For`) |
//! | `health-path` | path | `/healthz` |
//! | `page` | text | the body of `/` |
//! | `edge-page` | text | the same, for requests that came through a proxy |
//! | `delay` | milliseconds | before each answer |
//! | `header` | `Name: value` | added to each answer; may be given often |
//! | `term` | `drain`, `ignore`, `die` | on SIGTERM: finish what is being answered, then end; nothing; end at once |
//! | `print` | text | a line for standard error at the start |
//!
//! Paths: `/` page · the health path · `/status/CODE` · `/redirect?to=URL` · `/slow?ms=N` ·
//! `/stream?chunks=N&ms=N` · `/echo` (request line and headers) · `/env` (names and values) ·
//! `/release` (sha and slot) · `/exit?code=N` · `/fill?mib=N` (takes memory) ·
//! `/set?KEY=VALUE` (changes the behaviour from now on).
//!
//! `server probe tcp HOST PORT`, `server probe udp HOST PORT`, `server probe dns SERVER NAME` and
//! `server probe write PATH` say on one line what happened, and end with 0 only if it worked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const SIGTERM: i32 = 15;
static IS_TERMINATED: AtomicBool = AtomicBool::new(false);
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

extern "C" fn on_term(_number: i32) {
    IS_TERMINATED.store(true, Ordering::SeqCst);
}

#[derive(Default)]
struct Behaviour {
    keys: BTreeMap<String, String>,
    headers: Vec<String>,
}

impl Behaviour {
    fn load() -> Self {
        let mut behaviour = Self::default();
        let file = std::fs::read_to_string("/behaviour.conf").unwrap_or_default();
        file.lines().for_each(|line| behaviour.set(line));
        let variable = std::env::var("APP_BEHAVIOUR").unwrap_or_default();
        variable.split(';').for_each(|line| behaviour.set(line));
        behaviour
    }

    fn set(&mut self, line: &str) {
        let (key, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match key {
            "" => {}
            "header" => self.headers.push(value.to_owned()),
            _ => {
                self.keys.insert(key.to_owned(), value.to_owned());
            }
        }
    }

    fn get<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.keys.get(key).map_or(default, String::as_str)
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.get(key, "").parse().unwrap_or(default)
    }
}

struct Request {
    line: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: Vec<String>,
    is_kept_alive: bool,
}

impl Request {
    fn number(&self, key: &str, default: u64) -> u64 {
        self.query
            .get(key)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    }

    fn came_through_a_proxy(&self) -> bool {
        self.headers
            .iter()
            .any(|header| header.to_ascii_lowercase().starts_with("x-forwarded-for:"))
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => serve(),
        ["probe", "tcp", host, port] => probe_tcp(host, port),
        ["probe", "udp", host, port] => probe_udp(host, port),
        ["probe", "dns", server, name] => probe_dns(server, name),
        ["probe", "write", path] => probe_write(path),
        _ => {
            eprintln!("unknown arguments {arguments:?}");
            exit(2);
        }
    }
}

fn serve() {
    let behaviour = Behaviour::load();
    if let Some(text) = behaviour.keys.get("print") {
        eprintln!("{text}");
    }
    let start = behaviour.get("start", "ok").to_owned();
    if let Some(code) = start.strip_prefix("crash ") {
        eprintln!("crashing as told with code {code}");
        exit(code.parse().unwrap_or(1));
    }
    watch_for_term(behaviour.get("term", "drain").to_owned());
    if start == "mute" {
        loop {
            thread::park();
        }
    }
    let address = format!(
        "{}:{}",
        behaviour.get("listen", "0.0.0.0"),
        behaviour.number("port", 8080)
    );
    let listener = TcpListener::bind(&address).expect("the port is free");
    eprintln!("listening on {address}");
    let behaviour = Arc::new(Mutex::new(behaviour));
    for stream in listener.incoming().flatten() {
        let behaviour = behaviour.clone();
        thread::spawn(move || connection(&stream, &behaviour));
    }
}

/// The first process of a container ignores signals that it does not handle.
fn watch_for_term(mode: String) {
    if mode == "ignore" {
        return;
    }
    unsafe { signal(SIGTERM, on_term as *const () as usize) };
    thread::spawn(move || {
        while !IS_TERMINATED.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        eprintln!("got SIGTERM");
        while mode == "drain" && IN_FLIGHT.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(5));
        }
        exit(0);
    });
}

fn connection(stream: &TcpStream, behaviour: &Mutex<Behaviour>) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader) {
        IN_FLIGHT.fetch_add(1, Ordering::SeqCst);
        let result = answer(&request, behaviour, &mut writer);
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        if result.is_err() || !request.is_kept_alive {
            break;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let line = read_line(reader)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs
        .map(|(key, value)| (key.to_owned(), value.replace('+', " ")))
        .collect();
    let mut headers = Vec::new();
    loop {
        match read_line(reader)? {
            header if header.is_empty() => break,
            header => headers.push(header),
        }
    }
    let header = |name: &str| {
        headers.iter().find_map(|header| {
            let (key, value) = header.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_ascii_lowercase())
        })
    };
    let length: u64 = header("content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    let is_kept_alive =
        line.ends_with("HTTP/1.1") && header("connection").as_deref() != Some("close");
    Some(Request {
        path: path.to_owned(),
        query,
        is_kept_alive,
        headers,
        line,
    })
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = reader.by_ref().take(65_536).read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

fn answer(
    request: &Request,
    behaviour: &Mutex<Behaviour>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let (delay, headers, health_path) = {
        let known = behaviour.lock().expect("no thread panicked");
        (
            known.number("delay", 0),
            known.headers.clone(),
            known.get("health-path", "/healthz").to_owned(),
        )
    };
    thread::sleep(Duration::from_millis(delay));
    if request.path == health_path {
        return health(request, behaviour, out);
    }
    if request.path == "/stream" {
        return stream(request, out);
    }
    let (status, mut more, body) = page(request, behaviour);
    more.extend(headers);
    respond(out, status, &more, &body)
}

fn page(request: &Request, behaviour: &Mutex<Behaviour>) -> (u16, Vec<String>, String) {
    let mut known = behaviour.lock().expect("no thread panicked");
    let plain = |body: String| (200, vec!["Content-Type: text/plain".to_owned()], body);
    match request.path.as_str() {
        "/" => {
            let own = known.get("page", "hello");
            let body = if request.came_through_a_proxy() {
                known.get("edge-page", own)
            } else {
                own
            };
            (
                200,
                vec!["Content-Type: text/html".to_owned()],
                body.to_owned(),
            )
        }
        "/redirect" => {
            let to = request.query.get("to").map_or("/", String::as_str);
            (302, vec![format!("Location: {to}")], String::new())
        }
        "/slow" => {
            drop(known);
            thread::sleep(Duration::from_millis(request.number("ms", 1000)));
            plain("slow".to_owned())
        }
        "/echo" => plain(format!(
            "{}\n{}\n",
            request.line,
            request.headers.join("\n")
        )),
        "/env" => plain(
            std::env::vars()
                .map(|(name, value)| format!("{name}={value}\n"))
                .collect(),
        ),
        "/release" => plain(format!(
            "{} {}",
            variable("RELEASE_SHA"),
            variable("HUTA_SLOT")
        )),
        "/exit" => exit(request.number("code", 1) as i32),
        "/fill" => {
            let size = request.number("mib", 1) as usize * 1024 * 1024;
            let memory: Vec<u8> = (0..size).map(|index| index as u8 | 1).collect();
            plain(format!("filled {}", memory.len()))
        }
        "/set" => {
            for (key, value) in &request.query {
                known.set(&format!("{key} {value}"));
            }
            plain("set".to_owned())
        }
        path => match path
            .strip_prefix("/status/")
            .and_then(|code| code.parse().ok())
        {
            Some(code) => (code, Vec::new(), format!("status {code}")),
            None => (404, Vec::new(), "not found".to_owned()),
        },
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn health(
    request: &Request,
    behaviour: &Mutex<Behaviour>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mode = {
        let known = behaviour.lock().expect("no thread panicked");
        let own = known.get("health", "ok");
        let mode = if request.came_through_a_proxy() {
            known.get("edge-health", own)
        } else {
            own
        };
        mode.to_owned()
    };
    let sha = variable("RELEASE_SHA");
    let headers = [
        "Content-Type: application/json".to_owned(),
        "Cache-Control: no-store".to_owned(),
    ];
    let good = format!("{{\"ok\":true,\"sha\":\"{sha}\"}}");
    match mode.split_once(' ').unwrap_or((&mode, "")) {
        ("unhealthy", _) => respond(out, 503, &headers, "{\"ok\":false}"),
        ("not-ok", _) => respond(
            out,
            200,
            &headers,
            &format!("{{\"ok\":false,\"sha\":\"{sha}\"}}"),
        ),
        ("wrong-sha", other) => respond(
            out,
            200,
            &headers,
            &format!("{{\"ok\":true,\"sha\":\"{other}\"}}"),
        ),
        ("redirect", _) => respond(out, 302, &["Location: /".to_owned()], ""),
        ("huge", _) => respond(
            out,
            200,
            &headers,
            &format!("{good}{}", " ".repeat(100_000)),
        ),
        ("text", _) => respond(out, 200, &headers, "fine"),
        ("hang", _) => {
            thread::sleep(Duration::from_secs(3600));
            Ok(())
        }
        _ => respond(out, 200, &headers, &good),
    }
}

fn respond(
    out: &mut impl Write,
    status: u16,
    headers: &[String],
    body: &str,
) -> std::io::Result<()> {
    let mut text = format!(
        "HTTP/1.1 {status} Test\r\nContent-Length: {}\r\n",
        body.len()
    );
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.push_str(body);
    out.write_all(text.as_bytes())
}

fn stream(request: &Request, out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(
        b"HTTP/1.1 200 Test\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    let pause = Duration::from_millis(request.number("ms", 10));
    for number in 0..request.number("chunks", 10) {
        let chunk = format!("chunk {number}\n");
        write!(out, "{:x}\r\n{chunk}\r\n", chunk.len())?;
        thread::sleep(pause);
    }
    out.write_all(b"0\r\n\r\n")
}

const PATIENCE: Duration = Duration::from_secs(2);

fn say(is_success: bool, text: &str) -> ! {
    println!("{text}");
    exit(i32::from(!is_success))
}

fn address(host: &str, port: &str) -> SocketAddr {
    let Ok(address) = format!("{host}:{port}").parse() else {
        say(false, "not an address")
    };
    address
}

fn probe_tcp(host: &str, port: &str) {
    match TcpStream::connect_timeout(&address(host, port), PATIENCE) {
        Ok(_stream) => say(true, "connected"),
        Err(error) => say(false, &format!("{:?}: {error}", error.kind())),
    }
}

fn probe_udp(host: &str, port: &str) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    match socket.send_to(b"probe", address(host, port)) {
        Ok(_bytes) => say(true, "sent"),
        Err(error) => say(false, &format!("{:?}: {error}", error.kind())),
    }
}

/// Asks for the address (A) of a name. Source: RFC 1035, section 4.
fn probe_dns(server: &str, name: &str) {
    let mut query = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    let _ = socket.set_read_timeout(Some(PATIENCE));
    if let Err(error) = socket
        .connect(address(server, "53"))
        .and_then(|()| socket.send(&query).map(|_| ()))
    {
        say(false, &format!("not sent: {error}"));
    }
    let mut answer = [0_u8; 512];
    match socket.recv(&mut answer) {
        Ok(length) if length >= 12 => {
            let (code, count) = (answer[3] & 15, u16::from_be_bytes([answer[6], answer[7]]));
            say(
                code == 0 && count > 0,
                &format!("answered: code {code}, {count} records"),
            )
        }
        Ok(_) => say(false, "answered nonsense"),
        Err(error) => say(false, &format!("{:?}: {error}", error.kind())),
    }
}

fn probe_write(path: &str) {
    match std::fs::write(path, "probe") {
        Ok(()) => say(true, "written"),
        Err(error) => say(false, &format!("{:?}: {error}", error.kind())),
    }
}

//! Parse and validate one `app.toml`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use trueup::manifest::apptoml;

use super::table::{Figure, median};

/// How long each kind of work is repeated.
const FOR: Duration = Duration::from_secs(1);
/// Repetitions that are timed together, so that the clock is not what is measured.
const TOGETHER: u32 = 50;

/// All kinds of tables, as an application of some years has them.
const USUAL: &str = r#"schema = 1
project = "shop"
order = ["web"]

[images.web]
dockerfile = "Dockerfile"
context = "."

[components.web]
image = "web"
port = 8080
health = "/healthz"
data = "/data"
concurrent_safe = false

[state]
kind = "data"

[[smoke]]
path = "/"
status = 200
contains = "<title>shop</title>"
headers = { "content-security-policy" = "frame-ancestors" }

[[smoke]]
path = "/"
request_headers = { accept = "text/markdown" }
headers = { "content-type" = "text/markdown" }
headers_absent = ["x-robots-tag"]

[[jobs]]
name = "rotate"
cmd = ["node", "jobs/rotate.mjs"]
schedule = "*-*-* 03:10:00"
timeout = "10m"
"#;

/// The most checks and jobs that the contract takes.
fn largest() -> String {
    let head = USUAL.split("[[smoke]]").next().unwrap();
    let mut text = head.to_owned();
    for number in 0..20 {
        text.push_str(&format!(
            "[[smoke]]\npath = \"/page/{number}?q=1\"\nstatus = 200\ncontains = \"page {number}\"\nheaders = {{ \"content-type\" = \"text/html\" }}\n\n"
        ));
    }
    for number in 0..20 {
        text.push_str(&format!(
            "[[jobs]]\nname = \"job-{number}\"\ncmd = [\"/bin/job\", \"--number\", \"{number}\"]\nschedule = \"Mon..Fri *-*-* {number:02}:10:00\"\ntimeout = \"10m\"\n\n"
        ));
    }
    text
}

/// Microseconds for one call, as the median of many batches.
fn micros(mut work: impl FnMut()) -> f64 {
    let until = Instant::now() + FOR;
    let mut samples = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        (0..TOGETHER).for_each(|_| work());
        samples.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(TOGETHER));
    }
    median(&samples)
}

fn figure(work: &str, text: &str) -> Figure {
    apptoml::parse(text.as_bytes(), "app.toml", None).expect("a manifest that the contract takes");
    let ours = micros(|| drop(black_box(apptoml::parse(black_box(text.as_bytes()), "app.toml", None))));
    let peer = micros(|| drop(black_box(toml::from_str::<toml::Table>(black_box(text)))));
    Figure::new(work, ours, "us").beside("crate `toml`, parse only", peer).noting(format!("{} bytes", text.len()))
}

pub(crate) fn run() -> Vec<Figure> {
    vec![
        figure("parse + validate one app.toml", USUAL).at_most(100.0),
        figure("parse + validate the largest app.toml (20 checks, 20 jobs)", &largest()),
    ]
}

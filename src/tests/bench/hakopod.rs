//! Parse, validate and render a Hakopod application: the largest file of the corpus, and 1,000 files.
//!
//! The peer reads the same objects without a server: `kubectl create --dry-run=client --validate=false`.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use trueup::manifest::hakopod;
use trueup::model::cluster::ClusterSettings;
use trueup::render::kubernetes::{Context, NEWEST_MINOR, OLDEST_MINOR, Server, render, yaml};

use super::table::{Figure, median, millis};

/// How long each kind of work is repeated.
const FOR: Duration = Duration::from_secs(1);
/// Applications of the large row.
const FILES: usize = 1000;

/// A file's name and text; the corpus lies beside the checkout, or where `TRUEUP_SHARED` says.
fn corpus() -> Vec<(String, String)> {
    let given = std::env::var_os("TRUEUP_SHARED").map(PathBuf::from);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let above = here.ancestors().skip(1).map(|parent| parent.join("shared"));
    let found = given.into_iter().chain(above).map(|shared| shared.join("corpus/hakopod")).find(|path| path.is_dir());
    let found = found.expect("put `shared/corpus/hakopod` beside the checkout, or set TRUEUP_SHARED");
    let paths = std::fs::read_dir(found).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(String, String)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap()))
        .filter(|(file, text)| objects(file, text).is_some())
        .collect();
    files.sort_by_key(|(_, text)| text.len());
    files
}

/// The YAML of a file's objects and their number; nothing when it is refused.
fn objects(file: &str, text: &str) -> Option<(String, usize)> {
    objects_for(NEWEST_MINOR, file, text)
}

fn objects_for(minor: u32, file: &str, text: &str) -> Option<(String, usize)> {
    let application = hakopod::parse(text.as_bytes(), file).ok()?;
    let settings = ClusterSettings::preview(&application);
    let named = ["kube-system", "ingress-nginx"];
    let server = Server { named_namespaces: named.map(str::to_owned).into(), ..Server::of_minor(minor) };
    let context = Context::preview(file, ("bench", "production"), (&settings, &server));
    let rendered = render(&application, &context).ok()?;
    Some((yaml::documents(&rendered.objects), rendered.objects.len()))
}

/// Milliseconds for one run of the work, as the median of as many as fit.
fn repeated(mut work: impl FnMut()) -> f64 {
    let until = Instant::now() + FOR;
    let mut samples = Vec::new();
    while samples.is_empty() || Instant::now() < until {
        let began = Instant::now();
        work();
        samples.push(millis(began.elapsed()));
    }
    median(&samples)
}

/// What kubectl takes for the same objects; nothing where it is not installed.
fn kubectl(yaml: &str) -> Option<f64> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("objects.yaml");
    std::fs::write(&file, yaml).unwrap();
    Command::new("kubectl").arg("version").arg("--client").output().ok()?;
    // Kinds are looked up on a server even for a client's dry run.
    let kubeconfig = std::env::var("TRUEUP_KUBECONFIG").unwrap_or_else(|_| "/run/trueup-cluster/kubeconfig".to_owned());
    let began = Instant::now();
    let output = Command::new("kubectl")
        .args(["--kubeconfig", &kubeconfig, "create", "--dry-run=client", "--validate=false", "-o", "name", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    let took = millis(began.elapsed());
    output.status.success().then_some(took)
}

fn figure(work: &str, files: &[(String, String)]) -> Figure {
    let ours = repeated(|| {
        for (file, text) in files {
            drop(black_box(objects(file, black_box(text))));
        }
    });
    // The server that kubectl asks may be an old one: objects for it.
    let rendered: Vec<(String, usize)> =
        files.iter().filter_map(|(file, text)| objects_for(OLDEST_MINOR, file, text)).collect();
    let count: usize = rendered.iter().map(|(_, count)| count).sum();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    let figure = Figure::new(work, ours, "ms").noting(format!("{bytes} bytes, {count} objects"));
    match kubectl(&rendered.into_iter().map(|(yaml, _)| yaml).collect::<String>()) {
        Some(theirs) => figure.beside("kubectl create --dry-run=client", theirs),
        None => figure.noting(format!("{bytes} bytes, {count} objects; no kubectl with a server here")),
    }
}

pub(crate) fn run() -> Vec<Figure> {
    let corpus = corpus();
    let largest = corpus.last().expect("at least one file renders").clone();
    let many: Vec<(String, String)> = corpus.iter().cycle().take(FILES).cloned().collect();
    vec![
        figure("parse + validate + render the largest Hakopod file", std::slice::from_ref(&largest)),
        figure("parse + validate + render 1,000 Hakopod files", &many),
    ]
}

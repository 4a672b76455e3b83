//! Every feature as a small case: `testdata/render/kubernetes/<case>.toml` is answered by the `.yaml`
//! beside it. `TRUEUP_UPDATE=1` writes the answers anew.
//!
//! A case begins with lines for this table: `# show:` names objects as `Kind`, `Kind/name`, each with an
//! optional `:/pointer`, or `secrets`; `# refused` shows the problems instead; `# settings:` and
//! `# minor:` choose the cluster.

mod cases;
mod properties;
mod published;

use std::path::PathBuf;

use super::*;
use crate::manifest::hakopod;
use crate::model::cluster::ClusterSettings;
use crate::tests::edits;

/// The settings of one file of the table.
fn settings(name: &str) -> ClusterSettings {
    let text = edits::text(&format!("render/kubernetes/settings/{name}.toml"));
    crate::config::cluster::parse(text.as_bytes(), name).unwrap()
}

/// All cases: the file's name without `.toml`, and its text.
fn all() -> Vec<(String, String)> {
    let files = std::fs::read_dir(edits::testdata("render/kubernetes")).unwrap();
    let paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut all: Vec<(String, String)> = files
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() > 20, "the table is there");
    all
}

/// A server of that minor version whose namespaces can be selected by name.
fn server(minor: u32) -> Server {
    let named = ["kube-system", "haproxy-controller", "ingress-nginx", "traefik"];
    Server { named_namespaces: named.map(str::to_owned).into(), ..Server::of_minor(minor) }
}

fn application(file: &str, text: &str) -> Application {
    hakopod::parse(text.as_bytes(), file).unwrap_or_else(|problems| panic!("{file}: {:#?}", problems.list))
}

fn rendered(application: &Application, settings: &ClusterSettings, server: &Server) -> Result<Rendered, Problems> {
    render(application, &Context::preview("hakopod.toml", ("shop", "production"), (settings, server)))
}

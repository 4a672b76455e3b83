//! Every example of the format documents is a good file.

use crate::config::{cluster, host, registry};
use crate::manifest::apptoml;

/// The fenced TOML blocks of a document.
fn examples(document: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_of_app_toml_are_accepted() {
    let examples = examples("app-toml.md");
    assert_eq!(examples.len(), 2);
    for example in examples {
        apptoml::parse(example.as_bytes(), "app.toml", None).unwrap();
    }
}

#[test]
fn the_example_of_cluster_settings_is_accepted() {
    let examples = examples("cluster-objects.md");
    assert_eq!(examples.len(), 1);
    cluster::parse(examples[0].as_bytes(), "settings.toml").unwrap();
}

#[test]
fn the_examples_of_the_registry_are_accepted() {
    let examples = examples("registry.md");
    let hosts = examples.iter().filter(|example| example.starts_with("# huta.toml"));
    assert_eq!(hosts.clone().count(), 2);
    for example in hosts {
        host::parse(example.as_bytes(), "huta.toml").unwrap();
    }
    let projects: Vec<&String> = examples.iter().filter(|example| example.starts_with("# projects.d/")).collect();
    assert_eq!(projects.len(), 3);
    for example in projects {
        let stem = example.trim_start_matches("# projects.d/").split('.').next().unwrap();
        registry::parse_project(example.as_bytes(), stem, None).unwrap();
    }
}

#[test]
fn the_example_with_the_defaults_is_the_default() {
    let examples = examples("registry.md");
    let example = examples.iter().find(|example| example.contains("state_dir")).unwrap();
    assert_eq!(host::parse(example.as_bytes(), "huta.toml").unwrap(), host::HostConfig::default());
}

//! The examples of `docs/hakopod.md`.

use std::path::Path;

use super::good;

#[test]
fn every_example_of_the_documentation_is_a_good_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hakopod.md");
    let text = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(examples.len() >= 8, "{}", examples.len());
    for example in examples {
        good(example);
    }
}

#[test]
fn every_refusal_that_the_documentation_explains_is_one_that_is_made() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/hakopod.md")).unwrap();
    let mut sources = String::new();
    for entry in std::fs::read_dir(root.join("src/manifest/hakopod/rules")).unwrap() {
        sources.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let rows: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("| … ")).collect();
    assert!(rows.len() >= 10);
    for row in rows {
        let said = row.split(" |").next().unwrap_or_default();
        assert!(sources.contains(said), "no rule says `{said}`");
    }
}

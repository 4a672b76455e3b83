//! `env_file`.

use std::collections::BTreeMap;

use super::super::{Imported, import};
use crate::model::hakopod::SecretRef;
use crate::model::{Problems, RepoPath};

fn imported(text: &str, files: &[(&str, &[u8])]) -> Result<Imported, Problems> {
    let files: BTreeMap<&str, &[u8]> = files.iter().copied().collect();
    let lookup = |path: &RepoPath| files.get(path.as_str()).map(|bytes| bytes.to_vec()).ok_or("not there".to_owned());
    import(text.as_bytes(), "hakopod.toml", &lookup)
}

const BOTH: &str = "name = \"shop\"\nenv_file = [\"a.env\", \"b.env\"]\nenv = { KEPT = \"table\" }\n\
                    [services.web]\nimage = \"a\"\nenv_file = \"web.env\"\n";

#[test]
fn later_files_win_over_earlier_ones_and_the_table_over_all() {
    let files: [(&str, &[u8]); 3] = [
        ("a.env", b"X=1\nY=1\nKEPT=file\n"),
        ("b.env", b"Y=2\r\nAPI_TOKEN=abc\r\n"),
        ("web.env", b"export Z = 'z z' # note\n"),
    ];
    let Imported { application, secrets } = imported(BOTH, &files).unwrap();
    assert!(application.inject_env);
    let env: Vec<_> = application.env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(env, [("KEPT", "table"), ("X", "1"), ("Y", "2")]);
    assert_eq!(application.services["web"].env["Z"], "z z");
    assert_eq!(application.secrets["API_TOKEN"], SecretRef::Own { name: "api-token".to_owned() });
    assert_eq!((secrets[0].name.as_str(), secrets[0].value.expose()), ("api-token", "abc"));
}

#[test]
fn the_grammar_knows_quotes_comments_and_no_expansion() {
    let text = "\u{feff}# c\n\nA=plain # c\nB=a#b\nC='it''s'\n";
    let refused = imported("name = \"s\"\nenv_file = \"e\"\n[services]\n", &[("e", text.as_bytes())]);
    assert!(refused.unwrap_err().list[0].message.contains("line 5"));
    let text = "A=plain # c\nB=a#b\nC=\"x\\n\\\"y\\\\\"\nD='two\nlines'\nE=\nF=$A\nG= # c\rH=1";
    let read = imported("name = \"s\"\nenv_file = \"e\"\n[services]\n", &[("e", text.as_bytes())]).unwrap();
    let values: Vec<&str> = read.application.env.values().map(String::as_str).collect();
    assert_eq!(values, ["plain", "a#b", "x\n\"y\\", "two\nlines", "", "$A", "", "1"]);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line_and_never_its_value() {
    let long = format!("A={}", "x".repeat(4097));
    let many: String = (0..129).map(|index| format!("A{index}=1\n")).collect();
    let wrong: [(&[u8], &str); 10] = [
        (b"hunter2", "line 1"),
        (b"\n1A=hunter2", "line 2"),
        (b"A=1\nA=hunter2", "line 2"),
        (b"A=\"hunter2", "line 1"),
        (b"A=\"hunter2\\x\"", "line 1"),
        (b"A='hunter2' x", "line 1"),
        (b"A=\xff", "UTF-8"),
        (b"A=\0", "NUL"),
        (long.as_bytes(), "line 1"),
        (many.as_bytes(), "line 129"),
    ];
    for (bytes, part) in wrong {
        let problems = imported("name = \"s\"\nenv_file = \"e\"\n[services]\n", &[("e", bytes)]).unwrap_err();
        assert!(problems.list[0].message.contains(part), "{problems:?}");
        assert_eq!(problems.list[0].key, "env_file");
        assert!(!format!("{problems:?}").contains("hunter2"));
    }
}

#[test]
fn names_stay_inside_the_manifests_directory() {
    let long = "a".repeat(201);
    for name in ["../a", "/a", "a/../b", ".", "..", "a\\\\b", "c:a", "a//b", "a/", "", long.as_str()] {
        let text = format!("name = \"s\"\nenv_file = \"{name}\"\n[services]\n");
        assert!(imported(&text, &[]).is_err(), "{name}");
    }
    let missing = imported("name = \"s\"\nenv_file = \".env\"\n[services]\n", &[]).unwrap_err();
    assert!(missing.list[0].message.contains("cannot be read"));
}

#[test]
fn the_import_is_bounded() {
    let nine: Vec<String> = (0..9).map(|index| format!("\"e{index}\"")).collect();
    let text = format!("name = \"s\"\nenv_file = [{}]\n[services]\n", nine.join(","));
    assert!(imported(&text, &[]).is_err());
    let half = vec![b'#'; 70_000];
    let text = "name = \"s\"\nenv_file = [\"a\", \"b\"]\n[services]\n";
    assert!(imported(text, &[("a", &half), ("b", b"X=1")]).is_ok());
    assert!(imported(text, &[("a", &half), ("b", &half)]).is_err());
    assert!(imported("name = \"s\"\nenv_file = [\"a\", \"a\"]\n[services]\n", &[("a", b"")]).is_err());
    assert!(imported("name = \"s\"\nenv_file = []\n[services]\n", &[]).is_err());
}

#[test]
fn injection_cannot_be_off_beside_a_shared_file_and_credentials_cannot_be_empty() {
    assert!(imported("name = \"s\"\ninject_env = false\nenv_file = \"a\"\n[services]\n", &[("a", b"")]).is_err());
    assert!(imported("name = \"s\"\nenv_file = \"a\"\n[services]\n", &[("a", b"DB_PASSWORD=\n")]).is_err());
}

#[test]
fn a_name_that_the_document_uses_already_is_not_taken_for_an_imported_value() {
    let text =
        "name = \"s\"\nenv_file = \"a\"\n[services.web]\nimage = \"a\"\nsecrets = { X = { ref = \"api-token\" } }\n";
    let Imported { secrets, .. } = imported(text, &[("a", b"API_TOKEN=abc")]).unwrap();
    assert!(secrets[0].name.starts_with("api-token-") && secrets[0].name.len() <= 40);
}

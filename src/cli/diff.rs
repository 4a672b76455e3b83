//! `trueup diff`: what would change between two manifests, as fields and as text.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::diff::manifest::{self as differences, Difference, Effect};
use crate::manifest::apptoml;
use crate::model::document::{FileName, decode};
use crate::model::{Problem, Problems};
use crate::trigger::config_dir;

use super::manifest;

/// Exit code when the two differ.
const DIFFERENT: u8 = 3;

/// Shows what changes from one manifest to another: fields with their effect, then text.
///
/// Both files must be valid. Values of variables, contents of files and whatever looks like a secret
/// are never shown. Exit codes: 0 no difference, 1 a file is refused, 3 they differ.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The manifest as it is.
    old: PathBuf,
    /// The manifest as it would be.
    new: PathBuf,
    /// What the files are [default: seen from their content].
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// `deploy/app.toml`.
    App,
    /// `hakopod.toml`.
    Hakopod,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Hakopod => "hakopod",
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &DiffArgs) -> ExitCode {
    let (text, code) = match compare(args) {
        Ok((kind, difference)) => {
            let code = if difference.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) };
            (if args.json { as_json(kind, &difference) } else { as_text(&difference) }, code)
        }
        Err(all) => (refused(&all, args.json), ExitCode::FAILURE),
    };
    // A reader that has gone away does not change the answer.
    let _written = std::io::stdout().write_all(text.as_bytes());
    code
}

fn compare(args: &DiffArgs) -> Result<(Kind, Difference), Vec<Problems>> {
    let kind = match args.kind {
        Some(kind) => kind,
        None => kind_of(&args.new).or_else(|| kind_of(&args.old)).unwrap_or(Kind::Hakopod),
    };
    match kind {
        Kind::Hakopod => {
            let (old, new) = both(manifest::hakopod(&args.old), manifest::hakopod(&args.new))?;
            differences::hakopod(&old, &new)
                .map(|difference| (kind, difference))
                .map_err(|error| vec![problem(&args.new, error.to_string())])
        }
        Kind::App => {
            let (old, new) = both(app(&args.old), app(&args.new))?;
            Ok((kind, differences::app(&old, &new)))
        }
    }
}

fn both<T>(old: Result<T, Problems>, new: Result<T, Problems>) -> Result<(T, T), Vec<Problems>> {
    match (old, new) {
        (Ok(old), Ok(new)) => Ok((old, new)),
        (old, new) => Err(old.err().into_iter().chain(new.err()).collect()),
    }
}

/// What a file is by its top-level keys; nothing when it cannot be told.
fn kind_of(file: &Path) -> Option<Kind> {
    let table = table(file).ok()?;
    let has = |key: &str| table.contains_key(key);
    if has("services") || has("schema_version") {
        Some(Kind::Hakopod)
    } else if has("components") || has("schema") || has("images") {
        Some(Kind::App)
    } else {
        None
    }
}

fn table(file: &Path) -> Result<toml::Table, Problems> {
    let bytes = config_dir::read_bounded(file)?;
    let shown = file.display().to_string();
    let text = decode(&bytes, FileName { file: &shown, label: "manifest" })?;
    text.parse().map_err(|_| problem(file, "not valid TOML".to_owned()))
}

/// A valid `app.toml` as a tree.
fn app(file: &Path) -> Result<Value, Problems> {
    let bytes = config_dir::read_bounded(file)?;
    apptoml::parse(&bytes, &file.display().to_string(), None)?;
    serde_json::to_value(table(file)?).map_err(|error| problem(file, error.to_string()))
}

fn problem(file: &Path, message: String) -> Problems {
    Problems {
        file: file.display().to_string(),
        list: vec![Problem {
            place: None,
            key: String::new(),
            message,
            why: "both manifests must be readable to be compared".to_owned(),
            fix: "check the file with `trueup check`".to_owned(),
        }],
    }
}

fn as_json(kind: Kind, difference: &Difference) -> String {
    let object = json!({
        "kind": kind.word(),
        "different": !difference.is_empty(),
        "refused": difference.fields.iter().any(|field| field.effect == Effect::Refused),
        "fields": difference.fields,
        "text": difference.text,
    });
    format!("{object}\n")
}

fn as_text(difference: &Difference) -> String {
    if difference.is_empty() {
        return "no difference\n".to_owned();
    }
    let mut text = String::new();
    for field in &difference.fields {
        let side = |value: &Option<Value>| value.as_ref().map_or("(not set)".to_owned(), Value::to_string);
        // Writing into a string never fails.
        let _written = writeln!(
            text,
            "{:<8} {}: {} -> {}",
            field.effect.word(),
            field.path,
            side(&field.before),
            side(&field.after)
        );
        if let Some(way_out) = field.way_out {
            let _written = writeln!(text, "         do: {way_out}");
        }
    }
    let _written = write!(text, "\n{}", difference.text);
    text
}

fn refused(all: &[Problems], is_json: bool) -> String {
    let problems = all.iter().flat_map(|file| file.list.iter().map(|one| (file.file.as_str(), one)));
    if is_json {
        let one = |(file, problem): (&str, &Problem)| {
            json!({
                "file": file,
                "line": problem.place.map(|place| place.line),
                "column": problem.place.map(|place| place.column),
                "key": problem.key,
                "message": problem.message,
                "why": problem.why,
                "fix": problem.fix,
            })
        };
        return format!("{}\n", json!({ "ok": false, "problems": problems.map(one).collect::<Vec<_>>() }));
    }
    let mut text = String::new();
    for (file, problem) in problems {
        let place = problem.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        let _written = write!(
            text,
            "error: {}\nwhere: {file}{place}\nwhy:   {}\ndo:    {}\n\n",
            problem.message, problem.why, problem.fix
        );
    }
    text
}

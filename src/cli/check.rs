//! `trueup check`: validates the files that people write, and says what, where, why, what to do.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::paint::Paint;
use crate::config::host::HostConfig;
use crate::config::registry;
use crate::manifest::{apptoml, hakopod};
use crate::model::policy::{Project, TargetKind};
use crate::model::{Problems, ProjectName};
use crate::trigger::config_dir;

use super::manifest;

/// Validates files; each refusal names file, line, key, why and what to do.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Checks a repository's `deploy/app.toml`.
    App {
        /// The file.
        file: PathBuf,
        /// The project's name in the registry, which `project` must equal.
        #[arg(long, value_name = "P")]
        project: Option<ProjectName>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Checks a registry file, or every `*.toml` of a directory and what must be unique in it.
    Registry {
        /// The file or directory.
        path: PathBuf,
        /// The host's `huta.toml` [default: `../huta.toml` as seen from the files, if it is there].
        #[arg(long, value_name = "FILE")]
        host: Option<PathBuf>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Checks a cluster's `hakopod.toml`; environment files that it names are read beside it.
    Hakopod {
        /// The file.
        file: PathBuf,
        /// Holds it to the stricter rules of previews too.
        #[arg(long)]
        preview: bool,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Checks a host's `huta.toml`.
    Host {
        /// The file.
        file: PathBuf,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// What became of one file.
struct Checked {
    file: String,
    /// One line on what was read.
    summary: String,
    problems: Vec<Problems>,
    /// Rules that could not be looked at.
    unchecked: Vec<String>,
}

impl Checked {
    fn new(file: &Path, read: Result<String, Problems>) -> Self {
        let file = file.display().to_string();
        match read {
            Ok(summary) => Self { file, summary, problems: Vec::new(), unchecked: Vec::new() },
            Err(problems) => Self { file, summary: String::new(), problems: vec![problems], unchecked: Vec::new() },
        }
    }

    fn json(&self) -> Value {
        let problem = |(file, problem): (&str, &crate::model::Problem)| {
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
        let problems = self.problems.iter().flat_map(|all| all.list.iter().map(|one| (all.file.as_str(), one)));
        json!({
            "file": self.file,
            "ok": self.problems.is_empty(),
            "problems": problems.map(problem).collect::<Vec<_>>(),
            "unchecked": self.unchecked,
        })
    }
}

/// Runs one check: 0 when everything is in order, 1 when something is refused.
pub(super) fn run(args: &CheckArgs) -> ExitCode {
    let (checked, is_json, is_directory) = match &args.what {
        What::App { file, project, json } => (vec![check_app(file, project.as_ref())], *json, false),
        What::Registry { path, host, json } => (check_registry(path, host.as_deref()), *json, path.is_dir()),
        What::Hakopod { file, preview, json } => (vec![check_hakopod(file, *preview)], *json, false),
        What::Host { file, json } => (vec![check_host(file)], *json, false),
    };
    let is_ok = checked.iter().all(|one| one.problems.is_empty());
    let text = match checked.as_slice() {
        [only] if is_json && !is_directory => format!("{}\n", only.json()),
        files if is_json => {
            format!("{}\n", json!({ "ok": is_ok, "files": files.iter().map(Checked::json).collect::<Vec<_>>() }))
        }
        files => report(files, Paint::for_stdout().is_terminal()),
    };
    // A reader that has gone away does not change the answer.
    let _written = std::io::stdout().write_all(text.as_bytes());
    if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_app(file: &Path, project: Option<&ProjectName>) -> Checked {
    let shown = file.display().to_string();
    let read = config_dir::read_bounded(file).and_then(|bytes| apptoml::parse(&bytes, &shown, project));
    Checked::new(
        file,
        read.map(|manifest| {
            let data = manifest.data.as_ref().map_or("no data".to_owned(), |data| format!("data at {}", data.mount));
            format!(
                "project {}, component {} on port {}, {data}, {}, {}",
                manifest.project,
                manifest.component,
                manifest.port,
                count(manifest.smoke.len(), "smoke check"),
                count(manifest.jobs.len(), "job"),
            )
        }),
    )
}

fn check_host(file: &Path) -> Checked {
    Checked::new(
        file,
        config_dir::load_host(file).map(|host| {
            format!(
                "host file, {}, {}, {}",
                count(host.cloudflare.zones.len(), "Cloudflare zone"),
                count(host.upstreams.len(), "upstream"),
                if host.backup.is_some() { "backups" } else { "no backups" },
            )
        }),
    )
}

fn check_hakopod(file: &Path, is_preview: bool) -> Checked {
    let read = manifest::hakopod(file).and_then(|application| {
        if is_preview {
            hakopod::preview(&application, &file.display().to_string())?;
        }
        Ok(application)
    });
    let unplannable = read.as_ref().map(hakopod::unplannable).unwrap_or_default();
    let summary = read.map(|application| {
        let services: Vec<&str> = application.services.keys().map(String::as_str).collect();
        let mut summary = format!("application {}, services {}", application.name, services.join(", "));
        if !unplannable.is_empty() {
            // Writing into a string never fails.
            let _written = write!(summary, "; refused when planned: {}", unplannable.join(", "));
        }
        summary
    });
    Checked::new(file, summary)
}

fn check_registry(path: &Path, host: Option<&Path>) -> Vec<Checked> {
    let is_directory = path.is_dir();
    let directory = if is_directory { Some(path) } else { path.parent() };
    let default = directory.map(|directory| directory.join("..").join("huta.toml")).filter(|file| file.is_file());
    let host_path = host.map(Path::to_path_buf).or(default);
    let host = host_path.as_deref().map(config_dir::load_host);
    let (host, host_problems) = match host {
        Some(Ok(host)) => (Some(host), None),
        Some(Err(problems)) => (None, Some(problems)),
        None => (None, None),
    };
    let paths = if is_directory { config_dir::list_toml(path) } else { Ok(vec![path.to_path_buf()]) };
    let mut checked: Vec<Checked> = match paths {
        Ok(paths) => config_dir::load_registry(&paths, host.as_ref())
            .into_iter()
            .map(|file| registry_file(file, host.as_ref()))
            .collect(),
        Err(problems) => vec![Checked::new(path, Err(problems))],
    };
    match (host_problems, host_path, checked.as_mut_slice()) {
        (Some(problems), _, [only]) if !is_directory => only.problems.push(problems),
        (Some(problems), Some(host_path), _) => checked.push(Checked::new(&host_path, Err(problems))),
        (Some(_) | None, _, _) => {}
    }
    checked
}

fn registry_file(file: config_dir::RegistryFile, host: Option<&HostConfig>) -> Checked {
    let unchecked = match (&file.entry, host) {
        (Ok(entry), None) => registry::unchecked(&entry.project),
        (Ok(_) | Err(_), _) => Vec::new(),
    };
    let read = file.entry.map(|entry| registry_summary(&entry.project));
    Checked { unchecked, ..Checked::new(Path::new(&file.file), read) }
}

fn registry_summary(project: &Project) -> String {
    let target = |(label, target): (&crate::model::TargetLabel, &crate::model::policy::TargetPolicy)| {
        let kind = match target.kind {
            TargetKind::Host(_) => "host",
            TargetKind::Cluster(_) => "cluster",
        };
        format!("{label} ({kind})")
    };
    let targets: Vec<String> = project.targets.iter().map(target).collect();
    format!("project {} from {}, targets {}", project.name, project.repo, targets.join(", "))
}

/// The four answers for each problem, and a last line with the count.
fn report(files: &[Checked], has_colour: bool) -> String {
    let (red, plain) = if has_colour { ("\u{1b}[1;31m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    let mut total = 0_usize;
    for problems in files.iter().flat_map(|file| &file.problems) {
        for problem in &problems.list {
            total = total.saturating_add(1);
            let place = problem.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
            // Writing into a string never fails.
            let _written = write!(
                text,
                "{red}error:{plain} {}\nwhere: {}{place}\nwhy:   {}\ndo:    {}\n\n",
                problem.message, problems.file, problem.why, problem.fix
            );
        }
    }
    for file in files.iter().filter(|file| file.problems.is_empty()) {
        let _written = writeln!(text, "{}: ok: {}", file.file, file.summary);
        for rule in &file.unchecked {
            let _written = writeln!(text, "unchecked without huta.toml: {rule}");
        }
    }
    let broken = files.iter().filter(|file| !file.problems.is_empty()).count();
    let _written = match (broken, files.len()) {
        (0, 0) => writeln!(text, "no files"),
        (0, 1) => Ok(()),
        (0, all) => writeln!(text, "{}, no problems", count(all, "file")),
        (1, 1) => writeln!(text, "{}", count(total, "problem")),
        (broken, all) => writeln!(text, "{} in {broken} of {}", count(total, "problem"), count(all, "file")),
    };
    text
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::edits;

    fn app(name: &str, project: &str) -> Checked {
        let file = edits::testdata(&format!("manifest/apptoml/{name}.toml"));
        check_app(&file, Some(&project.parse().unwrap()))
    }

    #[test]
    fn a_good_file_is_one_line() {
        let checked = app("base", "shop");
        let text = report(&[checked], false);
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains(": ok: project shop, component web on port 8080, data at /data, 1 smoke check, 1 job"));
    }

    #[test]
    fn a_refused_file_has_the_four_answers_and_a_count() {
        let text = report(&[app("base", "cafe")], false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "error: app.toml: project must be 'cafe'");
        assert!(lines[1].starts_with("where: ") && lines[1].ends_with("base.toml:2:11"));
        assert!(lines[2].starts_with("why:   ") && lines[3].starts_with("do:    "));
        assert_eq!(lines.last(), Some(&"1 problem"));
    }

    #[test]
    fn json_has_every_answer_in_a_field_of_its_own() {
        let json = app("base", "cafe").json();
        assert_eq!(json["ok"], false);
        let problem = &json["problems"][0];
        assert_eq!((problem["line"].as_u64(), problem["column"].as_u64()), (Some(2), Some(11)));
        for field in ["file", "key", "message", "why", "fix"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
        }
        assert_eq!(app("base", "shop").json()["problems"], json!([]));
    }

    #[test]
    fn colour_is_for_terminals() {
        assert!(!report(&[app("base", "cafe")], false).contains('\u{1b}'));
        assert!(report(&[app("base", "cafe")], true).contains('\u{1b}'));
    }

    #[test]
    fn a_registry_file_finds_the_host_file_above_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("projects.d")).unwrap();
        let file = dir.path().join("projects.d/shop.toml");
        std::fs::write(&file, edits::text("config/registry/minimal.toml")).unwrap();
        let checked = check_registry(&file, None);
        assert_eq!(checked[0].unchecked.len(), 1, "the zones are not known");
        std::fs::write(dir.path().join("huta.toml"), "schema = 1\n").unwrap();
        let checked = check_registry(&file, None);
        assert!(checked[0].problems[0].list[0].message.contains("Cloudflare zones"));
        let host = edits::testdata("config/host/base.toml");
        let checked = check_registry(&dir.path().join("projects.d"), Some(&host));
        assert!(checked.iter().all(|one| one.problems.is_empty() && one.unchecked.is_empty()));
    }
}

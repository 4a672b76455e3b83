//! `trueup render hakopod`: the Kubernetes objects of a manifest, as they would be applied.
//!
//! It asks no cluster, resolves no image and reads no secret: images stand as written, and Secrets
//! are named, not shown.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::manifest;
use crate::config::cluster;
use crate::model::cluster::ClusterSettings;
use crate::model::{Problems, ProjectName, TargetLabel};
use crate::render::kubernetes::{Context, NEWEST_MINOR, OLDEST_MINOR, Server, render, yaml};
use crate::trigger::config_dir;

/// Prints what a manifest becomes, without applying it.
#[derive(Debug, clap::Args)]
pub(super) struct RenderArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Prints the Kubernetes objects of a `hakopod.toml` as YAML.
    Hakopod(HakopodArgs),
}

#[derive(Debug, clap::Args)]
struct HakopodArgs {
    /// The file.
    file: PathBuf,
    /// The project's name.
    #[arg(long, value_name = "P")]
    project: ProjectName,
    /// The environment's name.
    #[arg(long, value_name = "E")]
    environment: TargetLabel,
    /// A TOML file with the keys of `[clusters.<name>]`, bare or in the only such table
    /// [default: everything is granted, host names end in `apps.example.invalid`].
    #[arg(long, value_name = "F")]
    cluster_settings: Option<PathBuf>,
    /// The minor version of Kubernetes 1 to render for.
    #[arg(long, value_name = "N", default_value_t = NEWEST_MINOR, value_parser = clap::value_parser!(u32).range(i64::from(OLDEST_MINOR)..))]
    kubernetes_minor: u32,
}

/// Answers one `trueup render`: 0, or 1 when a file is refused.
pub(super) fn run(args: &RenderArgs) -> ExitCode {
    let What::Hakopod(args) = &args.what;
    match text(args) {
        // A reader that has gone away does not change the answer.
        Ok(text) => {
            let _written = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problems) => {
            eprint!("{}", report(&problems));
            ExitCode::FAILURE
        }
    }
}

fn text(args: &HakopodArgs) -> Result<String, Problems> {
    let application = manifest::hakopod(&args.file)?;
    let settings = match &args.cluster_settings {
        Some(file) => read_settings(file)?,
        None => {
            eprintln!("note: no --cluster-settings: everything is granted, host names end in apps.example.invalid");
            ClusterSettings::preview(&application)
        }
    };
    let server = Server::of_minor(args.kubernetes_minor);
    let file = args.file.display().to_string();
    let scope = (args.project.as_str(), args.environment.as_str());
    let rendered = render(&application, &Context::preview(&file, scope, (&settings, &server)))?;
    Ok(yaml::documents(&rendered.objects))
}

fn read_settings(file: &Path) -> Result<ClusterSettings, Problems> {
    cluster::parse(&config_dir::read_bounded(file)?, &file.display().to_string())
}

/// The four answers for each problem.
fn report(problems: &Problems) -> String {
    let lines = problems.list.iter().map(|problem| {
        let place = problem.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        let (message, file) = (&problem.message, &problems.file);
        format!("error: {message}\nwhere: {file}{place}\nwhy:   {}\ndo:    {}\n", problem.why, problem.fix)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::edits;

    fn args(file: &str, settings: Option<&str>) -> HakopodArgs {
        HakopodArgs {
            file: edits::testdata(&format!("render/kubernetes/{file}.toml")),
            project: "shop".parse().unwrap(),
            environment: "production".parse().unwrap(),
            cluster_settings: settings.map(|name| edits::testdata(&format!("render/kubernetes/{name}"))),
            kubernetes_minor: NEWEST_MINOR,
        }
    }

    #[test]
    fn a_file_is_rendered_with_settings_and_without() {
        let with = text(&args("public", Some("settings/main.toml"))).unwrap();
        assert!(with.starts_with("---\napiVersion: v1\nkind: Namespace\n") && with.contains(".apps.example.org"));
        let without = text(&args("public", None)).unwrap();
        assert!(without.contains(".apps.example.invalid"));
    }

    #[test]
    fn a_refusal_has_the_four_answers() {
        let problems = text(&args("gpu", Some("settings/nothing.toml"))).unwrap_err();
        let report = report(&problems);
        assert!(report.starts_with("error: services.trainer.gpu is not granted\nwhere: "), "{report}");
        assert!(report.contains("\nwhy:   ") && report.contains("`grants.gpu`") && report.contains("\ndo:    "));
    }
}

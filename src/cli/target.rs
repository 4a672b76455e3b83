//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;

use crate::model::{ProjectName, TargetLabel, TargetName};

/// `P T`.
#[derive(Debug, Clone, Args)]
pub(super) struct TargetArgs {
    /// The project's name.
    #[arg(value_name = "PROJECT")]
    project: ProjectName,
    /// The target's name.
    #[arg(value_name = "TARGET")]
    target: TargetLabel,
}

impl TargetArgs {
    pub(super) fn of(project: ProjectName, target: TargetLabel) -> Self {
        Self { project, target }
    }

    pub(super) fn name(&self) -> TargetName {
        TargetName::new(self.project.clone(), self.target.clone())
    }

    /// The path of the target in the daemon's interface.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/api/v1/targets/{}/{}{rest}", self.project, self.target)
    }
}

/// `[P [T]]`.
#[derive(Debug, Clone, Args)]
pub(super) struct MaybeTargetArgs {
    /// The project's name; all projects when absent.
    #[arg(value_name = "PROJECT")]
    pub(super) project: Option<ProjectName>,
    /// The target's name; all of the project's when absent.
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<TargetLabel>,
}

impl MaybeTargetArgs {
    /// Whether a target is meant.
    pub(super) fn matches(&self, name: &TargetName) -> bool {
        self.project.as_ref().is_none_or(|project| *project == name.project)
            && self.target.as_ref().is_none_or(|target| *target == name.target)
    }

    /// The one target that is named, if one is.
    pub(super) fn one(&self) -> Option<TargetName> {
        Some(TargetName::new(self.project.clone()?, self.target.clone()?))
    }
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(super) struct Global {
    /// The directory of huta.toml and projects.d.
    #[arg(long, global = true, value_name = "DIR", default_value = "/etc/huta")]
    pub(super) config: PathBuf,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

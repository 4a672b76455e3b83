//! What a commit asks for, joined with what the operator gives.

use crate::manifest::AppManifest;
use crate::model::desired::{DesiredState, ImageRequest};
use crate::model::policy::{HostPolicy, Project, TargetKind};
use crate::model::{Problem, Problems, Sha, TargetLabel, TargetName};

/// Which commit a manifest was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The commit.
    pub revision: Sha,
    /// Its tree.
    pub tree: Sha,
}

/// Joins a manifest with one target of the registry.
///
/// Pure, and only narrowing: everything that runs with rights comes from the registry.
///
/// # Errors
/// The target is unknown or not a host target, the names differ, or the manifest asks for what the
/// registry does not give: `app.toml mounts data at /data, but the host registry gives myapp/prod
/// no data`. What the registry gives and the manifest does not use is no problem.
///
/// Source: app.toml contract, `[state]`.
pub fn desired(
    manifest: &AppManifest,
    project: &Project,
    label: &TargetLabel,
    commit: &Commit,
) -> Result<DesiredState, Problems> {
    let target = TargetName::new(project.name.clone(), label.clone());
    let (policy, uid) = host_policy(project, label).map_err(|problem| refused(*problem))?;
    let list = contradictions(manifest, project, &target, policy);
    if !list.is_empty() {
        return Err(Problems { file: "app.toml".to_owned(), list });
    }
    let image = ImageRequest {
        reference: format!("huta-build/{}:{}", project.name, commit.revision.short()),
        revision: commit.revision.clone(),
        project: project.name.to_string(),
        policy: project.image.clone(),
        dockerfile: manifest.dockerfile.clone(),
        context: manifest.context.clone(),
    };
    Ok(DesiredState {
        target,
        revision: commit.revision.clone(),
        tree: commit.tree.clone(),
        manifest: manifest.digest.clone(),
        registry: project.release_digest(label),
        image,
        port: manifest.port,
        health: manifest.health.clone(),
        smoke: manifest.smoke.clone(),
        data: manifest.data.clone(),
        jobs: manifest.jobs.clone(),
        uid,
        policy: policy.clone(),
    })
}

fn host_policy<'p>(project: &'p Project, label: &TargetLabel) -> Result<(&'p HostPolicy, u32), Box<Problem>> {
    let name = &project.name;
    let problem = |message: String, why: &str, fix: &str| {
        Box::new(Problem {
            place: None,
            key: format!("targets.{label}"),
            message,
            why: why.to_owned(),
            fix: fix.to_owned(),
        })
    };
    let Some(target) = project.targets.get(label) else {
        return Err(problem(
            format!("the host registry has no target {name}/{label}"),
            "only the operator makes targets",
            "ask the operator to add it to the registry",
        ));
    };
    match (&target.kind, project.uid) {
        (TargetKind::Host(policy), Some(uid)) => Ok((policy, uid)),
        (TargetKind::Host(_), None) => Err(problem(
            format!("the host registry gives {name} no uid"),
            "every container of a project runs as the project's own user",
            "ask the operator to set `uid`",
        )),
        (TargetKind::Cluster(_), _) => Err(problem(
            format!("{name}/{label} is a cluster target, and app.toml is for host targets"),
            "a cluster target is made of the cluster manifest",
            "release it through `hakopod_toml`",
        )),
    }
}

fn contradictions(manifest: &AppManifest, project: &Project, target: &TargetName, policy: &HostPolicy) -> Vec<Problem> {
    let mut list = Vec::new();
    if manifest.project != project.name {
        list.push(Problem {
            place: None,
            key: "project".to_owned(),
            message: format!("app.toml: project must be '{}'", project.name),
            why: "the name ties this file to its entry in the host's registry".to_owned(),
            fix: format!("write `project = \"{}\"`", project.name),
        });
    }
    if let (Some(data), None) = (&manifest.data, &policy.data) {
        list.push(Problem {
            place: None,
            key: format!("components.{}.data", manifest.component),
            message: format!("app.toml mounts data at {}, but the host registry gives {target} no data", data.mount),
            why: "the size of a volume and its backup are the operator's to decide".to_owned(),
            fix: "ask the operator for `data = { size = … }`, or set `state.kind = \"none\"`".to_owned(),
        });
    }
    list
}

fn refused(problem: Problem) -> Problems {
    Problems { file: "app.toml".to_owned(), list: vec![problem] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::registry::parse_project;
    use crate::manifest::apptoml;
    use crate::tests::edits;

    fn manifest(name: &str) -> AppManifest {
        let text = edits::text(&format!("manifest/apptoml/{name}.toml"));
        apptoml::parse(text.as_bytes(), "app.toml", None).unwrap()
    }

    fn project(name: &str) -> Project {
        let text = edits::text(&format!("config/registry/{name}.toml"));
        parse_project(text.as_bytes(), "shop", None).unwrap()
    }

    fn join(manifest: &AppManifest, project: &Project, target: &str) -> Result<DesiredState, Problems> {
        let commit = Commit { revision: "a".repeat(40).parse().unwrap(), tree: "b".repeat(40).parse().unwrap() };
        desired(manifest, project, &target.parse().unwrap(), &commit)
    }

    fn message(read: Result<DesiredState, Problems>) -> String {
        read.unwrap_err().list.remove(0).message
    }

    #[test]
    fn what_is_asked_and_what_is_given_become_one_state() {
        let (manifest, project) = (manifest("base"), project("base"));
        let state = join(&manifest, &project, "prod").unwrap();
        assert_eq!(state.image.reference, format!("huta-build/shop:{}", "a".repeat(12)));
        assert_eq!((state.uid, state.port), (20001, 8080));
        assert_eq!(state.data.unwrap().mount, "/data");
        assert_eq!(state.registry, project.release_digest(&"prod".parse().unwrap()));
        assert_eq!(state.manifest, manifest.digest);
    }

    #[test]
    fn data_that_the_registry_does_not_give_is_refused() {
        assert_eq!(
            message(join(&manifest("base"), &project("minimal"), "prod")),
            "app.toml mounts data at /data, but the host registry gives shop/prod no data"
        );
    }

    #[test]
    fn data_that_the_manifest_does_not_use_is_no_problem() {
        assert!(join(&manifest("minimal"), &project("base"), "prod").is_ok());
    }

    #[test]
    fn another_project_s_manifest_is_refused() {
        let other = Project { name: "cafe".parse().unwrap(), ..project("minimal") };
        assert_eq!(message(join(&manifest("minimal"), &other, "prod")), "app.toml: project must be 'cafe'");
    }

    #[test]
    fn unknown_targets_and_cluster_targets_are_refused() {
        let project = project("base");
        assert!(message(join(&manifest("base"), &project, "stage")).contains("has no target shop/stage"));
        assert!(message(join(&manifest("base"), &project, "cloud")).contains("is a cluster target"));
    }
}

//! The registry of a world: projects as small as a release allows.

use std::collections::BTreeMap;

use crate::model::policy::{
    Approve, BuildPolicy, DriftPolicy, HostPolicy, ImageFrom, ImagePolicy, Limits, NoCiRun, OnFailure, Project,
    Repository, TargetKind, TargetPolicy,
};

/// A project with the target `prod`, released unattended, without CI.
pub(super) fn project(name: &str, place: u16) -> Project {
    let build = BuildPolicy {
        network: "none".to_owned(),
        cpus_milli: 1000,
        memory_bytes: 1 << 30,
        timeout_seconds: 900,
        context_limit_bytes: 1 << 30,
    };
    Project {
        name: name.parse().unwrap(),
        repo: Repository::Url(format!("file:///srv/git/{name}")),
        app_toml: "deploy/app.toml".parse().unwrap(),
        hakopod_toml: None,
        boxes: Vec::new(),
        uid: Some(20001),
        branch: "main".parse().unwrap(),
        credential: None,
        image: ImagePolicy { from: ImageFrom::Local, repository: None, credential: None, build },
        targets: BTreeMap::from([("prod".parse().unwrap(), target(name, place))]),
    }
}

fn target(name: &str, place: u16) -> TargetPolicy {
    TargetPolicy {
        branch: None,
        approve: Approve::Never,
        require_ci: false,
        ci_workflow: "ci".to_owned(),
        no_ci_run: NoCiRun::Hold,
        drift: DriftPolicy::Report,
        windows: Vec::new(),
        on_failure: OnFailure::None,
        kind: TargetKind::Host(Box::new(HostPolicy {
            hosts: vec![format!("{name}.example"), format!("www.{name}.example")],
            slots: [20_000 + 2 * place, 20_001 + 2 * place],
            limits: Limits { memory_bytes: 256 << 20, cpus_milli: 1000, pids: 128, tmp_bytes: 16 << 20 },
            keep_releases: 3,
            drain_seconds: 10,
            env: BTreeMap::new(),
            secrets: Vec::new(),
            job_secrets: BTreeMap::new(),
            egress: Vec::new(),
            upstreams: Vec::new(),
            data: None,
            access_log: false,
            adopt: None,
        })),
    }
}

/// The manifest that every commit has unless its script says otherwise.
pub(super) fn manifest(project: &str) -> String {
    format!(
        "schema = 1\nproject = \"{project}\"\norder = [\"web\"]\n\n[images.web]\ndockerfile = \"Dockerfile\"\n\n\
         [components.web]\nimage = \"web\"\nport = 8080\n\n[[smoke]]\npath = \"/\"\ncontains = \"hello\"\n"
    )
}

//! A target of its own on the shared engine, removed at the end whatever happened.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::{
    ContainerCreateBody, ContainerUpdateBody, ExecConfig, HostConfig, NetworkConnectRequest, NetworkCreateRequest,
};
use bollard::query_parameters::{CreateContainerOptions, ListContainersOptions, RemoveContainerOptions};
use futures_util::StreamExt as _;

use super::*;

pub(super) struct Bench {
    pub(super) docker: DockerTarget,
    pub(super) client: Docker,
    pub(super) target: TargetName,
    pub(super) instance: String,
    pub(super) sha: String,
    image: ImageId,
    ports: [u16; 2],
}

pub(super) async fn client() -> Docker {
    Docker::connect_with_unix(app::SOCKET, 60, bollard::API_DEFAULT_VERSION).unwrap().negotiate_version().await.unwrap()
}

impl Bench {
    pub(super) async fn new(spec: AppSpec) -> Self {
        let target: TargetName = format!("{}/prod", app::unique("tgt-")).parse().unwrap();
        let sha = app::unique_sha();
        let image = app::image(&spec, target.project.as_str(), &sha).await;
        let instance = app::unique("instance-");
        let config =
            DockerConfig { socket: app::SOCKET.into(), state_dir: std::env::temp_dir(), instance: instance.clone() };
        let ports = app::free_ports();
        Self { docker: DockerTarget::new(config), client: client().await, target, instance, sha, image, ports }
    }

    pub(super) fn desired(&self) -> DesiredState {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/render/container/desired.json");
        let mut desired: DesiredState = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        desired.target = self.target.clone();
        desired.revision = self.sha.parse().unwrap();
        desired.image.reference = format!("huta-build/{}:{}", self.target.project, desired.revision.short());
        desired.policy.slots = self.ports;
        desired
    }

    pub(super) fn spec(&self, slot: Slot, release: u64) -> ContainerSpec {
        let mut spec = container::container(&self.desired(), slot, &self.instance);
        spec.image_id = Some(self.image.clone());
        container::with_release(spec, ReleaseNumber(release))
    }

    pub(super) async fn apply(&self, step: Step) -> Result<(), TargetError> {
        self.docker.apply(&self.target, &step).await
    }

    /// Applies a step twice, since any step may run twice (invariant I4).
    pub(super) async fn twice(&self, step: Step) {
        self.apply(step.clone()).await.unwrap();
        self.apply(step).await.unwrap();
    }

    pub(super) async fn start(&self, spec: &ContainerSpec) -> Result<(), TargetError> {
        self.apply(Step::StartSlot { container: Box::new(spec.clone()) }).await
    }

    /// Bridge and rules, as every plan makes them first.
    pub(super) async fn network(&self) {
        let network = container::network(&self.target, &self.instance);
        self.apply(Step::EnsureNetwork { network: network.clone() }).await.unwrap();
        self.apply(Step::EnsureIsolation { network }).await.unwrap();
    }

    pub(super) fn preflight(&self, slot: Slot) -> Step {
        Step::Preflight { slot, port: *slot.of(&self.ports), free_bytes: 1, free_inodes: 1 }
    }

    pub(super) async fn live(&self, slot: Slot) -> LiveContainer {
        let state = self.docker.observe(&self.target).await.unwrap();
        state.slot(slot).ours().cloned().unwrap_or_else(|| panic!("{state:?}"))
    }

    /// Waits until the seat's published port answers.
    pub(super) async fn serving(&self, slot: Slot) {
        let port = *slot.of(&self.ports);
        app::eventually("the seat answers", async || get(port, "/release").is_some()).await;
    }

    pub(super) fn get(&self, path: &str) -> String {
        get(self.ports[0], path).unwrap()
    }

    /// Runs the app's binary inside a container; gives its one line.
    pub(super) async fn exec(&self, name: &str, arguments: &[&str]) -> String {
        let mut command = vec!["/server".to_owned()];
        command.extend(arguments.iter().map(|word| (*word).to_owned()));
        let config = ExecConfig {
            cmd: Some(command),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let exec = self.client.create_exec(name, config).await.unwrap();
        let StartExecResults::Attached { mut output, .. } = self.client.start_exec(&exec.id, None).await.unwrap()
        else {
            panic!("not attached");
        };
        let mut text = String::new();
        while let Some(part) = output.next().await {
            let part: LogOutput = part.unwrap();
            text.push_str(&part.to_string());
        }
        text.trim().to_owned()
    }

    /// `/proc/<pid>/status` of the container's first process.
    pub(super) async fn process_status(&self, name: &str) -> String {
        let inspected = self.client.inspect_container(name, None).await.unwrap();
        let pid = inspected.state.unwrap().pid.unwrap();
        std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap()
    }

    /// A running container of the same image outside of our care.
    pub(super) async fn foreign_container(&self, name: &str, labels: BTreeMap<String, String>) -> String {
        let body = ContainerCreateBody {
            image: Some(self.image.to_string()),
            labels: Some(labels.into_iter().collect()),
            host_config: Some(HostConfig { network_mode: Some("bridge".to_owned()), ..HostConfig::default() }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptions { name: Some(name.to_owned()), ..CreateContainerOptions::default() };
        let id = self.client.create_container(Some(options), body).await.unwrap().id;
        self.client.start_container(&id, None).await.unwrap();
        id
    }

    pub(super) async fn address(&self, name: &str) -> String {
        let inspected = self.client.inspect_container(name, None).await.unwrap();
        let networks = inspected.network_settings.unwrap().networks.unwrap();
        networks.into_values().next().unwrap().ip_address.unwrap()
    }

    /// The host's address on the container's network.
    pub(super) async fn gateway(&self, name: &str) -> String {
        let inspected = self.client.inspect_container(name, None).await.unwrap();
        let networks = inspected.network_settings.unwrap().networks.unwrap();
        networks.into_values().next().unwrap().gateway.unwrap()
    }

    pub(super) async fn foreign_network(&self) -> String {
        let request = NetworkCreateRequest { name: self.target.network(), ..NetworkCreateRequest::default() };
        self.client.create_network(request).await.unwrap().id
    }

    pub(super) async fn open_network_with_our_labels(&self) {
        let spec = container::network(&self.target, &self.instance);
        let name = ("com.docker.network.bridge.name".to_owned(), spec.bridge);
        let request = NetworkCreateRequest {
            name: spec.name,
            options: Some(HashMap::from([name])),
            labels: Some(spec.labels.into_iter().collect()),
            ..NetworkCreateRequest::default()
        };
        self.client.create_network(request).await.unwrap();
    }

    /// What a hand could do to a running container.
    pub(super) async fn widen(&self, name: &str) {
        let double = i64::try_from(self.desired().policy.limits.memory_bytes * 2).unwrap();
        let update = ContainerUpdateBody {
            memory: Some(double),
            memory_swap: Some(double),
            pids_limit: Some(999),
            ..ContainerUpdateBody::default()
        };
        self.client.update_container(name, update).await.unwrap();
        let request = NetworkConnectRequest { container: name.to_owned(), ..NetworkConnectRequest::default() };
        self.client.connect_network("bridge", request).await.unwrap();
    }
}

/// One GET over loopback; none when nobody answers.
pub(super) fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_head, body)| body.to_owned())
}

impl Drop for Bench {
    fn drop(&mut self) {
        let (project, network) = (self.target.project.to_string(), self.target.network());
        app::block_on(async move {
            let client = client().await;
            let options = ListContainersOptions { all: true, ..ListContainersOptions::default() };
            for found in client.list_containers(Some(options)).await.unwrap() {
                let is_of_project = found.names.iter().flatten().any(|name| name.contains(&project));
                if is_of_project {
                    let options = RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
                    client.remove_container(&found.id.unwrap(), Some(options)).await.unwrap();
                }
            }
            if client.inspect_network(&network, None).await.is_ok() {
                client.remove_network(&network).await.unwrap();
            }
            app::forget_images(&project).await;
        });
    }
}

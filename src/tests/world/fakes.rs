//! One stand-in for each trait of the loop, all over the same outside.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::outside::{Ci, Fault, Outside, State, silence};
use super::process::Process;
use crate::clock::Clock;
use crate::edge::{Edge, EdgeError, EdgePath};
use crate::image::{BuildContext, ImageError, Images, Progress};
use crate::model::desired::{ImageRequest, Vhost};
use crate::model::live::LiveEdge;
use crate::model::policy::Repository;
use crate::model::sample::{Sample, SilenceKind};
use crate::model::{BranchName, Class, Digest, ImageId, Reason, ReasonCode, RepoPath, Sha, Slot, TargetName};
use crate::probe::{HttpProbe, Probe, Trust};
use crate::source::{Ancestry, Checks, ChecksError, CiFacts, CiRun, CommitFacts, Export, Look, Source, SourceError};
use crate::verify::Verified;

/// Where the edge listens.
const EDGE: ([u8; 4], u16) = ([127, 0, 0, 1], 443);

pub(super) struct Fakes {
    pub(super) outside: Arc<Outside>,
    pub(super) process: Arc<Process>,
}

impl Fakes {
    /// An effect: meets its fault, is done once or twice, and may be the last thing that this daemon does.
    pub(super) async fn effect(
        &self,
        target: &TargetName,
        words: &str,
        change: impl Fn(&mut State) -> Result<bool, Reason>,
    ) -> Result<(), (Reason, Class)> {
        self.process.alive().await;
        let fault = self.outside.state().fault(words);
        match fault {
            Some(Fault::Error(code, class)) => {
                return Err((Reason::new(code, format!("`{words}` was made to fail")), class));
            }
            Some(Fault::Hangs) => std::future::pending().await,
            None => {}
        }
        for _ in 0..self.process.times() {
            let mut state = self.outside.state();
            if change(&mut state).map_err(|reason| (reason, Class::Transient))? {
                state.record(target, words);
            }
        }
        self.process.touched(words).await;
        Ok(())
    }
}

#[async_trait]
impl Clock for Fakes {
    fn now(&self) -> Timestamp {
        self.outside.now()
    }

    async fn sleep(&self, duration: Duration) {
        self.process.alive().await;
        tokio::time::sleep(duration).await;
        self.process.alive().await;
    }
}

fn project_of(repo: &Repository) -> String {
    let text = repo.to_string();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}

fn no_git(message: &str) -> SourceError {
    SourceError { reason: Reason::new(ReasonCode::GitUnavailable, message), class: Class::Transient }
}

impl Fakes {
    async fn remote(&self, repo: &Repository) -> Result<(), SourceError> {
        self.process.alive().await;
        let down = self.outside.state().remotes_down.get(&project_of(repo)).copied();
        match down {
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Error(..)) => Err(no_git("the remote does not answer")),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Source for Fakes {
    async fn look(&self, repo: &Repository, _branch: &BranchName) -> Result<Look, SourceError> {
        self.outside.state().looks += 1;
        self.remote(repo).await?;
        let tip = self.outside.state().branches.get(&project_of(repo)).cloned().flatten();
        Ok(tip.map_or(Look::Gone, Look::At))
    }

    async fn fetch(&self, repo: &Repository, _branch: &BranchName, sha: &Sha) -> Result<CommitFacts, SourceError> {
        self.remote(repo).await?;
        let state = self.outside.state();
        let commit = state.commits.get(sha).ok_or_else(|| no_git("the remote has no such commit"))?;
        Ok(CommitFacts {
            tree: commit.tree.clone(),
            parents: commit.parent.iter().cloned().collect(),
            author: "Ada <ada@shop.example>".to_owned(),
            committed_at: Timestamp::UNIX_EPOCH,
            subject: commit.name.clone(),
            message: commit.name.clone(),
        })
    }

    async fn read(&self, _repo: &Repository, sha: &Sha, _path: &RepoPath, _limit: u64) -> Result<Vec<u8>, SourceError> {
        self.process.alive().await;
        self.outside.state().manifest_of(sha).ok_or_else(|| no_git("the commit was not fetched"))
    }

    async fn export(&self, _repo: &Repository, _sha: &Sha, export: &Export<'_>) -> Result<PathBuf, SourceError> {
        self.process.alive().await;
        Ok(export.to.to_owned())
    }

    async fn ancestry(
        &self,
        repo: &Repository,
        _branch: &BranchName,
        (old, new): (&Sha, &Sha),
    ) -> Result<Ancestry, SourceError> {
        self.remote(repo).await?;
        let is_ancestor = self.outside.state().is_ancestor(old, new);
        Ok(if is_ancestor { Ancestry::Ancestor } else { Ancestry::Unrelated })
    }
}

#[async_trait]
impl Checks for Fakes {
    async fn runs(
        &self,
        repo: &Repository,
        _workflow: &str,
        (branch, sha): (&BranchName, &Sha),
    ) -> Result<CiFacts, ChecksError> {
        self.process.alive().await;
        let state = self.outside.state();
        let ci = state.commits.get(sha).map_or(Ci::Nothing, |commit| commit.ci);
        let (status, conclusion) = match ci {
            Ci::Nothing => return Ok(runs(Vec::new())),
            Ci::Pending => ("in_progress", None),
            Ci::Red => ("completed", Some("failure")),
            Ci::Green => ("completed", Some("success")),
        };
        Ok(runs(vec![CiRun {
            id: 1,
            number: 1,
            attempt: 1,
            workflow_id: 7,
            head_sha: sha.to_string(),
            head_branch: Some(branch.to_string()),
            event: "push".to_owned(),
            head_repository: Some(repo.to_string()),
            status: status.to_owned(),
            conclusion: conclusion.map(str::to_owned),
            link: "https://github.example/run/1".to_owned(),
        }]))
    }
}

fn runs(runs: Vec<CiRun>) -> CiFacts {
    CiFacts::Runs { workflow_id: 7, is_disabled: false, renamed_to: None, runs }
}

/// The id of a commit's image.
fn image_id(sha: &Sha) -> ImageId {
    format!("sha256:{}", Digest::of(sha.as_str().as_bytes())).parse().unwrap()
}

impl Fakes {
    async fn has_image(&self, request: &ImageRequest) -> bool {
        self.process.alive().await;
        self.outside.state().commits.get(&request.revision).is_some_and(|commit| commit.has_image)
    }
}

#[async_trait]
impl Images for Fakes {
    async fn find(&self, request: &ImageRequest) -> Result<Option<ImageId>, ImageError> {
        Ok(self.has_image(request).await.then(|| image_id(&request.revision)))
    }

    async fn prepare(
        &self,
        request: &ImageRequest,
        _context: Option<&BuildContext>,
        _progress: Progress<'_>,
    ) -> Result<ImageId, ImageError> {
        let target = TargetName::new(request.project.parse().unwrap(), "prod".parse().unwrap());
        let name = self.outside.state().commits.get(&request.revision).map(|commit| commit.name.clone());
        let words = format!("pin the image of {}", name.unwrap_or_default());
        let done = self.effect(&target, &words, |_| Ok(true)).await;
        done.map_err(|(reason, class)| ImageError { reason, class })?;
        Ok(image_id(&request.revision))
    }

    async fn prune(&self, _repository: &str, _keep: &[String]) -> Result<Vec<String>, ImageError> {
        self.process.alive().await;
        self.process.touched("prune").await;
        Ok(Vec::new())
    }
}

impl Fakes {
    async fn mark(&self, target: &TargetName, slot: Option<Slot>) -> Result<(), EdgeError> {
        let words = slot.map_or("take the traffic away".to_owned(), |slot| format!("route to {slot}"));
        let done = self.effect(target, &words, |state| {
            let site = state.sites.entry(target.clone()).or_default();
            let is_new = site.marker != slot;
            site.marker = slot;
            Ok(is_new)
        });
        done.await.map_err(|(reason, class)| EdgeError { reason, class })
    }
}

#[async_trait]
impl Edge for Fakes {
    async fn observe(&self, target: &TargetName, _vhost_file: &str) -> Result<LiveEdge, EdgeError> {
        self.process.alive().await;
        let site = self.outside.state().sites.get(target).cloned().unwrap_or_default();
        Ok(LiveEdge { serving: site.marker, vhost: site.vhost, is_loaded: site.is_loaded })
    }

    async fn ensure_vhost(&self, target: &TargetName, vhost: &Vhost) -> Result<(), EdgeError> {
        let words = format!("load the vhost for {}", vhost.hosts.join(" "));
        let done = self.effect(target, &words, |state| {
            let site = state.sites.entry(target.clone()).or_default();
            let is_new = site.vhost.as_ref() != Some(&vhost.text) || !site.is_loaded;
            site.vhost = Some(vhost.text.clone());
            site.hosts.clone_from(&vhost.hosts);
            site.is_loaded = true;
            Ok(is_new)
        });
        done.await.map_err(|(reason, class)| EdgeError { reason, class })
    }

    async fn route(&self, target: &TargetName, slot: Slot, _proof: &Verified) -> Result<(), EdgeError> {
        self.mark(target, Some(slot)).await
    }

    async fn route_back(&self, target: &TargetName, slot: Option<Slot>) -> Result<(), EdgeError> {
        self.mark(target, slot).await
    }

    async fn path(&self, host: &str) -> Result<EdgePath, EdgeError> {
        self.process.alive().await;
        let is_served = self
            .outside
            .state()
            .sites
            .values()
            .any(|site| site.is_loaded && site.hosts.iter().any(|known| known == host));
        if is_served {
            return Ok(EdgePath { scheme: "http", socket: EDGE.into(), trust: Trust::System });
        }
        Err(EdgeError::unavailable(format!("no site serves {host}")))
    }
}

#[async_trait]
impl Probe for Fakes {
    async fn get(&self, probe: &HttpProbe) -> Sample {
        self.process.alive().await;
        let rest = probe.url.split_once("://").unwrap().1;
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let now = self.outside.now();
        let state = self.outside.state();
        match probe.connect {
            None if state.is_dark() => silence(SilenceKind::Name, "no such name"),
            Some(socket) if socket.port() != EDGE.1 => state.ask(socket.port(), path, (false, now)),
            Some(_) | None => state.ask_edge(host, path, now),
        }
    }
}

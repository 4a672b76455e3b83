//! A person's rollback: the pin first, then the pass, then Git (rulings 17 to 22).

use axum::extract::{ConnectInfo, Path, State};
use axum::response::Json;
use serde::{Deserialize, Serialize};

use crate::model::{Sha, TargetName};
use crate::reconcile::queue::Wake;
use crate::reconcile::rollback::{self, Answer, Wish};
use crate::release::Phase;
use crate::release::history::rollback_candidates;
use crate::release::revert::Cause;
use crate::server::socket::Peer;
use crate::store::record::Pin;

use super::acts::{audit, on_branch};
use super::{Api, ApiError, known};

/// Releases that are looked through for a good one.
const HISTORY: u32 = 200;

/// The body of `rollback`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The good revision; the one before the live one when absent.
    #[serde(default)]
    pub to: Option<Sha>,
    /// Whether Git gets a pull request in any case.
    #[serde(default)]
    pub pull_request: bool,
}

/// What a rollback answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackAnswer {
    /// The revision that the target is pinned to.
    pub good: Sha,
    /// The newest commit that is undone.
    pub bad: Sha,
    /// What became of Git.
    pub git: Answer,
}

pub(super) async fn rollback(
    State(api): State<Api>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path((project, target)): Path<(String, String)>,
    Json(RollbackRequest { to, pull_request }): Json<RollbackRequest>,
) -> Result<Json<RollbackAnswer>, ApiError> {
    let name = known(&api, &project, &target).await?;
    let (good, bad) = choose(&api, &name, to).await?;
    let ports = api.workers.ports();
    let pin = Pin { sha: good.clone(), tip: None, by: peer.name(), at: ports.clock.now(), note: "rollback".to_owned() };
    ports.store.put_pin(&name, Some(&pin)).await?;
    let message = format!("rolled back from {} to {}, pinned until the revert is there", bad.short(), good.short());
    audit(&api, &name, (&peer, "rollback"), &message).await?;
    api.workers.wake(&name, Wake::PERSON);
    let wish = Wish {
        good: good.clone(),
        bad: bad.clone(),
        cause: Cause::Person { by: peer.name() },
        is_proposal_wanted: pull_request,
    };
    let git = rollback::write(ports, &name, &wish).await?;
    api.workers.wake(&name, Wake::PERSON);
    Ok(Json(RollbackAnswer { good, bad, git }))
}

/// The good revision and the newest one that is undone.
async fn choose(api: &Api, name: &TargetName, to: Option<Sha>) -> Result<(Sha, Sha), ApiError> {
    let store = &api.workers.ports().store;
    let releases = store.releases(name, HISTORY).await?;
    let Some(live) = store.live_release(name).await? else {
        return Err(ApiError::refused(format!("nothing of {name} was ever live"), "there is nothing to go back to"));
    };
    let tip = store.observed_ref(name).await?.and_then(|seen| seen.tip);
    let live = live.new.revision;
    let good = match to {
        Some(to) => {
            let was_live = releases.iter().any(|release| release.phase == Phase::Live && release.new.revision == to);
            if !was_live {
                on_branch(api, name, &to).await?;
            }
            to
        }
        None => before(api, name, (&live, tip.as_ref())).await?,
    };
    if store.quarantine(name, &good).await?.is_some() {
        let fix = format!("choose another with `--to`, or `trueup retry {} {}` first", name.project, name.target);
        return Err(ApiError::refused(format!("{} failed on {name} before", good.short()), fix));
    }
    let bad = match tip {
        Some(tip) if live == good => tip,
        Some(_) | None => live,
    };
    Ok((good, bad))
}

/// What runs, where the tip has failed; else what ran before it.
async fn before(api: &Api, name: &TargetName, (live, tip): (&Sha, Option<&Sha>)) -> Result<Sha, ApiError> {
    let store = &api.workers.ports().store;
    if let Some(tip) = tip.filter(|tip| *tip != live)
        && store.quarantine(name, tip).await?.is_some()
    {
        return Ok(live.clone());
    }
    let releases = store.releases(name, HISTORY).await?;
    for candidate in rollback_candidates(&releases) {
        if store.quarantine(name, &candidate.new.revision).await?.is_none() {
            return Ok(candidate.new.revision.clone());
        }
    }
    let fix = "name a commit of the branch with `--to SHA`, or push a revert";
    Err(ApiError::refused(format!("no other release of {name} was ever live"), fix))
}

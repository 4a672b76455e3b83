//! Whether one commit is an ancestor of another, over as little history as it takes.
//!
//! A `file://` remote is walked in place. For others, commits without trees are fetched into a second
//! repository beside the mirror, deeper and deeper; it is a cache, thrown away whenever it is in doubt.

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroU32;

use gix::ObjectId;

use super::abort::Abort;
use super::fault::Fault;

/// How many commits of history are asked for, one try after another; the last one is all of it.
///
/// Source: git-fetch(1), `--unshallow` asks for 2147483647.
pub(super) const DEPTHS: [u32; 4] = [64, 1_024, 16_384, 2_147_483_647];
/// More commits than this are not walked.
pub(super) const MAX_COMMITS: usize = 3_000_000;

/// What a walk over the commits that are here can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    /// The old one was met.
    Met,
    /// All of the history was walked without meeting it.
    NotMet,
    /// The walk came to commits whose parents are not here.
    CutShort,
}

/// One depth to ask for.
pub(super) fn depth(commits: u32) -> NonZeroU32 {
    NonZeroU32::new(commits).unwrap_or(NonZeroU32::MIN)
}

/// Walks from `new` towards its roots, nearest first, until `old` is met.
///
/// # Errors
/// [`Fault::Mirror`] if a commit is there and cannot be read; [`Fault::Remote`] past [`MAX_COMMITS`].
pub(super) fn walk(repository: &gix::Repository, pair: (ObjectId, ObjectId), abort: &Abort) -> Result<Walk, Fault> {
    let (old, new) = pair;
    let mut waiting = VecDeque::from([new]);
    let mut seen = HashSet::from([new]);
    let mut is_cut = false;
    while let Some(id) = waiting.pop_front() {
        abort.check()?;
        if id == old {
            return Ok(Walk::Met);
        }
        if seen.len() > MAX_COMMITS {
            return Err(Fault::refused(
                format!("its history has more than {MAX_COMMITS} commits"),
                "release by sha instead",
            ));
        }
        let Some(object) = repository.try_find_object(id).map_err(Fault::mirror)? else {
            is_cut = true;
            continue;
        };
        let commit = gix::objs::CommitRef::from_bytes(&object.data, id.kind()).map_err(Fault::mirror)?;
        waiting.extend(commit.parents().filter(|parent| seen.insert(*parent)));
    }
    Ok(if is_cut { Walk::CutShort } else { Walk::NotMet })
}

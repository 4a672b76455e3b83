//! Taking a body in: counted while it streams, hashed while it streams, and kept by nobody who has no right to it.
//!
//! The bytes of all bodies in flight share one budget (ruling 30). It is charged for what has arrived, never
//! for what was announced, so that nobody can reserve it by announcing.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::verify::Checking;

/// Bytes of all bodies in flight together.
pub const BUDGET_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that are read and thrown away before a refusal, so that the sender reads the answer instead of a
/// broken connection; as much as the largest delivery has.
pub const DRAIN_BYTES: usize = 25 * 1024 * 1024;

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// More bytes than the cap.
    TooLarge,
    /// The budget is used up by others.
    Busy,
    /// The sender went away.
    Broken,
}

/// What all bodies share.
#[derive(Debug, Clone)]
pub struct Budget {
    bytes: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(BUDGET_BYTES)
    }
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self { bytes: Arc::new(Semaphore::new(bytes)) }
    }

    /// Bytes that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.bytes.available_permits()
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.bytes).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// A body that is whole, and its share of the budget.
#[derive(Debug)]
pub struct Received {
    /// The raw bytes.
    pub bytes: Vec<u8>,
    /// Given back when dropped.
    _share: Option<OwnedSemaphorePermit>,
}

/// Takes a body in, at most `cap` bytes, and hands each piece to `checking`.
///
/// # Errors
/// [`Refused`]; what had arrived is freed.
pub async fn receive(
    body: &mut Body,
    (cap, budget): (usize, &Budget),
    checking: &mut Checking,
) -> Result<Received, Refused> {
    let mut bytes = Vec::new();
    let mut share: Option<OwnedSemaphorePermit> = None;
    while let Some(piece) = next(body).await? {
        if bytes.len().saturating_add(piece.len()) > cap {
            return Err(Refused::TooLarge);
        }
        let more = budget.take(piece.len()).ok_or(Refused::Busy)?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        checking.update(&piece);
        bytes.extend_from_slice(&piece);
    }
    Ok(Received { bytes, _share: share })
}

/// Reads and forgets what is left of a body, at most [`DRAIN_BYTES`].
pub async fn drain(body: &mut Body) {
    let mut left = DRAIN_BYTES;
    while let Ok(Some(piece)) = next(body).await {
        left = left.saturating_sub(piece.len());
        if left == 0 {
            return;
        }
    }
}

/// The next piece of data; none at the end.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Refused> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refused::Broken),
            Some(Ok(frame)) => {
                // Trailers carry nothing for us.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Secret;
    use crate::server::webhook::verify::{Keys, sign};

    fn pieces(pieces: &[&'static str]) -> Body {
        let pieces: Vec<Result<&'static str, std::io::Error>> = pieces.iter().copied().map(Ok).collect();
        Body::from_stream(futures_util::stream::iter(pieces))
    }

    async fn taken(body: &mut Body, limits: (usize, &Budget)) -> Result<Received, Refused> {
        receive(body, limits, &mut Keys::default().begin()).await
    }

    #[tokio::test]
    async fn a_body_is_counted_and_hashed_while_it_streams() {
        let secret = Secret::new("a secret for bodies".to_owned());
        let budget = Budget::of(100);
        let mut checking = Keys::new(std::slice::from_ref(&secret)).begin();
        let received = receive(&mut pieces(&["he", "", "llo"]), (5, &budget), &mut checking).await.unwrap();
        assert_eq!((received.bytes.as_slice(), budget.free()), (&b"hello"[..], 95));
        assert_eq!(checking.finish(&sign(&secret, b"hello")), Some(1));
        drop(received);
        assert_eq!(budget.free(), 100);
    }

    #[tokio::test]
    async fn a_body_past_the_cap_is_refused_at_the_piece_that_passes_it() {
        let budget = Budget::of(100);
        let mut body = pieces(&["123", "456", "789"]);
        assert_eq!(taken(&mut body, (5, &budget)).await.unwrap_err(), Refused::TooLarge);
        assert_eq!(budget.free(), 100);
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "789", "the rest was not read");
    }

    #[tokio::test]
    async fn bodies_in_flight_share_one_budget() {
        let budget = Budget::of(10);
        let first = taken(&mut pieces(&["1234567"]), (10, &budget)).await.unwrap();
        assert_eq!(taken(&mut pieces(&["12", "34"]), (10, &budget)).await.unwrap_err(), Refused::Busy);
        assert_eq!(budget.free(), 3, "what had arrived of the second is free again");
        drop(first);
        assert!(taken(&mut pieces(&["12", "34"]), (10, &budget)).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_none() {
        let parts = vec![Ok("half"), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
        let mut body = Body::from_stream(futures_util::stream::iter(parts));
        assert_eq!(taken(&mut body, (100, &Budget::default())).await.unwrap_err(), Refused::Broken);
    }
}

//! The memory limit for the work on large bodies: parsing them, and the data that the operation creates from them.
//!
//! A parsed body takes several times the memory of its text, and the operation copies parts of it. The memory is
//! reserved after the whole body has arrived, so that a slow client holds only the bytes that it sent. The memory is
//! released after the response is built.

use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::Request;
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::large::{JsonContent, PIECE, ReceivedBody, SMALL};
use super::memory_limit::AvailableMemory;
use crate::error::Error;

/// Number of bytes for the work on all large bodies. The body with the highest cost needs all of these bytes.
const ROOM: usize = 512 << 20;
/// Divisor for the available memory. The limit is at most the quotient.
const PART: u64 = 2;
/// Maximum time that a body waits for other bodies.
const PATIENCE: Duration = Duration::from_secs(30);
/// Minimum cost of a body, in bytes, for which memory is returned to the system after the work.
const MUCH: usize = 16 << 20;
/// Number of bytes of address space that must remain for all other purposes, if the address space is limited.
const HEADROOM: usize = 64 << 20;

/// Measured memory cost of a body, in bytes: for each byte, value and object (`tests/cli/large_bodies.rs`).
const COST_OF_BYTE: usize = 8;
const COST_OF_VALUE: usize = 96;
const COST_OF_OBJECT: usize = 384;

/// The memory limit for the work on large bodies. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct WorkRoom(Arc<Room>);

#[derive(Debug)]
struct Room {
    bytes: usize,
    pieces: Arc<Semaphore>,
    /// A permit that each large body takes. Only one large body waits for memory at a time, so that smaller bodies do
    /// not wait for all large bodies.
    turn: Arc<Semaphore>,
    /// Whether allocations may fail.
    is_scarce: bool,
    patience: Duration,
    after_large: fn(),
}

/// The reserved memory for the work on one body. Dropping it releases the memory.
#[derive(Debug)]
struct WorkPermit {
    pieces: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedSemaphorePermit>,
    /// The function to call before the memory is released, if the body took much memory.
    after: Option<fn()>,
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        let (pieces, turn) = (self.pieces.take(), self.turn.take());
        let (Some(after), Ok(runtime)) = (self.after, Handle::try_current()) else { return };
        runtime.spawn_blocking(move || {
            after();
            drop((pieces, turn));
        });
    }
}

impl Room {
    fn new(bytes: usize) -> Self {
        Self {
            bytes,
            pieces: Arc::new(Semaphore::new(bytes / PIECE)),
            turn: Arc::new(Semaphore::new(1)),
            is_scarce: false,
            patience: PATIENCE,
            after_large: || (),
        }
    }
}

impl WorkRoom {
    /// Returns the limit for this process. `after_large` is called after the work on each body that took much memory.
    pub(crate) fn within(memory: AvailableMemory, after_large: fn()) -> Self {
        let is_scarce = memory.has_limited_address_space();
        Self::from_room(Room { is_scarce, after_large, ..Room::new(memory.limit(ROOM, PART)) })
    }

    fn from_room(room: Room) -> Self {
        Self(Arc::new(room))
    }

    /// Reserves memory for a body. Waits until other requests release enough memory.
    async fn reserve(&self, cost: usize) -> Result<WorkPermit, Error> {
        let Room { bytes, pieces, turn, is_scarce, patience, after_large } = &*self.0;
        let cost = cost.min(ROOM);
        if cost > *bytes {
            let reason = format!(
                "this request needs {cost} bytes of memory, and the memory limit of the service allows {bytes} for \
                 requests"
            );
            return Err(Error::unavailable(reason).of_request());
        }
        let count = u32::try_from(cost / PIECE).unwrap_or(u32::MAX);
        let wait = async {
            let is_large = *is_scarce || cost > bytes / 2;
            let turn = if is_large { Some(Arc::clone(turn).acquire_owned().await?) } else { None };
            let pieces = Arc::clone(pieces).acquire_many_owned(count).await?;
            let after = (cost >= MUCH).then_some(*after_large);
            Ok::<_, AcquireError>(WorkPermit { pieces: Some(pieces), turn, after })
        };
        let permit = timeout(*patience, wait).await.map_err(|_| busy())?;
        let permit = permit.map_err(Error::broken)?;
        if *is_scarce && !can_allocate(cost.saturating_add(HEADROOM)) {
            return Err(busy());
        }
        Ok(permit)
    }
}

fn busy() -> Error {
    let reason = "too many large bodies are being processed at the moment";
    Error::unavailable(reason).of_request()
}

/// Returns `true` if the allocation of this many bytes would succeed.
fn can_allocate(bytes: usize) -> bool {
    let mut probe = Vec::<u8>::new();
    let is_possible = probe.try_reserve_exact(bytes).is_ok();
    // Without this use, the compiler may remove the allocation.
    black_box(&mut probe);
    is_possible
}

/// Returns the memory that the work on a body takes, in bytes.
fn cost_of(len: usize, content: JsonContent) -> usize {
    let JsonContent { values, objects, .. } = content;
    let parts = [(len, COST_OF_BYTE), (values, COST_OF_VALUE), (objects, COST_OF_OBJECT)];
    parts.into_iter().fold(0, |sum, (count, cost)| sum.saturating_add(count.saturating_mul(cost)))
}

/// The memory for the work on the body of one request. The memory is released with the last clone.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestMemory(Arc<OnceLock<WorkPermit>>);

impl RequestMemory {
    /// Attaches the memory to a request, unless its body is small. The caller holds the result until the response is
    /// built.
    pub(super) fn attach_to(request: &mut Request) -> Option<Self> {
        let small = u64::try_from(SMALL).unwrap_or(u64::MAX);
        if request.body().size_hint().upper().is_some_and(|len| len <= small) {
            return None;
        }
        let memory = Self::default();
        request.extensions_mut().insert(memory.clone());
        Some(memory)
    }

    /// Returns the memory attached to a request.
    pub(super) fn from_request(request: &Request) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Reserves memory for the work on the body of the request.
    pub(super) async fn reserve(&self, room: &WorkRoom, body: &ReceivedBody) -> Result<(), Error> {
        let permit = room.reserve(cost_of(body.bytes.len(), body.content)).await?;
        // The memory is reserved only once, because a request has one body.
        self.0.set(permit).map_err(|_| Error::broken("memory for a body was reserved twice"))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::poll;

    use super::*;
    use crate::error::ErrorKind;

    const MIB: usize = 1 << 20;

    fn room(mebibytes: usize) -> WorkRoom {
        WorkRoom::from_room(Room::new(mebibytes * MIB))
    }

    #[tokio::test]
    async fn large_bodies_are_processed_one_at_a_time() {
        let room = room(100);
        let first = room.reserve(60 * MIB).await.unwrap();
        let (mut second, mut third) = (pin!(room.reserve(60 * MIB)), pin!(room.reserve(60 * MIB)));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        // A smaller body does not wait for the waiting bodies.
        let small = room.reserve(30 * MIB).await.unwrap();
        drop(first);
        let second = second.await.unwrap();
        assert!(poll!(&mut third).is_pending());
        drop((second, small));
        third.await.unwrap();
    }

    #[tokio::test]
    async fn smaller_bodies_share_the_limit() {
        let room = room(100);
        let permits = [room.reserve(50 * MIB).await.unwrap(), room.reserve(50 * MIB).await.unwrap()];
        let mut third = pin!(room.reserve(MIB));
        assert!(poll!(&mut third).is_pending());
        drop(permits);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn body_that_waits_too_long_is_refused() {
        let room = WorkRoom::from_room(Room { patience: Duration::ZERO, ..Room::new(100 * MIB) });
        let first = room.reserve(60 * MIB).await.unwrap();
        let refusal = room.reserve(60 * MIB).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        drop(first);
        // The memory is released on another thread.
        while room.reserve(60 * MIB).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn freed_memory_is_returned_before_the_next_large_body() {
        static RETURNS: AtomicUsize = AtomicUsize::new(0);
        let after_large = || _ = RETURNS.fetch_add(1, Ordering::SeqCst);
        let room = WorkRoom::from_room(Room { after_large, ..Room::new(100 * MIB) });
        for count in 0..3 {
            let permit = room.reserve(60 * MIB).await.unwrap();
            assert_eq!(RETURNS.load(Ordering::SeqCst), count);
            drop(room.reserve(MIB).await.unwrap());
            drop(permit);
        }
    }

    #[tokio::test]
    async fn most_expensive_body_fits_into_the_default_limit() {
        WorkRoom::from_room(Room::new(ROOM)).reserve(usize::MAX).await.unwrap();
    }

    #[tokio::test]
    async fn rejects_a_body_that_never_fits_into_a_lower_limit() {
        let refusal = room(100).reserve(101 * MIB).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        assert!(refusal.reason().contains("needs 105906176 bytes"), "{refusal}");
    }

    #[tokio::test]
    async fn body_is_refused_if_its_memory_cannot_be_allocated() {
        let scarce = WorkRoom::from_room(Room { is_scarce: true, ..Room::new(100 * MIB) });
        scarce.reserve(MIB).await.unwrap();
        assert!(!can_allocate(usize::MAX / 4) && can_allocate(MIB));
    }
}

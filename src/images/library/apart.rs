//! Work that blocks, on threads of its own.
//!
//! Not on the blocking pool of the runtime: readers of a part wait there for bytes, and as many of them as the pool has
//! threads would keep out the one that brings the bytes.

use std::thread;

use tokio::sync::oneshot;

use super::error::FetchError;

/// Does some work on a thread of its own, to its end even if nobody waits for it any more.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Nobody has to wait for it.
        let _ = sender.send(work());
    };
    spawn(work)?;
    receiver.await.map_err(|_| FetchError::GivenUp)
}

/// Starts some work that nobody waits for.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), FetchError> {
    let spawned = thread::Builder::new().name("image".to_owned()).spawn(work);
    spawned.map(drop).map_err(|_| FetchError::GivenUp)
}

//! Blocking work on dedicated threads.
//!
//! The blocking pool of the runtime is not used: readers of an image that is being downloaded block there until bytes
//! arrive. Once they occupy all threads of the pool, the writer of these bytes could not run.

use std::thread;

use tokio::sync::oneshot;

use super::error::FetchError;

/// Runs blocking work on a dedicated thread. The work runs to its end even if the caller is dropped.
pub(super) async fn on_dedicated_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // The caller may have been dropped.
        let _ = sender.send(work());
    };
    spawn_thread(work)?;
    receiver.await.map_err(|_| FetchError::GivenUp)
}

/// Starts blocking work and does not wait for it.
pub(super) fn spawn_thread(work: impl FnOnce() + Send + 'static) -> Result<(), FetchError> {
    let spawned = thread::Builder::new().name("image".to_owned()).spawn(work);
    spawned.map(drop).map_err(|_| FetchError::GivenUp)
}

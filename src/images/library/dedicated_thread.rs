//! Blocking work on dedicated threads.
//!
//! The blocking pool of the runtime is not used: the work takes minutes, such as a download or the hashing of an image,
//! and the end of a runtime waits for the threads of its pool.

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
    let spawned = thread::Builder::new().name("image".to_owned()).spawn(work);
    spawned.map_err(|_| FetchError::GivenUp)?;
    receiver.await.map_err(|_| FetchError::GivenUp)
}

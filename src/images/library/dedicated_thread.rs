//! Blocking work on dedicated threads.
//!
//! Downloads and hash computations take minutes. They do not use the blocking pool of the Tokio runtime, because a
//! runtime waits for the threads of its pool when it shuts down.

use std::thread;

use tokio::sync::oneshot;

use super::error::FetchError;

/// Runs blocking work on a dedicated thread. The work continues to its end even if the returned future is dropped.
pub(super) async fn on_dedicated_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Sending fails if the returned future was dropped.
        let _ = sender.send(work());
    };
    let spawned = thread::Builder::new().name("image".to_owned()).spawn(work);
    spawned.map_err(|_| FetchError::GivenUp)?;
    receiver.await.map_err(|_| FetchError::GivenUp)
}

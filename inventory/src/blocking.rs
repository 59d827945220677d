//! Runs long work on blocking threads, so that it does not delay other requests.

use ignition::network::Cancel;

use crate::error::Error;

/// Runs work on a blocking thread. If the request is dropped, the work's cancellation flag is set: the client has
/// disconnected and does not need the result.
///
/// # Errors
///
/// Returns the error of the work, or an internal error if the work panics.
pub async fn in_background<T, E>(work: impl FnOnce(&Cancel) -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let request = Request(Cancel::new());
    let cancel = request.0.clone();
    let task = tokio::task::spawn_blocking(move || {
        // The request may have been dropped while the work waited for a thread.
        if cancel.is_cancelled() {
            return Err(Error::internal("the client disconnected").into());
        }
        work(&cancel)
    });
    match task.await {
        Ok(done) => done,
        Err(error) => Err(Error::broken(format_args!("a background task ended early: {error}")).into()),
    }
}

/// A guard that cancels the work if the request is dropped.
struct Request(Cancel);

impl Drop for Request {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_of_a_dropped_request_is_cancelled() {
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (ended, has_ended) = mpsc::channel();
        let request = tokio::spawn(in_background(move |cancel| {
            begun.send(()).unwrap();
            while !cancel.is_cancelled() {
                thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok::<_, Error>(())
        }));
        has_begun.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        has_ended.recv().unwrap();
    }

    #[tokio::test]
    async fn work_of_a_waiting_request_is_not_cancelled() {
        let done = in_background(|cancel| Ok::<_, Error>(cancel.is_cancelled())).await;
        assert!(!done.unwrap());
    }
}

//! A SHA-256 digest, computed once for all clients that wait for it.

use std::sync::{Mutex, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use isogen::Digest;

use inventory::api::ApiError;

/// The SHA-256 digest of a file, computed once for all clients waiting for it. The computation is cancelled when no
/// client waits any more.
#[derive(Debug, Default)]
pub(super) struct SharedDigest {
    digest: OnceLock<Digest>,
    work: Mutex<Option<WeakShared<DigestWork>>>,
}

type DigestWork = BoxFuture<'static, Result<Digest, ApiError>>;

impl SharedDigest {
    /// Returns the digest. Waits for the computation of an earlier caller, or starts `compute`.
    pub(super) async fn get(
        &self,
        compute: impl Future<Output = Result<Digest, ApiError>> + Send + 'static,
    ) -> Result<Digest, ApiError> {
        if let Some(digest) = self.digest.get() {
            return Ok(*digest);
        }
        let work = {
            let mut current = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            current.as_ref().and_then(WeakShared::upgrade).unwrap_or_else(|| {
                let work = compute.boxed().shared();
                *current = work.downgrade();
                work
            })
        };
        let digest = work.await?;
        Ok(*self.digest.get_or_init(|| digest))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::sync::mpsc;
    use std::task::{Context, Waker};
    use std::thread;

    use inventory::in_background;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// Returns work that ends when it is cancelled, or with a digest when the sender is used. It reports its start and
    /// its cancellation.
    fn reported_work() -> (DigestWork, UnboundedReceiver<&'static str>, mpsc::Sender<()>) {
        let (report, reports) = unbounded_channel();
        let (finish, is_finished) = mpsc::channel();
        let work = in_background(move |cancel| {
            report.send("begun").unwrap();
            while !cancel.is_cancelled() {
                if is_finished.try_recv().is_ok() {
                    return Ok(Digest::from_data(b"work"));
                }
                thread::yield_now();
            }
            report.send("cancelled").unwrap();
            Err(ApiError::internal("cancelled"))
        });
        (work.boxed(), reports, finish)
    }

    fn is_waiting(client: Pin<&mut impl Future>) -> bool {
        client.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[tokio::test]
    async fn work_continues_for_the_client_that_stays() {
        let (digest, (work, mut reports, finish)) = (SharedDigest::default(), reported_work());
        let mut first = Box::pin(digest.get(work));
        let mut second = pin!(digest.get(std::future::pending()));
        assert!(is_waiting(first.as_mut()) && is_waiting(second.as_mut()));
        assert_eq!(reports.recv().await, Some("begun"));
        drop(first);
        finish.send(()).unwrap();
        assert_eq!(second.await, Ok(Digest::from_data(b"work")));
        assert_eq!(reports.recv().await, None);
        assert_eq!(digest.get(std::future::pending()).await, Ok(Digest::from_data(b"work")));
    }

    #[tokio::test]
    async fn work_ends_with_its_last_client() {
        let (digest, (work, mut reports, _finish)) = (SharedDigest::default(), reported_work());
        let mut first = Box::pin(digest.get(work));
        let mut second = Box::pin(digest.get(std::future::pending()));
        assert!(is_waiting(first.as_mut()) && is_waiting(second.as_mut()));
        assert_eq!(reports.recv().await, Some("begun"));
        drop((second, first));
        assert_eq!(reports.recv().await, Some("cancelled"));
        let expected = Digest::from_data(b"again");
        assert_eq!(digest.get(async move { Ok(expected) }).await, Ok(expected));
    }
}

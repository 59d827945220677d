//! The `.sha256` file of each image.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use ignition::network::Cancel;
use isogen::{Digest, Plan};

use super::plans::PlannedFile;
use super::server::ImageServer;
use super::serving::cannot_make_error;
use crate::base_files::BaseFile;
use inventory::api::ApiError;
use inventory::in_background;

/// The SHA-256 digest of a file. It is computed once for all clients that wait for it. The work ends with the last one.
#[derive(Debug, Default)]
pub(super) struct SharedDigest {
    known: OnceLock<Digest>,
    work: Mutex<Option<WeakShared<DigestWork>>>,
}

type DigestWork = BoxFuture<'static, Result<Digest, ApiError>>;

impl SharedDigest {
    /// Returns the digest. Waits for the work of an earlier caller, or for `compute`.
    async fn get(
        &self,
        compute: impl Future<Output = Result<Digest, ApiError>> + Send + 'static,
    ) -> Result<Digest, ApiError> {
        if let Some(known) = self.known.get() {
            return Ok(*known);
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
        Ok(*self.known.get_or_init(|| digest))
    }
}

impl ImageServer {
    /// Answers with the SHA-256 digest of a plan, in the format of `sha256sum`. The digest is computed once.
    pub(super) async fn digest_response(&self, planned: &Arc<PlannedFile>) -> Result<Response, ApiError> {
        let (slots, (plan, base)) = (self.1.clone(), planned.content.plan_and_base());
        let digest = planned.sha256.get(async move {
            let _slot = slots.acquire().await?;
            in_background(move |cancel| compute_digest((&plan, &base), cancel)).await
        });
        let name = planned.content.file_name();
        let name =
            name.ok_or_else(|| ApiError::internal("cannot write a digest line: the file has no name"))?;
        let line = format!("{}  {name}\n", digest.await?);
        Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response())
    }
}

/// Reads the whole image, which takes seconds or minutes, unless all clients disconnect.
fn compute_digest((plan, base): (&Plan, &BaseFile), cancel: &Cancel) -> Result<Digest, ApiError> {
    let digest = plan.sha256_while(|| !cancel.is_cancelled()).map_err(|error| cannot_make_error(&error))?;
    let digest = digest.ok_or_else(|| ApiError::internal("the client disconnected"))?;
    base.stamp().map_err(|error| cannot_make_error(&error))?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use std::pin::{Pin, pin};
    use std::sync::mpsc;
    use std::task::{Context, Waker};
    use std::thread;

    use isogen::{ReadAt, Source};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const LEN: u64 = 64 << 20;

    /// A base image whose client disconnects while it is read.
    #[derive(Debug)]
    struct AbandonedReader {
        cancel: Cancel,
        read: Arc<AtomicU64>,
    }

    impl ReadAt for AbandonedReader {
        fn read_at(&self, buf: &mut [u8], _offset: u64) -> io::Result<usize> {
            if self.read.fetch_add(buf.len() as u64, Ordering::Relaxed) > LEN / 4 {
                self.cancel.cancel();
            }
            buf.fill(0);
            Ok(buf.len())
        }
    }

    /// Returns work that ends when it is cancelled, or with a digest after a message. It reports its start and its end.
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
        let known = Digest::from_data(b"again");
        assert_eq!(digest.get(async move { Ok(known) }).await, Ok(known));
    }

    #[test]
    fn hashing_ends_when_the_client_disconnects() {
        let (cancel, read) = (Cancel::new(), Arc::<AtomicU64>::default());
        let reader = AbandonedReader { cancel: cancel.clone(), read: Arc::clone(&read) };
        let source = Arc::new(Source::new("base.iso".to_owned(), LEN, reader));
        let (plan, base) = (Plan::from_source(Arc::clone(&source)), BaseFile::new(source));
        assert!(compute_digest((&plan, &base), &cancel).is_err());
        let read = read.load(Ordering::Relaxed);
        assert!((LEN / 4..LEN / 2).contains(&read), "{read} bytes read");
    }
}

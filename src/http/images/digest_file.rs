//! The `.sha256` file of an image, with its SHA-256 digest.

use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use ignition::network::Cancel;
use isogen::{Digest, Plan};

use super::plans::PlannedFile;
use super::server::ImageServer;
use super::serving::cannot_make_error;
use crate::base_files::BaseFile;
use inventory::api::ApiError;
use inventory::in_background;

impl ImageServer {
    /// Returns the response with the SHA-256 digest of a plan, in the format of `sha256sum`. The digest is computed
    /// once per plan.
    pub(super) async fn digest_response(&self, planned: &Arc<PlannedFile>) -> Result<Response, ApiError> {
        let (slots, (plan, base)) = (self.1.clone(), planned.content.plan_and_base());
        let digest = planned.sha256.get(async move {
            let _slot = slots.acquire().await?;
            in_background(move |cancel| compute_digest((&plan, &base), cancel)).await
        });
        let name = planned.content.representation().file_name();
        let name =
            name.ok_or_else(|| ApiError::internal("cannot write a digest line: the file has no name"))?;
        let line = format!("{}  {name}\n", digest.await?);
        Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response())
    }
}

/// Computes the digest. This reads the whole image, which takes seconds or minutes. Stops if all clients disconnect.
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

    use isogen::{ReadAt, Source};

    use super::*;

    const LEN: u64 = 64 << 20;

    /// A base image whose client disconnects during the read.
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

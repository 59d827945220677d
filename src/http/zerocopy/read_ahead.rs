//! Disk reads for response bodies, on the blocking threads of the runtime.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use isogen::Extent;
use tokio::sync::Semaphore;

use super::buffers::read_span;
use crate::base_files::BaseFile;

/// Maximum number of concurrent reads for all downloads of this process. More would not make a disk faster, and each
/// needs a thread and a small buffer.
const MAX_READS: usize = 32;

static READS: Semaphore = Semaphore::const_new(MAX_READS);

/// A read that the response body waits for.
pub(in crate::http) struct PendingRead(Pin<Box<dyn Future<Output = io::Result<ReadDone>> + Send>>);

pub(in crate::http) enum ReadDone {
    Bytes(Bytes),
    /// The extent is now in memory.
    InMemory(Extent),
}

impl PendingRead {
    /// Reads a span into memory, and asks the kernel to read `next` at the same time.
    pub(super) fn start_read_ahead(file: Arc<BaseFile>, span: Extent, next: Option<Extent>) -> Self {
        Self(Box::pin(on_blocking_threads(move || {
            file.read_ahead(span, next).map_err(io::Error::other)?;
            Ok(ReadDone::InMemory(span))
        })))
    }

    /// Hashes a file again whose last name was removed. The caller reads `span` again afterwards.
    pub(super) fn start_rehash(file: Arc<BaseFile>, span: Extent) -> Self {
        Self(Box::pin(async move { file.rehash().await.map(|()| ReadDone::InMemory(span)) }))
    }

    /// Reads the first bytes of a span, up to the length of a buffer. Also works if the source is not a file.
    pub(super) fn start_span(file: Arc<BaseFile>, span: Extent) -> Self {
        Self(Box::pin(on_blocking_threads(move || read_span(file.source(), span).map(ReadDone::Bytes))))
    }

    pub(in crate::http) fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ReadDone>> {
        self.0.as_mut().poll(context)
    }
}

async fn on_blocking_threads<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = READS.acquire().await.map_err(io::Error::other)?;
    // If the response body is dropped, the read still runs to its end, and keeps its permit until then.
    let read = move || {
        let _permit = permit;
        read()
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

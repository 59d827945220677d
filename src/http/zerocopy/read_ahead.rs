//! Reads that wait for a disk, on the blocking threads of the runtime.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use isogen::Extent;
use tokio::sync::Semaphore;

use super::buffers::read_span;
use crate::base_files::BaseFile;

/// The most spans that all downloads of this process read at a time. More do not make a disk faster, and each takes a
/// thread and a small buffer.
const MAX_READS: usize = 32;

static READS: Semaphore = Semaphore::const_new(MAX_READS);

/// A read in progress.
pub(in crate::http) struct PendingRead(Pin<Box<dyn Future<Output = io::Result<ReadDone>> + Send>>);

/// The result of a read.
pub(in crate::http) enum ReadDone {
    Bytes(Bytes),
    /// The extent is in memory now.
    InMemory(Extent),
}

impl PendingRead {
    /// Brings a span into memory, and asks the kernel to read `next` meanwhile.
    pub(super) fn start_read_ahead(file: Arc<BaseFile>, span: Extent, next: Option<Extent>) -> Self {
        Self(Box::pin(on_blocking_threads(move || {
            file.read_ahead(span, next).map_err(io::Error::other)?;
            Ok(ReadDone::InMemory(span))
        })))
    }

    /// Hashes a file that has lost its last name. The caller has read `span` and reads it again.
    pub(super) fn start_rehash(file: Arc<BaseFile>, span: Extent) -> Self {
        Self(Box::pin(async move { file.rehash().await.map(|()| ReadDone::InMemory(span)) }))
    }

    /// Reads the beginning of a span of any storage, up to the length of a buffer.
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
    // A read whose body is dropped runs to its end, and counts as a read until then.
    let read = move || {
        let _permit = permit;
        read()
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

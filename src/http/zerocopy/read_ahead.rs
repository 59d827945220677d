//! Base bytes that are on disk are brought into memory beside the runtime, before anybody waits for them on it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use isogen::{Extent, Source};
use tokio::sync::Semaphore;

use super::buffers::read_span;

/// How many spans are read at once, by all downloads together. More would not make a disk faster; each takes a thread and a
/// small buffer. The bound is one of the process, as its threads and its memory are.
const MAX_READS: usize = 32;

static READS: Semaphore = Semaphore::const_new(MAX_READS);

/// A read on its way.
pub(in crate::http) struct Read(Pin<Box<dyn Future<Output = io::Result<Done>> + Send>>);

/// What came of a read.
pub(in crate::http) enum Done {
    Bytes(Bytes),
    /// They are just in memory now.
    InMemory(Extent),
}

impl Read {
    /// Brings a span into memory and tells the kernel what comes next.
    pub(in crate::http) fn ahead(source: Arc<Source>, span: Extent, next: Option<Extent>) -> Self {
        Self(Box::pin(on_blocking_pool(move || {
            if let Some(next) = next {
                source.announce(next);
            }
            source.read_ahead(span).map_err(io::Error::other)?;
            Ok(Done::InMemory(span))
        })))
    }

    /// Reads a span, of whatever storage. What is still coming is waited for first, which may take minutes: not as one of
    /// those at once.
    pub(in crate::http) fn of(source: Arc<Source>, span: Extent) -> Self {
        Self(Box::pin(async move {
            if let Some(coming) = source.coming(span) {
                coming.await;
            }
            on_blocking_pool(move || read_span(&source, span).map(Done::Bytes)).await
        }))
    }

    /// What came of it, once it is done.
    pub(in crate::http) fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Done>> {
        Poll::Ready(ready!(self.0.as_mut().poll(context)))
    }
}

async fn on_blocking_pool<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = READS.acquire().await.map_err(io::Error::other)?;
    // The read goes on when nobody waits for it any more, and is one of those at once until its end.
    let read = move || {
        let _permit = permit;
        read()
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

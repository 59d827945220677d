//! The threads that connections are served on: one for each processor, each with an event loop of its own.
//!
//! A connection stays on its thread, where reading a request, answering it out of a table and writing the answer is one go.
//! On a runtime that moves tasks between threads, waking another thread for each of them costs more than that. What may take
//! longer is for the runtime that the server was started on.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Threads for connections. Clones are the same threads, which end with the last of them.
#[derive(Clone, Debug)]
pub(super) struct Threads(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    loops: Vec<Handle>,
    next: AtomicUsize,
    /// Its end is theirs.
    _end: watch::Sender<()>,
}

impl Threads {
    /// As many as there are processors. Should there be none to be had, connections are served on the caller's runtime.
    pub(super) fn start() -> Self {
        let (end, ended) = watch::channel(());
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let mut loops = Vec::with_capacity(count);
        for _ in 0..count {
            match start(ended.clone()) {
                Ok(handle) => loops.push(handle),
                Err(error) => tracing::warn!(%error, "a thread for connections cannot be started"),
            }
        }
        Self(Arc::new(Parts { loops, next: AtomicUsize::new(0), _end: end }))
    }

    /// Does some work on the next thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        let handle = next.checked_rem(self.0.loops.len()).and_then(|next| self.0.loops.get(next));
        match handle {
            Some(handle) => drop(handle.spawn(work)),
            None => drop(tokio::spawn(work)),
        }
    }
}

fn start(mut ended: watch::Receiver<()>) -> std::io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || {
        runtime.block_on(async {
            // Nothing is ever sent.
            while ended.changed().await.is_ok() {}
        });
        // Reads that are under way need not be waited for.
        runtime.shutdown_background();
    };
    thread::Builder::new().name("connections".to_owned()).spawn(run)?;
    Ok(handle)
}

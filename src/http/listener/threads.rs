//! The threads that serve connections: one per CPU, each with its own event loop.
//!
//! A connection stays on one thread. This thread reads a request, finds the response in a table, and sends it. On a
//! runtime that moves tasks between threads, waking another thread for each of these steps costs more than the steps.
//! Longer work runs on the runtime that started the server.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// The connection threads. Clones share them. They end when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct ConnectionThreads(Arc<ThreadLoops>);

#[derive(Debug)]
struct ThreadLoops {
    loops: Vec<Handle>,
    next: AtomicUsize,
    /// The sender that ends the threads when it is dropped.
    _end: watch::Sender<()>,
}

impl ConnectionThreads {
    /// Starts one thread per CPU. If none can be started, the caller's runtime serves the connections.
    pub(super) fn start() -> Self {
        let (end, ended) = watch::channel(());
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        let mut loops = Vec::with_capacity(count);
        for _ in 0..count {
            match start_thread(ended.clone()) {
                Ok(handle) => loops.push(handle),
                Err(error) => tracing::warn!(%error, "cannot start a connection thread"),
            }
        }
        Self(Arc::new(ThreadLoops { loops, next: AtomicUsize::new(0), _end: end }))
    }

    /// Runs a task on one of the threads. The threads take turns.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        let handle = next.checked_rem(self.0.loops.len()).and_then(|next| self.0.loops.get(next));
        match handle {
            Some(handle) => drop(handle.spawn(work)),
            None => drop(tokio::spawn(work)),
        }
    }
}

fn start_thread(mut ended: watch::Receiver<()>) -> std::io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || {
        runtime.block_on(async {
            // The sender never sends a value. An error means that it was dropped.
            while ended.changed().await.is_ok() {}
        });
        // This does not wait for reads in progress.
        runtime.shutdown_background();
    };
    thread::Builder::new().name("connections".to_owned()).spawn(run)?;
    Ok(handle)
}

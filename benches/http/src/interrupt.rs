//! Ctrl-C and its like: everything that waits looks here, so that servers are ended and folders removed on the way out.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to watch for signals that mean an end.
///
/// # Errors
///
/// When the system does not let it.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals: Vec<Signal> = {
        let _inside = runtime.enter();
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .into_iter()
            .map(signal)
            .collect::<std::io::Result<_>>()
            .context("watching for signals")?
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async move {
            if let [interrupt, terminate, hangup] = signals.as_mut_slice() {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            }
            INTERRUPTED.store(true, Ordering::Relaxed);
        });
    })?;
    Ok(())
}

/// # Errors
///
/// When there was a signal.
pub(crate) fn check() -> Result<()> {
    ensure!(!INTERRUPTED.load(Ordering::Relaxed), "interrupted");
    Ok(())
}

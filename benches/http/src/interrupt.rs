//! Handles Ctrl-C and similar signals. Everything that waits checks a flag, so that a signal stops the servers and
//! removes the folders.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Maximum time between a signal and the end of a wait.
const REACTION: Duration = Duration::from_millis(100);

/// Starts to watch for termination signals.
///
/// # Errors
///
/// Returns an error if the system call fails.
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
/// Returns an error if a signal was received.
pub(crate) fn check() -> Result<()> {
    ensure!(!INTERRUPTED.load(Ordering::Relaxed), "interrupted");
    Ok(())
}

/// Waits for the given time.
///
/// # Errors
///
/// Returns an error if a signal was received.
pub(crate) fn sleep(time: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        check()?;
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(REACTION));
    }
}

//! A flag that cancels long work when no caller waits for the result any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that cancels work on many hosts. Clones share the flag.
///
/// The work checks the flag before each host, so after [`cancel`](Self::cancel), at most one host per CPU is still
/// processed.
///
/// # Examples
///
/// ```
/// use ignition::network::{Cancel, HostError, HostNetworkFiles, KeyfileCache, NetworkGeneration};
///
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let (generation, cache) = (NetworkGeneration::Keyfiles, KeyfileCache::default());
/// let files = HostNetworkFiles::generate_cancellable(&[], generation, &cache, &cancel);
/// assert!(matches!(files, Err(HostError::Cancelled)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag permanently.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the flag is set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

//! A flag that stops long work after its caller has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that stops work on many hosts. Clones share it.
///
/// Work looks at the flag before each host, so at most one host per processor is still processed after
/// [`cancel`](Self::cancel).
///
/// # Examples
///
/// ```
/// use ignition::network::{Cancel, Generation, HostError, KeyfileCache, Networks};
///
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let made = Networks::generate_until(&[], Generation::Keyfiles, &KeyfileCache::default(), &cancel);
/// assert!(matches!(made, Err(HostError::Cancelled)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

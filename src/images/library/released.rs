//! Released base images: the library has removed or replaced them, but readers may still use them.
//!
//! A deleted file occupies disk space until the last descriptor is closed. Therefore, when the library releases a base
//! image, caches drop all objects derived from it. Readers in progress continue, and the library counts the bytes that
//! they keep on the disk.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use isogen::Source;

use super::base::OpenBaseImage;

/// A function that drops cached objects derived from a base image.
pub(super) type ReleaseHook = Box<dyn Fn(&OpenBaseImage) + Send + Sync>;

/// The released base images that are still open, and the hooks of caches.
#[derive(Default)]
pub(super) struct ReleasedImages {
    hooks: Mutex<Vec<ReleaseHook>>,
    open: Mutex<Vec<Weak<Source>>>,
}

impl fmt::Debug for ReleasedImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleasedImages").field("open", &self.open).finish_non_exhaustive()
    }
}

impl ReleasedImages {
    /// Adds a hook to call with each base image that the library releases from now on.
    pub(super) fn add_hook(&self, hook: ReleaseHook) {
        lock_unpoisoned(&self.hooks).push(hook);
    }

    /// Marks a base image as released, so that nothing derived from it is cached, and calls the hooks.
    pub(super) fn release(&self, base: &OpenBaseImage) {
        base.mark_released();
        lock_unpoisoned(&self.hooks).iter().for_each(|hook| hook(base));
        let mut open = lock_unpoisoned(&self.open);
        open.retain(|source| source.strong_count() > 0);
        open.push(Arc::downgrade(base.image().source()));
    }

    /// Returns the total length of deleted files that are still open. Does not count a file that is open only because a
    /// client has not acknowledged all sent pages.
    pub(super) fn deleted_bytes(&self) -> u64 {
        let mut open = lock_unpoisoned(&self.open);
        open.retain(|source| source.strong_count() > 0);
        let metadata = |source: &Weak<Source>| source.upgrade()?.as_file()?.metadata().ok();
        let deleted = open.iter().filter_map(metadata).filter(|metadata| metadata.nlink() == 0);
        deleted.map(|metadata| metadata.len()).sum()
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

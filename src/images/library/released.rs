//! Base images that the library no longer uses: they were removed or replaced.
//!
//! A deleted file takes its space on the disk until its last descriptor is closed. So when the library releases a base
//! image, caches drop everything that was made from it. Readers in progress finish; their bytes are counted.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use isogen::Source;

use super::base::OpenBaseImage;

/// A function that drops what was made from a base image.
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
    /// Adds a function that is called with each base image from now on when the library releases it.
    pub(super) fn add_hook(&self, hook: ReleaseHook) {
        lock_unpoisoned(&self.hooks).push(hook);
    }

    /// Releases a base image: nothing made from it is cached from now on.
    pub(super) fn release(&self, base: &OpenBaseImage) {
        base.mark_released();
        lock_unpoisoned(&self.hooks).iter().for_each(|hook| hook(base));
        let mut open = lock_unpoisoned(&self.open);
        open.retain(|source| source.strong_count() > 0);
        open.push(Arc::downgrade(base.image().source()));
    }

    /// Returns the length of all released files that were deleted and are still open. A connection whose client has not
    /// acknowledged all pages of a file keeps it open without its source, which is not counted.
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

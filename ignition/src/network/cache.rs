//! A cache of the generated network files of hosts, with bounded memory.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::files::GeneratedHostFiles;
use super::host::HostDigest;
use super::version::NetworkGeneration;

/// Approximate memory of an entry in bytes, in addition to the contents of its files.
const ENTRY_OVERHEAD: usize = 256;

/// A cache of the generated files of hosts. The key is a digest of a host's document and MAC address map.
///
/// With a cache, adding a host to a set of hosts takes only the time for that host. Several threads and sets may share
/// a cache. A full cache drops the least recently used hosts.
pub struct KeyfileCache {
    max_len: usize,
    state: Mutex<CacheState>,
}

struct CacheState {
    entries: LruCache<CacheKey, CacheEntry>,
    len: usize,
    /// Number of lookups of sets so far.
    clock: u64,
}

type CacheKey = (NetworkGeneration, HostDigest);

struct CacheEntry {
    files: Arc<GeneratedHostFiles>,
    len: usize,
    used: u64,
}

impl KeyfileCache {
    /// Creates a cache that uses about `max_len` bytes. A host with two interfaces takes about 2 KiB.
    #[must_use]
    pub fn new(max_len: usize) -> Self {
        Self { max_len, state: Mutex::new(CacheState { entries: LruCache::unbounded(), len: 0, clock: 0 }) }
    }

    pub(super) fn host_count(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns the files of a set of hosts. The result is `None` for each host that is not in the cache.
    pub(super) fn get(&self, keys: impl Iterator<Item = CacheKey>) -> Vec<Option<Arc<GeneratedHostFiles>>> {
        let mut state = self.lock();
        state.clock = state.clock.saturating_add(1);
        let CacheState { entries, clock, .. } = &mut *state;
        keys.map(|key| {
            let entry = entries.get_mut(&key)?;
            entry.used = *clock;
            Some(Arc::clone(&entry.files))
        })
        .collect()
    }

    pub(super) fn insert(&self, key: CacheKey, files: &Arc<GeneratedHostFiles>) {
        let len = files.len().saturating_add(ENTRY_OVERHEAD);
        let mut state = self.lock();
        if state.len.saturating_add(len) > self.max_len {
            state.evict(self.max_len / 2);
        }
        if state.len.saturating_add(len) <= self.max_len {
            let entry = CacheEntry { files: Arc::clone(files), len, used: state.clock };
            let before = state.entries.put(key, entry).map_or(0, |entry| entry.len);
            state.len = state.len.saturating_sub(before).saturating_add(len);
        }
    }

    /// Locks the state, even if the lock is poisoned, because no change of the state can panic halfway.
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    /// Drops the least recently used entries until at most `max_len` bytes are left. Entries of the current set are
    /// kept, because otherwise a large set would evict its own entries.
    fn evict(&mut self, max_len: usize) {
        while self.len > max_len && self.entries.peek_lru().is_some_and(|(_, it)| it.used < self.clock) {
            let len = self.entries.pop_lru().map_or(0, |(_, entry)| entry.len);
            self.len = self.len.saturating_sub(len);
        }
    }
}

impl Default for KeyfileCache {
    /// Creates a cache of 64 MiB, which is enough for about 30,000 hosts.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl fmt::Debug for KeyfileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyfileCache")
            .field("max_len", &self.max_len)
            .field("hosts", &self.host_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::HostNetwork;

    fn key(number: usize) -> CacheKey {
        (NetworkGeneration::Keyfiles, HostNetwork::without_macs(number.to_string()).digest())
    }

    fn insert_host(cache: &KeyfileCache, number: usize) {
        cache.insert(key(number), &Arc::new(GeneratedHostFiles::default()));
    }

    fn has_host(cache: &KeyfileCache, number: usize) -> bool {
        cache.get(std::iter::once(key(number)))[0].is_some()
    }

    #[test]
    fn full_cache_drops_the_oldest_hosts() {
        let cache = KeyfileCache::new(4 * ENTRY_OVERHEAD);
        for number in 0..4 {
            insert_host(&cache, number);
            assert!(has_host(&cache, number));
        }
        assert!(has_host(&cache, 0));
        insert_host(&cache, 4);
        let hosts: Vec<usize> = (0..5).filter(|number| has_host(&cache, *number)).collect();
        assert_eq!(hosts, [0, 3, 4]);
        assert_eq!(cache.lock().len, 3 * ENTRY_OVERHEAD);
    }

    #[test]
    fn oversized_set_does_not_evict_itself() {
        let cache = KeyfileCache::new(3 * ENTRY_OVERHEAD);
        (0..10).for_each(|number| insert_host(&cache, number));
        assert_eq!(cache.host_count(), 3);
        insert_host(&cache, 0);
        assert_eq!((cache.host_count(), cache.lock().len), (3, 3 * ENTRY_OVERHEAD), "an entry counts once");
        let none = KeyfileCache::new(0);
        insert_host(&none, 1);
        assert_eq!(none.host_count(), 0);
    }

    #[test]
    fn generations_have_separate_entries() {
        let cache = KeyfileCache::default();
        insert_host(&cache, 0);
        let (_, digest) = key(0);
        assert!(cache.get(std::iter::once((NetworkGeneration::Nmstate, digest)))[0].is_none());
    }
}

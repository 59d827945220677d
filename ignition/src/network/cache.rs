//! What was generated for hosts before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::host::Digest;
use super::payload::HostFiles;
use super::version::Generation;

/// What the files of a host take besides their contents, about.
const OVERHEAD: usize = 256;

/// Remembers the files of hosts, by digests of their documents and maps.
///
/// Adding a host to a set then takes the work for that one alone. A cache may be shared by threads and by sets; when it
/// is full, it forgets those that were not asked for the longest.
pub struct KeyfileCache {
    max_len: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    len: usize,
    /// Counts the sets that were looked up.
    clock: u64,
}

type Key = (Generation, Digest);

struct Entry {
    files: Arc<HostFiles>,
    len: usize,
    used: u64,
}

impl KeyfileCache {
    /// A cache whose contents take about so many bytes at most. A host with two interfaces takes about 2 KiB.
    #[must_use]
    pub fn new(max_len: usize) -> Self {
        Self { max_len, state: Mutex::default() }
    }

    /// How many hosts are remembered.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.lock().entries.len()
    }

    /// What is known about hosts.
    pub(super) fn get(&self, keys: impl Iterator<Item = Key>) -> Vec<Option<Arc<HostFiles>>> {
        let mut state = self.lock();
        state.clock = state.clock.saturating_add(1);
        let State { entries, clock, .. } = &mut *state;
        keys.map(|key| {
            let entry = entries.get_mut(&key)?;
            entry.used = *clock;
            Some(Arc::clone(&entry.files))
        })
        .collect()
    }

    pub(super) fn insert(&self, key: Key, files: &Arc<HostFiles>) {
        let len = files.len().saturating_add(OVERHEAD);
        let mut state = self.lock();
        if state.len.saturating_add(len) > self.max_len {
            state.forget(self.max_len / 2);
        }
        if state.len.saturating_add(len) <= self.max_len {
            state.insert(key, files, len);
        }
    }

    /// A thread that panicked cannot have left half a change behind.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, key: Key, files: &Arc<HostFiles>, len: usize) {
        let entry = Entry { files: Arc::clone(files), len, used: self.clock };
        let before = self.entries.insert(key, entry).map_or(0, |entry| entry.len);
        self.len = self.len.saturating_sub(before).saturating_add(len);
    }

    /// Forgets the oldest entries until the others take so little. Those of the current set stay: it would otherwise
    /// push itself out.
    fn forget(&mut self, max_len: usize) {
        let mut ages: Vec<(u64, Key)> = self.entries.iter().map(|(key, entry)| (entry.used, *key)).collect();
        ages.retain(|(used, _)| *used < self.clock);
        ages.sort_unstable_by_key(|(used, (_, digest))| (*used, *digest));
        for (_, key) in ages {
            if self.len <= max_len {
                return;
            }
            let len = self.entries.remove(&key).map_or(0, |entry| entry.len);
            self.len = self.len.saturating_sub(len);
        }
    }
}

impl Default for KeyfileCache {
    /// A cache of 64 MiB, for some 30,000 hosts.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl fmt::Debug for KeyfileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyfileCache")
            .field("max_len", &self.max_len)
            .field("hosts", &self.hosts())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::HostNetwork;

    fn key(number: usize) -> Key {
        (Generation::Keyfiles, HostNetwork::without_macs(number.to_string()).digest())
    }

    fn put(cache: &KeyfileCache, number: usize) {
        cache.insert(key(number), &Arc::new(HostFiles::default()));
    }

    fn knows(cache: &KeyfileCache, number: usize) -> bool {
        cache.get(std::iter::once(key(number)))[0].is_some()
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let cache = KeyfileCache::new(4 * OVERHEAD);
        for number in 0..4 {
            put(&cache, number);
            assert!(knows(&cache, number));
        }
        assert!(knows(&cache, 0));
        put(&cache, 4);
        let known: Vec<usize> = (0..5).filter(|number| knows(&cache, *number)).collect();
        assert_eq!(known, [0, 3, 4]);
        assert_eq!(cache.lock().len, 3 * OVERHEAD);
    }

    #[test]
    fn a_set_that_is_too_large_does_not_push_itself_out() {
        let cache = KeyfileCache::new(3 * OVERHEAD);
        (0..10).for_each(|number| put(&cache, number));
        assert_eq!(cache.hosts(), 3);
        put(&cache, 0);
        assert_eq!((cache.hosts(), cache.lock().len), (3, 3 * OVERHEAD), "an entry counts once");
        let none = KeyfileCache::new(0);
        put(&none, 1);
        assert_eq!(none.hosts(), 0);
    }

    #[test]
    fn generations_are_kept_apart() {
        let cache = KeyfileCache::default();
        put(&cache, 0);
        let (_, digest) = key(0);
        assert!(cache.get(std::iter::once((Generation::Nmstate, digest)))[0].is_none());
    }
}

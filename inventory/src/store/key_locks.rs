//! Locks on the keys of records, for changes that repeatedly conflict with other changes in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::Key;

type KeyMutex = Arc<tokio::sync::Mutex<()>>;

/// The locked keys of this process. Usually empty.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyLocks(Arc<Mutex<BTreeMap<Key, KeyMutex>>>);

/// Guards of locked keys, which release the locks when dropped.
#[derive(Debug)]
pub(super) struct KeyGuards<'a> {
    guards: Vec<OwnedMutexGuard<()>>,
    keys: &'a BTreeSet<Key>,
    locks: KeyLocks,
}

impl KeyLocks {
    fn with_map<T>(&self, use_it: impl FnOnce(&mut BTreeMap<Key, KeyMutex>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks keys in ascending order, so that no two callers wait for each other. The caller must not hold other
    /// guards.
    pub(super) async fn lock<'a>(&self, keys: &'a BTreeSet<Key>) -> KeyGuards<'a> {
        let mut guards = KeyGuards { guards: Vec::new(), keys, locks: self.clone() };
        for key in keys {
            let lock = self.with_map(|locks| Arc::clone(locks.entry(*key).or_default()));
            guards.guards.push(lock.lock_owned().await);
        }
        guards
    }

    /// Waits until other callers have unlocked the given keys. Then locks the keys for which it had to wait, and leaves
    /// the other keys unlocked.
    pub(super) async fn wait<'a>(&self, keys: &'a BTreeSet<Key>) -> KeyGuards<'a> {
        let mut guards = KeyGuards { guards: Vec::new(), keys, locks: self.clone() };
        for key in keys {
            if let Some(lock) = self.with_map(|locks| locks.get(key).map(Arc::clone)) {
                guards.guards.push(lock.lock_owned().await);
            }
        }
        guards
    }
}

impl Drop for KeyGuards<'_> {
    fn drop(&mut self) {
        self.guards.clear();
        self.locks.with_map(|locks| {
            for key in self.keys {
                // A caller that waits for the lock also holds a reference, and then the lock must stay in the map.
                if locks.get(key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                    locks.remove(key);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use uuid::Uuid;

    use super::*;
    use crate::store::Kind;

    #[tokio::test]
    async fn locked_key_delays_only_changes_of_the_same_key() {
        let key = || Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() };
        let (one, other) = (BTreeSet::from([key()]), BTreeSet::from([key()]));
        let both: BTreeSet<_> = one.union(&other).copied().collect();
        let locks = KeyLocks::default();
        let guards = locks.lock(&one).await;
        drop(locks.wait(&other).await);
        drop(locks.lock(&other).await);
        for waiting in [&one, &both] {
            assert!(timeout(Duration::from_millis(5), locks.wait(waiting)).await.is_err());
            assert!(timeout(Duration::from_millis(5), locks.lock(waiting)).await.is_err());
        }
        drop(guards);
        drop(locks.lock(&both).await);
        assert!(locks.with_map(|locks| locks.is_empty()));
    }
}

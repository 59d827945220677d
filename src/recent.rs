//! What was seen lately, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

/// A map that forgets what nobody asks for. It holds at most twice `capacity` entries: when as many are new, those that were
/// not asked for meanwhile go.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    capacity: usize,
    new: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, new: HashMap::new(), old: HashMap::new() }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        if let Some(value) = self.new.get(&key) {
            return Some(value.clone());
        }
        let value = self.old.remove(&key)?;
        self.insert(key, value.clone());
        Some(value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= self.capacity {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, value);
    }

    /// All that is in it, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        let forgotten = |key: &K| self.new.contains_key(key);
        self.new
            .values()
            .chain(self.old.iter().filter(move |(key, _)| !forgotten(key)).map(|(_, value)| value))
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.new.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut recent = Recent::new(10);
        recent.insert(0, 'a');
        for key in 1..1000 {
            recent.insert(key, 'b');
            assert_eq!(recent.get(0), Some('a'));
            assert!(recent.new.len() + recent.old.len() <= 20);
        }
        assert_eq!(recent.get(1), None);
        assert_eq!(recent.get(999), Some('b'));
        recent.insert(998, 'c');
        assert_eq!(recent.values().filter(|value| **value == 'c').count(), 1);
        recent.remove(&999);
        assert_eq!(recent.get(999), None);
    }
}

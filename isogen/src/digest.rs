//! SHA-256 digests, their text form, and a cache of hash states for artifacts of one base image.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the SHA-256 digest of `bytes`.
    #[must_use]
    pub fn from_data(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The error of parsing a [`Digest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid SHA-256 digest {0:?}: expected 64 hexadecimal digits")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    /// Parses 64 hexadecimal digits in lower or upper case, as `sha256sum` prints them, without a file name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseDigestError(text.chars().take(80).collect());
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(refused)?;
        let mut digest = Self::default();
        for (byte, pair) in digest.0.iter_mut().zip(digits.as_chunks::<2>().0) {
            let [high, low] = *pair;
            *byte = high << 4 | low;
        }
        Ok(digest)
    }
}

/// An LRU cache of hash states of one base image. Artifacts of one base image begin with the same bytes. The cache
/// stores the hash states after these shared prefixes. The key is a digest that identifies the prefix.
#[derive(Debug, Default)]
pub(crate) struct HashStates(Mutex<VecDeque<(Digest, Hasher)>>);

/// Maximum number of states per base image. A base image has few kinds of artifacts, each with few long runs of base
/// bytes. A state takes a few hundred bytes.
const MAX_HASH_STATES: usize = 64;

impl HashStates {
    /// Returns the state after a prefix and marks it as the most recently used state.
    pub(crate) fn get(&self, prefix: &Digest) -> Option<Hasher> {
        let mut states = self.lock();
        let at = states.iter().position(|(key, _)| key == prefix)?;
        let entry = states.remove(at)?;
        let state = entry.1.clone();
        states.push_back(entry);
        Some(state)
    }

    /// Saves the state after a prefix.
    pub(crate) fn put(&self, prefix: Digest, state: Hasher) {
        let mut states = self.lock();
        states.retain(|(key, _)| *key != prefix);
        if states.len() >= MAX_HASH_STATES {
            states.pop_front();
        }
        states.push_back((prefix, state));
    }

    /// Locks the list, even if the lock is poisoned: each change of the list is one call, so a panic leaves the list
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Digest, Hasher)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a SHA-256 computation.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Creates the hash state of an empty input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `bytes` to the input of the hash.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of the whole input.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_empty_input_matches_the_sha256_standard() {
        assert_eq!(
            Digest::from_data(b"").to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn digest_round_trips_as_text() {
        let digest = Digest::from_data(b"kindling");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().to_uppercase().parse(), Ok(digest));
        for bad in ["", "12", &"g".repeat(64), &"0".repeat(65), &format!(" {digest}")] {
            assert!(bad.parse::<Digest>().unwrap_err().to_string().contains("64 hexadecimal digits"));
        }
    }

    #[test]
    fn oldest_states_are_dropped_first() {
        let states = HashStates::default();
        let prefix = |number: usize| Digest::from_data(&number.to_le_bytes());
        for number in 0..=MAX_HASH_STATES {
            states.put(prefix(number), Hasher::new());
            assert!(states.get(&prefix(1.min(number))).is_some());
        }
        assert!(states.get(&prefix(0)).is_none());
        assert!(states.get(&prefix(1)).is_some(), "it was used all the time");
        assert!(states.get(&prefix(2)).is_some());
    }
}

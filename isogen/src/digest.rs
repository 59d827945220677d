//! SHA-256 values, their textual form, and saved states of hashing.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// A SHA-256 value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
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

/// What a digest in text may not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no SHA-256: expected 64 hexadecimal digits")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    /// Reads the textual form, in small or capital letters: as `sha256sum` prints it, without the name of the file.
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

/// States of hashing behind the beginnings that artifacts of one base share: the newest few, each by what identifies
/// its beginning.
#[derive(Debug, Default)]
pub(crate) struct HashStates(Mutex<VecDeque<(Digest, Hasher)>>);

/// States that are kept: a base has few classes of artifacts, each with few long runs. A state has some hundred bytes.
const MAX_STATES: usize = 64;

impl HashStates {
    /// The state behind a beginning, which thereby becomes the newest.
    pub(crate) fn get(&self, prefix: &Digest) -> Option<Hasher> {
        let mut states = self.lock();
        let at = states.iter().position(|(known, _)| known == prefix)?;
        let found = states.remove(at)?;
        let state = found.1.clone();
        states.push_back(found);
        Some(state)
    }

    /// Saves the state behind a beginning.
    pub(crate) fn put(&self, prefix: Digest, state: Hasher) {
        let mut states = self.lock();
        states.retain(|(known, _)| *known != prefix);
        if states.len() >= MAX_STATES {
            states.pop_front();
        }
        states.push_back((prefix, state));
    }

    /// A panic elsewhere leaves the list whole: every change of it is one call.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Digest, Hasher)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A SHA-256 in the making.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Begins with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes taken.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_digest_is_the_known_one() {
        assert_eq!(
            Digest::of(b"").to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = Digest::of(b"kindling");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().to_uppercase().parse(), Ok(digest));
        for bad in ["", "12", &"g".repeat(64), &"0".repeat(65), &format!(" {digest}")] {
            assert!(bad.parse::<Digest>().unwrap_err().to_string().contains("64 hexadecimal digits"));
        }
    }

    #[test]
    fn the_oldest_states_go_first() {
        let states = HashStates::default();
        let prefix = |number: usize| Digest::of(&number.to_le_bytes());
        for number in 0..=MAX_STATES {
            states.put(prefix(number), Hasher::new());
            assert!(states.get(&prefix(1.min(number))).is_some());
        }
        assert!(states.get(&prefix(0)).is_none());
        assert!(states.get(&prefix(1)).is_some(), "it was used all the time");
        assert!(states.get(&prefix(2)).is_some());
    }
}

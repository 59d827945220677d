//! Random pauses, computed from a seed. They spread the retries of many agents over time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Increment of the `SplitMix64` generator.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of random durations. Equal seeds produce equal sequences.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a random duration of at most `limit`.
    pub(crate) fn up_to(&self, limit: Duration) -> Duration {
        limit.mul_f64(self.fraction())
    }

    /// Returns a random duration from half of `average` to one and a half times `average`.
    pub(crate) fn around(&self, average: Duration) -> Duration {
        average.mul_f64(0.5 + self.fraction())
    }

    /// Returns a random number from 0 to 1.
    fn fraction(&self) -> f64 {
        let state = self.0.fetch_add(INCREMENT, Ordering::Relaxed).wrapping_add(INCREMENT);
        fraction_of(mix_bits(state))
    }
}

/// Scales the upper 32 bits of `bits` to a number from 0 to 1.
pub(crate) fn fraction_of(bits: u64) -> f64 {
    // An `f64` represents every 32-bit integer exactly.
    let high = u32::try_from(bits >> 32).unwrap_or(u32::MAX);
    f64::from(high) / f64::from(u32::MAX)
}

/// Mixes the bits of `state` like the output function of `SplitMix64`.
pub(crate) fn mix_bits(state: u64) -> u64 {
    let mut bits = state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Hashes a text to 64 mixed bits.
#[cfg(feature = "simulated")]
pub(crate) fn mix_text(text: &str) -> u64 {
    text.bytes().fold(0, |hash, byte| mix_bits(hash ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_durations_cover_their_range() {
        let jitter = Jitter::new(7);
        let second = Duration::from_secs(1);
        let (mut least, mut most) = (second, Duration::ZERO);
        for _ in 0..1000 {
            let pause = jitter.up_to(second);
            assert!(pause <= second);
            least = least.min(pause);
            most = most.max(pause);
            let pause = jitter.around(second);
            assert!(pause >= second / 2 && pause <= second * 3 / 2, "{pause:?}");
        }
        assert!(least < second / 50 && most > second * 49 / 50, "{least:?} to {most:?}");
    }

    #[test]
    fn equal_seeds_return_equal_sequences() {
        let sequence = |seed| {
            let jitter = Jitter::new(seed);
            (0..8).map(|_| jitter.up_to(Duration::from_secs(10))).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }
}

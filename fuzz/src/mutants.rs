//! Deterministic mutations of seeds. They do not depend on the code under test.
//!
//! The fuzzer itself selects inputs by their code coverage, so each change of the code leads it to other inputs. A test
//! run could then fail because of a bug that the change did not introduce.

use crate::random::Random;

/// Maximum number of mutations of one input.
const MAX_CHANGES: u64 = 8;
/// Maximum length of a block that a mutation removes, copies or inserts, in bytes.
const MAX_BLOCK: u64 = 64;
/// Maximum number of repetitions of an inserted token.
const MAX_REPETITIONS: u64 = 64;

/// Texts and numbers that parsers treat specially.
const TOKENS: [&[u8]; 44] = [
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"  ",
    b"\"",
    b"'",
    b"\\",
    b"/",
    b"..",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b": ",
    b"- ",
    b"? ",
    b"#",
    b" #",
    b"&a ",
    b"*a",
    b"!!str ",
    b"|\n",
    b"---\n",
    b"%",
    b"~",
    b"0",
    b"-1",
    b"0x",
    b"1e9",
    b"18446744073709551616",
    b"null",
    b"true",
    "\u{85}".as_bytes(),
    "\u{a0}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{feff}".as_bytes(),
    b"\x80",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
];

/// Returns at least `count` mutated copies of the seeds, with the same number for each seed.
///
/// A copy depends only on its seed and, if it contains a block of another seed, on the next seed. Adding a seed
/// therefore leaves most copies unchanged.
pub fn mutants(seeds: &[Vec<u8>], count: usize) -> impl Iterator<Item = Vec<u8>> {
    let rounds = count.div_ceil(seeds.len().max(1)) as u64;
    let next = seeds.iter().cycle().skip(1);
    let pairs: Vec<_> = seeds.iter().zip(next).collect();
    (0..rounds).flat_map(move |round| {
        pairs.clone().into_iter().map(move |(seed, other)| {
            let mut random = Random::new(hash(seed) ^ round);
            let mut input = seed.clone();
            for _ in 0..=random.below(MAX_CHANGES) {
                change(&mut input, other, &mut random);
            }
            input
        })
    })
}

/// Returns an input for targets with structured inputs, which have no other seeds: `len` bytes that depend only on
/// `seed`.
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.next().to_le_bytes()[0]).collect()
}

/// Returns an FNV-1a hash, which no Rust release changes.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = index(random, input.len() + 1);
    match random.below(8) {
        0 => flip_bit(input, random),
        1 => add_to_byte(input, random),
        2 => {
            input.drain(block(input, random));
        }
        3 => insert(input, at, &input[block(input, random)].to_vec()),
        4 => insert(input, at, &other[block(other, random)]),
        5 => {
            let bytes = random_bytes(random.next(), index(random, MAX_BLOCK as usize));
            insert(input, at, &bytes);
        }
        6 => insert(input, at, token(random)),
        _ => insert(input, at, &token(random).repeat(1 + index(random, MAX_REPETITIONS as usize))),
    }
}

fn index(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

fn token(random: &mut Random) -> &'static [u8] {
    TOKENS[index(random, TOKENS.len())]
}

/// Returns the range of a random block, which may be empty.
fn block(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = index(random, bytes.len() + 1);
    start..(start + index(random, MAX_BLOCK as usize)).min(bytes.len())
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

fn flip_bit(input: &mut [u8], random: &mut Random) {
    let at = index(random, input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Adds a number from -8 to 8, because wrong lengths and offsets are often off by a little.
fn add_to_byte(input: &mut [u8], random: &mut Random) {
    let at = index(random, input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte = byte.wrapping_add((random.below(17) as u8).wrapping_sub(8));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn seeds() -> Vec<Vec<u8>> {
        vec![vec![], b"interfaces:\n- name: eth0\n".to_vec(), (0..200).collect()]
    }

    /// If this hash changes, `.ci/run` no longer tests with the same inputs.
    #[test]
    fn mutants_are_the_same_in_every_run() {
        let all: Vec<Vec<u8>> = mutants(&seeds(), 3000).collect();
        assert_eq!(all.len(), 3000);
        assert_eq!(hash(&all.concat()), 18_346_392_893_745_399_011);
        let distinct: HashSet<&Vec<u8>> = all.iter().collect();
        assert!(distinct.len() > 2500, "{}", distinct.len());
    }

    #[test]
    fn new_seed_does_not_change_copies_of_other_seeds() {
        let of_first =
            |seeds: &[Vec<u8>]| mutants(seeds, 10 * seeds.len()).step_by(seeds.len()).collect::<Vec<_>>();
        let more = [seeds(), vec![b"new".to_vec()]].concat();
        assert_eq!(of_first(&seeds()), of_first(&more));
    }
}

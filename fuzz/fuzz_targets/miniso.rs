//! Hostile descriptions of the minimal image: parsing one keeps to its bounds, and every byte that it refers to can be
//! read.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use isogen::miniso::MinimalDescription;
use isogen::{Error, Source};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    Bytes(&'a [u8]),
    Fields { table: Vec<(Number, Number, Number)>, packed: u8, writer: &'a [u8], behind: &'a [u8] },
}

/// Numbers that are near each other, so that tables come out sorted and within the image.
#[derive(Debug, Arbitrary)]
enum Number {
    Small(u8),
    Medium(u16),
    Any(u64),
}

impl Number {
    /// In the encoding of bincode, which need not be the shortest.
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Small(number @ 0..=250) => vec![*number],
            Self::Small(number) => vec![251, *number, 0],
            Self::Medium(number) => [&[251], &number.to_le_bytes()[..]].concat(),
            Self::Any(number) => [&[253], &number.to_le_bytes()[..]].concat(),
        }
    }
}

static FULL: LazyLock<Arc<Source>> = LazyLock::new(|| {
    let bytes: Vec<u8> = (0..1_u32 << 20).map(|at| (at / 2048 + at % 251) as u8).collect();
    Arc::new(Source::from_bytes("full.iso", bytes))
});

/// Packed bytes of different lengths: an encoder for each input would take most of the time.
static PACKED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let lens = [0, 1, 2048, 10_000, 300_000, 700_000, 2_000_000];
    lens.into_iter().map(|len| liblzma::encode_all(&vec![len as u8; len][..], 0).unwrap()).collect()
});

impl Input<'_> {
    fn bytes(&self) -> Vec<u8> {
        let Self::Fields { table, packed, writer, behind } = self else {
            let Self::Bytes(bytes) = self else { unreachable!() };
            return bytes.to_vec();
        };
        let mut bytes = b"MINISO\0\0\x01".to_vec();
        let writer = &writer[..writer.len().min(200)];
        bytes.push(writer.len() as u8);
        bytes.extend_from_slice(writer);
        bytes.extend(Number::Medium(table.len() as u16).encode());
        for (minimal, full, len) in table {
            [minimal, full, len].iter().for_each(|number| bytes.extend(number.encode()));
        }
        bytes.extend([7; 32]);
        let packed = &PACKED[usize::from(*packed) % PACKED.len()];
        bytes.extend(Number::Any(packed.len() as u64).encode());
        bytes.extend_from_slice(packed);
        bytes.extend_from_slice(behind);
        bytes
    }
}

fuzz_target!(|input: Input| {
    let Ok(description) = MinimalDescription::parse(&FULL, 4096, &input.bytes()) else { return };
    for entry in &description.table {
        assert!(entry.full.offset() + u64::from(entry.len) <= FULL.len());
    }
    // Reads the minimal image from the first byte to the last.
    let error = description.verify(&FULL).unwrap_err();
    assert!(matches!(error, Error::MinimalDigest { .. }), "{error}");
});

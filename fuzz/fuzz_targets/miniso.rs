//! Hostile descriptions of a minimal image, inside an image. Verifying a description keeps the limits, and every byte
//! that it refers to can be read.

#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use isogen::{BaseImage, Error};
use isogen_fuzz::{BASES, BaseFixture, PatchedSource};
use libfuzzer_sys::fuzz_target;

const MINISO_PATH: &str = "coreos/miniso.dat";

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    Bytes(&'a [u8]),
    Fields {
        table: Vec<(TableNumber, TableNumber, TableNumber)>,
        packed: u8,
        writer: &'a [u8],
        trailing: &'a [u8],
    },
}

/// A number in the table. Most are close to each other, so that the table is often sorted and within the image.
#[derive(Debug, Arbitrary)]
enum TableNumber {
    Small(u8),
    Medium(u16),
    Any(u64),
}

impl TableNumber {
    /// Encodes the number in bincode's format, not always in the shortest form.
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Small(number @ 0..=250) => vec![*number],
            Self::Small(number) => vec![251, *number, 0],
            Self::Medium(number) => [&[251], &number.to_le_bytes()[..]].concat(),
            Self::Any(number) => [&[253], &number.to_le_bytes()[..]].concat(),
        }
    }
}

static BASE: LazyLock<&BaseFixture> =
    LazyLock::new(|| BASES.iter().find(|base| base.mastered.files.contains_key(MINISO_PATH)).unwrap());

/// Packed bytes of several lengths, computed once. Running an encoder for each input would take most of the time.
static PACKED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let lens = [0, 1, 2048, 10_000, 300_000, 700_000, 2_000_000];
    lens.into_iter().map(|len| liblzma::encode_all(&vec![len as u8; len][..], 0).unwrap()).collect()
});

impl Input<'_> {
    fn encode_bytes(&self) -> Vec<u8> {
        let Self::Fields { table, packed, writer, trailing } = self else {
            let Self::Bytes(bytes) = self else { unreachable!() };
            return bytes.to_vec();
        };
        let mut bytes = b"MINISO\0\0\x01".to_vec();
        let writer = &writer[..writer.len().min(200)];
        bytes.push(writer.len() as u8);
        bytes.extend_from_slice(writer);
        bytes.extend(TableNumber::Medium(table.len() as u16).encode());
        for (minimal, full, len) in table {
            [minimal, full, len].iter().for_each(|number| bytes.extend(number.encode()));
        }
        bytes.extend([7; 32]);
        let packed = &PACKED[usize::from(*packed) % PACKED.len()];
        bytes.extend(TableNumber::Any(packed.len() as u64).encode());
        bytes.extend_from_slice(packed);
        bytes.extend_from_slice(trailing);
        bytes
    }
}

fuzz_target!(|input: Input| {
    let file = BASE.mastered.files[MINISO_PATH];
    let mut bytes = input.encode_bytes();
    bytes.resize(file.len as usize, 0);
    let mut changed = PatchedSource::new(BASE.bytes.clone());
    changed.put(file.offset, bytes);
    let image = BaseImage::from_source(changed.into_source()).unwrap();
    let len = image.inspect().unwrap().minimal.len;
    assert!(len.is_none_or(|len| len <= image.source().len()));
    // Verification reads the minimal image from the first to the last byte. It succeeds or finds a wrong digest only if
    // the description can be read.
    match image.verify_minimal() {
        Ok(()) | Err(Error::MinimalDigest { .. }) => assert!(len.is_some()),
        Err(error) => assert!(matches!(error, Error::Malformed { .. }) && len.is_none(), "{error}"),
    }
});

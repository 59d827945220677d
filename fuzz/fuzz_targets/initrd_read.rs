//! Initrd archives that nobody vouches for: reading them keeps to the limits, does not depend on how the bytes arrive,
//! and what was read can be packed and read again.

#![no_main]

use std::io::{self, Read};

use isogen::initrd::Limits;
use isogen::{Archive, ArchiveError, Encoding};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { decoded: 1 << 20, kept: 256 << 10, members: 1000 };

/// Gives a few bytes a call.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(7);
        self.0.read(&mut buf[..len])
    }
}

fuzz_target!(|input: &[u8]| {
    let read = Archive::read(input, LIMITS);
    let slow = Archive::read(Slow(input), LIMITS);
    assert_eq!(read.is_ok(), slow.is_ok(), "{read:?} or {slow:?}");
    let Ok(archive) = read else { return };
    assert_eq!(archive, slow.unwrap());

    let kept: usize = archive.iter().map(|(name, contents)| name.len() + contents.len()).sum();
    assert!(kept as u64 <= LIMITS.kept && archive.len() as u64 <= LIMITS.members);
    let config = Archive::read_matching(input, LIMITS, |name| name == "config.ign").unwrap();
    assert_eq!(config.get("config.ign"), archive.get("config.ign"));

    match archive.pack(Encoding::Stored) {
        Ok(packed) => {
            let limits = Limits { decoded: 64 << 20, members: 100_000, ..LIMITS };
            assert_eq!(Archive::read(&packed.as_bytes()[..], limits).unwrap(), archive);
        }
        Err(error) => assert!(matches!(error, ArchiveError::Member { .. }), "{error}"),
    }
});

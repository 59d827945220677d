//! Untrusted initrd archives. Reading keeps the limits, and its result does not depend on the sizes of single reads.
//! The members can be packed and read again.

#![no_main]

use std::io::{self, Read};

use isogen::initrd::ArchiveLimits;
use isogen::{Archive, ArchiveError, Encoding};
use libfuzzer_sys::fuzz_target;

const LIMITS: ArchiveLimits = ArchiveLimits { decoded_bytes: 1 << 20, kept_bytes: 256 << 10, members: 1000 };

/// A reader that returns at most a few bytes per call.
struct SlowReader<'a>(&'a [u8]);

impl Read for SlowReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(7);
        self.0.read(&mut buf[..len])
    }
}

fuzz_target!(|input: &[u8]| {
    let read = Archive::read(input, LIMITS);
    let slow = Archive::read(SlowReader(input), LIMITS);
    assert_eq!(read.is_ok(), slow.is_ok(), "{read:?} or {slow:?}");
    let Ok(archive) = read else { return };
    assert_eq!(archive, slow.unwrap());

    let stored_len: usize = archive.iter().map(|(name, contents)| name.len() + contents.len()).sum();
    assert!(stored_len as u64 <= LIMITS.kept_bytes && archive.len() as u64 <= LIMITS.members);
    let config = Archive::read_matching(input, LIMITS, |name| name == "config.ign").unwrap();
    assert_eq!(config.get("config.ign"), archive.get("config.ign"));

    match archive.pack(Encoding::Stored) {
        Ok(packed) => {
            let limits = ArchiveLimits { decoded_bytes: 64 << 20, members: 100_000, ..LIMITS };
            assert_eq!(Archive::read(&packed.as_bytes()[..], limits).unwrap(), archive);
        }
        Err(error) => assert!(matches!(error, ArchiveError::Member { .. }), "{error}"),
    }
});

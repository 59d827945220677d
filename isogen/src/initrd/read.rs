//! Reads initrd archives from an untrusted source, within limits.

use std::io::{self, BufRead, Read};

use super::archive::Archive;
use super::error::{ArchiveError, Result};
use super::newc;
use crate::bytes_at::{count_leading_zeros, prefix_mut};
use crate::compression::{self, Compression};

/// Limits for reading a sequence of archives. Each limit applies to all archives together. Decoding can enlarge an
/// archive more than a thousandfold, so each limit counts decoded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Maximum number of decoded bytes, including skipped members.
    pub decoded_bytes: u64,
    /// Maximum number of bytes of stored members, including their names.
    pub kept_bytes: u64,
    /// Maximum number of members, including skipped members. A trailer counts as a member.
    pub members: u64,
}

impl ArchiveLimits {
    /// Limits for an Ignition area. The largest areas are well below 1 MiB, and a config seldom compresses to less than
    /// a hundredth of its size.
    pub const IGNITION_AREA: Self =
        Self { decoded_bytes: 256 << 20, kept_bytes: 256 << 20, members: 200_000 };
    /// Limits for a whole initrd of a live system, even with an appended root file system: gigabytes to skip, few bytes
    /// to store.
    pub const INITRD: Self = Self { decoded_bytes: 16 << 30, kept_bytes: 512 << 20, members: 4_000_000 };
}

/// Maximum length of a name, including NULs: the limit of the kernel, plus the NULs that some writers add to align the
/// data to a page.
const MAX_NAME_LEN: u32 = 3 * 4096;
/// Maximum length of a path that the kernel unpacks.
const MAX_PATH_LEN: usize = 4095;
/// Memory limit of a decoder. Preset 9 of xz needs 65 MiB, and `zstd --ultra` needs 128 MiB.
const DECODER_MEMORY: u64 = 256 << 20;
const BUFFER_LEN: usize = 64 << 10;

impl Archive {
    /// Reads all regular files of a sequence of archives.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a sequence of archives, end early, exceed a limit, or have a compression
    /// that this build does not support.
    pub fn read(input: impl Read, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        Self::read_matching(input, limits, |_| true)
    }

    /// Reads the regular files whose names satisfy the predicate, and skips the others.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read).
    pub fn read_matching(
        input: impl Read,
        limits: ArchiveLimits,
        is_selected: impl Fn(&str) -> bool,
    ) -> Result<Self, ArchiveError> {
        let used = ArchiveLimits { decoded_bytes: 0, kept_bytes: 0, members: 0 };
        let mut reader = ArchiveReader { limits, used, wanted: is_selected, archive: Self::new() };
        let mut input = CountingReader { reader: io::BufReader::with_capacity(BUFFER_LEN, input), count: 0 };
        while let Some(first) = skip_to_next_archive(&mut input)? {
            reader.read_archive(&mut input, first)?;
        }
        Ok(reader.archive)
    }
}

/// Skips zeros and returns the first byte of the next archive without consuming it, or `None` at the end of the input.
fn skip_to_next_archive(input: &mut CountingReader<impl BufRead>) -> Result<Option<u8>> {
    loop {
        let offset = input.count;
        let buf = input.fill_buf().map_err(|source| ArchiveError::Read { offset, source })?;
        if buf.is_empty() {
            return Ok(None);
        }
        let zeros = count_leading_zeros(buf);
        let first = buf.get(zeros).copied();
        input.consume(zeros);
        if first.is_some() {
            return Ok(first);
        }
    }
}

struct ArchiveReader<F> {
    limits: ArchiveLimits,
    /// The part of the limits that the archives have used so far.
    used: ArchiveLimits,
    wanted: F,
    archive: Archive,
}

impl<F: Fn(&str) -> bool> ArchiveReader<F> {
    /// Reads one archive. `first` is its first byte, which is not consumed yet and identifies the encoding.
    fn read_archive(&mut self, input: &mut CountingReader<impl BufRead>, first: u8) -> Result<()> {
        let start = input.count;
        let unsupported = |compression| ArchiveError::UnsupportedCompression { offset: start, compression };
        let (encoding, reader): (_, Box<dyn Read + '_>) = match first {
            b'0' => (None, Box::new(input)),
            0x1F => (Some("gzip"), Box::new(flate2::bufread::GzDecoder::new(input))),
            0xFD if !Compression::Xz.is_supported() => return Err(unsupported(Compression::Xz)),
            0xFD => {
                let decoder = compression::xz_decoder(input, DECODER_MEMORY);
                let error = |source| ArchiveError::Stream { offset: start, encoding: "xz", source };
                (Some("xz"), Box::new(decoder.map_err(error)?))
            }
            // The first byte of a zstd frame, or of one of the sixteen kinds of skippable frames.
            0x28 | 0x50..=0x5F if !Compression::Zstd.is_supported() => {
                return Err(unsupported(Compression::Zstd));
            }
            0x28 | 0x50..=0x5F => (Some("zstd"), Box::new(compression::ZstdFrames::new(input))),
            found => return Err(ArchiveError::NotAnArchive { offset: start, found }),
        };
        let (limits, decoded_before) = (self.limits, self.used.decoded_bytes);
        let mut decoded = ArchiveDecoder { reader, limits, start, encoding, offset: 0, decoded_before };
        self.read_cpio(&mut decoded)?;
        if encoding.is_some() {
            decoded.check_rest_is_zero()?;
        }
        self.used.decoded_bytes += decoded.offset;
        Ok(())
    }

    /// Reads one archive up to its trailer.
    fn read_cpio(&mut self, decoded: &mut ArchiveDecoder<'_>) -> Result<()> {
        while self.used.members < self.limits.members {
            self.used.members += 1;
            let start = decoded.offset;
            let mut bytes = [0; newc::HEADER_LEN];
            decoded.read_exact(&mut bytes)?;
            let header = newc::CpioHeader::parse(&bytes).map_err(|field| ArchiveError::Malformed {
                archive: decoded.start,
                offset: start + field.offset as u64,
                what: field.what,
                expected: field.expected,
                found: field.found,
            })?;
            let name = decoded.read_name(header.name_len)?;
            decoded.skip_padding(decoded.offset - start)?;
            if name == newc::TRAILER {
                return Ok(());
            }
            let data_len = u64::from(header.data_len);
            if header.is_file() && (self.wanted)(&name) {
                self.used.kept_bytes += name.len() as u64 + data_len;
                if self.used.kept_bytes > self.limits.kept_bytes {
                    return Err(decoded.limit_error("the data to keep", self.limits.kept_bytes));
                }
                self.archive.insert(name, decoded.read_contents(data_len)?);
            } else {
                decoded.read_chunks(data_len, |_| {})?;
            }
            decoded.skip_padding(data_len)?;
        }
        Err(decoded.limit_error("the number of members", self.limits.members))
    }
}

/// A reader of the decoded bytes of one archive.
struct ArchiveDecoder<'a> {
    reader: Box<dyn Read + 'a>,
    limits: ArchiveLimits,
    /// Offset of the archive in the encoded bytes.
    start: u64,
    /// The compression; `None` for plain cpio.
    encoding: Option<&'static str>,
    /// Number of bytes of this archive decoded so far.
    offset: u64,
    /// Number of decoded bytes of the archives before this one.
    decoded_before: u64,
}

impl ArchiveDecoder<'_> {
    fn limit_error(&self, what: &'static str, limit: u64) -> ArchiveError {
        ArchiveError::Limit { archive: self.start, offset: self.offset, what, limit }
    }

    fn read_error(&self, source: io::Error) -> ArchiveError {
        match self.encoding {
            _ if source.kind() == io::ErrorKind::UnexpectedEof => {
                ArchiveError::Truncated { archive: self.start, offset: self.offset }
            }
            Some(encoding) => ArchiveError::Stream { offset: self.start, encoding, source },
            None => ArchiveError::Read { offset: self.start + self.offset, source },
        }
    }

    fn malformed(&self, what: &'static str, expected: &'static str, actual: impl ToString) -> ArchiveError {
        let actual = actual.to_string();
        ArchiveError::Malformed { archive: self.start, offset: self.offset, what, expected, found: actual }
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(buf) {
                Ok(len) if len > buf.len() => {
                    let message = format!("the reader returned {len} bytes instead of at most {}", buf.len());
                    return Err(self.read_error(io::Error::other(message)));
                }
                Ok(len) => {
                    self.offset += len as u64;
                    if self.decoded_before + self.offset > self.limits.decoded_bytes {
                        return Err(self.limit_error("the decoded length", self.limits.decoded_bytes));
                    }
                    return Ok(len);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    fn read_exact(&mut self, mut buf: &mut [u8]) -> Result<()> {
        while !buf.is_empty() {
            let len = self.read(buf)?;
            if len == 0 {
                return Err(self.read_error(io::ErrorKind::UnexpectedEof.into()));
            }
            buf = buf.split_at_mut(len).1;
        }
        Ok(())
    }

    /// Reads `len` bytes and calls `consume` with each chunk of them.
    fn read_chunks(&mut self, mut len: u64, mut consume: impl FnMut(&[u8])) -> Result<()> {
        let mut buf = [0; 8192];
        while len > 0 {
            let chunk = prefix_mut(&mut buf, len);
            self.read_exact(chunk)?;
            consume(chunk);
            len -= chunk.len() as u64;
        }
        Ok(())
    }

    /// Skips the padding after data of `len` bytes.
    fn skip_padding(&mut self, len: u64) -> Result<()> {
        self.read_chunks(newc::padding(len).len() as u64, |_| {})
    }

    /// Reads `len` bytes of data. `len` is untrusted, so the memory use grows with the number of bytes read, not with
    /// `len`.
    fn read_contents(&mut self, len: u64) -> Result<Vec<u8>> {
        let mut contents = Vec::new();
        self.read_chunks(len, |chunk| contents.extend_from_slice(chunk))?;
        Ok(contents)
    }

    fn read_name(&mut self, len: u32) -> Result<String> {
        if len == 0 || len > MAX_NAME_LEN {
            return Err(self.malformed("cpio name length", "1 to 12288", len));
        }
        let mut name = self.read_contents(len.into())?;
        if name.last() != Some(&0) {
            return Err(self.malformed("cpio name", "a NUL at its end", name.escape_ascii()));
        }
        // Some writers pad names with NULs so that the data begins at a page boundary.
        while name.last() == Some(&0) {
            name.pop();
        }
        if name.is_empty() || name.len() > MAX_PATH_LEN {
            return Err(self.malformed("cpio name", "1 to 4095 bytes", name.len()));
        }
        if name.contains(&0) {
            return Err(self.malformed("cpio name", "no NUL inside", name.escape_ascii()));
        }
        String::from_utf8(name)
            .map_err(|error| self.malformed("cpio name", "UTF-8", error.as_bytes().escape_ascii()))
    }

    /// Reads the rest of a compressed stream. Only zeros may follow the archive in it.
    fn check_rest_is_zero(&mut self) -> Result<()> {
        let mut buf = vec![0; BUFFER_LEN];
        loop {
            let before = self.offset;
            let len = self.read(&mut buf)?;
            if len == 0 {
                return Ok(());
            }
            let zeros = count_leading_zeros(prefix_mut(&mut buf, len as u64));
            if zeros < len {
                let offset = before + zeros as u64;
                return Err(ArchiveError::TrailingGarbage { archive: self.start, offset });
            }
        }
    }
}

/// A buffered reader that counts the consumed bytes.
struct CountingReader<R> {
    reader: R,
    count: u64,
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buf)?;
        self.count += len as u64;
        Ok(len)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.count += len as u64;
        self.reader.consume(len);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bytes::Bytes;

    use super::super::Encoding;
    use super::*;

    const LIMITS: ArchiveLimits = ArchiveLimits { decoded_bytes: 1 << 20, kept_bytes: 1 << 20, members: 100 };

    fn sample(names: &[&str]) -> Archive {
        let mut archive = Archive::new();
        names.iter().for_each(|name| archive.insert(*name, name.repeat(3).into_bytes()));
        archive
    }

    fn read(bytes: &[u8]) -> Result<Archive> {
        Archive::read(bytes, LIMITS)
    }

    fn packed(archive: &Archive, encoding: Encoding) -> Vec<u8> {
        archive.pack(encoding).unwrap().as_bytes().to_vec()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn zeros_are_an_empty_archive() {
        assert!(read(&[0; 262_144]).unwrap().is_empty());
        assert!(read(&[]).unwrap().is_empty());
    }

    #[test]
    #[cfg_attr(not(all(feature = "xz", feature = "zstd")), ignore = "needs xz and zstd")]
    fn every_encoding_round_trips() {
        let archive = sample(&["config.ign", "etc/a/b", "etc/a/c", "etc/d"]);
        for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
            assert_eq!(read(&packed(&archive, encoding)).unwrap(), archive, "{encoding:?}");
        }
        assert_eq!(read(&zstd(&packed(&archive, Encoding::Stored))).unwrap(), archive);
    }

    #[test]
    #[cfg_attr(not(all(feature = "xz", feature = "zstd")), ignore = "needs xz and zstd")]
    fn later_archive_replaces_members_of_earlier_ones() {
        let mut bytes = packed(&sample(&["a", "b"]), Encoding::Gzip);
        bytes.extend([0; 512]);
        bytes.extend(packed(&sample(&["c"]), Encoding::Stored));
        bytes.extend(zstd(&packed(&sample(&["d"]), Encoding::Stored)));
        let mut last = Archive::new();
        last.insert("a", &b"last"[..]);
        bytes.extend(packed(&last, Encoding::Xz));
        bytes.extend([0; 4096]);
        let archive = read(&bytes).unwrap();
        assert_eq!(archive.len(), 4);
        assert_eq!(archive.get("a").unwrap(), "last");
    }

    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn one_byte_reads_return_the_same_archive() {
        struct OneByteReader<'a>(&'a [u8]);
        impl Read for OneByteReader<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let len = buf.len().min(1);
                self.0.read(&mut buf[..len])
            }
        }
        let archive = sample(&["x/y", "z"]);
        for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
            assert_eq!(Archive::read(OneByteReader(&packed(&archive, encoding)), LIMITS).unwrap(), archive);
        }
    }

    /// Reading a stream that is cut at any byte returns an error, or the whole archive if only padding is missing. It
    /// never returns a partial archive.
    #[test]
    #[cfg_attr(not(all(feature = "xz", feature = "zstd")), ignore = "needs xz and zstd")]
    fn truncated_stream_is_never_a_partial_archive() {
        let archive = sample(&["config.ign", "etc/a"]);
        let stored = packed(&archive, Encoding::Stored);
        let forms = [packed(&archive, Encoding::Xz), packed(&archive, Encoding::Gzip), zstd(&stored), stored];
        for bytes in &forms {
            for len in 1..bytes.len() {
                if let Ok(read) = read(&bytes[..len]) {
                    assert_eq!(read, archive, "cut at {len} of {}", bytes.len());
                }
            }
        }
    }

    /// Bytes that the reader did not write must not become part of an archive.
    #[test]
    fn rejects_readers_that_return_more_than_fits() {
        struct OverlongReader(bool);
        impl Read for OverlongReader {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                buf.fill(b'0');
                Ok(buf.len() + usize::from(self.0))
            }
        }
        let limits = ArchiveLimits { decoded_bytes: 1000, kept_bytes: 1000, members: 10 };
        for boasts in [false, true] {
            let reader = Box::new(OverlongReader(boasts));
            let mut decoded =
                ArchiveDecoder { reader, limits, start: 0, encoding: None, offset: 0, decoded_before: 0 };
            assert_eq!(decoded.read_exact(&mut [0; 10]).is_err(), boasts);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "zstd"), ignore = "needs zstd")]
    fn rejects_two_archives_in_one_stream() {
        let twice = packed(&sample(&["a"]), Encoding::Stored).repeat(2);
        assert!(matches!(read(&zstd(&twice)), Err(ArchiveError::TrailingGarbage { archive: 0, .. })));
    }

    #[test]
    fn limits_apply_to_one_archive() {
        let archive = sample(&["a", "b", "c"]);
        let bytes = packed(&archive, Encoding::Gzip);
        for limits in [
            ArchiveLimits { decoded_bytes: 100, ..LIMITS },
            ArchiveLimits { kept_bytes: 8, ..LIMITS },
            ArchiveLimits { members: 3, ..LIMITS },
        ] {
            let error = Archive::read(&bytes[..], limits).unwrap_err();
            assert!(matches!(error, ArchiveError::Limit { .. }), "{limits:?}: {error}");
        }
        let archive =
            Archive::read_matching(&bytes[..], ArchiveLimits { kept_bytes: 4, ..LIMITS }, |name| name == "b");
        assert_eq!(archive.unwrap().len(), 1);
    }

    /// A limit that applies to one large archive also applies to many small archives together.
    #[test]
    fn limits_apply_to_all_archives_together() {
        for encoding in [Encoding::Gzip, Encoding::Stored] {
            let bytes = packed(&sample(&["a"]), encoding).repeat(100);
            assert!(read(&bytes).is_err_and(|error| matches!(error, ArchiveError::Limit { .. })));
            for limits in
                [ArchiveLimits { decoded_bytes: 1000, ..LIMITS }, ArchiveLimits { kept_bytes: 100, ..LIMITS }]
            {
                let error = Archive::read(&bytes[..], ArchiveLimits { members: 1000, ..limits }).unwrap_err();
                assert!(matches!(error, ArchiveError::Limit { .. }), "{limits:?}: {error}");
            }
            assert!(Archive::read(&bytes[..], ArchiveLimits { members: 200, ..LIMITS }).is_ok());
        }
    }

    /// Names are stored in memory too, and may be longer than the data.
    #[test]
    fn names_count_as_kept_bytes() {
        let bytes = packed(&sample(&["a"]), Encoding::Stored);
        let mut long = Archive::new();
        long.insert("n".repeat(4000), Bytes::new());
        let long = packed(&long, Encoding::Stored);
        assert!(Archive::read(&bytes[..], ArchiveLimits { kept_bytes: 100, ..LIMITS }).is_ok());
        assert!(Archive::read(&long[..], ArchiveLimits { kept_bytes: 100, ..LIMITS }).is_err());
    }

    #[test]
    fn rejected_name_without_a_nul_is_shown_whole() {
        let mut bytes = packed(&sample(&["a"]), Encoding::Stored);
        // The stated length is 1 instead of 2, so the NUL is not a part of the name.
        bytes[94..102].copy_from_slice(b"00000001");
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.ends_with("cpio name: expected a NUL at its end, found a"), "{error}");
    }

    #[test]
    fn rejects_names_that_claim_gigabytes() {
        let mut bytes = packed(&sample(&["a"]), Encoding::Stored);
        bytes[94..102].copy_from_slice(b"FFFFFFFF");
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains("cpio name length: expected 1 to 12288, found 4294967295"), "{error}");
    }
}

//! Reading a run of archives that somebody else wrote, possibly with ill intent.

use std::io::{self, BufRead, Read};

use bytes::Bytes;

use super::archive::Archive;
use super::error::ArchiveError;
use super::newc;
use crate::bytes_at::zeros_at_start;

/// What a reader is ready to spend on one run of archives, all of them together. Compressed archives can grow a
/// thousandfold and more when they are unpacked, so each bound counts decoded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Decoded bytes in all, kept or skipped.
    pub decoded: u64,
    /// Bytes of the members that are kept, with their names.
    pub kept: u64,
    /// Members in all, kept or skipped; a trailer is one.
    pub members: u64,
}

impl Limits {
    /// For an Ignition area: the largest of them is well below a MiB, and configs seldom shrink to less than a
    /// hundredth.
    pub const AREA: Self = Self { decoded: 256 << 20, kept: 256 << 20, members: 200_000 };
    /// For a whole live initrd or one with a rootfs appended: gigabytes to skip over, few of them kept.
    pub const INITRD: Self = Self { decoded: 16 << 30, kept: 512 << 20, members: 4_000_000 };
}

/// Longest name with its NULs: the kernel's own limit, plus the zeros that some writers add to align the data to a
/// page.
const MAX_NAME_LEN: u32 = 3 * 4096;
/// Longest path that a kernel makes a file of.
const MAX_PATH: usize = 4095;
/// Most memory that a decoder may take: the preset 9 of xz needs 65 MiB, `zstd --ultra` 128 MiB.
const DECODER_MEMORY: u64 = 256 << 20;
/// Bytes read at a time.
const BUFFER_LEN: usize = 64 << 10;

impl Archive {
    /// Reads every member of a run of archives.
    ///
    /// # Errors
    ///
    /// Fails where the bytes are not a run of archives, end early, or pass a limit.
    pub fn read(input: impl Read, limits: Limits) -> Result<Self, ArchiveError> {
        Self::read_matching(input, limits, |_| true)
    }

    /// Reads the members whose names `wanted` accepts, and skips over the others.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_matching(
        input: impl Read,
        limits: Limits,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, ArchiveError> {
        let spent = Limits { decoded: 0, kept: 0, members: 0 };
        let mut reader = Reader { limits, spent, wanted, archive: Self::new() };
        let mut input = Counted::new(io::BufReader::with_capacity(BUFFER_LEN, input));
        while let Some(first) = next_archive(&mut input)? {
            reader.read_archive(&mut input, first)?;
        }
        Ok(reader.archive)
    }
}

/// Skips zeros and gives the first byte of the next archive; `None` at the end.
fn next_archive(input: &mut Counted<impl BufRead>) -> Result<Option<u8>, ArchiveError> {
    loop {
        let offset = input.count;
        let buf = input.fill_buf().map_err(|source| ArchiveError::Read { offset, source })?;
        if buf.is_empty() {
            return Ok(None);
        }
        let zeros = zeros_at_start(buf);
        let first = buf.get(zeros).copied();
        input.consume(zeros);
        if first.is_some() {
            return Ok(first);
        }
    }
}

struct Reader<F> {
    limits: Limits,
    /// What the archives so far have taken.
    spent: Limits,
    wanted: F,
    archive: Archive,
}

impl<F: Fn(&str) -> bool> Reader<F> {
    /// Reads one archive; `first` is its first byte, still unread, and tells the encoding.
    fn read_archive(&mut self, input: &mut Counted<impl BufRead>, first: u8) -> Result<(), ArchiveError> {
        let start = input.count;
        let before = self.spent.decoded;
        self.spent.decoded += match first {
            b'0' => self.read_cpio(Decoded::new(input, start, None, before))?.offset,
            0x1F => {
                let decoder = flate2::bufread::GzDecoder::new(input);
                self.read_stream(Decoded::new(decoder, start, Some("gzip"), before))?
            }
            0xFD => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(DECODER_MEMORY, 0).map_err(|error| {
                        ArchiveError::Stream { offset: start, encoding: "xz", source: error.into() }
                    })?;
                let decoder = liblzma::bufread::XzDecoder::new_stream(input, stream);
                self.read_stream(Decoded::new(decoder, start, Some("xz"), before))?
            }
            // A frame, or one of the sixteen kinds of skippable frame.
            0x28 | 0x50..=0x5F => {
                let decoder = ZstdFrames { input, frame: None };
                self.read_stream(Decoded::new(decoder, start, Some("zstd"), before))?
            }
            found => return Err(ArchiveError::NotAnArchive { offset: start, found }),
        };
        Ok(())
    }

    /// Reads the one archive of a compressed stream, demands that only zeros follow it in there, and tells how many
    /// bytes were decoded.
    fn read_stream<R: Read>(&mut self, decoded: Decoded<R>) -> Result<u64, ArchiveError> {
        let mut decoded = self.read_cpio(decoded)?;
        let mut buf = vec![0; BUFFER_LEN];
        loop {
            let offset = decoded.offset;
            let len = decoded.read(&mut buf, &self.limits)?;
            if len == 0 {
                return Ok(offset);
            }
            let zeros = zeros_at_start(buf.get(..len).unwrap_or_default());
            if zeros < len {
                let offset = offset + zeros as u64;
                return Err(ArchiveError::TrailingGarbage { archive: decoded.start, offset });
            }
        }
    }

    /// Reads one archive up to its trailer, and gives the decoder back.
    fn read_cpio<R: Read>(&mut self, mut decoded: Decoded<R>) -> Result<Decoded<R>, ArchiveError> {
        while self.spent.members < self.limits.members {
            self.spent.members += 1;
            let start = decoded.offset;
            let mut bytes = [0; newc::HEADER_LEN];
            decoded.read_exact(&mut bytes, &self.limits)?;
            let header = newc::Header::parse(&bytes).map_err(|field| ArchiveError::Malformed {
                archive: decoded.start,
                offset: start + field.offset as u64,
                what: field.what,
                expected: field.expected,
                found: field.found,
            })?;
            let name = decoded.read_name(header.name_len, &self.limits)?;
            decoded.skip(newc::padding(decoded.offset - start).len() as u64, &self.limits)?;
            if name == newc::TRAILER {
                return Ok(decoded);
            }
            if header.is_file() && (self.wanted)(&name) {
                self.spent.kept += name.len() as u64 + u64::from(header.data_len);
                if self.spent.kept > self.limits.kept {
                    return Err(decoded.limit("the data to keep", self.limits.kept));
                }
                let contents = decoded.read_contents(header.data_len, &self.limits)?;
                self.archive.insert(name, Bytes::from(contents));
            } else {
                decoded.skip(u64::from(header.data_len), &self.limits)?;
            }
            decoded.skip(newc::padding(u64::from(header.data_len)).len() as u64, &self.limits)?;
        }
        Err(decoded.limit("the number of members", self.limits.members))
    }
}

/// The decoded bytes of one archive, counted.
struct Decoded<R> {
    reader: R,
    /// Where the archive begins in the encoded bytes.
    start: u64,
    /// The compression, or `None` for plain cpio.
    encoding: Option<&'static str>,
    /// Decoded bytes so far.
    offset: u64,
    /// Decoded bytes of the archives before this one.
    before: u64,
}

impl<R> Decoded<R> {
    fn new(reader: R, start: u64, encoding: Option<&'static str>, before: u64) -> Self {
        Self { reader, start, encoding, offset: 0, before }
    }

    fn limit(&self, what: &'static str, limit: u64) -> ArchiveError {
        ArchiveError::Limit { archive: self.start, offset: self.offset, what, limit }
    }

    fn failed(&self, source: io::Error) -> ArchiveError {
        match self.encoding {
            _ if source.kind() == io::ErrorKind::UnexpectedEof => {
                ArchiveError::Truncated { archive: self.start, offset: self.offset }
            }
            Some(encoding) => ArchiveError::Stream { offset: self.start, encoding, source },
            None => ArchiveError::Read { offset: self.start + self.offset, source },
        }
    }

    fn malformed(&self, what: &'static str, expected: &'static str, found: String) -> ArchiveError {
        ArchiveError::Malformed { archive: self.start, offset: self.offset, what, expected, found }
    }
}

impl<R: Read> Decoded<R> {
    fn read(&mut self, buf: &mut [u8], limits: &Limits) -> Result<usize, ArchiveError> {
        loop {
            match self.reader.read(buf) {
                Ok(len) => {
                    self.offset += len as u64;
                    if self.before + self.offset > limits.decoded {
                        return Err(self.limit("the decoded length", limits.decoded));
                    }
                    return Ok(len);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn read_exact(&mut self, mut buf: &mut [u8], limits: &Limits) -> Result<(), ArchiveError> {
        while !buf.is_empty() {
            let len = self.read(buf, limits)?;
            if len == 0 {
                return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
            }
            buf = buf.get_mut(len..).unwrap_or_default();
        }
        Ok(())
    }

    fn skip(&mut self, mut len: u64, limits: &Limits) -> Result<(), ArchiveError> {
        let mut buf = [0; 8192];
        while len > 0 {
            let step = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
            self.read_exact(buf.get_mut(..step).unwrap_or_default(), limits)?;
            len -= step as u64;
        }
        Ok(())
    }

    /// Reads data without trusting its length: memory grows with the bytes that really come.
    fn read_contents(&mut self, len: u32, limits: &Limits) -> Result<Vec<u8>, ArchiveError> {
        let mut contents = Vec::new();
        let mut buf = [0; 8192];
        let mut rest = u64::from(len);
        while rest > 0 {
            let step = usize::try_from(rest).map_or(buf.len(), |rest| rest.min(buf.len()));
            let chunk = buf.get_mut(..step).unwrap_or_default();
            self.read_exact(chunk, limits)?;
            contents.extend_from_slice(chunk);
            rest -= step as u64;
        }
        Ok(contents)
    }

    fn read_name(&mut self, len: u32, limits: &Limits) -> Result<String, ArchiveError> {
        if len == 0 || len > MAX_NAME_LEN {
            return Err(self.malformed("cpio name length", "1 to 12288", len.to_string()));
        }
        let mut name = self.read_contents(len, limits)?;
        if name.pop() != Some(0) {
            return Err(self.malformed("cpio name", "a NUL at its end", name.escape_ascii().to_string()));
        }
        // Some writers fill up with NULs until the data stands at a page boundary.
        while name.last() == Some(&0) {
            name.pop();
        }
        if name.is_empty() || name.len() > MAX_PATH {
            return Err(self.malformed("cpio name", "1 to 4095 bytes", name.len().to_string()));
        }
        if name.contains(&0) {
            return Err(self.malformed("cpio name", "no NUL inside", name.escape_ascii().to_string()));
        }
        String::from_utf8(name).map_err(|error| {
            self.malformed("cpio name", "UTF-8", error.as_bytes().escape_ascii().to_string())
        })
    }
}

/// The bytes of all zstd frames that follow one another without a gap: together they are one stream.
struct ZstdFrames<'a, R: BufRead> {
    input: &'a mut Counted<R>,
    frame: Option<zstd::stream::raw::Decoder<'static>>,
}

impl<R: BufRead> Read for ZstdFrames<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        use zstd::stream::raw::Operation;
        while !buf.is_empty() {
            let input = self.input.fill_buf()?;
            let frame = match &mut self.frame {
                Some(frame) => frame,
                None if starts_zstd_frame(input) => self.frame.insert(zstd::stream::raw::Decoder::new()?),
                None => return Ok(0),
            };
            let ended = input.is_empty();
            let status = frame.run_on_buffers(input, buf)?;
            self.input.consume(status.bytes_read);
            if status.remaining == 0 {
                self.frame = None;
            }
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if ended && self.frame.is_some() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

fn starts_zstd_frame(input: &[u8]) -> bool {
    matches!(input.first(), Some(0x28 | 0x50..=0x5F))
}

/// Counts the bytes that were taken from a buffered reader.
struct Counted<R> {
    reader: R,
    count: u64,
}

impl<R> Counted<R> {
    fn new(reader: R) -> Self {
        Self { reader, count: 0 }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buf)?;
        self.count += len as u64;
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
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

    use super::super::Encoding;
    use super::*;

    const LIMITS: Limits = Limits { decoded: 1 << 20, kept: 1 << 20, members: 100 };

    fn sample(names: &[&str]) -> Archive {
        let mut archive = Archive::new();
        names.iter().for_each(|name| archive.insert(*name, name.repeat(3).into_bytes()));
        archive
    }

    fn read(bytes: &[u8]) -> Result<Archive, ArchiveError> {
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
    fn zeros_are_no_archive() {
        assert!(read(&[0; 262_144]).unwrap().is_empty());
        assert!(read(&[]).unwrap().is_empty());
    }

    #[test]
    fn every_encoding_reads_back() {
        let archive = sample(&["config.ign", "etc/a/b", "etc/a/c", "etc/d"]);
        for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
            assert_eq!(read(&packed(&archive, encoding)).unwrap(), archive, "{encoding:?}");
        }
        assert_eq!(read(&zstd(&packed(&archive, Encoding::Stored))).unwrap(), archive);
    }

    #[test]
    fn archives_follow_one_another_and_the_later_wins() {
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
    fn one_byte_reads_give_the_same() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let len = buf.len().min(1);
                self.0.read(&mut buf[..len])
            }
        }
        let archive = sample(&["x/y", "z"]);
        for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
            assert_eq!(Archive::read(Slow(&packed(&archive, encoding)), LIMITS).unwrap(), archive);
        }
    }

    /// A cut at any byte is an error, or (behind the last byte that matters) the whole archive: never a part of it.
    #[test]
    fn a_truncated_stream_is_never_half_an_archive() {
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

    #[test]
    fn two_archives_in_one_stream_are_refused() {
        let twice = packed(&sample(&["a"]), Encoding::Stored).repeat(2);
        assert!(matches!(read(&zstd(&twice)), Err(ArchiveError::TrailingGarbage { archive: 0, .. })));
    }

    #[test]
    fn limits_hold() {
        let archive = sample(&["a", "b", "c"]);
        let bytes = packed(&archive, Encoding::Gzip);
        for limits in
            [Limits { decoded: 100, ..LIMITS }, Limits { kept: 8, ..LIMITS }, Limits { members: 3, ..LIMITS }]
        {
            let error = Archive::read(&bytes[..], limits).unwrap_err();
            assert!(matches!(error, ArchiveError::Limit { .. }), "{limits:?}: {error}");
        }
        let kept = Archive::read_matching(&bytes[..], Limits { kept: 4, ..LIMITS }, |name| name == "b");
        assert_eq!(kept.unwrap().len(), 1);
    }

    /// A hundred small archives may not take what one large one may not.
    #[test]
    fn limits_hold_for_all_archives_together() {
        for encoding in [Encoding::Gzip, Encoding::Stored] {
            let bytes = packed(&sample(&["a"]), encoding).repeat(100);
            assert!(read(&bytes).is_err_and(|error| matches!(error, ArchiveError::Limit { .. })));
            for limits in [Limits { decoded: 1000, ..LIMITS }, Limits { kept: 100, ..LIMITS }] {
                let error = Archive::read(&bytes[..], Limits { members: 1000, ..limits }).unwrap_err();
                assert!(matches!(error, ArchiveError::Limit { .. }), "{limits:?}: {error}");
            }
            assert!(Archive::read(&bytes[..], Limits { members: 200, ..LIMITS }).is_ok());
        }
    }

    /// Names are kept as well, and may be longer than the data.
    #[test]
    fn names_count_as_kept() {
        let bytes = packed(&sample(&["a"]), Encoding::Stored);
        let mut long = Archive::new();
        long.insert("n".repeat(4000), Bytes::new());
        let long = packed(&long, Encoding::Stored);
        assert!(Archive::read(&bytes[..], Limits { kept: 100, ..LIMITS }).is_ok());
        assert!(Archive::read(&long[..], Limits { kept: 100, ..LIMITS }).is_err());
    }

    #[test]
    fn a_name_that_claims_gigabytes_is_refused() {
        let mut bytes = packed(&sample(&["a"]), Encoding::Stored);
        bytes[94..102].copy_from_slice(b"FFFFFFFF");
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains("cpio name length: expected 1 to 12288, found 4294967295"), "{error}");
    }
}

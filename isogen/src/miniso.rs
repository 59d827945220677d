//! Parses `miniso.dat`, which describes the minimal ISO as differences from the full ISO.
//!
//! The builder masters a second image without the root file system and records the differences: a table of runs that
//! are files of the full image, and all bytes between those runs, packed with xz.
//!
//! ```text
//! magic "MINISO\0\0", version 1, version of the writer (text)
//! count, then per entry: sector in the minimal image, sector in the full image, bytes
//! SHA-256 of the minimal image
//! length, then an xz stream of the bytes that no entry covers
//! ```
//!
//! Numbers have bincode's variable-length encoding: one byte if below 251, otherwise a tag byte and 16, 32 or 64 bits,
//! little-endian.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes_at::{array_at, count_leading_zeros};
use crate::compression::{self, Compression};
use crate::digest::Digest;
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, Sector};
use crate::plan::{Plan, Segment};
use crate::source::Source;

pub(crate) const MINISO_PATH: &str = "coreos/miniso.dat";
const MINISO_MAGIC: &[u8] = b"MINISO\0\0";
const MINISO_VERSION: u64 = 1;
/// Maximum length of a description. Builders reserve 16 KiB.
pub(crate) const MAX_MINISO_LEN: u64 = 1 << 20;
/// Maximum number of unpacked bytes. They are metadata and the ends of sectors, in practice less than 1 MiB.
const MAX_UNPACKED_LEN: u64 = 64 << 20;
/// Memory limit of the xz decoder. Preset 9 needs 65 MiB.
const DECODER_MEMORY: u64 = 256 << 20;
/// Minimum length of a run of zeros that becomes a [`Segment::Zero`]. A segment for less than a page costs more memory
/// than it saves.
const MIN_ZERO_RUN: usize = 4096;

/// An extent of the minimal image that has the bytes of a file of the full image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedExtent {
    pub(crate) minimal_sector: Sector,
    pub(crate) full_sector: Sector,
    pub(crate) len: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct MinimalDescription {
    /// Version of the program that wrote the description.
    pub(crate) writer: String,
    /// The extents shared with the full image, in ascending order of their position in the minimal image.
    pub(crate) table: Vec<SharedExtent>,
    /// SHA-256 digest of the minimal image.
    pub(crate) digest: Digest,
    /// All other bytes of the minimal image, in order.
    pub(crate) literal: Bytes,
}

impl MinimalDescription {
    /// Parses the `miniso.dat` of the image `full`. `offset` is the offset of `miniso.dat` in that image.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a `miniso.dat`, refer to bytes outside of the image, or do not unpack.
    pub(crate) fn parse(full: &Source, offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut fields = FieldCursor { full, offset, bytes, at: 0 };
        let magic = fields.take(MINISO_MAGIC.len(), "magic")?;
        if magic != MINISO_MAGIC {
            let (expected, found) = ("MINISO (not a miniso file!)", magic.escape_ascii());
            return Err(fields.malformed_at(0, "miniso magic", expected, found));
        }
        let at = fields.at;
        let version = fields.read_number("version")?;
        if version != MINISO_VERSION {
            let expected = "1 (incompatible miniso file version)";
            return Err(fields.malformed_at(at, "miniso version", expected, version));
        }
        let writer = String::from_utf8_lossy(fields.take_counted("version of the writer")?).into_owned();
        let table = fields.read_table()?;
        let digest = Digest(fields.take_array("digest")?);
        let packed = fields.take_counted("packed bytes")?;
        let packed_at = fields.at - packed.len();
        if !Compression::Xz.is_supported() {
            return Err(Error::UnsupportedCompression {
                file: full.name().to_owned(),
                offset: offset.saturating_add(packed_at as u64),
                what: "description of the minimal ISO",
                compression: Compression::Xz,
            });
        }
        let literal = unpack_xz(packed)
            .map_err(|error| fields.malformed_at(packed_at, "miniso packed bytes", "an xz stream", error))?;
        let description = Self { writer, table, digest, literal: literal.into() };
        description.check_table(full, offset)?;
        Ok(description)
    }

    fn check_table(&self, full: &Source, offset: u64) -> Result<()> {
        let mut end = 0;
        let mut gaps = 0;
        for entry in &self.table {
            let minimal = Extent::at_sector(entry.minimal_sector, entry.len);
            let source = Extent::at_sector(entry.full_sector, entry.len);
            if minimal.offset() < end {
                let expected = "sorted entries that do not overlap";
                let actual = format!("sector {}, inside the previous entry", entry.minimal_sector);
                return Err(full.malformed(offset, "miniso table", expected, actual));
            }
            if source.end() > full.len() {
                let actual = format!("sector {}, {} bytes", entry.full_sector, entry.len);
                return Err(full.malformed(offset, "miniso table", "entries within the image", actual));
            }
            gaps += minimal.offset() - end;
            end = minimal.end();
        }
        if gaps > self.literal.len() as u64 {
            let expected = format!("{gaps} bytes between the entries");
            return Err(full.malformed(offset, "miniso packed bytes", expected, self.literal.len()));
        }
        // Limit the minimal image to the length of the full image, because its files are a subset of the full image's
        // files. Without this limit, a table that repeats one file could describe terabytes.
        let len = end + (self.literal.len() as u64 - gaps);
        if len > full.len() {
            let expected = format!("at most the {} bytes of the full one", full.len());
            return Err(full.malformed(offset, "length of the minimal image", expected, len));
        }
        Ok(())
    }

    /// Hashes the minimal image through a buffer of fixed size and compares the result with the recorded digest.
    ///
    /// # Errors
    ///
    /// Returns an error if the digests differ or `full` cannot be read.
    pub(crate) fn verify(&self, full: &Arc<Source>) -> Result<()> {
        let actual = self.plan(full)?.sha256()?;
        if actual == self.digest {
            return Ok(());
        }
        let (expected, actual) = (self.digest.to_string(), actual.to_string());
        Err(Error::MinimalDigest { file: full.name().to_owned(), expected, found: actual })
    }

    /// Plans the minimal image exactly as the builder mastered it.
    pub(crate) fn plan(&self, full: &Arc<Source>) -> Result<Plan> {
        let mut segments = Vec::new();
        let mut rest = self.literal.clone();
        let mut end = 0;
        for entry in &self.table {
            let start = entry.minimal_sector.offset();
            // `check_table` has checked that the entries are in order and that the packed bytes fill the gaps between
            // them.
            let gap = start.checked_sub(end).or_internal("miniso entries out of order", start)?;
            let gap = usize::try_from(gap).ok().filter(|gap| *gap <= rest.len());
            let gap = gap.or_internal("too few packed bytes between miniso entries", start)?;
            segments.extend(split_zeros(&rest.split_to(gap)));
            segments.push(Segment::Base(Extent::at_sector(entry.full_sector, entry.len)));
            end = Extent::at_sector(entry.minimal_sector, entry.len).end();
        }
        segments.extend(split_zeros(&rest));
        Ok(Plan::new(Arc::clone(full), segments))
    }
}

/// A cursor over the fields of a description.
struct FieldCursor<'a> {
    full: &'a Source,
    offset: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FieldCursor<'a> {
    /// Returns an error for the field at `at`, an offset in the description.
    fn malformed_at(
        &self,
        at: usize,
        what: &'static str,
        expected: &str,
        actual: impl std::fmt::Display,
    ) -> Error {
        self.full.malformed(self.position(at), what, expected, actual)
    }

    /// Converts an offset in the description to an offset in the image.
    fn position(&self, at: usize) -> u64 {
        self.offset.saturating_add(at as u64)
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let Some(bytes) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            let rest = self.bytes.len() - self.at;
            return Err(self.malformed_at(self.at, what, &format!("{len} bytes of miniso.dat"), rest));
        };
        self.at += len;
        Ok(bytes)
    }

    fn take_array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let at = self.position(self.at);
        array_at(self.take(N, what)?, 0).or_internal("short field of miniso.dat", at)
    }

    fn read_number(&mut self, what: &'static str) -> Result<u64> {
        let at = self.at;
        let [tag] = self.take_array(what)?;
        match tag {
            0..=250 => Ok(u64::from(tag)),
            251 => Ok(u16::from_le_bytes(self.take_array(what)?).into()),
            252 => Ok(u32::from_le_bytes(self.take_array(what)?).into()),
            253 => Ok(u64::from_le_bytes(self.take_array(what)?)),
            _ => Err(self.malformed_at(at, what, "a number of up to 64 bits", tag)),
        }
    }

    /// Reads a length, then returns that many bytes.
    fn take_counted(&mut self, what: &'static str) -> Result<&'a [u8]> {
        let at = self.at;
        let len = self.read_number(what)?;
        let len = usize::try_from(len)
            .map_err(|_| self.malformed_at(at, what, "a length that fits in memory", len))?;
        self.take(len, what)
    }

    fn read_u32(&mut self, what: &'static str) -> Result<u32> {
        let at = self.at;
        let number = self.read_number(what)?;
        u32::try_from(number).map_err(|_| self.malformed_at(at, what, "32 bits", number))
    }

    /// Reads the table. The memory use grows with the number of entries read, not with the stated count.
    fn read_table(&mut self) -> Result<Vec<SharedExtent>> {
        let count = self.read_number("miniso table")?;
        let mut table = Vec::new();
        for _ in 0..count {
            table.push(SharedExtent {
                minimal_sector: Sector(self.read_u32("sector in the minimal image")?),
                full_sector: Sector(self.read_u32("sector in the full image")?),
                len: self.read_u32("length of a file")?,
            });
        }
        Ok(table)
    }
}

/// Splits bytes into segments. A long run of zeros becomes a segment without memory for the bytes.
fn split_zeros(bytes: &Bytes) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut literal_start = 0;
    let mut at = 0;
    while at < bytes.len() {
        let zeros = count_leading_zeros(bytes.split_at(at).1);
        if zeros >= MIN_ZERO_RUN {
            segments.push(Segment::Bytes(bytes.slice(literal_start..at)));
            segments.push(Segment::Zero(zeros as u64));
            literal_start = at + zeros;
        }
        at += zeros;
        at += bytes.iter().skip(at).take_while(|byte| **byte != 0).count();
    }
    segments.push(Segment::Bytes(bytes.slice(literal_start..)));
    segments.retain(|segment| !segment.is_empty());
    segments
}

fn unpack_xz(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let decoder = compression::xz_decoder(packed, DECODER_MEMORY)?;
    let mut unpacked = Vec::new();
    decoder.take(MAX_UNPACKED_LEN + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > MAX_UNPACKED_LEN {
        let text = format!("the packed bytes expand to more than {MAX_UNPACKED_LEN} bytes");
        return Err(std::io::Error::other(text));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<MinimalDescription> {
        MinimalDescription::parse(&Source::from_bytes("full", vec![0; 1 << 20]), 0, bytes)
    }

    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn plan_has_files_at_the_positions_of_the_table_and_packed_bytes_between() {
        let full: Vec<u8> = (0..20_u32 * 2048).map(|at| (at / 2048) as u8).collect();
        let full = Arc::new(Source::from_bytes("full", full));
        let mut bytes = b"MINISO\0\0\x01\x00\x02".to_vec();
        bytes.extend([1, 7, 251, 0, 8, 3, 5, 100]);
        bytes.extend([0; 32]);
        let packed = liblzma::encode_all(&vec![0xEE; 2048 + 2048 + 10][..], 0).unwrap();
        bytes.push(u8::try_from(packed.len()).unwrap());
        bytes.extend(packed);
        let description = MinimalDescription::parse(&full, 0, &bytes).unwrap();
        let expected: Vec<u8> = [(0xEE, 2048), (7, 2048), (0xEE, 2048), (5, 100), (0xEE, 10)]
            .into_iter()
            .flat_map(|(byte, len)| vec![byte; len])
            .collect();
        assert_eq!(description.plan(&full).unwrap().read_all(1 << 20).unwrap(), expected);
    }

    #[test]
    fn split_zeros_keeps_every_byte() {
        for lens in [[4, 5000, 1], [5000, 3, 5000], [1, 4095, 1], [0, 4096, 0], [0, 0, 0]] {
            let runs = lens.into_iter().enumerate().map(|(index, len)| vec![(index % 2) as u8 ^ 1; len]);
            let bytes: Bytes = runs.collect::<Vec<_>>().concat().into();
            let segments = split_zeros(&bytes);
            assert_eq!(
                segments.iter().any(|it| matches!(it, Segment::Zero(_))),
                lens[1] >= MIN_ZERO_RUN && lens[0] < 5000
            );
            let plan = Plan::new(Arc::new(Source::from_bytes("base", Bytes::new())), segments);
            assert_eq!(plan.read_all(1 << 20).unwrap(), bytes);
        }
    }

    #[test]
    fn plan_of_an_unchecked_description_is_an_internal_error() {
        let full = Arc::new(Source::from_bytes("full", vec![0; 1 << 20]));
        let entry =
            |minimal| SharedExtent { minimal_sector: Sector(minimal), full_sector: Sector(0), len: 2048 };
        for (table, literal) in [(vec![entry(1), entry(1)], 2048), (vec![entry(1)], 2047)] {
            let literal = vec![0; literal].into();
            let description =
                MinimalDescription { writer: String::new(), table, digest: Digest::default(), literal };
            assert!(matches!(description.plan(&full), Err(Error::Internal { offset: 2048, .. })));
        }
    }

    #[test]
    fn rejects_counts_beyond_the_bytes() {
        let mut bytes = b"MINISO\0\0\x01\x00\xFD".to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(parse(&bytes).is_err());
    }

    /// The table has 100 entries that each cover the whole full image, so the minimal image would be 100 times as long.
    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn rejects_minimal_images_longer_than_the_full_image() {
        let mut bytes = b"MINISO\0\0\x01\x00\x64".to_vec();
        for entry in 0..100_u16 {
            bytes.push(251);
            bytes.extend((entry * 512).to_le_bytes());
            bytes.extend(*b"\x00\xFC\x00\x00\x10\x00");
        }
        bytes.extend([0; 32]);
        let empty = liblzma::encode_all(&b""[..], 0).unwrap();
        bytes.push(u8::try_from(empty.len()).unwrap());
        bytes.extend(empty);
        let error = parse(&bytes).unwrap_err().to_string();
        assert!(error.contains("length of the minimal image: expected at most the 1048576 bytes"), "{error}");
    }

    /// A malformed stream is reported as a defect of the image, not of the storage, with the offset of the stream.
    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn rejects_packed_bytes_that_do_not_decode() {
        let mut bytes = b"MINISO\0\0\x01\x00\x00".to_vec();
        bytes.extend([0; 32]);
        bytes.extend(b"\x06\xFD7zXZ\0");
        let error = parse(&bytes).unwrap_err();
        assert!(matches!(error, Error::Malformed { offset: 44, .. }), "{error}");
    }

    #[test]
    fn malformed_field_is_reported_with_its_offset() {
        let magic = b"MINISO\0\0".to_vec();
        let with = |rest: &[u8]| [magic.as_slice(), rest].concat();
        for (bytes, at) in [
            (b"MINISO\0\x01".to_vec(), 0),
            (b"MINISO".to_vec(), 0),
            (with(b""), 8),
            (with(b"\x02"), 8),
            (with(b"\xFB\x02\x00"), 8),
            (with(b"\xFF"), 8),
            (with(b"\xFB\x01"), 9),
            (with(b"\x01\x09abc"), 10),
            (with(b"\x01\x00\x01\x00\xFD\0\0\0\0\x01\0\0\0"), 12),
            (with(b"\x01\x00\x00digest"), 11),
        ] {
            let error = parse(&bytes).unwrap_err();
            assert!(matches!(error, Error::Malformed { offset, .. } if offset == at), "{at}: {error}");
        }
    }

    #[test]
    fn rejects_descriptions_at_the_end_of_64_bits() {
        let full = Source::from_bytes("full", vec![0; 2048]);
        for bytes in [&b"MINISO\0\0"[..], b"MINISO\0\0\x01\xFF"] {
            assert!(MinimalDescription::parse(&full, u64::MAX, bytes).is_err());
        }
    }

    #[test]
    fn rejects_other_files_and_versions() {
        assert!(parse(b"MINISO\0\x01").unwrap_err().to_string().contains("not a miniso file!"));
        assert!(
            parse(b"MINISO\0\0\x02").unwrap_err().to_string().contains("incompatible miniso file version")
        );
    }
}

//! `miniso.dat`: the description of the minimal ISO in terms of the full one.
//!
//! The builder masters a second image without the root file system and records the differences: which runs of bytes are
//! files of the full image and, packed with xz, all bytes between them.
//!
//! ```text
//! magic "MINISO\0\0", version 1, version of the writer (text)
//! count, then per entry: sector in the minimal image, sector in the full image, bytes
//! SHA-256 of the minimal image
//! length, then an xz stream of the bytes that no entry covers
//! ```
//!
//! Numbers are bincode's: one byte below 251, else a tag byte and 16, 32 or 64 bits, little-endian.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes_at::array;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::extent::{Extent, Sector};
use crate::plan::{Plan, Segment};
use crate::source::Source;

pub(crate) const PATH: &str = "coreos/miniso.dat";
const MAGIC: &[u8] = b"MINISO\0\0";
const VERSION: u64 = 1;
/// The largest description that is read. Builders reserve 16 KiB.
pub(crate) const MAX_LEN: u64 = 1 << 20;
/// The limit of unpacked bytes: metadata and the ends of sectors, in practice below a MiB.
const MAX_UNPACKED: u64 = 64 << 20;
/// The memory limit of the xz decoder: preset 9 needs 65 MiB.
const DECODER_MEMORY: u64 = 256 << 20;
/// A run of the minimal image that is a file of the full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry {
    /// Its first sector in the minimal image.
    pub minimal: Sector,
    /// Its first sector in the full image.
    pub full: Sector,
    /// Its length in bytes.
    pub len: u32,
}

/// A parsed `miniso.dat`.
#[derive(Debug, Clone)]
pub struct MinimalDescription {
    /// The version of the program that wrote it.
    pub writer: String,
    /// The runs that are files, in the order of the minimal image.
    pub table: Vec<TableEntry>,
    /// The digest of the minimal image.
    pub digest: Digest,
    /// All other bytes, in order.
    literal: Bytes,
}

impl MinimalDescription {
    /// Parses the `miniso.dat` of the image `full`. `offset` is its offset in that image.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a `miniso.dat`, refer to bytes outside of the image, or do not unpack.
    pub fn parse(full: &Source, offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields { full, offset, bytes, at: 0 };
        let magic = fields.take(MAGIC.len(), "magic")?;
        if magic != MAGIC {
            return Err(fields.malformed_at(
                0,
                "miniso magic",
                "MINISO (not a miniso file!)",
                magic.escape_ascii(),
            ));
        }
        let at = fields.at;
        let version = fields.number("version")?;
        if version != VERSION {
            let expected = "1 (incompatible miniso file version)";
            return Err(fields.malformed_at(at, "miniso version", expected, version));
        }
        let writer = fields.len("version of the writer")?;
        let writer = String::from_utf8_lossy(fields.take(writer, "version of the writer")?).into_owned();
        let table = fields.table()?;
        let digest = fields.digest()?;
        let packed_len = fields.len("packed bytes")?;
        let packed_at = fields.position(fields.at);
        let packed = fields.take(packed_len, "packed bytes")?;
        let literal = unpack(packed)
            .map_err(|error| full.malformed(packed_at, "miniso packed bytes", "an xz stream", error))?;
        let description = Self { writer, table, digest, literal: literal.into() };
        description.check(full, offset)?;
        Ok(description)
    }

    fn check(&self, full: &Source, offset: u64) -> Result<()> {
        let mut end = 0;
        let mut gaps = 0;
        for entry in &self.table {
            let minimal = Extent::at_sector(entry.minimal, entry.len);
            let source = Extent::at_sector(entry.full, entry.len);
            if minimal.offset() < end {
                let found = format!("sector {}, inside the entry before", entry.minimal);
                return Err(full.malformed(
                    offset,
                    "miniso table",
                    "entries in order, none overlapping",
                    found,
                ));
            }
            if source.end() > full.len() {
                let found = format!("sector {}, {} bytes", entry.full, entry.len);
                return Err(full.malformed(offset, "miniso table", "entries within the image", found));
            }
            gaps += minimal.offset() - end;
            end = minimal.end();
        }
        if gaps > self.literal.len() as u64 {
            let expected = format!("{gaps} bytes between the entries");
            return Err(full.malformed(offset, "miniso packed bytes", expected, self.literal.len()));
        }
        // A minimal image has fewer files than the full one. A table that names the same file many times could describe
        // terabytes.
        let len = end + (self.literal.len() as u64 - gaps);
        if len > full.len() {
            let expected = format!("at most the {} bytes of the full one", full.len());
            return Err(full.malformed(offset, "length of the minimal image", expected, len));
        }
        Ok(())
    }

    /// Hashes the minimal image, in memory bounded by a buffer, and compares the result with the recorded digest.
    ///
    /// # Errors
    ///
    /// Returns an error if the digests differ or `full` cannot be read.
    pub fn verify(&self, full: &Arc<Source>) -> Result<()> {
        // A base image that is being downloaded arrives in order. If the last byte that is needed is missing, this read
        // names it, and the caller waits once instead of hashing again for each byte that was missing.
        if let Some(last) = self.last_byte() {
            full.read_extent(last)?;
        }
        let found = self.plan(full).sha256()?;
        if found == self.digest {
            return Ok(());
        }
        Err(Error::MinimalDigest {
            file: full.name().to_owned(),
            expected: self.digest.to_string(),
            found: found.to_string(),
        })
    }

    /// Returns the last byte of the full image that the minimal one contains.
    fn last_byte(&self) -> Option<Extent> {
        let ends = self.table.iter().map(|entry| Extent::at_sector(entry.full, entry.len).end());
        Extent::new(ends.max()?.checked_sub(1)?, 1)
    }

    /// Plans the minimal image as the builder mastered it.
    pub(crate) fn plan(&self, full: &Arc<Source>) -> Plan {
        let mut segments = Vec::new();
        let mut rest = self.literal.clone();
        let mut end = 0;
        for entry in &self.table {
            let gap = usize::try_from(entry.minimal.offset().saturating_sub(end)).unwrap_or(rest.len());
            segments.extend(Plan::split_zeros(&rest.split_to(gap.min(rest.len()))));
            segments.push(Segment::Base(Extent::at_sector(entry.full, entry.len)));
            end = Extent::at_sector(entry.minimal, entry.len).end();
        }
        segments.extend(Plan::split_zeros(&rest));
        Plan::of(Arc::clone(full), segments)
    }
}

/// A cursor over the fields of a description.
struct Fields<'a> {
    full: &'a Source,
    offset: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Returns an error about the field at `at`.
    fn malformed_at(
        &self,
        at: usize,
        what: &'static str,
        expected: &str,
        found: impl std::fmt::Display,
    ) -> Error {
        self.full.malformed(self.position(at), what, expected, found)
    }

    /// Returns the offset in the image of a byte of the description.
    fn position(&self, at: usize) -> u64 {
        self.offset.saturating_add(at as u64)
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            let rest = self.bytes.len() - self.at;
            return Err(self.malformed_at(self.at, what, &format!("{len} bytes of miniso.dat"), rest));
        };
        self.at += len;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u64> {
        let at = self.at;
        let tag = self.take(1, what)?.first().copied().unwrap_or_default();
        let len = match tag {
            0..=250 => return Ok(u64::from(tag)),
            251 => 2,
            252 => 4,
            253 => 8,
            _ => return Err(self.malformed_at(at, what, "a number of up to 64 bits", tag)),
        };
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(self.take(len, what)?) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    fn len(&mut self, what: &'static str) -> Result<usize> {
        let at = self.at;
        let len = self.number(what)?;
        usize::try_from(len).map_err(|_| self.malformed_at(at, what, "a length that fits in memory", len))
    }

    fn number_u32(&mut self, what: &'static str) -> Result<u32> {
        let at = self.at;
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| self.malformed_at(at, what, "32 bits", number))
    }

    /// Reads the table. Memory grows with the bytes that exist, not with the stated count.
    fn table(&mut self) -> Result<Vec<TableEntry>> {
        let count = self.number("miniso table")?;
        let mut table = Vec::new();
        for _ in 0..count {
            table.push(TableEntry {
                minimal: Sector(self.number_u32("sector in the minimal image")?),
                full: Sector(self.number_u32("sector in the full image")?),
                len: self.number_u32("length of a file")?,
            });
        }
        Ok(table)
    }

    fn digest(&mut self) -> Result<Digest> {
        let bytes = self.take(32, "digest")?;
        Ok(Digest(array(bytes, 0).unwrap_or_default()))
    }
}

fn unpack(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let stream = liblzma::stream::Stream::new_stream_decoder(DECODER_MEMORY, 0)?;
    let mut unpacked = Vec::new();
    let decoder = liblzma::bufread::XzDecoder::new_stream(packed, stream);
    decoder.take(MAX_UNPACKED + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err(std::io::Error::other(format!("the packed bytes grow beyond {MAX_UNPACKED}")));
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
    fn plan_has_files_where_the_table_says_and_packed_bytes_between() {
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
        assert_eq!(description.plan(&full).read_all(1 << 20).unwrap(), expected);
        assert_eq!(description.last_byte(), Extent::new(7 * 2048 + 2047, 1));
    }

    #[test]
    fn counts_are_not_believed() {
        let mut bytes = b"MINISO\0\0\x01\x00\xFD".to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(parse(&bytes).is_err());
    }

    /// A table of 100 entries, each the whole image again.
    #[test]
    fn a_minimal_image_is_not_longer_than_the_full_one() {
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

    /// A broken stream is the image's fault, not the storage's, and stands at its own place.
    #[test]
    fn packed_bytes_that_do_not_decode_are_malformed() {
        let mut bytes = b"MINISO\0\0\x01\x00\x00".to_vec();
        bytes.extend([0; 32]);
        bytes.extend(b"\x06\xFD7zXZ\0");
        let error = parse(&bytes).unwrap_err();
        assert!(matches!(error, Error::Malformed { offset: 44, .. }), "{error}");
    }

    #[test]
    fn every_field_that_is_malformed_has_its_own_place() {
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
    fn a_description_at_the_end_of_64_bits_is_refused_too() {
        let full = Source::from_bytes("full", vec![0; 2048]);
        for bytes in [&b"MINISO\0\0"[..], b"MINISO\0\0\x01\xFF"] {
            assert!(MinimalDescription::parse(&full, u64::MAX, bytes).is_err());
        }
    }

    #[test]
    fn other_files_and_versions_are_named() {
        assert!(parse(b"MINISO\0\x01").unwrap_err().to_string().contains("not a miniso file!"));
        assert!(
            parse(b"MINISO\0\0\x02").unwrap_err().to_string().contains("incompatible miniso file version")
        );
    }
}

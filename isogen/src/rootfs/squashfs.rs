//! squashfs 4.0, as far as it takes to read one file of known path.
//!
//! ```text
//! superblock (96 bytes): magic "hsqs" 0, block size u32 12, compressor u16 20, block log u16 22, version u16 28 and 30,
//!     root inode u64 32, bytes used u64 40, inode table u64 64, directory table u64 72, fragment table u64 80
//! metadata block: length u16, bit 15 stored as it is; at most 8192 bytes when decoded
//! inode reference: place of the metadata block in the inode table << 16 | offset in the decoded block
//! block length u32: bit 24 stored as it is, 0 a hole
//! ```
//!
//! Only the metadata blocks on the way to a file are read, and its own blocks: a lookup costs the same in a file system
//! of any size.

use super::codec::Codec;
use super::filesystem::{Entry, FileSystem, Kind, MAX_FILE_LEN, MAX_LISTING_LEN};
use super::window::Window;
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::{Error, Result};

pub(super) const MAGIC: &[u8] = b"hsqs";

const SUPERBLOCK_LEN: usize = 96;
/// Most decoded bytes in a metadata block.
const METADATA_LEN: usize = 8192;
/// The flag of a metadata block that is stored as it is.
const METADATA_STORED: u16 = 1 << 15;
/// The flag of a data block that is stored as it is, above its length.
const DATA_STORED: u32 = 1 << 24;
/// The sizes that data blocks may have.
const BLOCK_LOGS: std::ops::RangeInclusive<u16> = 12..=20;
/// In place of a fragment's number: the file has none.
const NO_FRAGMENT: u32 = u32::MAX;
/// Fragments that one metadata block describes, and the length of each description.
const FRAGMENTS_PER_BLOCK: u32 = 512;
const FRAGMENT_LEN: u32 = 16;
/// Most entries behind one header of a directory.
const MAX_RUN: u32 = 256;
/// What the length of a directory counts beyond its listing.
const LISTING_EXTRA: u64 = 3;

/// An opened file system.
#[derive(Debug)]
pub(super) struct Squashfs {
    window: Window,
    codec: Codec,
    block_len: u32,
    root: u64,
    inodes: u64,
    directories: u64,
    fragments: u64,
    fragment_count: u32,
}

impl Squashfs {
    /// Reads the superblock.
    pub(super) fn open(window: Window) -> Result<Self> {
        let bytes = window.read(0, SUPERBLOCK_LEN, "squashfs superblock")?;
        let u16_at = |offset| u16_le(&bytes, offset).unwrap_or_default();
        let u32_at = |offset| u32_le(&bytes, offset).unwrap_or_default();
        let u64_at = |offset| u64_le(&bytes, offset).unwrap_or_default();
        let version = (u16_at(28), u16_at(30));
        if version != (4, 0) {
            let found = format!("{}.{}", version.0, version.1);
            return Err(window.unsupported(28, "squashfs version", found));
        }
        let (block_len, log) = (u32_at(12), u16_at(22));
        if !BLOCK_LOGS.contains(&log) || block_len != 1 << log {
            let found = format!("{block_len} with the logarithm {log}");
            return Err(window.malformed(12, "squashfs block size", "a power of two, 4 KiB to 1 MiB", found));
        }
        let used = u64_at(40);
        if used > window.len() {
            let expected = format!("at most {}", window.len());
            return Err(window.malformed(40, "squashfs length", expected, used));
        }
        let codec =
            codec(u16_at(20)).map_err(|found| window.unsupported(20, "squashfs compressor", found))?;
        let (inodes, directories, fragments) = (u64_at(64), u64_at(72), u64_at(80));
        let (root, fragment_count) = (u64_at(32), u32_at(16));
        Ok(Self { window, codec, block_len, root, inodes, directories, fragments, fragment_count })
    }

    /// Begins to read metadata: at a block that stands at `block` in a table, `offset` bytes into its decoded form.
    fn metadata(&self, what: &'static str, table: u64, place: Place) -> Result<Metadata<'_>> {
        let Some(next) = table.checked_add(place.block) else {
            return Err(self.window.malformed(table, what, "a place within the image", place.block));
        };
        let mut metadata = Metadata { filesystem: self, what, block: next, next, bytes: Vec::new(), at: 0 };
        metadata.advance()?;
        metadata.at = usize::from(place.offset);
        Ok(metadata)
    }

    /// Reads an inode. What belongs to it and has no fixed length comes next in the metadata.
    fn inode(&self, reference: u64) -> Result<(Inode, Metadata<'_>)> {
        let mut metadata = self.metadata("squashfs inode", self.inodes, Place::of_reference(reference))?;
        let place = metadata.block;
        let header = metadata.take(16)?;
        let kind = u16_le(&header, 0).unwrap_or_default();
        let body = match kind {
            1 => Body::directory(&metadata.take(16)?),
            8 => Body::extended_directory(&metadata.take(24)?),
            2 => Body::file(&metadata.take(16)?),
            9 => Body::extended_file(&metadata.take(40)?),
            3 | 10 => Some(Body::Symlink),
            4..=7 | 11..=14 => Some(Body::Other),
            found => return Err(self.window.malformed(place, "squashfs inode type", "1 to 14", found)),
        };
        let body =
            body.ok_or_else(|| self.window.malformed(place, "squashfs inode", "all fields", "fewer"))?;
        Ok((Inode { place, body }, metadata))
    }

    fn contents(&self, file: &FileBody, mut metadata: Metadata<'_>) -> Result<Vec<u8>> {
        let block_len = u64::from(self.block_len);
        let has_tail = file.fragment != NO_FRAGMENT;
        let blocks = if has_tail { file.len / block_len } else { file.len.div_ceil(block_len) };
        metadata.what = "squashfs block list";
        let list = metadata.take(usize::try_from(blocks * 4).unwrap_or(usize::MAX))?;
        let (sizes, _) = list.as_chunks::<4>();
        // The limit bounds this, and pages of it that are never written take no memory.
        let mut contents = Vec::with_capacity(usize::try_from(file.len).unwrap_or_default());
        let mut offset = file.start;
        for stored in sizes.iter().map(|size| u32::from_le_bytes(*size)) {
            let len = rest(file.len, &contents).min(block_len);
            self.block(&mut contents, offset, stored, len)?;
            offset = offset.saturating_add(u64::from(stored & !DATA_STORED));
        }
        if has_tail {
            contents.extend(self.tail(file, rest(file.len, &contents))?);
        }
        Ok(contents)
    }

    /// Appends what one data block holds, which has to be `len` bytes.
    fn block(&self, contents: &mut Vec<u8>, offset: u64, stored: u32, len: u64) -> Result<()> {
        let what = "squashfs data block";
        let len = usize::try_from(len).unwrap_or_default();
        if stored == 0 {
            contents.resize(contents.len().saturating_add(len), 0);
            return Ok(());
        }
        if u32::try_from(len).is_ok_and(|len| stored == len | DATA_STORED) {
            return self.window.append(contents, offset, len, what);
        }
        let found = self.decoded(offset, stored)?;
        if found.len() != len {
            return Err(self.window.malformed(offset, what, format!("{len} bytes"), found.len()));
        }
        contents.extend(found);
        Ok(())
    }

    /// Decodes a data block or fragment block of any length.
    fn decoded(&self, offset: u64, stored: u32) -> Result<Vec<u8>> {
        let what = "squashfs data block";
        let stored_len = stored & !DATA_STORED;
        if stored_len > self.block_len {
            let expected = format!("at most {} bytes", self.block_len);
            return Err(self.window.malformed(offset, what, expected, stored_len));
        }
        let bytes = self.window.read(offset, usize::try_from(stored_len).unwrap_or_default(), what)?;
        if stored & DATA_STORED != 0 {
            return Ok(bytes);
        }
        self.decode(&bytes, usize::try_from(self.block_len).unwrap_or_default(), offset, what)
    }

    fn decode(&self, bytes: &[u8], limit: usize, offset: u64, what: &'static str) -> Result<Vec<u8>> {
        let decoded = self.codec.decode(bytes, limit);
        decoded.map_err(|error| self.window.malformed(offset, what, format!("{} data", self.codec), error))
    }

    /// The end of a file, which shares a block with the ends of others.
    fn tail(&self, file: &FileBody, len: u64) -> Result<Vec<u8>> {
        let what = "squashfs fragment";
        if file.fragment >= self.fragment_count {
            let expected = format!("one of {}", self.fragment_count);
            return Err(self.window.malformed(self.fragments, what, expected, file.fragment));
        }
        // The table is an array of places, each of a metadata block with 512 descriptions.
        let index = u64::from(file.fragment / FRAGMENTS_PER_BLOCK);
        let place = self.window.read(self.fragments.saturating_add(index * 8), 8, what)?;
        let block = u64_le(&place, 0).unwrap_or_default();
        let offset = file.fragment % FRAGMENTS_PER_BLOCK * FRAGMENT_LEN;
        let place = Place { block, offset: u16::try_from(offset).unwrap_or_default() };
        let description = self.metadata(what, 0, place)?.take(16)?;
        let start = u64_le(&description, 0).unwrap_or_default();
        let bytes = self.decoded(start, u32_le(&description, 8).unwrap_or_default())?;
        let first = usize::try_from(file.fragment_offset).ok();
        let range = first.and_then(|first| Some(first..first.checked_add(usize::try_from(len).ok()?)?));
        let tail = range.and_then(|range| bytes.get(range));
        tail.map(<[u8]>::to_vec).ok_or_else(|| {
            let expected = format!("{len} bytes from {}", file.fragment_offset);
            self.window.malformed(start, what, expected, format!("{} bytes", bytes.len()))
        })
    }
}

/// How many bytes of a file are not there yet.
fn rest(len: u64, contents: &[u8]) -> u64 {
    len.saturating_sub(contents.len() as u64)
}

impl FileSystem for Squashfs {
    fn name(&self) -> &'static str {
        "squashfs"
    }

    fn root(&self) -> u64 {
        self.root
    }

    fn kind(&self, reference: u64) -> Result<Kind> {
        Ok(self.inode(reference)?.0.kind())
    }

    fn list(&self, reference: u64) -> Result<Vec<Entry>> {
        let (inode, _) = self.inode(reference)?;
        let Body::Directory(directory) = inode.body else {
            return Err(self.window.malformed(inode.place, "squashfs inode", "a directory", inode.kind()));
        };
        let len = u64::from(directory.len).saturating_sub(LISTING_EXTRA);
        let Some(mut rest) = usize::try_from(len).ok().filter(|_| len <= MAX_LISTING_LEN) else {
            let expected = format!("at most {MAX_LISTING_LEN} bytes");
            return Err(self.window.malformed(inode.place, "squashfs directory", expected, len));
        };
        let mut entries = Vec::new();
        if rest == 0 {
            return Ok(entries);
        }
        let mut metadata = self.metadata("squashfs directory", self.directories, directory.place)?;
        while rest > 0 {
            let header = metadata.take_of(&mut rest, 12)?;
            let count = u32_le(&header, 0).unwrap_or_default().saturating_add(1);
            if count > MAX_RUN {
                return Err(metadata.malformed(format!("runs of at most {MAX_RUN} entries"), count));
            }
            let block = u64::from(u32_le(&header, 4).unwrap_or_default());
            for _ in 0..count {
                let entry = metadata.take_of(&mut rest, 8)?;
                let offset = u64::from(u16_le(&entry, 0).unwrap_or_default());
                let name_len = usize::from(u16_le(&entry, 6).unwrap_or_default()) + 1;
                let name = metadata.take_of(&mut rest, name_len)?;
                entries.push(Entry { name, inode: block << 16 | offset });
            }
        }
        Ok(entries)
    }

    fn read(&self, reference: u64) -> Result<Vec<u8>> {
        let (inode, metadata) = self.inode(reference)?;
        match inode.body {
            Body::File(file) if file.len <= MAX_FILE_LEN => self.contents(&file, metadata),
            Body::File(file) => {
                let expected = format!("at most {MAX_FILE_LEN} bytes");
                Err(self.window.malformed(inode.place, "squashfs file", expected, file.len))
            }
            _ => Err(self.window.malformed(inode.place, "squashfs inode", "a regular file", inode.kind())),
        }
    }
}

/// What compresses a file system, or the name of a compressor that is not read.
fn codec(id: u16) -> Result<Codec, String> {
    match id {
        1 => Ok(Codec::Zlib),
        2 => Err("lzma".into()),
        3 => Err("lzo".into()),
        4 => Ok(Codec::Xz),
        5 => Ok(Codec::Lz4),
        6 => Ok(Codec::Zstd),
        _ => Err(format!("number {id}")),
    }
}

/// A place in a table: a metadata block, and a byte of its decoded form.
#[derive(Debug, Clone, Copy)]
struct Place {
    block: u64,
    offset: u16,
}

impl Place {
    fn of_reference(reference: u64) -> Self {
        Self { block: reference >> 16, offset: u16::try_from(reference & 0xFFFF).unwrap_or_default() }
    }
}

#[derive(Debug)]
struct Inode {
    /// The metadata block that holds it, for messages.
    place: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Directory(DirectoryBody),
    File(FileBody),
    Symlink,
    Other,
}

#[derive(Debug)]
struct DirectoryBody {
    place: Place,
    len: u32,
}

#[derive(Debug)]
struct FileBody {
    start: u64,
    len: u64,
    fragment: u32,
    fragment_offset: u32,
}

impl Inode {
    fn kind(&self) -> Kind {
        match self.body {
            Body::Directory(_) => Kind::Directory,
            Body::File(_) => Kind::File,
            Body::Symlink => Kind::Symlink,
            Body::Other => Kind::Other,
        }
    }
}

impl Body {
    fn directory(bytes: &[u8]) -> Option<Self> {
        let place = Place { block: u32_le(bytes, 0)?.into(), offset: u16_le(bytes, 10)? };
        Some(Self::Directory(DirectoryBody { place, len: u16_le(bytes, 8)?.into() }))
    }

    fn extended_directory(bytes: &[u8]) -> Option<Self> {
        let place = Place { block: u32_le(bytes, 8)?.into(), offset: u16_le(bytes, 18)? };
        Some(Self::Directory(DirectoryBody { place, len: u32_le(bytes, 4)? }))
    }

    fn file(bytes: &[u8]) -> Option<Self> {
        Some(Self::File(FileBody {
            start: u32_le(bytes, 0)?.into(),
            fragment: u32_le(bytes, 4)?,
            fragment_offset: u32_le(bytes, 8)?,
            len: u32_le(bytes, 12)?.into(),
        }))
    }

    fn extended_file(bytes: &[u8]) -> Option<Self> {
        Some(Self::File(FileBody {
            start: u64_le(bytes, 0)?,
            len: u64_le(bytes, 8)?,
            fragment: u32_le(bytes, 28)?,
            fragment_offset: u32_le(bytes, 32)?,
        }))
    }
}

/// Decoded metadata, taken from front to back.
#[derive(Debug)]
struct Metadata<'a> {
    filesystem: &'a Squashfs,
    what: &'static str,
    /// Where the current block stands, and the next one.
    block: u64,
    next: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl Metadata<'_> {
    fn malformed(&self, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
        self.filesystem.window.malformed(self.block, self.what, expected, found)
    }

    /// Decodes the next block.
    fn advance(&mut self) -> Result<()> {
        self.block = self.next;
        let stored = self.filesystem.window.read_up_to(self.block, 2 + METADATA_LEN, self.what)?;
        let header = u16_le(&stored, 0).unwrap_or_default();
        let len = usize::from(header & !METADATA_STORED);
        let Some(stored) = stored.get(2..2 + len).filter(|_| len > 0) else {
            let expected = format!("a metadata block of 1 to {METADATA_LEN} bytes within the image");
            return Err(self.malformed(expected, len));
        };
        self.bytes = match header & METADATA_STORED {
            0 => self.filesystem.decode(stored, METADATA_LEN, self.block, self.what)?,
            _ => stored.to_vec(),
        };
        self.next = self.block + 2 + len as u64;
        self.at = 0;
        Ok(())
    }

    /// Takes `len` bytes. Memory grows with the bytes that really come.
    fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut taken = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let step = rest.len().min(len - taken.len());
            taken.extend_from_slice(rest.get(..step).unwrap_or_default());
            self.at += step;
            if taken.len() == len {
                return Ok(taken);
            }
            // All blocks but the last of a table are full; without that, a hostile table could go on for ever.
            if self.at != METADATA_LEN {
                let expected = format!("{} more bytes", len - taken.len());
                return Err(self.malformed(expected, "the end of the metadata"));
            }
            self.advance()?;
        }
    }

    /// Takes `len` bytes out of what is left of a structure.
    fn take_of(&mut self, rest: &mut usize, len: usize) -> Result<Vec<u8>> {
        match rest.checked_sub(len) {
            Some(behind) => {
                *rest = behind;
                self.take(len)
            }
            None => Err(self.malformed(format!("{len} more bytes"), format!("{rest} bytes"))),
        }
    }
}

//! EROFS, as far as it takes to read one file of known path.
//!
//! ```text
//! superblock (128 bytes at 1024): magic 0, block size (logarithm) 12, root inode u16 14, metadata start in blocks u32 40,
//!     features u32 80, algorithms u16 84, further devices u16 86, directory block size 90, packed inode u64 96
//! inode (32 or 64 bytes at metadata start + number * 32): form u16 0 (bit 0 long, bits 1 to 3 layout),
//!     attribute words u16 2, mode u16 4, length u32 or u64 8, blocks u32 16
//! directory block: entries of 12 bytes (inode u64 0, place of the name u16 8), then the names
//! ```
//!
//! `inode` finds and reads the metadata, `compressed` the layouts with indexes. Compressed data may end in, or wholly be, a
//! stretch of the one *packed inode*, where the ends of many files are compressed together.

mod compressed;
mod inode;

use self::inode::{Inode, Layout};
use super::codec::Codec;
use super::filesystem::{Entry, FileSystem, Kind, MAX_FILE_LEN, MAX_LISTING_LEN};
use super::window::Window;
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::{Error, Result};
use crate::extent::Extent;

const SUPERBLOCK: u64 = 1024;
const SUPERBLOCK_LEN: usize = 128;
const MAGIC: u32 = 0xE0F5_E1E2;
/// The sizes that blocks may have.
const BLOCK_BITS: std::ops::RangeInclusive<u8> = 9..=16;
/// Bytes of an entry in a directory block.
const ENTRY_LEN: usize = 12;
/// In place of a block's number: zeros.
const HOLE: u32 = u32::MAX;
/// Most stored bytes that one file may make us read: four times what may come out, since extents may share data.
const MAX_STORED: u64 = 4 * MAX_FILE_LEN;

/// Data is at the end of its blocks, zeros before it.
const ZERO_PADDING: u32 = 0x1;
/// The superblock lists compression algorithms.
const COMPRESSION_CONFIGS: u32 = 0x2;
/// Every bit that this reader knows. Extended attribute names (the last one) do not concern it.
const KNOWN_FEATURES: u32 = 0x7F;
/// What the others are called.
const OTHER_FEATURES: [(u32, &str); 2] = [(0x80, "48-bit block addresses"), (0x100, "metadata in a metabox")];

/// An opened file system.
#[derive(Debug)]
pub(super) struct Erofs {
    window: Window,
    block_bits: u8,
    metadata: u64,
    root: u64,
    packed: u64,
    features: u32,
    algorithms: u16,
}

impl Erofs {
    /// Reads the superblock.
    pub(super) fn open(window: Window) -> Result<Self> {
        let bytes = window.read(SUPERBLOCK, SUPERBLOCK_LEN, "EROFS superblock")?;
        let u16_at = |offset| u16_le(&bytes, offset).unwrap_or_default();
        let u32_at = |offset| u32_le(&bytes, offset).unwrap_or_default();
        let byte_at = |offset| bytes.get(offset).copied().unwrap_or_default();
        if u32_at(0) != MAGIC {
            let found = bytes.get(..4).unwrap_or_default().escape_ascii().to_string();
            return Err(window.malformed(0, "root file system", "squashfs or EROFS", found));
        }
        let features = u32_at(80);
        if features & !KNOWN_FEATURES != 0 {
            let name = OTHER_FEATURES.iter().find(|(bit, _)| features & bit != 0);
            let found = name.map_or_else(|| format!("{features:#x}"), |(_, name)| (*name).to_owned());
            return Err(window.unsupported(SUPERBLOCK + 80, "EROFS feature", found));
        }
        let block_bits = byte_at(12);
        if !BLOCK_BITS.contains(&block_bits) {
            let expected = "512 bytes to 64 KiB";
            return Err(window.malformed(
                SUPERBLOCK + 12,
                "EROFS block size",
                expected,
                format!("2^{block_bits}"),
            ));
        }
        if byte_at(90) != 0 {
            let found = format!("{} blocks", 1_u128 << (byte_at(90) & 0x7F));
            return Err(window.unsupported(SUPERBLOCK + 90, "EROFS directory block size", found));
        }
        Ok(Self {
            block_bits,
            metadata: u64::from(u32_at(40)) << block_bits,
            root: u64::from(u16_at(14)),
            packed: u64_le(&bytes, 96).unwrap_or_default(),
            features,
            // The field has another meaning in images of before there was a choice.
            algorithms: if features & COMPRESSION_CONFIGS == 0 { 1 } else { u16_at(84) },
            window,
        })
    }

    fn block_len(&self) -> u64 {
        1 << self.block_bits
    }

    /// The byte at which a block begins; a 32-bit number of blocks of 64 KiB cannot overflow this.
    fn block_offset(&self, block: u32) -> u64 {
        u64::from(block) << self.block_bits
    }

    /// What an algorithm's number stands for.
    fn codec(&self, algorithm: u8, place: u64) -> Result<Codec> {
        let codec = match algorithm {
            0 => Codec::Lz4,
            1 => Codec::MicroLzma,
            2 => Codec::Deflate,
            3 => Codec::Zstd,
            _ => {
                return Err(self.window.unsupported(
                    place,
                    "EROFS compression",
                    format!("number {algorithm}"),
                ));
            }
        };
        if self.algorithms >> algorithm & 1 == 0 {
            let expected = format!("an algorithm of the superblock ({:#x})", self.algorithms);
            return Err(self.window.malformed(place, "EROFS compression", expected, codec));
        }
        Ok(codec)
    }

    fn inode(&self, number: u64) -> Result<Inode> {
        Inode::read(&self.window, self.metadata, number)
    }

    /// Reads a stretch of a file, which the caller has checked to lie inside.
    fn contents(&self, inode: &Inode, range: Extent) -> Result<Vec<u8>> {
        let mut reader = Reader { filesystem: self, stored: 0, contents: Vec::new(), end: range.len() };
        reader.read(inode, range.offset(), Depth::File)?;
        Ok(reader.contents)
    }

    /// Reads all of a file that has at most `limit` bytes.
    fn whole(&self, inode: &Inode, limit: u64) -> Result<Vec<u8>> {
        if inode.len > limit {
            let expected = format!("at most {limit} bytes");
            return Err(self.window.malformed(inode.place, "EROFS file", expected, inode.len));
        }
        self.contents(inode, Extent::first(inode.len))
    }
}

impl FileSystem for Erofs {
    fn name(&self) -> &'static str {
        "EROFS"
    }

    fn root(&self) -> u64 {
        self.root
    }

    fn kind(&self, number: u64) -> Result<Kind> {
        Ok(self.inode(number)?.kind)
    }

    fn list(&self, number: u64) -> Result<Vec<Entry>> {
        let inode = self.inode(number)?;
        if inode.kind != Kind::Directory {
            return Err(self.window.malformed(inode.place, "EROFS inode", "a directory", inode.kind));
        }
        let listing = self.whole(&inode, MAX_LISTING_LEN)?;
        let mut entries = Vec::new();
        for block in listing.chunks(usize::try_from(self.block_len()).unwrap_or(usize::MAX)) {
            let malformed = || {
                let expected = "entries, then their names in the same order";
                self.window.malformed(inode.place, "EROFS directory", expected, "something else")
            };
            entries.extend(block_entries(block).ok_or_else(malformed)?);
        }
        Ok(entries)
    }

    fn read(&self, number: u64) -> Result<Vec<u8>> {
        let inode = self.inode(number)?;
        if inode.kind != Kind::File {
            return Err(self.window.malformed(inode.place, "EROFS inode", "a regular file", inode.kind));
        }
        self.whole(&inode, MAX_FILE_LEN)
    }
}

/// The entries of one directory block. A name ends where the next one begins; the last one, at a NUL or with the block.
fn block_entries(block: &[u8]) -> Option<Vec<Entry>> {
    let name_at = |index: usize| u16_le(block, index * ENTRY_LEN + 8).map(usize::from);
    let first = name_at(0)?;
    if first % ENTRY_LEN != 0 || first == 0 || first > block.len() {
        return None;
    }
    let count = first / ENTRY_LEN;
    let entry = |index: usize| {
        let end = if index + 1 == count { block.len() } else { name_at(index + 1)? };
        let name = block.get(name_at(index)?..end)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Entry { name: name.to_vec(), inode: u64_le(block, index * ENTRY_LEN)? })
    };
    (0..count).map(entry).collect()
}

/// Whether a file's own data is being read, or the packed inode's for it, which cannot be packed itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    File,
    Packed,
}

/// A read in progress.
#[derive(Debug)]
struct Reader<'a> {
    filesystem: &'a Erofs,
    /// Stored bytes that were read for it.
    stored: u64,
    contents: Vec<u8>,
    /// How many bytes are wanted in all.
    end: u64,
}

impl Reader<'_> {
    /// Bytes that are still wanted.
    fn rest(&self) -> u64 {
        self.end.saturating_sub(self.contents.len() as u64)
    }

    /// Reads from `offset` of a file until there is enough.
    fn read(&mut self, inode: &Inode, offset: u64, depth: Depth) -> Result<()> {
        match inode.layout {
            Layout::Plain => self.plain(inode, offset, inode.len),
            Layout::InlineTail => self.inline_tail(inode, offset),
            Layout::Chunks => self.chunks(inode, offset),
            Layout::FullIndex | Layout::CompactIndex => self.compressed(inode, offset, depth),
        }
    }

    /// Appends stored bytes as they are.
    fn copy(&mut self, place: u64, len: u64) -> Result<()> {
        let bytes = self.stored(place, len, "EROFS data")?;
        self.contents.extend(bytes);
        Ok(())
    }

    /// Reads stored bytes, within what one file may cost.
    fn stored(&mut self, place: u64, len: u64, what: &'static str) -> Result<Vec<u8>> {
        let window = &self.filesystem.window;
        self.stored = self.stored.saturating_add(len);
        let Some(len) = usize::try_from(len).ok().filter(|_| self.stored <= MAX_STORED) else {
            let expected = format!("at most {MAX_STORED} stored bytes for one file");
            return Err(window.malformed(place, what, expected, self.stored));
        };
        window.read(place, len, what)
    }

    fn zeros(&mut self, len: u64) {
        let len = self.contents.len().saturating_add(usize::try_from(len).unwrap_or_default());
        self.contents.resize(len, 0);
    }

    /// Blocks that follow one another, up to the byte `end` of the file.
    fn plain(&mut self, inode: &Inode, offset: u64, end: u64) -> Result<()> {
        let len = end.saturating_sub(offset).min(self.rest());
        if inode.blocks == HOLE {
            self.zeros(len);
            return Ok(());
        }
        self.copy(self.filesystem.block_offset(inode.blocks).saturating_add(offset), len)
    }

    /// Blocks that follow one another, and the last one, which is seldom whole, behind the inode.
    fn inline_tail(&mut self, inode: &Inode, offset: u64) -> Result<()> {
        let block_len = self.filesystem.block_len();
        let tail = inode.len.saturating_sub(1) / block_len * block_len;
        if offset < tail {
            self.plain(inode, offset, tail)?;
        }
        let len = self.rest();
        if len == 0 {
            return Ok(());
        }
        let skipped = offset.saturating_sub(tail);
        self.copy(inode.end.saturating_add(skipped), len)
    }

    /// Chunks of one size, each of blocks that follow one another.
    fn chunks(&mut self, inode: &Inode, mut offset: u64) -> Result<()> {
        let filesystem = self.filesystem;
        // Five bits, an index or a plain list of blocks, and nothing else.
        let (bits, indexes) = (inode.blocks & 0x1F, inode.blocks & 0x20 != 0);
        if inode.blocks & 0xFFC0 != 0 {
            let found = format!("{:#x}", inode.blocks & 0xFFFF);
            return Err(filesystem.window.unsupported(inode.place, "EROFS chunk form", found));
        }
        let bits = bits + u32::from(filesystem.block_bits);
        let unit = if indexes { 8 } else { 4 };
        let table = inode.end.next_multiple_of(unit);
        while self.rest() > 0 {
            let place = table.saturating_add((offset >> bits).saturating_mul(unit));
            let entry = filesystem.window.read(
                place,
                8_usize.min(usize::try_from(unit).unwrap_or(8)),
                "EROFS chunk",
            )?;
            let device = if indexes { u16_le(&entry, 2).unwrap_or_default() } else { 0 };
            if device != 0 {
                return Err(filesystem.window.unsupported(place, "EROFS chunk", format!("device {device}")));
            }
            let block = u32_le(&entry, if indexes { 4 } else { 0 }).unwrap_or_default();
            let inside = offset & ((1 << bits) - 1);
            let len = ((1 << bits) - inside).min(self.rest());
            match block {
                HOLE => self.zeros(len),
                block => self.copy(filesystem.block_offset(block).saturating_add(inside), len)?,
            }
            offset = offset.saturating_add(len);
        }
        Ok(())
    }

    /// A stretch of the packed inode, of `len` bytes or as many as are wanted.
    fn packed(&mut self, place: u64, offset: u64, len: u64, depth: Depth) -> Result<()> {
        let window = &self.filesystem.window;
        let what = "EROFS fragment";
        if depth == Depth::Packed {
            return Err(window.malformed(place, what, "data of its own in the packed inode", "a fragment"));
        }
        let packed = self.filesystem.inode(self.filesystem.packed)?;
        let len = len.min(self.rest());
        if offset.checked_add(len).is_none_or(|end| end > packed.len) {
            let expected = format!("an end within the packed inode of {} bytes", packed.len);
            return Err(window.malformed(place, what, expected, format!("{offset}+{len}")));
        }
        let outer_end = self.end;
        self.end = (self.contents.len() as u64).saturating_add(len);
        self.read(&packed, offset, Depth::Packed)?;
        self.end = outer_end;
        Ok(())
    }
}

impl Erofs {
    fn malformed_index(&self, place: u64, expected: &str, found: impl std::fmt::Display) -> Error {
        self.window.malformed(place, "EROFS index", expected, found)
    }
}

//! Reads one file with a known path from an EROFS image.
//!
//! ```text
//! superblock (128 bytes at 1024): magic 0, block size (logarithm) 12, root inode u16 14, metadata start in blocks
//!     u32 40, features u32 80, algorithms u16 84, further devices u16 86, directory block size 90, packed inode u64 96
//! inode (32 or 64 bytes at metadata start + number * 32): form u16 0 (bit 0 long, bits 1 to 3 layout),
//!     attribute words u16 2, mode u16 4, length u32 or u64 8, blocks u32 16
//! directory block: entries of 12 bytes (inode u64 0, offset of the name u16 8), then the names
//! ```
//!
//! `inode` finds and parses inodes, and `compressed` reads the layouts with indexes. The *packed inode* contains the
//! ends of many files, compressed together. The end of a compressed file, or the whole file, may be in the packed
//! inode.

mod compressed;
mod inode;

use self::inode::{DataLayout, ErofsInode};
use super::codec::Codec;
use super::filesystem::{DirectoryEntry, FileSystem, InodeType, MAX_FILE_LEN, MAX_LISTING_LEN};
use super::window::RootfsWindow;
use crate::bytes_at::{array_at, u16_le, u32_le, u64_le};
use crate::error::{Error, OrInternal, Result};

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_LEN: usize = 128;
const MAGIC: u32 = 0xE0F5_E1E2;
/// The supported block sizes, as powers of two.
const BLOCK_BITS: std::ops::RangeInclusive<u8> = 9..=16;
/// Length of an entry in a directory block.
const ENTRY_LEN: usize = 12;
/// The block number of a hole, which reads as zeros.
const HOLE_BLOCK: u32 = u32::MAX;
/// Maximum number of stored bytes to read for one file: four times the maximum length of a file, because extents may
/// share data.
const MAX_STORED_LEN: u64 = 4 * MAX_FILE_LEN;

/// Feature bit: the data of an extent is at the end of its blocks, with zeros before it.
const ZERO_PADDING: u32 = 0x1;
/// Feature bit: the superblock lists compression algorithms.
const COMPRESSION_CONFIGS: u32 = 0x2;
/// The supported feature bits. The highest one concerns the names of extended attributes, which this reader ignores.
const KNOWN_FEATURES: u32 = 0x7F;
/// Names of known but unsupported features.
const UNSUPPORTED_FEATURES: [(u32, &str); 2] =
    [(0x80, "48-bit block addresses"), (0x100, "metadata in a metabox")];

#[derive(Debug)]
pub(super) struct ErofsImage {
    window: RootfsWindow,
    block_bits: u8,
    metadata: u64,
    root: u64,
    packed: u64,
    features: u32,
    algorithms: u16,
}

impl ErofsImage {
    pub(super) fn open(window: RootfsWindow) -> Result<Self> {
        let bytes = window.read(SUPERBLOCK_AT, SUPERBLOCK_LEN, "EROFS superblock")?;
        let short = "short EROFS superblock";
        let u16_at = |offset| u16_le(&bytes, offset).or_internal(short, SUPERBLOCK_AT);
        let u32_at = |offset| u32_le(&bytes, offset).or_internal(short, SUPERBLOCK_AT);
        let byte_at = |offset: usize| bytes.get(offset).copied().or_internal(short, SUPERBLOCK_AT);
        let magic: [u8; 4] = array_at(&bytes, 0).or_internal(short, SUPERBLOCK_AT)?;
        if magic != MAGIC.to_le_bytes() {
            return Err(window.malformed(0, "root file system", "squashfs or EROFS", magic.escape_ascii()));
        }
        let features = u32_at(80)?;
        if features & !KNOWN_FEATURES != 0 {
            let name = UNSUPPORTED_FEATURES.iter().find(|(bit, _)| features & bit != 0);
            let actual = name.map_or_else(|| format!("{features:#x}"), |(_, name)| (*name).to_owned());
            return Err(window.unsupported(SUPERBLOCK_AT + 80, "EROFS feature", actual));
        }
        let block_bits = byte_at(12)?;
        if !BLOCK_BITS.contains(&block_bits) {
            let (expected, actual) = ("512 bytes to 64 KiB", format!("2^{block_bits}"));
            return Err(window.malformed(SUPERBLOCK_AT + 12, "EROFS block size", expected, actual));
        }
        let directory_bits = byte_at(90)?;
        if directory_bits != 0 {
            let actual = format!("{} blocks", 1_u128 << (directory_bits & 0x7F));
            return Err(window.unsupported(SUPERBLOCK_AT + 90, "EROFS directory block size", actual));
        }
        Ok(Self {
            block_bits,
            metadata: u64::from(u32_at(40)?) << block_bits,
            root: u64::from(u16_at(14)?),
            packed: u64_le(&bytes, 96).or_internal(short, SUPERBLOCK_AT)?,
            features,
            // Images without this feature use the field for another purpose, and their compression is LZ4.
            algorithms: if features & COMPRESSION_CONFIGS == 0 { 1 } else { u16_at(84)? },
            window,
        })
    }

    fn block_len(&self) -> u64 {
        1 << self.block_bits
    }

    /// Returns the offset of a block. A 32-bit number of 64 KiB blocks cannot overflow the offset.
    fn block_offset(&self, block: u32) -> u64 {
        u64::from(block) << self.block_bits
    }

    /// Returns the codec of an algorithm number. `position` is the offset for errors.
    fn codec(&self, algorithm: u8, position: u64) -> Result<Codec> {
        let what = "EROFS compression";
        let codec = match algorithm {
            0 => Codec::Lz4,
            1 => Codec::MicroLzma,
            2 => Codec::Deflate,
            3 => Codec::Zstd,
            _ => return Err(self.window.unsupported(position, what, format!("number {algorithm}"))),
        };
        if self.algorithms >> algorithm & 1 == 0 {
            let expected = format!("an algorithm of the superblock ({:#x})", self.algorithms);
            return Err(self.window.malformed(position, what, expected, codec));
        }
        self.window.require_support(position, codec)
    }

    fn inode(&self, number: u64) -> Result<ErofsInode> {
        ErofsInode::read(&self.window, self.metadata, number)
    }

    /// Reads a whole file. Returns an error if the file is longer than `limit` bytes.
    fn read_whole(&self, inode: &ErofsInode, limit: u64) -> Result<Vec<u8>> {
        if inode.len > limit {
            let expected = format!("at most {limit} bytes");
            return Err(self.window.malformed(inode.position, "EROFS file", expected, inode.len));
        }
        let (contents, end) = (Vec::new(), inode.len);
        let mut reader = FileReader { filesystem: self, is_packed: false, stored: 0, contents, end };
        reader.read(inode, 0)?;
        if reader.contents.len() as u64 != inode.len {
            return Err(Error::Internal { what: "EROFS file of unexpected length", offset: inode.position });
        }
        Ok(reader.contents)
    }
}

impl FileSystem for ErofsImage {
    fn name(&self) -> &'static str {
        "EROFS"
    }

    fn root_inode(&self) -> u64 {
        self.root
    }

    fn inode_type(&self, number: u64) -> Result<InodeType> {
        Ok(self.inode(number)?.kind)
    }

    fn list_directory(&self, number: u64) -> Result<Vec<DirectoryEntry>> {
        let inode = self.inode(number)?;
        if inode.kind != InodeType::Directory {
            return Err(self.window.malformed(inode.position, "EROFS inode", "a directory", inode.kind));
        }
        let listing = self.read_whole(&inode, MAX_LISTING_LEN)?;
        let mut entries = Vec::new();
        for block in listing.chunks(1 << self.block_bits) {
            entries.extend(parse_directory_block(block).ok_or_else(|| {
                let expected = "entries, then their names in the same order";
                self.window.malformed(inode.position, "EROFS directory", expected, "something else")
            })?);
        }
        Ok(entries)
    }

    fn read_file(&self, number: u64) -> Result<Vec<u8>> {
        let inode = self.inode(number)?;
        if inode.kind != InodeType::File {
            return Err(self.window.malformed(inode.position, "EROFS inode", "a regular file", inode.kind));
        }
        self.read_whole(&inode, MAX_FILE_LEN)
    }
}

/// Returns the entries of one directory block. A name ends where the next name begins. The last name ends at a NUL or
/// at the end of the block.
fn parse_directory_block(block: &[u8]) -> Option<Vec<DirectoryEntry>> {
    let name_at = |index: usize| u16_le(block, index * ENTRY_LEN + 8).map(usize::from);
    let first = name_at(0)?;
    if first % ENTRY_LEN != 0 || first == 0 || first > block.len() {
        return None;
    }
    let count = first / ENTRY_LEN;
    let entry = |index: usize| {
        let end = if index + 1 == count { block.len() } else { name_at(index + 1)? };
        let name = block.get(name_at(index)?..end)?;
        let name = name.iter().copied().take_while(|byte| *byte != 0).collect();
        Some(DirectoryEntry { name, inode: u64_le(block, index * ENTRY_LEN)? })
    };
    (0..count).map(entry).collect()
}

/// The state of reading one file.
#[derive(Debug)]
struct FileReader<'a> {
    filesystem: &'a ErofsImage,
    /// `true` while the reader reads the packed inode. The packed inode cannot refer to itself.
    is_packed: bool,
    /// Number of stored bytes read so far.
    stored: u64,
    contents: Vec<u8>,
    /// Length that `contents` must have at the end.
    end: u64,
}

impl FileReader<'_> {
    fn missing_len(&self) -> u64 {
        self.end.saturating_sub(self.contents.len() as u64)
    }

    /// Reads a file, starting at `offset`, until the reader has all needed bytes.
    fn read(&mut self, inode: &ErofsInode, offset: u64) -> Result<()> {
        match inode.layout {
            DataLayout::Plain => self.append_plain(inode, offset, inode.len),
            DataLayout::InlineTail => self.append_inline_tail(inode, offset),
            DataLayout::Chunks => self.append_chunks(inode, offset),
            DataLayout::FullIndex | DataLayout::CompactIndex => self.append_compressed(inode, offset),
        }
    }

    /// Appends stored bytes without decoding them.
    fn append_stored(&mut self, position: u64, len: u64) -> Result<()> {
        let bytes = self.read_stored(position, len, "EROFS data")?;
        self.contents.extend(bytes);
        Ok(())
    }

    /// Reads stored bytes and counts them towards the limit for one file.
    fn read_stored(&mut self, position: u64, len: u64, what: &'static str) -> Result<Vec<u8>> {
        let window = &self.filesystem.window;
        self.stored = self.stored.saturating_add(len);
        let Some(len) = usize::try_from(len).ok().filter(|_| self.stored <= MAX_STORED_LEN) else {
            let expected = format!("at most {MAX_STORED_LEN} stored bytes for one file");
            return Err(window.malformed(position, what, expected, self.stored));
        };
        window.read(position, len, what)
    }

    fn append_zeros(&mut self, len: u64) -> Result<()> {
        let end = self.contents.len() as u64 + len;
        self.contents.resize(usize::try_from(end).or_internal("length of an EROFS hole", len)?, 0);
        Ok(())
    }

    /// Appends consecutive blocks, up to offset `end` of the file.
    fn append_plain(&mut self, inode: &ErofsInode, offset: u64, end: u64) -> Result<()> {
        let len = end.saturating_sub(offset).min(self.missing_len());
        if inode.blocks == HOLE_BLOCK {
            return self.append_zeros(len);
        }
        self.append_stored(self.filesystem.block_offset(inode.blocks).saturating_add(offset), len)
    }

    /// Appends consecutive blocks and then the last block, which is stored after the inode and usually not full.
    fn append_inline_tail(&mut self, inode: &ErofsInode, offset: u64) -> Result<()> {
        let block_len = self.filesystem.block_len();
        let tail = inode.len.saturating_sub(1) / block_len * block_len;
        if offset < tail {
            self.append_plain(inode, offset, tail)?;
        }
        match self.missing_len() {
            0 => Ok(()),
            len => self.append_stored(inode.end.saturating_add(offset.saturating_sub(tail)), len),
        }
    }

    /// Appends chunks of equal size. Each chunk consists of consecutive blocks.
    fn append_chunks(&mut self, inode: &ErofsInode, mut offset: u64) -> Result<()> {
        let filesystem = self.filesystem;
        // The low five bits are the chunk size. The next bit selects between chunk indexes and a plain list of blocks.
        // No other bit may be set.
        let (bits, indexes) = (inode.blocks & 0x1F, inode.blocks & 0x20 != 0);
        if inode.blocks & 0xFFC0 != 0 {
            let actual = format!("{:#x}", inode.blocks & 0xFFFF);
            return Err(filesystem.window.unsupported(inode.position, "EROFS chunk form", actual));
        }
        let bits = bits + u32::from(filesystem.block_bits);
        let unit = if indexes { 8 } else { 4 };
        let table = inode.end.next_multiple_of(unit as u64);
        while self.missing_len() > 0 {
            let position = table.saturating_add((offset >> bits).saturating_mul(unit as u64));
            let entry = filesystem.window.read(position, unit, "EROFS chunk")?;
            let short = "short EROFS chunk";
            let device = if indexes { u16_le(&entry, 2).or_internal(short, position)? } else { 0 };
            if device != 0 {
                let actual = format!("device {device}");
                return Err(filesystem.window.unsupported(position, "EROFS chunk", actual));
            }
            let block = u32_le(&entry, unit - 4).or_internal(short, position)?;
            let inside = offset & ((1 << bits) - 1);
            let len = ((1 << bits) - inside).min(self.missing_len());
            match block {
                HOLE_BLOCK => self.append_zeros(len)?,
                block => self.append_stored(filesystem.block_offset(block).saturating_add(inside), len)?,
            }
            offset = offset.saturating_add(len);
        }
        Ok(())
    }

    /// Appends `len` bytes of the packed inode, or fewer if the reader needs fewer.
    fn append_packed(&mut self, position: u64, offset: u64, len: u64) -> Result<()> {
        let window = &self.filesystem.window;
        let what = "EROFS fragment";
        if self.is_packed {
            let expected = "unfragmented data in the packed inode";
            return Err(window.malformed(position, what, expected, "a fragment"));
        }
        let packed = self.filesystem.inode(self.filesystem.packed)?;
        let len = len.min(self.missing_len());
        if offset.checked_add(len).is_none_or(|end| end > packed.len) {
            let expected = format!("an end within the packed inode of {} bytes", packed.len);
            return Err(window.malformed(position, what, expected, format!("{offset}+{len}")));
        }
        let outer_end = self.end;
        self.end = (self.contents.len() as u64).saturating_add(len);
        self.is_packed = true;
        self.read(&packed, offset)?;
        self.is_packed = false;
        self.end = outer_end;
        Ok(())
    }
}

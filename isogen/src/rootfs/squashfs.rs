//! Reads one file with a known path from a squashfs 4.0 image.
//!
//! ```text
//! superblock (96 bytes): magic "hsqs" 0, block size u32 12, compressor u16 20, block log u16 22, version u16 28 and
//!     30, root inode u64 32, bytes used u64 40, inode table u64 64, directory table u64 72, fragment table u64 80
//! metadata block: length u16, bit 15 set if stored uncompressed; at most 8192 bytes when decoded
//! inode reference: offset of the metadata block in the inode table << 16 | offset in the decoded block
//! block length u32: bit 24 set if stored uncompressed; 0 for a hole
//! ```
//!
//! The reader reads only the metadata blocks on the path to the file and the file's own blocks, so the cost of a lookup
//! does not depend on the size of the file system.

use super::codec::Codec;
use super::filesystem::{DirectoryEntry, FileSystem, InodeType, MAX_FILE_LEN, MAX_LISTING_LEN};
use super::window::RootfsWindow;
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::{Error, OrInternal, Result};

pub(super) const MAGIC: &[u8] = b"hsqs";

const SUPERBLOCK_LEN: usize = 96;
/// Maximum length of a decoded metadata block.
const METADATA_BLOCK_LEN: usize = 8192;
/// The flag of an uncompressed metadata block.
const METADATA_UNCOMPRESSED: u16 = 1 << 15;
/// The flag of an uncompressed data block, above the bits of its length.
const DATA_UNCOMPRESSED: u32 = 1 << 24;
/// The valid sizes of data blocks, as powers of two.
const BLOCK_SIZE_LOGS: std::ops::RangeInclusive<u16> = 12..=20;
/// The fragment number of a file without a fragment.
const NO_FRAGMENT: u32 = u32::MAX;
/// Number of fragments that one metadata block describes. Each description is `FRAGMENT_LEN` bytes long.
const FRAGMENTS_PER_BLOCK: u32 = 512;
const FRAGMENT_LEN: u32 = 16;
/// Maximum number of entries after a directory header.
const MAX_ENTRIES_PER_HEADER: u32 = 256;
/// The amount by which the length field of a directory exceeds the length of its listing.
const LISTING_LEN_BIAS: u64 = 3;

#[derive(Debug)]
pub(super) struct SquashfsImage {
    window: RootfsWindow,
    codec: Codec,
    block_len: u32,
    root: u64,
    inode_table: u64,
    directory_table: u64,
    fragment_table: u64,
    fragment_count: u32,
}

impl SquashfsImage {
    pub(super) fn open(window: RootfsWindow) -> Result<Self> {
        let bytes = window.read(0, SUPERBLOCK_LEN, "squashfs superblock")?;
        let short = "short squashfs superblock";
        let u16_at = |offset| u16_le(&bytes, offset).or_internal(short, 0);
        let u32_at = |offset| u32_le(&bytes, offset).or_internal(short, 0);
        let u64_at = |offset| u64_le(&bytes, offset).or_internal(short, 0);
        let (major, minor) = (u16_at(28)?, u16_at(30)?);
        if (major, minor) != (4, 0) {
            return Err(window.unsupported(28, "squashfs version", format!("{major}.{minor}")));
        }
        let (block_len, log) = (u32_at(12)?, u16_at(22)?);
        if !BLOCK_SIZE_LOGS.contains(&log) || block_len != 1 << log {
            let actual = format!("{block_len} with the logarithm {log}");
            return Err(window.malformed(
                12,
                "squashfs block size",
                "a power of two, 4 KiB to 1 MiB",
                actual,
            ));
        }
        let used = u64_at(40)?;
        if used > window.len() {
            let expected = format!("at most {}", window.len());
            return Err(window.malformed(40, "squashfs length", expected, used));
        }
        let codec = codec_from_id(u16_at(20)?);
        let codec = codec.map_err(|actual| window.unsupported(20, "squashfs compressor", actual))?;
        let codec = window.require_support(20, codec)?;
        Ok(Self {
            window,
            codec,
            block_len,
            root: u64_at(32)?,
            inode_table: u64_at(64)?,
            directory_table: u64_at(72)?,
            fragment_table: u64_at(80)?,
            fragment_count: u32_at(16)?,
        })
    }

    /// Returns a reader of metadata that starts at an offset in a decoded metadata block. The position of the block is
    /// relative to a table.
    fn metadata_at(
        &self,
        what: &'static str,
        table: u64,
        MetadataReference { block, offset }: MetadataReference,
    ) -> Result<MetadataReader<'_>> {
        let Some(next) = table.checked_add(block) else {
            return Err(self.window.malformed(table, what, "an offset within the image", block));
        };
        let mut metadata =
            MetadataReader { filesystem: self, what, block: next, next, bytes: Vec::new(), at: 0 };
        metadata.next_block()?;
        metadata.at = usize::from(offset);
        Ok(metadata)
    }

    /// Reads an inode. Returns the inode, the offset of its metadata block for errors, and a reader that continues with
    /// the inode's part of variable length.
    fn read_inode(&self, reference: u64) -> Result<(SquashfsInode, u64, MetadataReader<'_>)> {
        let [low, high, ..] = reference.to_le_bytes();
        let reference = MetadataReference { block: reference >> 16, offset: u16::from_le_bytes([low, high]) };
        let mut metadata = self.metadata_at("squashfs inode", self.inode_table, reference)?;
        let position = metadata.block;
        let header = metadata.take(16)?;
        let kind = u16_le(&header, 0).or_internal("short squashfs inode", position)?;
        let inode = match kind {
            1 => SquashfsInode::parse_directory(&metadata.take(16)?),
            8 => SquashfsInode::parse_extended_directory(&metadata.take(24)?),
            2 => SquashfsInode::parse_file(&metadata.take(16)?),
            9 => SquashfsInode::parse_extended_file(&metadata.take(40)?),
            3 | 10 => Some(SquashfsInode::Other(InodeType::Symlink)),
            4..=7 | 11..=14 => Some(SquashfsInode::Other(InodeType::Other)),
            found => return Err(self.window.malformed(position, "squashfs inode type", "1 to 14", found)),
        };
        Ok((inode.or_internal("short squashfs inode", position)?, position, metadata))
    }

    fn read_contents(&self, file: &FileInode, mut metadata: MetadataReader<'_>) -> Result<Vec<u8>> {
        let block_len = u64::from(self.block_len);
        let has_tail = file.fragment != NO_FRAGMENT;
        let blocks = if has_tail { file.len / block_len } else { file.len.div_ceil(block_len) };
        metadata.what = "squashfs block list";
        // The caller has checked that the file is at most `MAX_FILE_LEN` bytes long.
        let list = metadata.take(to_usize(blocks * 4)?)?;
        let (sizes, _) = list.as_chunks::<4>();
        // The system allocates memory of this capacity only when it is written.
        let mut contents = Vec::with_capacity(to_usize(file.len)?);
        let (mut offset, mut missing) = (file.start, file.len);
        for stored_size in sizes.iter().map(|size| u32::from_le_bytes(*size)) {
            let len = missing.min(block_len);
            self.append_data_block(&mut contents, offset, stored_size, len)?;
            missing -= len;
            offset = offset.saturating_add(u64::from(stored_size & !DATA_UNCOMPRESSED));
        }
        if has_tail {
            contents.extend(self.read_tail(file, missing)?);
        }
        if contents.len() as u64 != file.len {
            return Err(Error::Internal { what: "squashfs file of unexpected length", offset: file.start });
        }
        Ok(contents)
    }

    /// Appends the contents of a data block, whose decoded length must be `len` bytes.
    fn append_data_block(
        &self,
        contents: &mut Vec<u8>,
        offset: u64,
        stored_size: u32,
        len: u64,
    ) -> Result<()> {
        let what = "squashfs data block";
        let len = to_usize(len)?;
        if stored_size == 0 {
            contents.resize(contents.len() + len, 0);
            return Ok(());
        }
        if u32::try_from(len).is_ok_and(|len| stored_size == len | DATA_UNCOMPRESSED) {
            return self.window.append(contents, offset, len, what);
        }
        let block = self.read_block(offset, stored_size)?;
        if block.len() != len {
            return Err(self.window.malformed(offset, what, format!("{len} bytes"), block.len()));
        }
        contents.extend(block);
        Ok(())
    }

    /// Decodes a data block or fragment block. The result is at most one block long.
    fn read_block(&self, offset: u64, stored_size: u32) -> Result<Vec<u8>> {
        let what = "squashfs data block";
        let stored_len = stored_size & !DATA_UNCOMPRESSED;
        if stored_len > self.block_len {
            let expected = format!("at most {} bytes", self.block_len);
            return Err(self.window.malformed(offset, what, expected, stored_len));
        }
        let bytes = self.window.read(offset, to_usize(stored_len.into())?, what)?;
        if stored_size & DATA_UNCOMPRESSED != 0 {
            return Ok(bytes);
        }
        self.decode(&bytes, to_usize(self.block_len.into())?, offset, what)
    }

    fn decode(&self, bytes: &[u8], limit: usize, offset: u64, what: &'static str) -> Result<Vec<u8>> {
        let decoded = self.codec.decode(bytes, limit);
        decoded.map_err(|error| self.window.malformed(offset, what, format!("{} data", self.codec), error))
    }

    /// Returns the last `len` bytes of a file, which are in a fragment block shared with other files.
    fn read_tail(&self, file: &FileInode, len: u64) -> Result<Vec<u8>> {
        let what = "squashfs fragment";
        if file.fragment >= self.fragment_count {
            let expected = format!("one of {}", self.fragment_count);
            return Err(self.window.malformed(self.fragment_table, what, expected, file.fragment));
        }
        // The table is an array of offsets. Each offset points to a metadata block with 512 descriptions.
        let index = u64::from(file.fragment / FRAGMENTS_PER_BLOCK);
        let entry = self.window.read_array(self.fragment_table.saturating_add(index * 8), what)?;
        let block = u64::from_le_bytes(entry);
        let offset = file.fragment % FRAGMENTS_PER_BLOCK * FRAGMENT_LEN;
        let offset = u16::try_from(offset).or_internal("offset of a squashfs fragment", block)?;
        let description = self.metadata_at(what, 0, MetadataReference { block, offset })?.take(16)?;
        let fields = u64_le(&description, 0).zip(u32_le(&description, 8));
        let (start, stored_size) = fields.or_internal("short squashfs fragment", block)?;
        let bytes = self.read_block(start, stored_size)?;
        let (first, tail_len) = (to_usize(file.fragment_offset.into())?, to_usize(len)?);
        let tail = bytes.get(first..).and_then(|rest| rest.get(..tail_len));
        tail.map(<[u8]>::to_vec).ok_or_else(|| {
            let expected = format!("{len} bytes from {}", file.fragment_offset);
            self.window.malformed(start, what, expected, format!("{} bytes", bytes.len()))
        })
    }
}

/// Converts a length that this module has already limited.
fn to_usize(len: u64) -> Result<usize> {
    usize::try_from(len).or_internal("length beyond the limit of squashfs", len)
}

impl FileSystem for SquashfsImage {
    fn name(&self) -> &'static str {
        "squashfs"
    }

    fn root_inode(&self) -> u64 {
        self.root
    }

    fn inode_type(&self, reference: u64) -> Result<InodeType> {
        Ok(self.read_inode(reference)?.0.inode_type())
    }

    fn list_directory(&self, reference: u64) -> Result<Vec<DirectoryEntry>> {
        let (inode, position, _) = self.read_inode(reference)?;
        let SquashfsInode::Directory(listing, len) = inode else {
            return Err(self.window.malformed(position, "squashfs inode", "a directory", inode.inode_type()));
        };
        let len = u64::from(len).saturating_sub(LISTING_LEN_BIAS);
        let Some(mut rest) = usize::try_from(len).ok().filter(|_| len <= MAX_LISTING_LEN) else {
            let expected = format!("at most {MAX_LISTING_LEN} bytes");
            return Err(self.window.malformed(position, "squashfs directory", expected, len));
        };
        let mut entries = Vec::new();
        if rest == 0 {
            return Ok(entries);
        }
        let mut metadata = self.metadata_at("squashfs directory", self.directory_table, listing)?;
        while rest > 0 {
            let header = metadata.take_within(&mut rest, 12)?;
            let short = "short squashfs directory";
            // The field is the number of entries minus one.
            let last = u32_le(&header, 0).or_internal(short, metadata.block)?;
            if last >= MAX_ENTRIES_PER_HEADER {
                let expected = format!("runs of at most {MAX_ENTRIES_PER_HEADER} entries");
                return Err(metadata.malformed(expected, u64::from(last) + 1));
            }
            let block = u64::from(u32_le(&header, 4).or_internal(short, metadata.block)?);
            for _ in 0..=last {
                let entry = metadata.take_within(&mut rest, 8)?;
                let offset = u64::from(u16_le(&entry, 0).or_internal(short, metadata.block)?);
                let name_len = usize::from(u16_le(&entry, 6).or_internal(short, metadata.block)?) + 1;
                let name = metadata.take_within(&mut rest, name_len)?;
                entries.push(DirectoryEntry { name, inode: block << 16 | offset });
            }
        }
        Ok(entries)
    }

    fn read_file(&self, reference: u64) -> Result<Vec<u8>> {
        let (inode, position, metadata) = self.read_inode(reference)?;
        let SquashfsInode::File(file) = inode else {
            let actual = inode.inode_type();
            return Err(self.window.malformed(position, "squashfs inode", "a regular file", actual));
        };
        if file.len > MAX_FILE_LEN {
            let expected = format!("at most {MAX_FILE_LEN} bytes");
            return Err(self.window.malformed(position, "squashfs file", expected, file.len));
        }
        self.read_contents(&file, metadata)
    }
}

/// Returns the compression with a given compressor id, or the name of the compressor if this crate does not support it.
fn codec_from_id(id: u16) -> Result<Codec, String> {
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

/// A position in a table: the offset of a metadata block, and an offset in the decoded block.
#[derive(Debug, Clone, Copy)]
struct MetadataReference {
    block: u64,
    offset: u16,
}

#[derive(Debug)]
enum SquashfsInode {
    /// The position of the listing, and the value of the length field.
    Directory(MetadataReference, u32),
    File(FileInode),
    Other(InodeType),
}

#[derive(Debug)]
struct FileInode {
    start: u64,
    len: u64,
    fragment: u32,
    fragment_offset: u32,
}

impl SquashfsInode {
    fn inode_type(&self) -> InodeType {
        match self {
            Self::Directory(..) => InodeType::Directory,
            Self::File(_) => InodeType::File,
            Self::Other(inode_type) => *inode_type,
        }
    }

    fn parse_directory(bytes: &[u8]) -> Option<Self> {
        let listing = MetadataReference { block: u32_le(bytes, 0)?.into(), offset: u16_le(bytes, 10)? };
        Some(Self::Directory(listing, u16_le(bytes, 8)?.into()))
    }

    fn parse_extended_directory(bytes: &[u8]) -> Option<Self> {
        let listing = MetadataReference { block: u32_le(bytes, 8)?.into(), offset: u16_le(bytes, 18)? };
        Some(Self::Directory(listing, u32_le(bytes, 4)?))
    }

    fn parse_file(bytes: &[u8]) -> Option<Self> {
        Some(Self::File(FileInode {
            start: u32_le(bytes, 0)?.into(),
            fragment: u32_le(bytes, 4)?,
            fragment_offset: u32_le(bytes, 8)?,
            len: u32_le(bytes, 12)?.into(),
        }))
    }

    fn parse_extended_file(bytes: &[u8]) -> Option<Self> {
        Some(Self::File(FileInode {
            start: u64_le(bytes, 0)?,
            len: u64_le(bytes, 8)?,
            fragment: u32_le(bytes, 28)?,
            fragment_offset: u32_le(bytes, 32)?,
        }))
    }
}

/// Decodes consecutive metadata blocks and returns their bytes from front to back.
#[derive(Debug)]
struct MetadataReader<'a> {
    filesystem: &'a SquashfsImage,
    what: &'static str,
    /// Offset of the current block. The next field is the offset of the next block.
    block: u64,
    next: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl MetadataReader<'_> {
    fn malformed(&self, expected: impl std::fmt::Display, actual: impl std::fmt::Display) -> Error {
        self.filesystem.window.malformed(self.block, self.what, expected, actual)
    }

    fn next_block(&mut self) -> Result<()> {
        self.block = self.next;
        let stored = self.filesystem.window.read_up_to(self.block, 2 + METADATA_BLOCK_LEN, self.what)?;
        // At the end of the window, the header may be missing. The length then counts as 0.
        let header = u16_le(&stored, 0).unwrap_or(0);
        let len = usize::from(header & !METADATA_UNCOMPRESSED);
        let Some(stored) = stored.get(2..2 + len).filter(|_| len > 0) else {
            let expected = format!("a metadata block of 1 to {METADATA_BLOCK_LEN} bytes within the image");
            return Err(self.malformed(expected, len));
        };
        self.bytes = match header & METADATA_UNCOMPRESSED {
            0 => self.filesystem.decode(stored, METADATA_BLOCK_LEN, self.block, self.what)?,
            _ => stored.to_vec(),
        };
        self.next = self.block + 2 + len as u64;
        self.at = 0;
        Ok(())
    }

    /// Returns the next `len` bytes. The memory use grows with the number of bytes read, not with `len`.
    fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        loop {
            // A reference may point beyond the end of its metadata block.
            let rest = self.bytes.get(self.at..).unwrap_or(&[]);
            let step = rest.len().min(len - output.len());
            output.extend_from_slice(rest.split_at(step).0);
            self.at += step;
            if output.len() == len {
                return Ok(output);
            }
            // All blocks of a table except the last one are full. Without this check, a malicious table could continue
            // forever.
            if self.at != METADATA_BLOCK_LEN {
                let expected = format!("{} more bytes", len - output.len());
                return Err(self.malformed(expected, "the end of the metadata"));
            }
            self.next_block()?;
        }
    }

    /// Returns the next `len` bytes of a structure and subtracts `len` from `rest`, its remaining length.
    fn take_within(&mut self, rest: &mut usize, len: usize) -> Result<Vec<u8>> {
        match rest.checked_sub(len) {
            Some(remaining) => {
                *rest = remaining;
                self.take(len)
            }
            None => Err(self.malformed(format!("{len} more bytes"), format!("{rest} bytes"))),
        }
    }
}

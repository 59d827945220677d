//! Inodes of EROFS. They are 32 bytes long, or 64 bytes for files that need wider fields.

use super::super::filesystem::InodeType;
use super::super::window::RootfsWindow;
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::Result;

/// Number of bytes per inode number.
const INODE_SLOT_LEN: u64 = 32;
const COMPACT_INODE_LEN: usize = 32;
const EXTENDED_INODE_LEN: usize = 64;
/// The supported bits of the format field, which select the inode length (short or long) and the data layout.
const KNOWN_FORMAT_BITS: u16 = 0x0F;
const TYPE_MASK: u16 = 0o170_000;

/// The layout of a file's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataLayout {
    /// In consecutive blocks.
    Plain,
    /// Compressed, with an index of eight bytes for each cluster.
    FullIndex,
    /// In consecutive blocks, except the last one, which is after the inode.
    InlineTail,
    /// Compressed, with an index of two or four bytes for each cluster.
    CompactIndex,
    /// In chunks of equal size.
    Chunks,
}

/// The fields of an inode that readers of its file need.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErofsInode {
    /// Offset of the inode, for errors.
    pub(super) position: u64,
    /// End of the inode and its attributes, which is the start of inline data or of the index.
    pub(super) end: u64,
    pub(super) kind: InodeType,
    pub(super) layout: DataLayout,
    pub(super) len: u64,
    /// The first block, or the format of the chunks.
    pub(super) blocks: u32,
}

impl ErofsInode {
    /// Reads an inode by its number. `metadata` is the offset of inode 0.
    pub(super) fn read(window: &RootfsWindow, metadata: u64, number: u64) -> Result<Self> {
        let what = "EROFS inode";
        let position = number.checked_mul(INODE_SLOT_LEN).and_then(|offset| offset.checked_add(metadata));
        let position =
            position.ok_or_else(|| window.malformed(metadata, what, "a number within the image", number))?;
        let bytes = window.read_up_to(position, EXTENDED_INODE_LEN, what)?;
        let fewer = || window.malformed(position, what, "all fields", format!("{} bytes", bytes.len()));
        let u16_at = |offset| u16_le(&bytes, offset).ok_or_else(fewer);
        let format = u16_at(0)?;
        let layout = match format >> 1 & 7 {
            0 => DataLayout::Plain,
            1 => DataLayout::FullIndex,
            2 => DataLayout::InlineTail,
            3 => DataLayout::CompactIndex,
            4 => DataLayout::Chunks,
            found => return Err(window.unsupported(position, "EROFS data layout", found)),
        };
        if format & !KNOWN_FORMAT_BITS != 0 {
            return Err(window.unsupported(position, "EROFS inode form", format!("{format:#x}")));
        }
        let (fixed, len) = match format & 1 {
            0 => (COMPACT_INODE_LEN, u32_le(&bytes, 8).map(u64::from)),
            _ => (EXTENDED_INODE_LEN, u64_le(&bytes, 8)),
        };
        if bytes.len() < fixed {
            return Err(fewer());
        }
        // The first attribute word counts for a header of twelve bytes. Each other word counts for four bytes.
        let attributes = match u64::from(u16_at(2)?) {
            0 => 0,
            words => 12 + 4 * (words - 1),
        };
        let kind = match u16_at(4)? & TYPE_MASK {
            0o040_000 => InodeType::Directory,
            0o100_000 => InodeType::File,
            0o120_000 => InodeType::Symlink,
            _ => InodeType::Other,
        };
        let end = position.saturating_add(fixed as u64).saturating_add(attributes);
        let blocks = u32_le(&bytes, 16).ok_or_else(fewer)?;
        Ok(Self { position, end, kind, layout, len: len.ok_or_else(fewer)?, blocks })
    }
}

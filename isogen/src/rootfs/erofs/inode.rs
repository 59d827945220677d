//! Inodes of EROFS: 32 bytes, or 64 for files that need wider fields.

use super::super::filesystem::Kind;
use super::super::window::Window;
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::Result;

/// Bytes for each number of an inode.
const INODE_SLOT: u64 = 32;
const SHORT_LEN: usize = 32;
const LONG_LEN: usize = 64;
/// The bits of the form that are known: short or long, and the layout.
const FORM: u16 = 0x0F;
const TYPE_MASK: u16 = 0o170_000;

/// How the bytes of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// In blocks that follow one another.
    Plain,
    /// Compressed, with an index of eight bytes for each cluster.
    FullIndex,
    /// In blocks, the last one behind the inode.
    InlineTail,
    /// Compressed, with an index of two or four bytes for each cluster.
    CompactIndex,
    /// In chunks of one size.
    Chunks,
}

/// What matters of an inode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inode {
    /// Where it stands, for messages.
    pub(super) place: u64,
    /// The first byte behind it and its attributes: inline data, or the index.
    pub(super) end: u64,
    pub(super) kind: Kind,
    pub(super) layout: Layout,
    /// Bytes in the file.
    pub(super) len: u64,
    /// The first block, or the form of the chunks.
    pub(super) blocks: u32,
}

impl Inode {
    /// Reads an inode by its number. `metadata` is the offset of inode 0.
    pub(super) fn read(window: &Window, metadata: u64, number: u64) -> Result<Self> {
        let what = "EROFS inode";
        let place = number.checked_mul(INODE_SLOT).and_then(|offset| offset.checked_add(metadata));
        let place =
            place.ok_or_else(|| window.malformed(metadata, what, "a number within the image", number))?;
        let bytes = window.read_up_to(place, LONG_LEN, what)?;
        let fewer = || window.malformed(place, what, "all fields", format!("{} bytes", bytes.len()));
        let u16_at = |offset| u16_le(&bytes, offset).ok_or_else(fewer);
        let form = u16_at(0)?;
        let layout = match form >> 1 & 7 {
            0 => Layout::Plain,
            1 => Layout::FullIndex,
            2 => Layout::InlineTail,
            3 => Layout::CompactIndex,
            4 => Layout::Chunks,
            found => return Err(window.unsupported(place, "EROFS data layout", found)),
        };
        if form & !FORM != 0 {
            return Err(window.unsupported(place, "EROFS inode form", format!("{form:#x}")));
        }
        let (fixed, len) = match form & 1 {
            0 => (SHORT_LEN, u32_le(&bytes, 8).map(u64::from)),
            _ => (LONG_LEN, u64_le(&bytes, 8)),
        };
        if bytes.len() < fixed {
            return Err(fewer());
        }
        // A header of twelve bytes, which the first word stands for, and words of four.
        let attributes = match u64::from(u16_at(2)?) {
            0 => 0,
            words => 12 + 4 * (words - 1),
        };
        let kind = match u16_at(4)? & TYPE_MASK {
            0o040_000 => Kind::Directory,
            0o100_000 => Kind::File,
            0o120_000 => Kind::Symlink,
            _ => Kind::Other,
        };
        let end = place.saturating_add(fixed as u64).saturating_add(attributes);
        let blocks = u32_le(&bytes, 16).ok_or_else(fewer)?;
        Ok(Self { place, end, kind, layout, len: len.ok_or_else(fewer)?, blocks })
    }
}

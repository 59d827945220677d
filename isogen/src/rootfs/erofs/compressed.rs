//! Reads compressed files of EROFS.
//!
//! The index of a file has one entry for each *cluster*, which is one or more blocks of the file. An *extent* is a
//! range of the file, compressed as one unit. It need not begin or end at a cluster boundary.
//!
//! ```text
//! header (8 bytes, aligned, after the inode): offset in the packed inode u32 0, or length of inline data u16 2;
//!     flags u16 4, algorithms (two of 4 bits) 6, cluster size (logarithm, relative to the block size) 7;
//!     bit 7 of byte 7: the packed inode holds the whole file
//! full entry:    type u16 0 (two bits), offset in the cluster where the extent begins u16 2, block u32 4
//! compact pack:  2 or 16 entries of equal width, each an offset or distance below a type of two bits, then a block u32
//! ```
//!
//! The entry of the cluster where an extent begins is a *head*. The entries of the extent's other clusters store the
//! distance back to the head. If a flag bit is set, the entry right after the head stores the number of encoded blocks
//! instead. A compact pack stores only the number of the block before its first head. The reader adds the block counts
//! of the earlier heads to it.

use std::fmt;

use super::super::codec::Codec;
use super::inode::{DataLayout, ErofsInode};
use super::{ErofsImage, FileReader, ZERO_PADDING};
use crate::bytes_at::{array_at, count_leading_zeros, u32_le};
use crate::error::{Error, OrInternal, Result};

/// Maximum numbers of encoded and decoded bytes of one extent.
const MAX_ENCODED_LEN: u64 = 1 << 20;
const MAX_DECODED_LEN: u64 = 12 << 20;
/// Maximum number of index entries to read for one extent: the number for the smallest clusters, with a margin.
const MAX_CLUSTERS: u64 = (MAX_DECODED_LEN >> 9) + 16;

/// Type of the entry of a cluster that is not the head of its extent.
const NON_HEAD: u32 = 2;
/// Flags of the header. In a full index, the bit of `TWO_BYTE_ENTRIES` has another meaning.
const TWO_BYTE_ENTRIES: u16 = 0x01;
const COUNTS_OF_HEAD1: u16 = 0x02;
const COUNTS_OF_HEAD2: u16 = 0x04;
const INLINE_TAIL: u16 = 0x08;
const INTERLACED: u16 = 0x10;
const FRAGMENT: u16 = 0x20;
const KNOWN_FLAGS: u16 = 0x3F;
/// Bit of the last header byte: the packed inode contains the whole file.
const ALL_PACKED: u64 = 1 << 63;
/// Flag in the distance field of a non-head entry: the other bits are the number of encoded blocks of the extent.
const COUNT_FLAG: u32 = 1 << 11;
const HEADER_LEN: u64 = 8;
/// Number of index bytes to read in one step. Packs are aligned to their length, which is at most 32 bytes.
const PAGE_LEN: usize = 4096;

/// The index of one file, read on demand.
#[derive(Debug)]
struct ClusterIndex<'a> {
    filesystem: &'a ErofsImage,
    inode: ErofsInode,
    header: u64,
    flags: u16,
    algorithms: u8,
    cluster_bits: u32,
    /// Offset in the packed inode of the last extent's data.
    fragment: u32,
    /// Length of the last extent's data if it is inline, after the index; otherwise 0.
    inline_len: u16,
    /// The offset and bytes of the last page read from the index.
    page: (u64, Vec<u8>),
}

/// The index entry of one cluster.
#[derive(Debug, Clone, Copy)]
enum ClusterEntry {
    Head(ExtentHead),
    /// A cluster inside the extent that begins `back` clusters earlier.
    NonHead {
        back: u64,
        count: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy)]
struct ExtentHead {
    head_type: HeadType,
    /// Offset in the cluster where the extent begins.
    offset: u64,
    block: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadType {
    /// The extent is not compressed.
    Plain,
    /// The extent is compressed with the first algorithm of the header.
    Head1,
    /// The extent is compressed with the second algorithm of the header.
    Head2,
}

impl ClusterEntry {
    /// Parses the distance field of a non-head entry.
    fn parse_non_head(distance: u32) -> Self {
        match distance & COUNT_FLAG {
            0 => Self::NonHead { back: distance.into(), count: None },
            _ => Self::NonHead { back: 1, count: Some(distance & !COUNT_FLAG) },
        }
    }
}

impl HeadType {
    /// Parses the two-bit type of an entry. Returns `None` if the entry is not a head.
    fn parse(entry_type: u32) -> Option<Self> {
        match entry_type {
            0 => Some(Self::Plain),
            1 => Some(Self::Head1),
            NON_HEAD => None,
            _ => Some(Self::Head2),
        }
    }
}

/// An extent: a range of the file, compressed as one unit.
#[derive(Debug, Clone, Copy)]
struct CompressedExtent {
    head: ExtentHead,
    /// The range of the file, from this offset to `end`.
    start: u64,
    end: u64,
    /// Number of encoded blocks, if the index stores it.
    count: Option<u32>,
}

/// A pack of index entries, and the position of one entry in it.
#[derive(Debug, Clone, Copy)]
struct CompactPack {
    position: u64,
    len: u64,
    entries: u64,
    index: u64,
}

impl FileReader<'_> {
    /// Decodes a compressed file, starting at `offset`, until the reader has all needed bytes.
    pub(super) fn append_compressed(&mut self, inode: &ErofsInode, offset: u64) -> Result<()> {
        if self.missing_len() == 0 {
            return Ok(());
        }
        let header = inode.end.next_multiple_of(HEADER_LEN);
        let bytes = self.filesystem.window.read_array(header, "EROFS compression header")?;
        let all = u64::from_le_bytes(bytes);
        if all & ALL_PACKED != 0 {
            let position = (all & !ALL_PACKED).saturating_add(offset);
            return self.append_packed(header, position, inode.len.saturating_sub(offset));
        }
        let mut index = ClusterIndex::new(self.filesystem, inode, header, bytes)?;
        let mut at = offset;
        let mut cluster = index.head_cluster(offset)?;
        while self.missing_len() > 0 {
            let (extent, next) = index.extent_at(cluster)?;
            self.append_extent(&index, extent, at)?;
            (at, cluster) = (extent.end, next);
        }
        Ok(())
    }

    /// Appends the bytes of an extent, starting at byte `at` of the file.
    fn append_extent(&mut self, index: &ClusterIndex<'_>, extent: CompressedExtent, at: u64) -> Result<()> {
        if !(extent.start..extent.end).contains(&at) {
            let actual = format!("extent {} to {} for byte {at}", extent.start, extent.end);
            return Err(index.malformed(index.header, "heads before their clusters", actual));
        }
        let skipped = at - extent.start;
        let len = (extent.end - extent.start).min(skipped + self.missing_len());
        let is_last = extent.end >= index.inode.len;
        if is_last && index.flags & FRAGMENT != 0 {
            let high = match index.inode.layout {
                DataLayout::FullIndex => u64::from(extent.head.block) << 32,
                _ => 0,
            };
            let position = (high | u64::from(index.fragment)).saturating_add(skipped);
            return self.append_packed(index.header, position, len - skipped);
        }
        let (position, stored_len) = match index.inline_len {
            inline_len if is_last && inline_len > 0 => (index.index_end()?, u64::from(inline_len)),
            _ => (self.filesystem.block_offset(extent.head.block), index.stored_len(&extent)?),
        };
        let stored = self.read_stored(position, stored_len, "EROFS compressed data")?;
        let decoded = match extent.head.head_type {
            HeadType::Plain => index.plain_extent(position, stored, extent.start, len)?,
            HeadType::Head1 => self.decode(index.algorithms & 15, position, &stored, len)?,
            HeadType::Head2 => self.decode(index.algorithms >> 4, position, &stored, len)?,
        };
        let start = usize::try_from(skipped).or_internal("start within an EROFS extent", position)?;
        let bytes = decoded.get(start..).or_internal("EROFS extent shorter than its index says", position)?;
        self.contents.extend_from_slice(bytes);
        Ok(())
    }

    fn decode(&self, algorithm: u8, position: u64, stored: &[u8], len: u64) -> Result<Vec<u8>> {
        let window = &self.filesystem.window;
        let codec = self.filesystem.codec(algorithm, position)?;
        let padded = codec != Codec::Lz4 || self.filesystem.features & ZERO_PADDING != 0;
        let zeros = if padded { count_leading_zeros(stored) } else { 0 };
        let malformed = |actual: String| {
            let expected = format!("{len} bytes of {codec} data");
            Err(window.malformed(position, "EROFS compressed data", expected, actual))
        };
        let limit = usize::try_from(len).or_internal("length of an EROFS extent", position)?;
        match codec.decode(stored.split_at(zeros).1, limit) {
            Ok(decoded) if decoded.len() == limit => Ok(decoded),
            Ok(decoded) => malformed(format!("{} bytes", decoded.len())),
            Err(error) => malformed(error.to_string()),
        }
    }
}

impl<'a> ClusterIndex<'a> {
    fn new(filesystem: &'a ErofsImage, inode: &ErofsInode, header: u64, bytes: [u8; 8]) -> Result<Self> {
        let [a, b, c, d, flags_low, flags_high, algorithms, sizes] = bytes;
        let (fragment, inline_len) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([c, d]));
        let flags = u16::from_le_bytes([flags_low, flags_high]);
        let window = &filesystem.window;
        if inode.layout == DataLayout::FullIndex && flags & TWO_BYTE_ENTRIES != 0 {
            return Err(window.unsupported(header, "EROFS index", "a list of extents"));
        }
        if flags & !KNOWN_FLAGS != 0 || sizes > 15 {
            let actual = format!("flags {flags:#x}, cluster size {sizes:#x}");
            return Err(window.unsupported(header, "EROFS compression header", actual));
        }
        let cluster_bits = u32::from(filesystem.block_bits) + u32::from(sizes);
        let compact = inode.layout == DataLayout::CompactIndex;
        let widest = match flags & TWO_BYTE_ENTRIES {
            0 if compact => 14,
            _ if compact => 12,
            _ => 16,
        };
        if cluster_bits > widest {
            return Err(window.unsupported(header, "EROFS cluster size", format!("2^{cluster_bits} bytes")));
        }
        Ok(Self {
            filesystem,
            inode: *inode,
            header,
            flags,
            algorithms,
            cluster_bits,
            fragment,
            inline_len: if flags & INLINE_TAIL == 0 { 0 } else { inline_len },
            page: (0, Vec::new()),
        })
    }

    fn malformed(&self, position: u64, expected: impl fmt::Display, actual: impl fmt::Display) -> Error {
        self.filesystem.window.malformed(position, "EROFS index", expected, actual)
    }

    fn cluster_len(&self) -> u64 {
        1 << self.cluster_bits
    }

    fn cluster_start(&self, cluster: u64) -> u64 {
        cluster.saturating_mul(self.cluster_len())
    }

    /// Returns the cluster where the extent that contains the byte at `offset` of the file begins.
    fn head_cluster(&mut self, offset: u64) -> Result<u64> {
        let mut cluster = offset >> self.cluster_bits;
        for _ in 0..MAX_CLUSTERS {
            let back = match self.entry(cluster)? {
                ClusterEntry::Head(head)
                    if self.cluster_start(cluster).saturating_add(head.offset) <= offset =>
                {
                    return Ok(cluster);
                }
                ClusterEntry::Head(_) => 1,
                ClusterEntry::NonHead { back, .. } => back,
            };
            cluster = cluster.checked_sub(back).filter(|_| back > 0).ok_or_else(|| {
                self.malformed(self.header, "a head before each cluster", format!("{back} clusters back"))
            })?;
        }
        Err(self.invalid_extent_len(cluster))
    }

    /// Returns the extent that begins in a cluster, and the cluster where the next extent begins.
    fn extent_at(&mut self, first: u64) -> Result<(CompressedExtent, u64)> {
        let ClusterEntry::Head(head) = self.entry(first)? else {
            return Err(self.malformed(self.header, "the head of an extent", first));
        };
        let start = self.cluster_start(first).saturating_add(head.offset);
        let mut count = None;
        for cluster in first + 1..=first + MAX_CLUSTERS {
            let boundary = self.cluster_start(cluster);
            let entry = (boundary < self.inode.len).then(|| self.entry(cluster)).transpose()?;
            let end = match entry {
                None => self.inode.len,
                Some(ClusterEntry::Head(next)) => boundary.saturating_add(next.offset).min(self.inode.len),
                Some(ClusterEntry::NonHead { count: found, .. }) => {
                    if cluster == first + 1 {
                        count = found;
                    }
                    continue;
                }
            };
            return match end.checked_sub(start) {
                Some(1..=MAX_DECODED_LEN) => Ok((CompressedExtent { head, start, end, count }, cluster)),
                _ => Err(self.invalid_extent_len(start >> self.cluster_bits)),
            };
        }
        Err(self.invalid_extent_len(first))
    }

    fn invalid_extent_len(&self, cluster: u64) -> Error {
        let expected = format!("extents of 1 to {MAX_DECODED_LEN} bytes");
        self.malformed(self.header, expected, format!("an invalid length at cluster {cluster}"))
    }

    /// Returns the length of an extent's encoded blocks in bytes.
    fn stored_len(&self, extent: &CompressedExtent) -> Result<u64> {
        let counts_flag = match extent.head.head_type {
            HeadType::Plain => 0,
            HeadType::Head1 => self.flags & COUNTS_OF_HEAD1,
            HeadType::Head2 => self.flags & COUNTS_OF_HEAD2,
        };
        let len = match extent.count {
            Some(count) if counts_flag != 0 => u64::from(count) << self.filesystem.block_bits,
            _ => self.cluster_len(),
        };
        if (1..=MAX_ENCODED_LEN).contains(&len) {
            return Ok(len);
        }
        Err(self.malformed(self.header, format!("extents of 1 to {MAX_ENCODED_LEN} stored bytes"), len))
    }

    /// Returns the bytes of an uncompressed extent. In interlaced form, each byte has the same offset in its stored
    /// block as in the block of the file, so the stored bytes are rotated: the end of the extent comes before its
    /// start.
    fn plain_extent(&self, position: u64, mut bytes: Vec<u8>, start: u64, len: u64) -> Result<Vec<u8>> {
        let shift = if self.flags & INTERLACED == 0 { 0 } else { start % self.filesystem.block_len() };
        if let Some(shift) = usize::try_from(shift).ok().filter(|shift| *shift <= bytes.len()) {
            bytes.rotate_left(shift);
        }
        let stored_len = bytes.len();
        let Some(len) = usize::try_from(len).ok().filter(|len| *len <= stored_len) else {
            let (what, expected) = ("EROFS plain extent", format!("{len} bytes"));
            return Err(self.filesystem.window.malformed(position, what, expected, stored_len));
        };
        bytes.truncate(len);
        Ok(bytes)
    }

    fn entry(&mut self, cluster: u64) -> Result<ClusterEntry> {
        if self.inode.layout != DataLayout::CompactIndex {
            return self.full_entry(cluster);
        }
        let pack = self.compact_pack(cluster);
        let bytes = self.index_bytes(pack.position, pack.len)?;
        let entry = self.parse_compact_entry(&bytes, pack);
        entry.ok_or_else(|| self.malformed(pack.position, "a pack of entries", format!("{bytes:02x?}")))
    }

    fn parse_compact_entry(&self, bytes: &[u8], pack: CompactPack) -> Option<ClusterEntry> {
        // A distance is at least twelve bits wide, even if clusters are smaller.
        let low_bits = self.cluster_bits.max(12);
        let width = (pack.len - 4) * 8 / pack.entries;
        let entries = PackEntries { bytes, width, low_bits };
        let (low, entry_type) = entries.get(pack.index)?;
        let Some(head_type) = HeadType::parse(entry_type) else {
            return parse_compact_non_head(&entries, pack, low);
        };
        let base = u32_le(bytes, usize::try_from(pack.len - 4).ok()?)?;
        let blocks = match self.flags & COUNTS_OF_HEAD1 {
            0 => count_single_blocks(&entries, pack.index)?,
            _ => count_recorded_blocks(&entries, pack.index)?,
        };
        let block = base.wrapping_add(blocks);
        Some(ClusterEntry::Head(ExtentHead { head_type, offset: low.into(), block }))
    }

    /// Returns the offset of an entry of a full index. Eight reserved bytes separate the header from the first entry.
    fn full_entry_position(&self, cluster: u64) -> u64 {
        self.header.saturating_add(2 * HEADER_LEN).saturating_add(cluster.saturating_mul(8))
    }

    fn full_entry(&mut self, cluster: u64) -> Result<ClusterEntry> {
        let position = self.full_entry_position(cluster);
        let bytes = array_at(&self.index_bytes(position, 8)?, 0);
        let bytes: [u8; 8] = bytes.or_internal("short EROFS index entry", position)?;
        let [entry_type, _, offset_low, offset_high, a, b, c, d] = bytes;
        let Some(head_type) = HeadType::parse(u32::from(entry_type & 3)) else {
            return Ok(ClusterEntry::parse_non_head(u16::from_le_bytes([a, b]).into()));
        };
        let offset = u64::from(u16::from_le_bytes([offset_low, offset_high]));
        if offset >= self.cluster_len() {
            return Err(self.malformed(position, "an offset within the cluster", offset));
        }
        Ok(ClusterEntry::Head(ExtentHead { head_type, offset, block: u32::from_le_bytes([a, b, c, d]) }))
    }

    /// Returns the pack with the entry of a cluster. Packs of sixteen entries begin at multiples of 32 bytes. Packs of
    /// two entries fill the space before the first pack of sixteen, and store the rest after the last one.
    fn compact_pack(&self, cluster: u64) -> CompactPack {
        let start = self.header + HEADER_LEN;
        let total = self.inode.len.div_ceil(self.filesystem.block_len());
        let before = (32 - start % 32) / 4 % 8;
        let narrow = match self.flags & TWO_BYTE_ENTRIES {
            0 => 0,
            _ => total.saturating_sub(before) / 16 * 16,
        };
        let narrow_start = start + before * 4;
        let position = if cluster < before {
            start + cluster * 4
        } else if cluster < before + narrow {
            let index = cluster - before;
            let position = narrow_start + index / 16 * 32;
            return CompactPack { position, len: 32, entries: 16, index: index % 16 };
        } else {
            let index = cluster - before - narrow;
            narrow_start.saturating_add(narrow * 2).saturating_add(index.saturating_mul(4))
        };
        CompactPack { position: position / 8 * 8, len: 8, entries: 2, index: position % 8 / 4 }
    }

    /// Returns the end of the index, which is the start of inline data.
    fn index_end(&self) -> Result<u64> {
        let last = self.inode.len.saturating_sub(1) >> self.cluster_bits;
        let end = match self.inode.layout {
            DataLayout::CompactIndex => {
                let pack = self.compact_pack(last);
                pack.position.checked_add(pack.len)
            }
            _ => self.full_entry_position(last).checked_add(8),
        };
        end.ok_or_else(|| self.malformed(self.header, "an end within the image", last))
    }

    /// Returns bytes of the index. The index is read one page at a time.
    fn index_bytes(&mut self, position: u64, len: u64) -> Result<Vec<u8>> {
        let bytes_in_page = |page: &(u64, Vec<u8>)| {
            let start = usize::try_from(position.checked_sub(page.0)?).ok()?;
            let len = usize::try_from(len).ok()?;
            page.1.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
        };
        if let Some(bytes) = bytes_in_page(&self.page) {
            return Ok(bytes);
        }
        let window = &self.filesystem.window;
        self.page = (position, window.read_up_to(position, PAGE_LEN, "EROFS index")?);
        bytes_in_page(&self.page).ok_or_else(|| {
            self.malformed(position, "more index bytes before the end of the image", "the end")
        })
    }
}

/// The entries of a compact pack. They are bit fields, not aligned to bytes.
#[derive(Debug)]
struct PackEntries<'a> {
    bytes: &'a [u8],
    width: u64,
    low_bits: u32,
}

impl PackEntries<'_> {
    /// Returns the low bits and the type of an entry.
    fn get(&self, index: u64) -> Option<(u32, u32)> {
        let bit = index.checked_mul(self.width)?;
        let word = u32_le(self.bytes, usize::try_from(bit / 8).ok()?)? >> (bit % 8);
        Some((word & ((1 << self.low_bits) - 1), word >> self.low_bits & 3))
    }
}

/// Parses a non-head entry of a compact pack. The last entry of a pack stores the distance to the next head. The
/// distance to its own head is one more than the distance of the entry before it.
fn parse_compact_non_head(entries: &PackEntries<'_>, pack: CompactPack, low: u32) -> Option<ClusterEntry> {
    if low & COUNT_FLAG != 0 || pack.index + 1 != pack.entries {
        return Some(ClusterEntry::parse_non_head(low));
    }
    let before = match entries.get(pack.index.checked_sub(1)?)? {
        (low, NON_HEAD) if low & COUNT_FLAG != 0 => 1,
        (low, NON_HEAD) => low,
        _ => 0,
    };
    Some(ClusterEntry::NonHead { back: u64::from(before) + 1, count: None })
}

/// Counts the blocks of the heads before an entry, if every head has one block. The count begins at 1, because the
/// entry's own block follows the blocks of the other heads.
fn count_single_blocks(entries: &PackEntries<'_>, mut index: u64) -> Option<u32> {
    let mut blocks = 1;
    while index > 0 {
        index -= 1;
        let (low, entry_type) = entries.get(index)?;
        if entry_type == NON_HEAD {
            let Some(head) = index.checked_sub(u64::from(low)) else { break };
            index = head;
        }
        blocks += 1;
    }
    Some(blocks)
}

/// Counts the blocks of the heads before an entry, if the entry after a head stores the number of its blocks. A head
/// without such an entry has one block.
fn count_recorded_blocks(entries: &PackEntries<'_>, mut index: u64) -> Option<u32> {
    let mut blocks = 0_u32;
    while index > 0 {
        index -= 1;
        let (low, entry_type) = entries.get(index)?;
        match entry_type {
            NON_HEAD if low & COUNT_FLAG != 0 => {
                // This entry is right after its head.
                blocks = blocks.checked_add(low & !COUNT_FLAG)?;
                let Some(head) = index.checked_sub(1) else { break };
                index = head;
            }
            NON_HEAD => {
                // Continue at the entry that stores the count, right after the head.
                let back = u64::from(low).checked_sub(2)?;
                let Some(counted) = index.checked_sub(back) else { break };
                index = counted;
            }
            _ => blocks = blocks.checked_add(1)?,
        }
    }
    Some(blocks)
}

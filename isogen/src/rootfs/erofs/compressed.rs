//! Compressed files of EROFS. An index has an entry for each *cluster* of the file's bytes, of one block or a few; a run
//! of clusters that was compressed together is an *extent*, and need not begin or end with a cluster.
//!
//! ```text
//! header (8 bytes, aligned, behind the inode): place in the packed inode u32 0, or length of inline data u16 2;
//!     flags u16 4, algorithms (two of 4 bits) 6, cluster size (logarithm, above that of blocks) 7, its bit 7: all is packed
//! full entry:    type u16 0 (two bits), where in the cluster the extent begins u16 2, block u32 4
//! compact pack:  2 or 16 entries of equal width, each an offset or distance below a type of two bits, then a block u32
//! ```
//!
//! A *head* begins an extent; the other clusters of it tell how far back that is. The first of these may instead tell, with
//! a bit of its own, how many blocks the stored form has. A compact pack tells the block before its first head only:
//! those of the others follow by adding up.

use super::super::codec::Codec;
use super::inode::{Inode, Layout};
use super::{Depth, Erofs, Reader, ZERO_PADDING};
use crate::bytes_at::{u16_le, u32_le, u64_le};
use crate::error::Result;

/// Most stored bytes of an extent, and most decoded ones.
const MAX_ENCODED: u64 = 1 << 20;
const MAX_DECODED: u64 = 12 << 20;
/// Index entries of one extent that are looked at: those of the smallest clusters, and a few.
const MAX_CLUSTERS: u64 = (MAX_DECODED >> 9) + 16;

/// Flags of the header. The first one means another thing for full indexes.
const TWO_BYTE_ENTRIES: u16 = 0x01;
const COUNTS_FIRST: u16 = 0x02;
const COUNTS_SECOND: u16 = 0x04;
const INLINE_TAIL: u16 = 0x08;
const INTERLACED: u16 = 0x10;
const FRAGMENT: u16 = 0x20;
const KNOWN_FLAGS: u16 = 0x3F;
/// In the last byte of the header: the packed inode has the whole file.
const ALL_PACKED: u64 = 1 << 63;
/// In a distance: it is no distance but a number of stored blocks.
const COUNT: u32 = 1 << 11;
const HEADER_LEN: u64 = 8;
/// Index bytes that are read at a time; packs are aligned to their length, of at most 32 bytes.
const PAGE_LEN: u64 = 4096;

/// The index of one file.
#[derive(Debug)]
struct Index<'a> {
    filesystem: &'a Erofs,
    inode: Inode,
    /// Where the header stands.
    header: u64,
    flags: u16,
    algorithms: u8,
    cluster_bits: u32,
    /// Place in the packed inode of what the last extent holds.
    fragment: u32,
    /// Length of what the last extent holds, if it stands behind the index.
    inline_len: u16,
    /// The part of the index that was read last.
    page: (u64, Vec<u8>),
}

/// One cluster, as the index describes it.
#[derive(Debug, Clone, Copy)]
enum Cluster {
    Head(Head),
    /// Part of the extent that begins so many clusters before.
    Inside {
        back: u64,
        count: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy)]
struct Head {
    form: Form,
    /// Where in the cluster the extent begins.
    offset: u64,
    block: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    First,
    Second,
}

/// A run of bytes that was compressed together.
#[derive(Debug, Clone, Copy)]
struct Run {
    head: Head,
    /// The bytes of the file that it holds.
    start: u64,
    end: u64,
    /// Stored blocks, where the index tells them.
    count: Option<u32>,
}

/// Where an entry stands, and how wide its pack's entries are.
#[derive(Debug, Clone, Copy)]
struct Pack {
    place: u64,
    /// Bytes in the pack.
    len: u64,
    entries: u64,
    index: u64,
}

impl Reader<'_> {
    /// Decodes from `offset` of a compressed file until there is enough.
    pub(super) fn compressed(&mut self, inode: &Inode, offset: u64, depth: Depth) -> Result<()> {
        if self.rest() == 0 {
            return Ok(());
        }
        let header = inode.end.next_multiple_of(HEADER_LEN);
        let bytes = self.filesystem.window.read(header, 8, "EROFS compression header")?;
        let all = u64_le(&bytes, 0).unwrap_or_default();
        if all & ALL_PACKED != 0 {
            let place = (all & !ALL_PACKED).saturating_add(offset);
            return self.packed(header, place, inode.len.saturating_sub(offset), depth);
        }
        let mut index = Index::new(self.filesystem, inode, header, &bytes)?;
        let mut at = offset;
        let mut cluster = index.head_of(offset)?;
        while self.rest() > 0 {
            let (run, next) = index.run(cluster)?;
            self.run(&mut index, run, at, depth)?;
            (at, cluster) = (run.end, next);
        }
        Ok(())
    }

    /// Appends what a run holds from the byte `at` of the file on.
    fn run(&mut self, index: &mut Index<'_>, run: Run, at: u64, depth: Depth) -> Result<()> {
        let skipped = at.saturating_sub(run.start);
        let len = run.end.saturating_sub(run.start).min(skipped.saturating_add(self.rest()));
        if at >= run.end {
            let found = format!("extent {} to {} for byte {at}", run.start, run.end);
            return Err(self.filesystem.malformed_index(index.header, "heads before their clusters", found));
        }
        let is_last = run.end >= index.inode.len;
        if is_last && index.flags & FRAGMENT != 0 {
            let high =
                if index.inode.layout == Layout::FullIndex { u64::from(run.head.block) << 32 } else { 0 };
            let place = (high | u64::from(index.fragment)).saturating_add(skipped);
            return self.packed(index.header, place, len.saturating_sub(skipped), depth);
        }
        let (place, stored_len) = match index.inline_len {
            inline_len if is_last && inline_len > 0 => (index.end()?, u64::from(inline_len)),
            _ => (self.filesystem.block_offset(run.head.block), index.stored_len(&run)?),
        };
        let stored = self.stored(place, stored_len, "EROFS compressed data")?;
        let decoded = match run.head.form {
            Form::Plain => index.uncompressed(place, stored, run.start, len)?,
            Form::First => self.decode(index.algorithms & 15, place, &stored, len)?,
            Form::Second => self.decode(index.algorithms >> 4, place, &stored, len)?,
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.contents.extend_from_slice(decoded.get(skipped..).unwrap_or_default());
        Ok(())
    }

    fn decode(&self, algorithm: u8, place: u64, stored: &[u8], len: u64) -> Result<Vec<u8>> {
        let window = &self.filesystem.window;
        let codec = self.filesystem.codec(algorithm, place)?;
        let padded = codec != Codec::Lz4 || self.filesystem.features & ZERO_PADDING != 0;
        let zeros = if padded { crate::bytes_at::zeros_at_start(stored) } else { 0 };
        let malformed = |found: String| {
            let expected = format!("{len} bytes of {codec} data");
            Err(window.malformed(place, "EROFS compressed data", expected, found))
        };
        let limit = usize::try_from(len).unwrap_or_default();
        match codec.decode(stored.get(zeros..).unwrap_or_default(), limit) {
            Ok(decoded) if decoded.len() == limit => Ok(decoded),
            Ok(decoded) => malformed(format!("{} bytes", decoded.len())),
            Err(error) => malformed(error.to_string()),
        }
    }
}

impl<'a> Index<'a> {
    fn new(filesystem: &'a Erofs, inode: &Inode, header: u64, bytes: &[u8]) -> Result<Self> {
        let flags = u16_le(bytes, 4).unwrap_or_default();
        let (algorithms, sizes) = match bytes.get(6..8) {
            Some([algorithms, sizes]) => (*algorithms, *sizes),
            _ => (0, 0),
        };
        let window = &filesystem.window;
        if inode.layout == Layout::FullIndex && flags & TWO_BYTE_ENTRIES != 0 {
            return Err(window.unsupported(header, "EROFS index", "a list of extents"));
        }
        if flags & !KNOWN_FLAGS != 0 || sizes > 15 {
            let found = format!("flags {flags:#x}, cluster size {sizes:#x}");
            return Err(window.unsupported(header, "EROFS compression header", found));
        }
        let cluster_bits = u32::from(filesystem.block_bits) + u32::from(sizes);
        let compact = inode.layout == Layout::CompactIndex;
        let widest = match flags & TWO_BYTE_ENTRIES {
            0 if compact => 14,
            _ if compact => 12,
            _ => 16,
        };
        if cluster_bits > widest {
            return Err(window.unsupported(header, "EROFS cluster size", format!("2^{cluster_bits} bytes")));
        }
        let inline_len = u16_le(bytes, 2).unwrap_or_default();
        Ok(Self {
            filesystem,
            inode: *inode,
            header,
            flags,
            algorithms,
            cluster_bits,
            fragment: u32_le(bytes, 0).unwrap_or_default(),
            inline_len: if flags & INLINE_TAIL == 0 { 0 } else { inline_len },
            page: (0, Vec::new()),
        })
    }

    fn cluster_len(&self) -> u64 {
        1 << self.cluster_bits
    }

    fn start_of(&self, cluster: u64) -> u64 {
        cluster.saturating_mul(self.cluster_len())
    }

    /// The cluster in which the extent with a byte of the file begins.
    fn head_of(&mut self, offset: u64) -> Result<u64> {
        let mut cluster = offset >> self.cluster_bits;
        for _ in 0..MAX_CLUSTERS {
            let back = match self.cluster(cluster)? {
                Cluster::Head(head) if self.start_of(cluster).saturating_add(head.offset) <= offset => {
                    return Ok(cluster);
                }
                Cluster::Head(_) => 1,
                Cluster::Inside { back, .. } => back,
            };
            cluster = cluster.checked_sub(back).filter(|_| back > 0).ok_or_else(|| {
                self.filesystem.malformed_index(
                    self.header,
                    "a head before each cluster",
                    format!("{back} clusters back"),
                )
            })?;
        }
        Err(self.too_long(cluster))
    }

    /// The extent that begins in a cluster, and the cluster in which the next one begins.
    fn run(&mut self, first: u64) -> Result<(Run, u64)> {
        let Cluster::Head(head) = self.cluster(first)? else {
            return Err(self.filesystem.malformed_index(self.header, "the head of an extent", first));
        };
        let start = self.start_of(first).saturating_add(head.offset);
        let mut count = None;
        let mut cluster = first;
        for _ in 0..MAX_CLUSTERS {
            cluster += 1;
            let boundary = self.start_of(cluster);
            if boundary >= self.inode.len {
                return self.checked(Run { head, start, end: self.inode.len, count }, cluster);
            }
            match self.cluster(cluster)? {
                Cluster::Head(next) => {
                    let end = boundary.saturating_add(next.offset).min(self.inode.len);
                    return self.checked(Run { head, start, end, count }, cluster);
                }
                Cluster::Inside { count: found, .. } if cluster == first + 1 => count = found,
                Cluster::Inside { .. } => {}
            }
        }
        Err(self.too_long(first))
    }

    fn checked(&self, run: Run, next: u64) -> Result<(Run, u64)> {
        match run.end.checked_sub(run.start) {
            Some(1..=MAX_DECODED) => Ok((run, next)),
            _ => Err(self.too_long(run.start >> self.cluster_bits)),
        }
    }

    fn too_long(&self, cluster: u64) -> crate::error::Error {
        let expected = format!("extents of 1 to {MAX_DECODED} bytes");
        self.filesystem.malformed_index(self.header, &expected, format!("another one at cluster {cluster}"))
    }

    /// How many bytes of blocks an extent takes.
    fn stored_len(&self, run: &Run) -> Result<u64> {
        let counts = match run.head.form {
            Form::Plain => 0,
            Form::First => self.flags & COUNTS_FIRST,
            Form::Second => self.flags & COUNTS_SECOND,
        };
        let len = match run.count {
            Some(count) if counts != 0 => u64::from(count) << self.filesystem.block_bits,
            _ => self.cluster_len(),
        };
        if (1..=MAX_ENCODED).contains(&len) {
            return Ok(len);
        }
        let expected = format!("extents of 1 to {MAX_ENCODED} stored bytes");
        Err(self.filesystem.malformed_index(self.header, &expected, len))
    }

    /// What an extent holds that is stored as it is. Interlaced, each byte stands as far into its block as it does in
    /// the file, so that the beginning comes behind the end.
    fn uncompressed(&self, place: u64, stored: Vec<u8>, start: u64, len: u64) -> Result<Vec<u8>> {
        let shift = if self.flags & INTERLACED == 0 { 0 } else { start % self.filesystem.block_len() };
        let mut bytes = stored;
        if let Some(shift) = usize::try_from(shift).ok().filter(|shift| *shift <= bytes.len()) {
            bytes.rotate_left(shift);
        }
        let found = bytes.len();
        match usize::try_from(len).ok().filter(|len| *len <= found) {
            Some(len) => {
                bytes.truncate(len);
                Ok(bytes)
            }
            None => {
                let expected = format!("{len} bytes");
                Err(self.filesystem.window.malformed(place, "EROFS plain extent", expected, found))
            }
        }
    }

    /// Reads the entry of a cluster.
    fn cluster(&mut self, cluster: u64) -> Result<Cluster> {
        match self.inode.layout {
            Layout::CompactIndex => {
                let pack = self.pack(cluster);
                let bytes = self.bytes(pack.place, pack.len)?;
                let found = compact(&bytes, pack, self.cluster_bits, self.flags & COUNTS_FIRST != 0);
                found.ok_or_else(|| {
                    self.filesystem.malformed_index(pack.place, "a pack of entries", format!("{bytes:02x?}"))
                })
            }
            _ => self.full(cluster),
        }
    }

    /// The first entry of a full index: behind the header, and eight bytes that nobody uses.
    fn full_place(&self, cluster: u64) -> u64 {
        self.header.saturating_add(2 * HEADER_LEN).saturating_add(cluster.saturating_mul(8))
    }

    fn full(&mut self, cluster: u64) -> Result<Cluster> {
        let place = self.full_place(cluster);
        let bytes = self.bytes(place, 8)?;
        let u16_at = |offset| u16_le(&bytes, offset).unwrap_or_default();
        let form = match u16_at(0) & 3 {
            0 => Form::Plain,
            1 => Form::First,
            3 => Form::Second,
            _ => {
                let distance = u32::from(u16_at(4));
                return Ok(match distance & COUNT {
                    0 => Cluster::Inside { back: u64::from(distance), count: None },
                    _ => Cluster::Inside { back: 1, count: Some(distance & !COUNT) },
                });
            }
        };
        let offset = u64::from(u16_at(2));
        if offset >= self.cluster_len() {
            return Err(self.filesystem.malformed_index(place, "an offset within the cluster", offset));
        }
        Ok(Cluster::Head(Head { form, offset, block: u32_le(&bytes, 4).unwrap_or_default() }))
    }

    /// The pack with the entry of a cluster. Packs of sixteen stand at multiples of 32 bytes; before the first of these,
    /// and for what is left behind the last one, there are packs of two.
    fn pack(&self, cluster: u64) -> Pack {
        let start = self.header + HEADER_LEN;
        let total = self.inode.len.div_ceil(self.filesystem.block_len());
        let before = (32 - start % 32) / 4 % 8;
        let narrow = match self.flags & TWO_BYTE_ENTRIES {
            0 => 0,
            _ => total.saturating_sub(before) / 16 * 16,
        };
        let narrow_start = start + before * 4;
        let place = if cluster < before {
            start + cluster * 4
        } else if cluster < before + narrow {
            let index = cluster - before;
            return Pack { place: narrow_start + index / 16 * 32, len: 32, entries: 16, index: index % 16 };
        } else {
            let index = cluster - before - narrow;
            narrow_start.saturating_add(narrow * 2).saturating_add(index.saturating_mul(4))
        };
        Pack { place: place / 8 * 8, len: 8, entries: 2, index: place % 8 / 4 }
    }

    /// The first byte behind the index, where inline data stands.
    fn end(&self) -> Result<u64> {
        let last = self.inode.len.saturating_sub(1) >> self.cluster_bits;
        let end = match self.inode.layout {
            Layout::CompactIndex => {
                let pack = self.pack(last);
                pack.place.checked_add(pack.len)
            }
            _ => self.full_place(last).checked_add(8),
        };
        end.ok_or_else(|| self.filesystem.malformed_index(self.header, "an end within the image", last))
    }

    /// Bytes of the index, read a page at a time.
    fn bytes(&mut self, place: u64, len: u64) -> Result<Vec<u8>> {
        let inside = |page: &(u64, Vec<u8>)| {
            let start = usize::try_from(place.checked_sub(page.0)?).ok()?;
            let len = usize::try_from(len).ok()?;
            page.1.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
        };
        if let Some(bytes) = inside(&self.page) {
            return Ok(bytes);
        }
        let window = &self.filesystem.window;
        let page_len = usize::try_from(PAGE_LEN).unwrap_or_default();
        self.page = (place, window.read_up_to(place, page_len, "EROFS index")?);
        inside(&self.page).ok_or_else(|| {
            self.filesystem.malformed_index(place, "more of it before the end of the image", "the end")
        })
    }
}

/// The entries of a compact pack, bit by bit.
#[derive(Debug)]
struct Entries<'a> {
    bytes: &'a [u8],
    width: u64,
    low_bits: u32,
}

impl Entries<'_> {
    /// The low bits of an entry, and its type.
    fn get(&self, index: u64) -> Option<(u32, u32)> {
        let bit = index.checked_mul(self.width)?;
        let word = u32_le(self.bytes, usize::try_from(bit / 8).ok()?)? >> (bit % 8);
        Some((word & ((1 << self.low_bits) - 1), word >> self.low_bits & 3))
    }
}

/// An entry that tells of a cluster inside of an extent.
const INSIDE: u32 = 2;

fn compact(bytes: &[u8], pack: Pack, cluster_bits: u32, counts: bool) -> Option<Cluster> {
    // The distances need twelve bits, even where clusters are smaller.
    let low_bits = cluster_bits.max(12);
    let width = (pack.len - 4) * 8 / pack.entries;
    let entries = Entries { bytes, width, low_bits };
    let (low, form) = entries.get(pack.index)?;
    if form == INSIDE {
        return inside(&entries, pack, low);
    }
    let base = u32_le(bytes, usize::try_from(pack.len - 4).ok()?)?;
    let blocks =
        if counts { blocks_counted(&entries, pack.index)? } else { blocks_one_each(&entries, pack.index)? };
    let form = match form {
        0 => Form::Plain,
        1 => Form::First,
        _ => Form::Second,
    };
    Some(Cluster::Head(Head { form, offset: low.into(), block: base.wrapping_add(blocks) }))
}

/// The last entry of a pack tells the distance to the next head. That to its own follows from the entry before.
fn inside(entries: &Entries<'_>, pack: Pack, low: u32) -> Option<Cluster> {
    if low & COUNT != 0 {
        return Some(Cluster::Inside { back: 1, count: Some(low & !COUNT) });
    }
    if pack.index + 1 != pack.entries {
        return Some(Cluster::Inside { back: low.into(), count: None });
    }
    let before = match entries.get(pack.index.checked_sub(1)?)? {
        (low, INSIDE) if low & COUNT != 0 => 1,
        (low, INSIDE) => low,
        _ => 0,
    };
    Some(Cluster::Inside { back: u64::from(before) + 1, count: None })
}

/// How many blocks the heads before an entry take, and its own comes after the base by one: each has one block.
fn blocks_one_each(entries: &Entries<'_>, mut index: u64) -> Option<u32> {
    let mut blocks = 1;
    while index > 0 {
        index -= 1;
        let (low, form) = entries.get(index)?;
        if form == INSIDE {
            let Some(head) = index.checked_sub(u64::from(low)) else { break };
            index = head;
        }
        blocks += 1;
    }
    Some(blocks)
}

/// How many blocks the heads before an entry take, where each of them tells its number unless it is one.
fn blocks_counted(entries: &Entries<'_>, mut index: u64) -> Option<u32> {
    let mut blocks = 0_u32;
    while index > 0 {
        index -= 1;
        let (low, form) = entries.get(index)?;
        match form {
            INSIDE if low & COUNT != 0 => {
                // It comes right behind its head.
                blocks = blocks.checked_add(low & !COUNT)?;
                let Some(head) = index.checked_sub(1) else { break };
                index = head;
            }
            INSIDE => {
                // To the entry with the number, right behind the head.
                let back = u64::from(low).checked_sub(2)?;
                let Some(counted) = index.checked_sub(back) else { break };
                index = counted;
            }
            _ => blocks = blocks.checked_add(1)?,
        }
    }
    Some(blocks)
}

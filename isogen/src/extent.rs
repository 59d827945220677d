//! Byte ranges, and the 2048-byte sectors of ISO 9660.

use std::fmt;
use std::ops::Range;

/// Bytes in one sector of the image formats that this crate reads.
pub(crate) const SECTOR_SIZE: u64 = 2048;

/// The number of a 2048-byte sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Sector(pub u32);

impl Sector {
    /// Returns the offset of the sector's first byte. A 32-bit sector number cannot overflow the offset.
    #[must_use]
    pub fn offset(self) -> u64 {
        u64::from(self.0) * SECTOR_SIZE
    }
}

impl fmt::Display for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A range of bytes, as an offset and a length. The end never exceeds `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Extent {
    offset: u64,
    len: u64,
}

impl Extent {
    /// Creates an extent; `None` if its end would exceed `u64::MAX`.
    #[must_use]
    pub fn new(offset: u64, len: u64) -> Option<Self> {
        offset.checked_add(len).map(|_| Self { offset, len })
    }

    /// Creates the extent of the first `len` bytes.
    #[must_use]
    pub fn from_start(len: u64) -> Self {
        Self { offset: 0, len }
    }

    /// Creates the extent of `len` bytes that begins at a sector. Two 32-bit numbers cannot overflow it.
    pub(crate) fn at_sector(sector: Sector, len: u32) -> Self {
        Self { offset: sector.offset(), len: u64::from(len) }
    }

    /// Returns the offset of the first byte.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Returns `true` if the extent has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the offset after the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset + self.len
    }

    /// Returns `true` if `inner` is completely inside this extent.
    #[must_use]
    pub fn contains(self, inner: Self) -> bool {
        self.offset <= inner.offset && inner.end() <= self.end()
    }

    /// Returns `true` if the two extents share a byte.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end() && self.len > 0 && other.len > 0
    }

    /// Returns the part of the extent in `range`, which counts from the start of the extent. A longer range is cut to
    /// the extent.
    pub(crate) fn slice(self, range: Range<u64>) -> Self {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        Self { offset: self.offset + start, len: end - start }
    }

    /// Converts `inner`, whose offset counts from the start of this extent, to an extent of the file. Returns `None` if
    /// `inner` is not inside this extent.
    pub(crate) fn subextent(self, inner: Self) -> Option<Self> {
        if inner.end() > self.len {
            return None;
        }
        Self::new(self.offset.checked_add(inner.offset)?, inner.len)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64) -> Extent {
        Extent::new(offset, len).unwrap()
    }

    #[test]
    fn rejects_an_end_beyond_64_bits() {
        assert_eq!(Extent::new(u64::MAX, 1), None);
        assert!(Extent::new(u64::MAX, 0).is_some());
    }

    #[test]
    fn rejects_subextents_outside_of_the_extent() {
        assert_eq!(extent(100, 10).subextent(extent(4, 6)), Some(extent(104, 6)));
        assert_eq!(extent(100, 10).subextent(extent(4, 7)), None);
    }

    #[test]
    fn slice_is_limited_to_the_extent() {
        assert_eq!(extent(100, 10).slice(4..6), extent(104, 2));
        assert_eq!(extent(100, 10).slice(4..u64::MAX), extent(104, 6));
        assert_eq!(extent(100, 10).slice(u64::MAX..u64::MAX), extent(110, 0));
        assert_eq!(extent(100, 10).slice(Range { start: 6, end: 4 }), extent(104, 0));
    }

    #[test]
    fn empty_extents_overlap_nothing() {
        assert!(extent(0, 10).overlaps(extent(9, 1)));
        assert!(!extent(0, 10).overlaps(extent(10, 1)));
        assert!(!extent(0, 10).overlaps(extent(5, 0)));
    }
}

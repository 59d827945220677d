//! Positions: byte ranges, and the 2048-byte sectors that ISO 9660 counts in.

use std::fmt;

/// Bytes in one sector of the image formats that this crate reads.
pub const SECTOR_SIZE: u64 = 2048;

/// The number of a 2048-byte sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Sector(pub u32);

impl Sector {
    /// The byte at which the sector begins. A 32-bit sector number cannot overflow this.
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

/// A run of bytes: where it begins and how long it is. The end never passes `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Extent {
    offset: u64,
    len: u64,
}

impl Extent {
    /// Makes an extent, or `None` where its end would pass 64 bits.
    #[must_use]
    pub fn new(offset: u64, len: u64) -> Option<Self> {
        offset.checked_add(len).map(|_| Self { offset, len })
    }

    /// The first `len` bytes.
    #[must_use]
    pub fn first(len: u64) -> Self {
        Self { offset: 0, len }
    }

    /// The extent of `len` bytes that begins at a sector; 32 bits each cannot overflow.
    #[must_use]
    pub fn at_sector(sector: Sector, len: u32) -> Self {
        Self { offset: sector.offset(), len: u64::from(len) }
    }

    /// The first byte.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Tells whether there are no bytes in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first byte behind it.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset + self.len
    }

    /// Tells whether `inner` lies wholly inside.
    #[must_use]
    pub fn contains(self, inner: Self) -> bool {
        self.offset <= inner.offset && inner.end() <= self.end()
    }

    /// Tells whether the two share a byte.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end() && self.len > 0 && other.len > 0
    }

    /// The part of it given by `inner`, an extent counted from its start; `None` where that is not inside.
    #[must_use]
    pub fn part(self, inner: Self) -> Option<Self> {
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
    fn an_end_beyond_64_bits_is_no_extent() {
        assert_eq!(Extent::new(u64::MAX, 1), None);
        assert!(Extent::new(u64::MAX, 0).is_some());
    }

    #[test]
    fn parts_stay_inside() {
        assert_eq!(extent(100, 10).part(extent(4, 6)), Some(extent(104, 6)));
        assert_eq!(extent(100, 10).part(extent(4, 7)), None);
    }

    #[test]
    fn empty_extents_overlap_nothing() {
        assert!(extent(0, 10).overlaps(extent(9, 1)));
        assert!(!extent(0, 10).overlaps(extent(10, 1)));
        assert!(!extent(0, 10).overlaps(extent(5, 0)));
    }
}

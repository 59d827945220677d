//! Plans: the exact byte layout of one artifact, relative to an unmodified base image.
//!
//! A [`Plan`] is a sorted list of [`Segment`]s. It contains no copies of base bytes, and it has no cursor and no
//! mutable state, so any number of readers can read any ranges in any order. A lookup of a range is a binary search.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes_at::prefix_mut;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, OrInternal, Result};
use crate::extent::Extent;
use crate::source::Source;

/// A contiguous piece of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Bytes of the base image.
    Base(Extent),
    /// New bytes, which are not in the base image.
    Bytes(Bytes),
    /// This number of zero bytes.
    Zero(u64),
}

impl Segment {
    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Base(extent) => extent.len(),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zero(len) => *len,
        }
    }

    /// Returns `true` if the segment has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the part of the segment in `range`, which counts from the start of the segment. A longer range is cut to
    /// the segment.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        match self {
            Self::Base(extent) => Self::Base(extent.slice(range)),
            Self::Bytes(bytes) => {
                // An offset that does not fit into `usize` is beyond the end.
                let limited = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
                let end = limited(range.end);
                Self::Bytes(bytes.slice(limited(range.start).min(end)..end))
            }
            Self::Zero(len) => Self::Zero(range.end.min(*len).saturating_sub(range.start)),
        }
    }
}

/// A segment and its position in the artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Offset of the first byte in the artifact.
    pub start: u64,
    /// The contents: base bytes, new bytes or zeros.
    pub segment: Segment,
}

impl PlacedSegment {
    /// Returns the offset in the artifact after the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        // `Plan::new` limits a plan to `u64::MAX` bytes, so this cannot overflow.
        self.start + self.segment.len()
    }
}

/// New bytes that replace bytes of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Offset of the first replaced byte in the artifact.
    pub offset: u64,
    /// The new bytes. They replace the same number of old bytes.
    pub segment: Segment,
}

/// Minimum length of a run of base bytes after which [`Plan::sha256`] saves its hash state.
const MIN_SHARED_LEN: u64 = 1 << 20;

/// Maximum number of bytes to hash in one step.
const HASH_BUFFER_LEN: usize = 1 << 20;

/// Version of the layout rules. Every [identity](Plan::identity) includes it, so a change of the rules changes all
/// identities.
pub const PLAN_VERSION: u8 = 1;

/// The exact byte layout of one artifact. The [module documentation](self) describes its properties.
#[derive(Debug, Clone)]
pub struct Plan {
    source: Arc<Source>,
    segments: Arc<[PlacedSegment]>,
    len: u64,
}

impl Plan {
    /// Creates a plan of the whole base, unchanged.
    #[must_use]
    pub fn from_source(source: Arc<Source>) -> Self {
        let extent = Extent::new(0, source.len());
        Self::new(source, extent.map(Segment::Base))
    }

    /// Creates a plan of consecutive segments. It drops empty segments and joins neighbours that continue each other.
    /// It also drops bytes beyond the offset `u64::MAX`, because no range can contain them.
    pub fn new(source: Arc<Source>, segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut placed: Vec<PlacedSegment> = Vec::new();
        let mut len = 0;
        for mut segment in segments {
            let room = u64::MAX - len;
            if segment.len() > room {
                segment = segment.slice(0..room);
            }
            if segment.is_empty() {
                continue;
            }
            let start = len;
            len += segment.len();
            let last = placed.last_mut();
            match last.and_then(|last| try_join(&last.segment, &segment).map(|both| (last, both))) {
                Some((last, both)) => last.segment = both,
                None => placed.push(PlacedSegment { start, segment }),
            }
        }
        Self { source, segments: placed.into(), len }
    }

    /// Returns the plan with the `patches` applied. The patches may be in any order.
    ///
    /// # Errors
    ///
    /// Returns an error if two patches overlap, or if a patch exceeds the artifact.
    pub fn patched(&self, patches: Vec<Patch>) -> Result<Self> {
        self.try_patched(patches).map_err(|patch| {
            let value = format!("{} bytes at byte {}", patch.segment.len(), patch.offset);
            let reason = "it overlaps another patch or exceeds the image";
            Error::InvalidEdit { what: "patch", value, reason }
        })
    }

    /// Returns the plan with changed ISO structures. The patches are computed from the base image, so overlapping
    /// patches are a defect of the image, not a mistake of the caller.
    ///
    /// # Errors
    ///
    /// Returns an error that blames the image if two structures overlap, or if one exceeds the image.
    pub(crate) fn patched_structures(&self, patches: Vec<Patch>) -> Result<Self> {
        self.try_patched(patches).map_err(|patch| {
            let expected = format!("a structure within {} bytes that overlaps no other", self.len);
            let actual =
                format!("{} bytes, which overlap another structure or exceed the image", patch.segment.len());
            self.source.malformed(patch.offset, "structure to change", expected, actual)
        })
    }

    /// Replaces bytes. If a patch overlaps the previous one or exceeds the artifact, returns that patch as the error.
    fn try_patched(&self, mut patches: Vec<Patch>) -> Result<Self, Patch> {
        patches.retain(|patch| !patch.segment.is_empty());
        patches.sort_by_key(|patch| patch.offset);
        let mut segments = Vec::new();
        let mut at = 0;
        for patch in patches {
            let end = patch.offset.checked_add(patch.segment.len()).filter(|end| *end <= self.len);
            let Some(end) = end.filter(|_| patch.offset >= at) else { return Err(patch) };
            segments.extend(self.segments(at..patch.offset));
            segments.push(patch.segment);
            at = end;
        }
        segments.extend(self.segments(at..self.len));
        Ok(Self::new(Arc::clone(&self.source), segments))
    }

    /// Returns the plan with more segments appended.
    #[must_use]
    pub fn followed_by(&self, more: impl IntoIterator<Item = Segment>) -> Self {
        Self::new(Arc::clone(&self.source), self.segments(0..self.len).chain(more))
    }

    /// Returns the number of bytes of the artifact.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns `true` if the artifact has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the base image that the segments refer to.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the size in bytes of the memory that the plan uses, without the base image.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let own = |placed: &PlacedSegment| match &placed.segment {
            Segment::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.layout().iter().map(|placed| own(placed) + size_of::<PlacedSegment>()).sum()
    }

    /// Returns the number of new bytes in the buffer `shared`, which the plan shares with other plans.
    #[must_use]
    pub fn bytes_within(&self, shared: &Bytes) -> usize {
        let shared = shared.as_ptr_range();
        let len = |placed: &PlacedSegment| match &placed.segment {
            Segment::Bytes(bytes) if shared.contains(&bytes.as_ptr()) => bytes.len(),
            _ => 0,
        };
        self.layout().iter().map(len).sum()
    }

    /// Returns all segments with their positions.
    #[must_use]
    pub fn layout(&self) -> &[PlacedSegment] {
        &self.segments
    }

    /// Returns the segments of a range, cut to the range. A range beyond the end of the artifact is cut to the
    /// artifact. An empty range has no segments.
    pub fn segments(&self, range: Range<u64>) -> impl Iterator<Item = Segment> + '_ {
        // A range whose end is before its start is empty.
        let first = match range.is_empty() {
            true => self.segments.len(),
            false => self.segments.partition_point(|placed| placed.end() <= range.start),
        };
        let placed = self.segments.iter().skip(first).take_while(move |placed| placed.start < range.end);
        placed.map(move |placed| {
            placed.segment.slice(range.start.saturating_sub(placed.start)..range.end - placed.start)
        })
    }

    /// Reads at `offset` into `buf` and returns the number of bytes read. The number is less than the length of `buf`
    /// only at the end of the artifact.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage of the base image fails.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut rest = buf;
        let mut filled = 0;
        let end = offset.saturating_add(rest.len() as u64);
        for segment in self.segments(offset..end) {
            // The segments cover at most the length of the buffer, so each length fits into `usize`.
            let len = usize::try_from(segment.len()).map_err(io::Error::other)?;
            let (chunk, behind) = rest.split_at_mut_checked(len).ok_or(io::ErrorKind::InvalidInput)?;
            match segment {
                Segment::Base(extent) => {
                    self.source.read_exact_at(chunk, extent.offset()).map_err(io::Error::other)?;
                }
                Segment::Bytes(bytes) => chunk.copy_from_slice(&bytes),
                Segment::Zero(_) => chunk.fill(0),
            }
            filled += len;
            rest = behind;
        }
        Ok(filled)
    }

    /// Reads all bytes into memory. This is for small artifacts, such as a config file of an image.
    ///
    /// # Errors
    ///
    /// Returns an error if the artifact is longer than `limit` bytes, or if the storage of the base image fails.
    pub fn read_all(&self, limit: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(self.len).ok().filter(|_| self.len <= limit).ok_or_else(|| {
            self.source.malformed(0, "length to read into memory", format!("at most {limit}"), self.len)
        })?;
        let mut bytes = vec![0; len];
        self.read_at(&mut bytes, 0).map_err(|error| self.source.read_error(0, error))?;
        Ok(bytes)
    }

    /// Returns the identity of the artifact's bytes: a digest of the base image's digest, the version of the layout
    /// rules, and all segments. Equal plans have equal identities on every machine. Plans of different bytes have
    /// different identities. This reads the base image only if its digest is not known yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the digest of the base image is not [set](Source::set_digest) and the base image cannot be
    /// read.
    pub fn identity(&self) -> Result<Digest> {
        let mut hasher = Hasher::new();
        hasher.update(b"kindling plan");
        hasher.update(&[PLAN_VERSION]);
        hasher.update(&self.source.digest()?.0);
        for placed in &*self.segments {
            hash_description(&placed.segment, &mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Returns the SHA-256 digest of all bytes. If an artifact of the same base image with the same prefix was hashed
    /// before, this does not read the prefix again. For this purpose, layouts put the new bytes of an artifact after
    /// the shared bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage of the base image fails.
    pub fn sha256(&self) -> Result<Digest> {
        self.sha256_while(|| true)?.or_internal("hashing that nothing stopped has no digest", self.len)
    }

    /// Returns the SHA-256 digest of all bytes like [`sha256`](Self::sha256), but stops and returns `None` if
    /// `is_wanted` returns `false`. Calls `is_wanted` before each mebibyte.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage of the base image fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use isogen::{Digest, Plan, Source};
    ///
    /// let plan = Plan::from_source(Source::from_bytes("base", &b"abc"[..]).into());
    /// assert_eq!(plan.sha256_while(|| true)?, Some(Digest::from_data(b"abc")));
    /// assert_eq!(plan.sha256_while(|| false)?, None);
    /// # Ok::<(), isogen::Error>(())
    /// ```
    pub fn sha256_while(&self, is_wanted: impl Fn() -> bool) -> Result<Option<Digest>> {
        let states = self.source.hash_states();
        let prefixes = self.shared_prefixes();
        let saved = prefixes.iter().rev().find_map(|(end, prefix)| Some((*end, states.get(prefix)?)));
        let (mut offset, mut hasher) = saved.unwrap_or((0, Hasher::new()));
        for (end, prefix) in prefixes {
            if end > offset {
                if !self.hash_range(offset..end, &mut hasher, &is_wanted)? {
                    return Ok(None);
                }
                states.put(prefix, hasher.clone());
                offset = end;
            }
        }
        let is_complete = self.hash_range(offset..self.len, &mut hasher, &is_wanted)?;
        Ok(is_complete.then(|| hasher.finish()))
    }

    /// Returns the end of each run of base bytes that is long enough for a saved hash state, with a digest that
    /// identifies all segments up to that end.
    fn shared_prefixes(&self) -> Vec<(u64, Digest)> {
        let mut hasher = Hasher::new();
        let mut prefixes = Vec::new();
        for placed in &*self.segments {
            hash_description(&placed.segment, &mut hasher);
            if matches!(&placed.segment, Segment::Base(extent) if extent.len() >= MIN_SHARED_LEN) {
                prefixes.push((placed.end(), hasher.clone().finish()));
            }
        }
        prefixes
    }

    /// Hashes a range. Returns `false` if `is_wanted` returned `false`.
    fn hash_range(
        &self,
        range: Range<u64>,
        hasher: &mut Hasher,
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool> {
        let len = range.end - range.start;
        let mut buf = vec![0; usize::try_from(len).map_or(HASH_BUFFER_LEN, |len| len.min(HASH_BUFFER_LEN))];
        let mut offset = range.start;
        while offset < range.end {
            if !is_wanted() {
                return Ok(false);
            }
            let chunk = prefix_mut(&mut buf, range.end - offset);
            self.read_at(chunk, offset).map_err(|error| self.source.read_error(offset, error))?;
            hasher.update(chunk);
            offset += chunk.len() as u64;
        }
        Ok(true)
    }

    /// Returns the patches that an in-place edit must write to the base image.
    ///
    /// # Errors
    ///
    /// Returns an error if the plan moves base bytes or changes the length of the image.
    pub fn changes_in_place(&self) -> Result<Vec<Patch>> {
        let moved =
            |it: &PlacedSegment| matches!(it.segment, Segment::Base(base) if base.offset() != it.start);
        if self.len != self.source.len() || self.segments.iter().any(moved) {
            return Err(Error::NotInPlace { file: self.source.name().to_owned() });
        }
        let changed = self.segments.iter().filter(|placed| !matches!(placed.segment, Segment::Base(_)));
        Ok(changed.map(|placed| Patch { offset: placed.start, segment: placed.segment.clone() }).collect())
    }
}

/// Hashes the description of a segment. It does not read base bytes.
fn hash_description(segment: &Segment, hasher: &mut Hasher) {
    let (tag, first, bytes): (u8, u64, &[u8]) = match segment {
        Segment::Base(extent) => (1, extent.offset(), &[]),
        Segment::Bytes(bytes) => (2, 0, bytes),
        Segment::Zero(_) => (3, 0, &[]),
    };
    hasher.update(&[tag]);
    hasher.update(&first.to_le_bytes());
    hasher.update(&segment.len().to_le_bytes());
    hasher.update(bytes);
}

/// Joins two neighbouring segments into one. Returns `None` if the second does not continue the first.
fn try_join(first: &Segment, second: &Segment) -> Option<Segment> {
    match (first, second) {
        (Segment::Base(a), Segment::Base(b)) if a.end() == b.offset() => {
            Extent::new(a.offset(), a.len() + b.len()).map(Segment::Base)
        }
        (Segment::Zero(a), Segment::Zero(b)) => Some(Segment::Zero(a + b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Arc<Source> {
        Arc::new(Source::from_bytes("base", &b"0123456789"[..]))
    }

    fn text(plan: &Plan) -> String {
        String::from_utf8(plan.read_all(1000).unwrap()).unwrap()
    }

    fn patch(offset: u64, bytes: &'static str) -> Patch {
        Patch { offset, segment: Segment::Bytes(Bytes::from_static(bytes.as_bytes())) }
    }

    #[test]
    fn patches_replace_and_keep_the_length() {
        let plan =
            Plan::from_source(base()).patched(vec![patch(8, "yz"), patch(0, "a"), patch(3, "bc")]).unwrap();
        assert_eq!(text(&plan), "a12bc567yz");
        assert_eq!(plan.changes_in_place().unwrap().len(), 3);
    }

    /// Overlapping patches are the caller's mistake in an edit, but a defect of the image if they are patches of its
    /// structures.
    #[test]
    fn rejects_overlapping_patches() {
        let plan = Plan::from_source(base());
        for patches in
            [vec![patch(1, "abc"), patch(3, "d")], vec![patch(9, "ab")], vec![patch(u64::MAX, "ab")]]
        {
            assert!(matches!(plan.patched(patches.clone()), Err(Error::InvalidEdit { .. })));
            assert!(matches!(plan.patched_structures(patches), Err(Error::Malformed { .. })));
        }
    }

    #[test]
    fn hashing_stops_when_the_digest_is_not_wanted() {
        let chunks = 5;
        let base = Source::from_bytes("base", vec![7; chunks * HASH_BUFFER_LEN]);
        let plan = Plan::from_source(Arc::new(base));
        let calls = std::cell::Cell::new(0);
        let count_call = || calls.replace(calls.get() + 1);
        assert_eq!(plan.sha256_while(|| count_call() < 2).unwrap(), None);
        assert_eq!(calls.take(), 3);
        assert_eq!(plan.sha256_while(|| count_call() < chunks).unwrap(), Some(plan.sha256().unwrap()));
        assert_eq!(calls.take(), chunks);
    }

    #[test]
    fn neighbours_are_joined() {
        let plan = Plan::from_source(base()).patched(vec![patch(5, "x")]).unwrap();
        let segments = plan.segments(0..5).chain(Some(Segment::Base(Extent::new(5, 5).unwrap())));
        assert_eq!(Plan::new(base(), segments).layout().len(), 1);
    }

    #[test]
    fn rejects_in_place_changes_of_a_moved_base() {
        let moved = Plan::new(base(), [Segment::Zero(1), Segment::Base(Extent::new(0, 9).unwrap())]);
        assert!(matches!(moved.changes_in_place(), Err(Error::NotInPlace { .. })));
    }

    #[test]
    fn read_stops_at_the_end() {
        let plan = Plan::from_source(base()).followed_by([Segment::Zero(2)]);
        let mut buf = [1; 8];
        assert_eq!(plan.read_at(&mut buf, 8).unwrap(), 4);
        assert_eq!(&buf, b"89\0\0\x01\x01\x01\x01");
        assert_eq!(plan.read_at(&mut buf, 12).unwrap(), 0);
        assert_eq!(plan.read_at(&mut buf, u64::MAX).unwrap(), 0);
    }

    #[test]
    fn empty_range_has_no_segments() {
        let plan = Plan::from_source(base());
        for range in [0..0, 5..5, Range { start: 7, end: 3 }, 10..10, u64::MAX..u64::MAX] {
            assert_eq!(plan.segments(range.clone()).count(), 0, "{range:?}");
        }
    }

    #[test]
    fn layout_is_limited_to_64_bits() {
        let long = Plan::new(base(), [Segment::Zero(u64::MAX - 2)]);
        for more in [Segment::Zero(u64::MAX), Segment::Bytes(Bytes::from_static(b"abc"))] {
            let full = long.followed_by([more, Segment::Zero(1)]);
            assert_eq!(full.len(), u64::MAX);
            assert_eq!(full.read_at(&mut [1; 8], u64::MAX - 4).unwrap(), 4);
        }
    }

    #[test]
    fn identity_differs_between_plans_and_is_stable() {
        let whole = Plan::from_source(base());
        let zero = whole.patched(vec![Patch { offset: 0, segment: Segment::Zero(1) }]).unwrap();
        assert_ne!(whole.identity().unwrap(), zero.identity().unwrap());
        assert_eq!(
            whole.identity().unwrap().to_string(),
            "50c0ffb7e67d26dc8a55bb286a811a5d6a80e57ae449ae976cf88c258222e11f"
        );
    }
}

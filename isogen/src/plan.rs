//! The exact byte layout of one artifact, described over an untouched base.
//!
//! A [`Plan`] is a sorted list of [`Segment`]s. It copies no base bytes, has no cursor and no state: any number of
//! readers may ask it for any range in any order. Looking a range up is a binary search.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes_at::zeros_at_start;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::source::Source;

/// A run of bytes of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Bytes of the base, at this place in it.
    Base(Extent),
    /// Bytes that only this artifact has.
    Bytes(Bytes),
    /// Zeros, this many.
    Zero(u64),
}

impl Segment {
    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Base(extent) => extent.len(),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zero(len) => *len,
        }
    }

    /// Tells whether there are no bytes in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of it within `range`, counted from its start and cut at its end.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        match self {
            Self::Base(extent) => {
                let part = Extent::new(start, end - start).and_then(|inner| extent.part(inner));
                Self::Base(part.unwrap_or(*extent))
            }
            Self::Bytes(bytes) => {
                let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap_or(bytes.len()));
                Self::Bytes(bytes.slice(start..end))
            }
            Self::Zero(_) => Self::Zero(end - start),
        }
    }
}

/// A segment and where in the artifact it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The first byte, counted in the artifact.
    pub start: u64,
    /// What is there.
    pub segment: Segment,
}

impl Placed {
    /// The first byte behind it, counted in the artifact.
    #[must_use]
    pub fn end(&self) -> u64 {
        // A plan has no more bytes than this can tell.
        self.start + self.segment.len()
    }
}

/// New bytes at a place of an artifact, in place of what was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The first byte that changes.
    pub offset: u64,
    /// What is there afterwards.
    pub segment: Segment,
}

/// Runs of zeros at least this long become [`Segment::Zero`]: a page, below which a segment costs more than it saves.
const MIN_ZERO_RUN: usize = 4096;

/// Runs of base bytes at least this long are worth a saved [hash state](Plan::sha256) behind them.
const MIN_SHARED_RUN: u64 = 1 << 20;

/// Bytes that are hashed in one step.
const HASH_BUFFER: usize = 1 << 20;

/// Version of the layout rules; part of every [identity](Plan::identity), so that a change of them changes it.
const PLAN_VERSION: u8 = 1;

/// The byte layout of one artifact. See the [module](self) for what it promises.
#[derive(Debug, Clone)]
pub struct Plan {
    source: Arc<Source>,
    segments: Arc<[Placed]>,
    len: u64,
}

impl Plan {
    /// The base as it is.
    #[must_use]
    pub fn whole(source: Arc<Source>) -> Self {
        let extent = Extent::new(0, source.len());
        Self::of(source, extent.map(Segment::Base))
    }

    /// A layout of segments, one behind the other. Empty ones are left out, neighbours that continue each other
    /// are joined. What lies past `u64::MAX` bytes is left out too: nobody can ask for it.
    pub fn of(source: Arc<Source>, segments: impl IntoIterator<Item = Segment>) -> Self {
        let mut placed: Vec<Placed> = Vec::new();
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
            match placed.last_mut().and_then(|last| joined(&last.segment, &segment).map(|both| (last, both)))
            {
                Some((last, both)) => last.segment = both,
                None => placed.push(Placed { start, segment }),
            }
        }
        Self { source, segments: placed.into(), len }
    }

    /// Splits bytes into segments, so that long runs of zeros take no memory.
    #[must_use]
    pub fn split_zeros(bytes: &Bytes) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut kept = 0;
        let mut at = 0;
        while at < bytes.len() {
            let zeros = zeros_at_start(bytes.get(at..).unwrap_or_default());
            if zeros >= MIN_ZERO_RUN {
                segments.push(Segment::Bytes(bytes.slice(kept..at)));
                segments.push(Segment::Zero(zeros as u64));
                kept = at + zeros;
            }
            at += zeros;
            at += bytes.iter().skip(at).take_while(|byte| **byte != 0).count();
        }
        segments.push(Segment::Bytes(bytes.slice(kept..)));
        segments.retain(|segment| !segment.is_empty());
        segments
    }

    /// The same artifact with some stretches replaced. Patches may come in any order, must not overlap, and must lie
    /// inside.
    ///
    /// # Errors
    ///
    /// Fails where a patch overlaps another one or passes the end.
    pub fn patched(&self, mut patches: Vec<Patch>) -> Result<Self> {
        patches.retain(|patch| !patch.segment.is_empty());
        patches.sort_by_key(|patch| patch.offset);
        let mut segments = Vec::new();
        let mut at = 0;
        for patch in patches {
            let end = patch.offset.checked_add(patch.segment.len()).filter(|end| *end <= self.len);
            let (Some(end), true) = (end, patch.offset >= at) else {
                let expected = format!("a stretch of its own within {} bytes", self.len);
                let found = format!("{} bytes, the last change ends at {at}", patch.segment.len());
                return Err(self.source.malformed(patch.offset, "change of the image", expected, found));
            };
            segments.extend(self.segments(at..patch.offset));
            segments.push(patch.segment);
            at = end;
        }
        segments.extend(self.segments(at..self.len));
        Ok(Self::of(Arc::clone(&self.source), segments))
    }

    /// The artifact with more segments behind it.
    #[must_use]
    pub fn followed_by(&self, more: impl IntoIterator<Item = Segment>) -> Self {
        Self::of(Arc::clone(&self.source), self.segments(0..self.len).chain(more))
    }

    /// The same artifact, of a plan whose base is itself what `inner` describes.
    #[must_use]
    pub fn resolved(&self, inner: &Self) -> Self {
        let resolve = |placed: &Placed| match &placed.segment {
            Segment::Base(extent) => inner.segments(extent.offset()..extent.end()).collect(),
            other => vec![other.clone()],
        };
        Self::of(Arc::clone(&inner.source), self.segments.iter().flat_map(resolve))
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Tells whether the artifact has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The base that segments refer to.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// How many bytes it keeps in memory, beside what it takes from the base.
    #[must_use]
    pub fn own_bytes(&self) -> usize {
        let own = |placed: &Placed| match &placed.segment {
            Segment::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.layout().iter().map(|placed| own(placed) + size_of::<Placed>()).sum()
    }

    /// The whole layout.
    #[must_use]
    pub fn layout(&self) -> &[Placed] {
        &self.segments
    }

    /// The segments of a range of the artifact, cut to it. What lies past the end is left out; an empty range has none.
    pub fn segments(&self, range: Range<u64>) -> impl Iterator<Item = Segment> + '_ {
        // A range that ends before it begins is an empty one.
        let first = match range.is_empty() {
            true => self.segments.len(),
            false => self.segments.partition_point(|placed| placed.end() <= range.start),
        };
        let placed = self.segments.iter().skip(first).take_while(move |placed| placed.start < range.end);
        placed.map(move |placed| {
            placed.segment.slice(range.start.saturating_sub(placed.start)..range.end - placed.start)
        })
    }

    /// Reads at `offset` into `buf` and tells how many bytes there were: all of `buf`, or fewer at the end.
    ///
    /// # Errors
    ///
    /// Fails where the storage of the base does.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut rest = buf;
        let mut filled = 0;
        let end = offset.saturating_add(rest.len() as u64);
        for segment in self.segments(offset..end) {
            // A segment of the range is never longer than the buffer, so its length fits.
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

    /// All bytes in memory: for small artifacts, such as one config file of an image.
    ///
    /// # Errors
    ///
    /// Fails where the artifact passes `limit` or the storage of the base fails.
    pub fn read_all(&self, limit: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(self.len).ok().filter(|_| self.len <= limit).ok_or_else(|| {
            self.source.malformed(0, "length to read into memory", format!("at most {limit}"), self.len)
        })?;
        let mut bytes = vec![0; len];
        self.read_at(&mut bytes, 0).map_err(|error| self.source.read_error(0, error))?;
        Ok(bytes)
    }

    /// A strong identity that costs no reading of the base: a digest of the base's digest, the version of the layout
    /// rules, and every segment. Equal plans have equal identities on every machine, and different bytes never do.
    ///
    /// # Errors
    ///
    /// Fails where the base's digest is neither [known](Source::set_digest) nor can be computed.
    pub fn identity(&self) -> Result<Digest> {
        let mut hasher = Hasher::new();
        hasher.update(b"kindling plan");
        hasher.update(&[PLAN_VERSION]);
        hasher.update(&self.source.digest()?.0);
        for placed in &*self.segments {
            describe(&placed.segment, &mut hasher);
        }
        Ok(hasher.finish())
    }

    /// The SHA-256 of all bytes. What this artifact begins with is not read where an artifact of the same base with
    /// the same beginning was hashed before: layouts put what is an artifact's own behind what it shares.
    ///
    /// # Errors
    ///
    /// Fails where the storage of the base does.
    pub fn sha256(&self) -> Result<Digest> {
        let states = self.source.hash_states();
        let prefixes = self.shared_prefixes();
        let known = prefixes.iter().rev().find_map(|(end, prefix)| Some((*end, states.get(prefix)?)));
        let (mut offset, mut hasher) = known.unwrap_or_default();
        for (end, prefix) in prefixes {
            if end > offset {
                self.hash(offset..end, &mut hasher)?;
                states.put(prefix, hasher.clone());
                offset = end;
            }
        }
        self.hash(offset..self.len, &mut hasher)?;
        Ok(hasher.finish())
    }

    /// Where runs of base bytes end that are long enough to be worth a saved state, and what identifies everything up
    /// to there.
    fn shared_prefixes(&self) -> Vec<(u64, Digest)> {
        let mut hasher = Hasher::new();
        let mut prefixes = Vec::new();
        for placed in &*self.segments {
            describe(&placed.segment, &mut hasher);
            if matches!(&placed.segment, Segment::Base(extent) if extent.len() >= MIN_SHARED_RUN) {
                prefixes.push((placed.end(), hasher.clone().finish()));
            }
        }
        prefixes
    }

    fn hash(&self, range: Range<u64>, hasher: &mut Hasher) -> Result<()> {
        let mut buf =
            vec![0; usize::try_from(range.end - range.start).map_or(HASH_BUFFER, |len| len.min(HASH_BUFFER))];
        let mut offset = range.start;
        while offset < range.end {
            let len = usize::try_from(range.end - offset).map_or(buf.len(), |rest| rest.min(buf.len()));
            let chunk = buf.get_mut(..len).unwrap_or_default();
            self.read_at(chunk, offset).map_err(|error| self.source.read_error(offset, error))?;
            hasher.update(chunk);
            offset += len as u64;
        }
        Ok(())
    }

    /// The stretches that differ from the base, where nothing else does: what an edit in place has to write.
    ///
    /// # Errors
    ///
    /// Fails where the plan moves base bytes or changes the length.
    pub fn changes_in_place(&self) -> Result<Vec<Patch>> {
        let moved = |placed: &Placed| matches!(&placed.segment, Segment::Base(extent) if extent.offset() != placed.start);
        if self.len != self.source.len() || self.segments.iter().any(moved) {
            return Err(Error::NotInPlace { file: self.source.name().to_owned() });
        }
        let changed = self.segments.iter().filter(|placed| !matches!(placed.segment, Segment::Base(_)));
        Ok(changed.map(|placed| Patch { offset: placed.start, segment: placed.segment.clone() }).collect())
    }
}

/// Tells a hasher which bytes a segment stands for, without reading them.
fn describe(segment: &Segment, hasher: &mut Hasher) {
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

/// One segment for two neighbours that continue each other.
fn joined(first: &Segment, second: &Segment) -> Option<Segment> {
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
    use crate::source::ReadAt;

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
        let plan = Plan::whole(base()).patched(vec![patch(8, "yz"), patch(0, "a"), patch(3, "bc")]).unwrap();
        assert_eq!(text(&plan), "a12bc567yz");
        assert_eq!(plan.changes_in_place().unwrap().len(), 3);
    }

    #[test]
    fn overlapping_patches_are_refused() {
        let plan = Plan::whole(base());
        assert!(plan.patched(vec![patch(1, "abc"), patch(3, "d")]).is_err());
        assert!(plan.patched(vec![patch(9, "ab")]).is_err());
        assert!(plan.patched(vec![patch(u64::MAX, "ab")]).is_err());
    }

    /// Bytes of which the last five are still coming.
    #[derive(Debug)]
    struct Late;

    impl ReadAt for Late {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            if offset >= 5 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Bytes::from_static(b"01234").read_at(buf, offset)
        }
    }

    #[test]
    fn what_is_would_block_at_is_told_from_what_is_broken() {
        let plan = Plan::whole(Arc::new(Source::new("late".to_owned(), 10, Late)));
        assert_eq!(plan.read_all(10).unwrap_err().would_block_at(), Some(5));
        assert_eq!(plan.sha256().unwrap_err().would_block_at(), Some(5));
        let short = Plan::whole(Arc::new(Source::new("short".to_owned(), 10, Bytes::from_static(b"01234"))));
        assert_eq!(short.read_all(10).unwrap_err().would_block_at(), None);
    }

    #[test]
    fn neighbours_are_joined() {
        let plan = Plan::whole(base()).patched(vec![patch(5, "x")]).unwrap();
        let segments = plan.segments(0..5).chain(Some(Segment::Base(Extent::new(5, 5).unwrap())));
        assert_eq!(Plan::of(base(), segments).layout().len(), 1);
    }

    #[test]
    fn a_moved_base_is_not_in_place() {
        let moved = Plan::of(base(), [Segment::Zero(1), Segment::Base(Extent::new(0, 9).unwrap())]);
        assert!(matches!(moved.changes_in_place(), Err(Error::NotInPlace { .. })));
    }

    #[test]
    fn reads_end_at_the_end() {
        let plan = Plan::whole(base()).followed_by([Segment::Zero(2)]);
        let mut buf = [1; 8];
        assert_eq!(plan.read_at(&mut buf, 8).unwrap(), 4);
        assert_eq!(&buf, b"89\0\0\x01\x01\x01\x01");
        assert_eq!(plan.read_at(&mut buf, 12).unwrap(), 0);
        assert_eq!(plan.read_at(&mut buf, u64::MAX).unwrap(), 0);
    }

    #[test]
    fn an_empty_range_has_no_segments() {
        let plan = Plan::whole(base());
        for range in [0..0, 5..5, Range { start: 7, end: 3 }, 10..10, u64::MAX..u64::MAX] {
            assert_eq!(plan.segments(range.clone()).count(), 0, "{range:?}");
        }
    }

    #[test]
    fn a_layout_ends_where_64_bits_do() {
        let long = Plan::of(base(), [Segment::Zero(u64::MAX - 2)]);
        for more in [Segment::Zero(u64::MAX), Segment::Bytes(Bytes::from_static(b"abc"))] {
            let full = long.followed_by([more, Segment::Zero(1)]);
            assert_eq!(full.len(), u64::MAX);
            assert_eq!(full.read_at(&mut [1; 8], u64::MAX - 4).unwrap(), 4);
        }
    }

    #[test]
    fn long_zeros_are_split_off() {
        let mut bytes = b"head\0\0tail".to_vec();
        bytes.extend(vec![0; 5000]);
        bytes.push(b'!');
        let segments = Plan::split_zeros(&Bytes::from(bytes));
        assert_eq!(segments.iter().map(Segment::len).collect::<Vec<_>>(), [10, 5000, 1]);
    }

    #[test]
    fn the_identity_tells_plans_apart_and_is_stable() {
        let whole = Plan::whole(base());
        let zero = whole.patched(vec![Patch { offset: 0, segment: Segment::Zero(1) }]).unwrap();
        assert_ne!(whole.identity().unwrap(), zero.identity().unwrap());
        assert_eq!(
            whole.identity().unwrap().to_string(),
            "50c0ffb7e67d26dc8a55bb286a811a5d6a80e57ae449ae976cf88c258222e11f"
        );
    }
}

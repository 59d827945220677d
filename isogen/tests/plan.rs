//! Proves that a plan is the bytes that it describes: however it is split, read or written, and compared with copying
//! the base and patching the copy.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test code over small numbers of its own"
)]

use std::fs::OpenOptions;
use std::sync::Arc;

use bytes::Bytes;
use isogen::plan::Patch;
use isogen::{Extent, Plan, Segment, Source};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const BASE_LEN: usize = 2000;

/// A part of a plan, in terms that always make sense.
#[derive(Debug, Clone)]
enum Piece {
    Base(Index, u16),
    Bytes(Vec<u8>),
    Zero(u16),
}

impl Piece {
    fn segment(&self, base: &[u8]) -> Segment {
        match self {
            Self::Base(start, len) => {
                let start = start.index(base.len());
                let len = usize::from(*len).min(base.len() - start);
                Segment::Base(Extent::new(start as u64, len as u64).unwrap())
            }
            Self::Bytes(bytes) => Segment::Bytes(bytes.clone().into()),
            Self::Zero(len) => Segment::Zero(u64::from(*len)),
        }
    }
}

fn bytes_of(segment: &Segment, base: &[u8]) -> Vec<u8> {
    match segment {
        Segment::Base(extent) => base[extent.offset() as usize..extent.end() as usize].to_vec(),
        Segment::Bytes(bytes) => bytes.to_vec(),
        Segment::Zero(len) => vec![0; *len as usize],
    }
}

fn joined(segments: impl IntoIterator<Item = Segment>, base: &[u8]) -> Vec<u8> {
    segments.into_iter().flat_map(|segment| bytes_of(&segment, base)).collect()
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        (any::<Index>(), 0..500_u16).prop_map(|(start, len)| Piece::Base(start, len)),
        vec(any::<u8>(), 0..80).prop_map(Piece::Bytes),
        (0..300_u16).prop_map(Piece::Zero),
    ]
}

fn base() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..BASE_LEN)
}

/// Patches that may overlap each other or pass the end.
fn patches() -> impl Strategy<Value = Vec<(usize, Piece)>> {
    vec((0..BASE_LEN + 100, piece()), 0..6)
}

fn source(base: &[u8]) -> Arc<Source> {
    Arc::new(Source::from_bytes("base", base.to_vec()))
}

fn patch_list(patches: &[(usize, Piece)], base: &[u8]) -> Vec<Patch> {
    let patch =
        |(offset, piece): &(usize, Piece)| Patch { offset: *offset as u64, segment: piece.segment(base) };
    patches.iter().map(patch).collect()
}

/// The patches without those that overlap an earlier one of the list or pass the end.
fn apart(patches: Vec<Patch>, len: usize) -> Vec<Patch> {
    let mut kept: Vec<Patch> = Vec::new();
    for patch in patches {
        let end = patch.offset + patch.segment.len();
        let meets = |other: &Patch| patch.offset < other.offset + other.segment.len() && other.offset < end;
        if end <= len as u64 && !kept.iter().any(meets) {
            kept.push(patch);
        }
    }
    kept
}

/// What anybody would do: copy the base, overwrite the copy. `None` where two patches share a byte or one passes the
/// end.
fn copied_and_patched(base: &[u8], patches: &[Patch]) -> Option<Vec<u8>> {
    let mut copy = base.to_vec();
    let mut written = vec![false; base.len()];
    for patch in patches {
        let start = patch.offset as usize;
        for (index, byte) in bytes_of(&patch.segment, base).into_iter().enumerate() {
            let taken = written.get_mut(start + index)?;
            if std::mem::replace(taken, true) {
                return None;
            }
            copy[start + index] = byte;
        }
    }
    Some(copy)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_split_of_a_range_joins_to_the_range(
        base in base(),
        pieces in vec(piece(), 0..12),
        range in any::<[Index; 2]>(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let segments: Vec<Segment> = pieces.iter().map(|piece| piece.segment(&base)).collect();
        let whole = joined(segments.clone(), &base);
        let plan = Plan::of(source(&base), segments);
        prop_assert_eq!(plan.len(), whole.len() as u64);
        prop_assert_eq!(joined(plan.segments(0..u64::MAX), &base), &whole[..]);

        let mut ends = range.map(|index| index.index(whole.len() + 1));
        ends.sort_unstable();
        let [start, end] = ends;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| start + cut.index(end - start + 1)).collect();
        cuts.extend(ends);
        cuts.sort_unstable();
        let split: Vec<u8> = cuts
            .windows(2)
            .flat_map(|cut| joined(plan.segments(cut[0] as u64..cut[1] as u64), &base))
            .collect();
        prop_assert_eq!(split, &whole[start..end]);
    }

    #[test]
    fn reads_of_any_size_join_to_the_whole(
        base in base(),
        pieces in vec(piece(), 0..12),
        sizes in vec(1..700_usize, 1..6),
        start in any::<Index>(),
    ) {
        let segments: Vec<Segment> = pieces.iter().map(|piece| piece.segment(&base)).collect();
        let whole = joined(segments.clone(), &base);
        let plan = Plan::of(source(&base), segments);
        let start = start.index(whole.len() + 1);
        let mut read = Vec::new();
        for size in sizes.iter().cycle() {
            let mut buf = vec![0xEE; *size];
            let offset = start + read.len();
            let len = plan.read_at(&mut buf, offset as u64).unwrap();
            // Short only at the end.
            prop_assert_eq!(len, (*size).min(whole.len() - offset));
            prop_assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "bytes behind the end were touched");
            if len == 0 {
                break;
            }
            read.extend_from_slice(&buf[..len]);
        }
        prop_assert_eq!(read, &whole[start..]);
    }

    #[test]
    fn layouts_are_sorted_and_have_no_needless_segments(base in base(), pieces in vec(piece(), 0..12)) {
        let plan = Plan::of(source(&base), pieces.iter().map(|piece| piece.segment(&base)));
        let mut end = 0;
        for placed in plan.layout() {
            prop_assert_eq!(placed.start, end);
            prop_assert!(!placed.segment.is_empty());
            end = placed.end();
        }
        prop_assert_eq!(end, plan.len());
        for pair in plan.layout().windows(2) {
            let continued = match (&pair[0].segment, &pair[1].segment) {
                (Segment::Base(a), Segment::Base(b)) => a.end() == b.offset(),
                (Segment::Zero(_), Segment::Zero(_)) => true,
                _ => false,
            };
            prop_assert!(!continued, "{pair:?} continue each other");
        }
    }

    #[test]
    fn patching_a_plan_is_copying_and_patching(base in base(), patches in patches()) {
        let patches = patch_list(&patches, &base);
        let plan = Plan::whole(source(&base)).patched(patches.clone());
        match copied_and_patched(&base, &patches) {
            Some(expected) => prop_assert_eq!(plan.unwrap().read_all(1 << 20).unwrap(), expected),
            None => prop_assert!(plan.is_err()),
        }
        let patches = apart(patches, base.len());
        let plan = Plan::whole(source(&base)).patched(patches.clone()).unwrap();
        prop_assert_eq!(plan.read_all(1 << 20).unwrap(), copied_and_patched(&base, &patches).unwrap());
    }

    #[test]
    fn patching_twice_is_patching_the_copy_twice(base in base(), first in patches(), second in patches()) {
        let [first, second] = [first, second].map(|list| apart(patch_list(&list, &base), base.len()));
        let plan = Plan::whole(source(&base)).patched(first.clone()).unwrap().patched(second.clone()).unwrap();
        let copy = copied_and_patched(&base, &first).unwrap();
        // Segments of the second list refer to the base, not to the first plan.
        let mut expected = copy;
        for patch in &second {
            let start = patch.offset as usize;
            let bytes = bytes_of(&patch.segment, &base);
            expected[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        prop_assert_eq!(plan.read_all(1 << 20).unwrap(), expected);
    }

    #[test]
    fn splitting_zeros_off_changes_no_byte(
        runs in vec((any::<u8>(), prop_oneof![0..20_usize, 4000..4200_usize, 8000..9000_usize]), 0..8),
    ) {
        // Every other run is zeros.
        let runs = runs.iter().enumerate().map(|(index, (byte, len))| vec![if index % 2 == 0 { 0 } else { *byte }; *len]);
        let bytes: Bytes = runs.collect::<Vec<_>>().concat().into();
        let segments = Plan::split_zeros(&bytes);
        prop_assert!(segments.iter().all(|segment| !segment.is_empty()));
        prop_assert_eq!(joined(segments, &[]), &bytes[..]);
    }

    #[test]
    fn identities_are_equal_for_equal_inputs_only(
        base in vec(0..2_u8, 1..3),
        lists in any::<[[Option<(u8, bool)>; 2]; 2]>(),
    ) {
        // Few possible inputs, so that equal ones come up as often as different ones.
        let plans = lists.map(|list| {
            let segments = list.into_iter().flatten().map(|(len, zero)| match zero {
                true => Segment::Zero(u64::from(len % 2)),
                false => Segment::Bytes(vec![0; usize::from(len % 2)].into()),
            });
            Plan::whole(source(&base)).followed_by(segments)
        });
        let [a, b] = &plans;
        let same = a.layout() == b.layout();
        prop_assert_eq!(a.identity().unwrap() == b.identity().unwrap(), same);
        if same {
            prop_assert_eq!(a.sha256().unwrap(), b.sha256().unwrap());
        }
    }

    #[test]
    fn an_identity_depends_on_every_input(base in base(), patches in patches(), byte in any::<Index>()) {
        let patches = apart(patch_list(&patches, &base), base.len());
        let identity = |base: &[u8], patches: Vec<Patch>| {
            Plan::whole(source(base)).patched(patches).unwrap().identity().unwrap()
        };
        let first = identity(&base, patches.clone());
        let reversed = identity(&base, patches.iter().rev().cloned().collect());
        prop_assert_eq!(first, reversed, "the order of the patches does not matter");
        let mut other = base.clone();
        other[byte.index(base.len())] ^= 1;
        prop_assert_ne!(first, identity(&other, patches.clone()));
        let first_bytes = patches.iter().position(|patch| matches!(&patch.segment, Segment::Bytes(bytes) if !bytes.is_empty()));
        if let Some(index) = first_bytes {
            let mut changed = patches;
            let mut bytes = bytes_of(&changed[index].segment, &base);
            bytes[0] ^= 1;
            changed[index].segment = Segment::Bytes(bytes.into());
            prop_assert_ne!(first, identity(&base, changed));
        }
    }
}

proptest! {
    #![proptest_config(cases(32))]

    /// From a base in memory and from one in a file, whose bytes the system copies by itself.
    #[test]
    fn every_way_of_writing_gives_the_same_bytes(
        base in base(),
        pieces in vec(piece(), 0..8),
        patches in patches(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let base_path = folder.path().join("base");
        std::fs::write(&base_path, &base).unwrap();
        let changed = apart(patch_list(&patches, &base), base.len());
        for (number, source) in [source(&base), Arc::new(Source::open(&base_path).unwrap())].into_iter().enumerate() {
            let moved = Plan::of(Arc::clone(&source), pieces.iter().map(|piece| piece.segment(&base)));
            let patched = Plan::whole(source).patched(changed.clone()).unwrap();
            for (name, plan) in [("moved", moved), ("patched", patched)] {
                let path = folder.path().join(format!("{name}-{number}"));
                plan.write_file(&path).unwrap();
                let mut streamed = Vec::new();
                plan.write_to(&mut streamed).unwrap();
                prop_assert_eq!(&streamed, &plan.read_all(1 << 20).unwrap());
                prop_assert!(std::fs::read(&path).unwrap() == streamed, "{} from source {}", name, number);
            }
        }
    }

    #[test]
    fn an_edit_in_place_gives_the_same_bytes(
        base in base(),
        patches in patches(),
        guard in any::<[Index; 2]>(),
    ) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &base).unwrap();
        let mut patches = apart(patch_list(&patches, &base), base.len());
        patches.retain(|patch| !matches!(patch.segment, Segment::Base(_)));
        let plan = Plan::whole(Arc::new(Source::open(file.path()).unwrap())).patched(patches).unwrap();
        let expected = plan.read_all(1 << 20).unwrap();
        let mut ends = guard.map(|index| index.index(base.len() + 1) as u64);
        ends.sort_unstable();
        let guard = Extent::new(ends[0], ends[1] - ends[0]).unwrap();
        let writable = OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        plan.write_in_place(&writable, guard).unwrap();
        prop_assert!(std::fs::read(file.path()).unwrap() == expected, "guard {}", guard);
    }
}

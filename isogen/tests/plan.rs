//! However it is split, read or written, a plan has the expected bytes: a copy of the base image with the patches
//! applied.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test code over its own small numbers"
)]

use std::fs::OpenOptions;
use std::sync::Arc;

use isogen::plan::Patch;
use isogen::{Extent, Plan, Segment, Source};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const BASE_LEN: usize = 2000;

/// A segment that is valid for every base image.
#[derive(Debug, Clone)]
enum SegmentSpec {
    Base(Index, u16),
    Bytes(Vec<u8>),
    Zero(u16),
}

impl SegmentSpec {
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

fn segment_bytes(segment: &Segment, base: &[u8]) -> Vec<u8> {
    match segment {
        Segment::Base(extent) => base[extent.offset() as usize..extent.end() as usize].to_vec(),
        Segment::Bytes(bytes) => bytes.to_vec(),
        Segment::Zero(len) => vec![0; *len as usize],
    }
}

fn concatenated_bytes(segments: impl IntoIterator<Item = Segment>, base: &[u8]) -> Vec<u8> {
    segments.into_iter().flat_map(|segment| segment_bytes(&segment, base)).collect()
}

fn segment_spec() -> impl Strategy<Value = SegmentSpec> {
    prop_oneof![
        (any::<Index>(), 0..500_u16).prop_map(|(start, len)| SegmentSpec::Base(start, len)),
        vec(any::<u8>(), 0..80).prop_map(SegmentSpec::Bytes),
        (0..300_u16).prop_map(SegmentSpec::Zero),
    ]
}

fn base_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..BASE_LEN)
}

/// Generates patches that may overlap or exceed the end.
fn patch_specs() -> impl Strategy<Value = Vec<(usize, SegmentSpec)>> {
    vec((0..BASE_LEN + 100, segment_spec()), 0..6)
}

fn source(base: &[u8]) -> Arc<Source> {
    Arc::new(Source::from_bytes("base", base.to_vec()))
}

fn to_patches(patches: &[(usize, SegmentSpec)], base: &[u8]) -> Vec<Patch> {
    let patch = |(offset, piece): &(usize, SegmentSpec)| Patch {
        offset: *offset as u64,
        segment: piece.segment(base),
    };
    patches.iter().map(patch).collect()
}

/// Removes the patches that overlap an earlier patch or exceed the end.
fn without_overlaps(patches: Vec<Patch>, len: usize) -> Vec<Patch> {
    let mut disjoint: Vec<Patch> = Vec::new();
    for patch in patches {
        let end = patch.offset + patch.segment.len();
        let meets = |other: &Patch| patch.offset < other.offset + other.segment.len() && other.offset < end;
        if end <= len as u64 && !disjoint.iter().any(meets) {
            disjoint.push(patch);
        }
    }
    disjoint
}

/// Applies a simple reference edit: copies the base image and overwrites the copy. Returns `None` if two patches
/// overlap or one exceeds the end.
fn naive_patch(base: &[u8], patches: &[Patch]) -> Option<Vec<u8>> {
    let mut copy = base.to_vec();
    let mut patched = vec![false; base.len()];
    for patch in patches {
        let start = patch.offset as usize;
        for (index, byte) in segment_bytes(&patch.segment, base).into_iter().enumerate() {
            let is_patched = patched.get_mut(start + index)?;
            if std::mem::replace(is_patched, true) {
                return None;
            }
            copy[start + index] = byte;
        }
    }
    Some(copy)
}

fn proptest_config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(proptest_config(256))]

    #[test]
    fn any_split_of_a_range_joins_to_the_range(
        base in base_bytes(),
        specs in vec(segment_spec(), 0..12),
        range in any::<[Index; 2]>(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let segments: Vec<Segment> = specs.iter().map(|piece| piece.segment(&base)).collect();
        let whole = concatenated_bytes(segments.clone(), &base);
        let plan = Plan::new(source(&base), segments);
        prop_assert_eq!(plan.len(), whole.len() as u64);
        prop_assert_eq!(concatenated_bytes(plan.segments(0..u64::MAX), &base), &whole[..]);

        let mut ends = range.map(|index| index.index(whole.len() + 1));
        ends.sort_unstable();
        let [start, end] = ends;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| start + cut.index(end - start + 1)).collect();
        cuts.extend(ends);
        cuts.sort_unstable();
        let split: Vec<u8> = cuts
            .windows(2)
            .flat_map(|cut| concatenated_bytes(plan.segments(cut[0] as u64..cut[1] as u64), &base))
            .collect();
        prop_assert_eq!(split, &whole[start..end]);
    }

    #[test]
    fn reads_of_any_size_join_to_the_whole(
        base in base_bytes(),
        specs in vec(segment_spec(), 0..12),
        sizes in vec(1..700_usize, 1..6),
        start in any::<Index>(),
    ) {
        let segments: Vec<Segment> = specs.iter().map(|piece| piece.segment(&base)).collect();
        let whole = concatenated_bytes(segments.clone(), &base);
        let plan = Plan::new(source(&base), segments);
        let start = start.index(whole.len() + 1);
        let mut read = Vec::new();
        for size in sizes.iter().cycle() {
            let mut buf = vec![0xEE; *size];
            let offset = start + read.len();
            let len = plan.read_at(&mut buf, offset as u64).unwrap();
            // Only the last read may be short.
            prop_assert_eq!(len, (*size).min(whole.len() - offset));
            prop_assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "bytes after the end were modified");
            if len == 0 {
                break;
            }
            read.extend_from_slice(&buf[..len]);
        }
        prop_assert_eq!(read, &whole[start..]);
    }

    #[test]
    fn layouts_are_sorted_and_merged(base in base_bytes(), specs in vec(segment_spec(), 0..12)) {
        let plan = Plan::new(source(&base), specs.iter().map(|piece| piece.segment(&base)));
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
    fn patching_a_plan_equals_patching_the_copy(base in base_bytes(), patches in patch_specs()) {
        let patches = to_patches(&patches, &base);
        let plan = Plan::from_source(source(&base)).patched(patches.clone());
        match naive_patch(&base, &patches) {
            Some(expected) => prop_assert_eq!(plan.unwrap().read_all(1 << 20).unwrap(), expected),
            None => prop_assert!(plan.is_err()),
        }
        let patches = without_overlaps(patches, base.len());
        let plan = Plan::from_source(source(&base)).patched(patches.clone()).unwrap();
        prop_assert_eq!(plan.read_all(1 << 20).unwrap(), naive_patch(&base, &patches).unwrap());
    }

    #[test]
    fn patching_twice_equals_patching_the_copy_twice(base in base_bytes(), first in patch_specs(), second in patch_specs()) {
        let [first, second] = [first, second].map(|list| without_overlaps(to_patches(&list, &base), base.len()));
        let plan = Plan::from_source(source(&base)).patched(first.clone()).unwrap().patched(second.clone()).unwrap();
        let copy = naive_patch(&base, &first).unwrap();
        // Segments of the second list refer to the base image, not to the first plan.
        let mut expected = copy;
        for patch in &second {
            let start = patch.offset as usize;
            let bytes = segment_bytes(&patch.segment, &base);
            expected[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        prop_assert_eq!(plan.read_all(1 << 20).unwrap(), expected);
    }

    #[test]
    fn identities_are_equal_for_equal_inputs_only(
        base in vec(0..2_u8, 1..3),
        lists in any::<[[Option<(u8, bool)>; 2]; 2]>(),
    ) {
        // The number of possible inputs is small, so that equal pairs are as frequent as different pairs.
        let plans = lists.map(|list| {
            let segments = list.into_iter().flatten().map(|(len, zero)| match zero {
                true => Segment::Zero(u64::from(len % 2)),
                false => Segment::Bytes(vec![0; usize::from(len % 2)].into()),
            });
            Plan::from_source(source(&base)).followed_by(segments)
        });
        let [a, b] = &plans;
        let same = a.layout() == b.layout();
        prop_assert_eq!(a.identity().unwrap() == b.identity().unwrap(), same);
        if same {
            prop_assert_eq!(a.sha256().unwrap(), b.sha256().unwrap());
        }
    }

    #[test]
    fn identity_depends_on_every_input(base in base_bytes(), patches in patch_specs(), byte in any::<Index>()) {
        let patches = without_overlaps(to_patches(&patches, &base), base.len());
        let identity = |base: &[u8], patches: Vec<Patch>| {
            Plan::from_source(source(base)).patched(patches).unwrap().identity().unwrap()
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
            let mut bytes = segment_bytes(&changed[index].segment, &base);
            bytes[0] ^= 1;
            changed[index].segment = Segment::Bytes(bytes.into());
            prop_assert_ne!(first, identity(&base, changed));
        }
    }
}

proptest! {
    #![proptest_config(proptest_config(32))]

    /// Tests a base image in memory, and one in a file, whose bytes the kernel copies.
    #[test]
    fn every_write_method_results_in_the_same_bytes(
        base in base_bytes(),
        specs in vec(segment_spec(), 0..8),
        patches in patch_specs(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let base_path = folder.path().join("base");
        std::fs::write(&base_path, &base).unwrap();
        let changed = without_overlaps(to_patches(&patches, &base), base.len());
        for (number, source) in [source(&base), Arc::new(Source::open(&base_path).unwrap())].into_iter().enumerate() {
            let moved = Plan::new(Arc::clone(&source), specs.iter().map(|piece| piece.segment(&base)));
            let patched = Plan::from_source(source).patched(changed.clone()).unwrap();
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
    fn in_place_edit_writes_the_same_bytes(
        base in base_bytes(),
        patches in patch_specs(),
        guard in any::<[Index; 2]>(),
    ) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &base).unwrap();
        let mut patches = without_overlaps(to_patches(&patches, &base), base.len());
        patches.retain(|patch| !matches!(patch.segment, Segment::Base(_)));
        let plan = Plan::from_source(Arc::new(Source::open(file.path()).unwrap())).patched(patches).unwrap();
        let expected = plan.read_all(1 << 20).unwrap();
        let mut ends = guard.map(|index| index.index(base.len() + 1) as u64);
        ends.sort_unstable();
        let guard = Extent::new(ends[0], ends[1] - ends[0]).unwrap();
        let writable = OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        plan.write_in_place(&writable, guard).unwrap();
        prop_assert!(std::fs::read(file.path()).unwrap() == expected, "guard {}", guard);
    }
}

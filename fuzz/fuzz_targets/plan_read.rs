//! Plans with any segments and any patches. Every range equals the range of a naive copy, whichever way it is read.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use isogen::plan::Patch;
use isogen::{Digest, Extent, Plan, Segment, Source};
use libfuzzer_sys::fuzz_target;

const BASE_LEN: usize = 500;

static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| (0..BASE_LEN).map(|at| (at % 251) as u8).collect());

static DIGEST: LazyLock<Digest> = LazyLock::new(|| Digest::from_data(&BASE));

#[derive(Debug, Clone, Arbitrary)]
enum SegmentSpec {
    Base(u16, u16),
    Bytes(Vec<u8>),
    Zero(u16),
}

impl SegmentSpec {
    fn segment(&self) -> Segment {
        match self {
            Self::Base(start, len) => {
                let start = usize::from(*start) % BASE_LEN;
                let len = usize::from(*len).min(BASE_LEN - start);
                Segment::Base(Extent::new(start as u64, len as u64).unwrap())
            }
            Self::Bytes(bytes) => Segment::Bytes(bytes.clone().into()),
            Self::Zero(len) => Segment::Zero(u64::from(*len % 500)),
        }
    }
}

#[derive(Debug, Arbitrary)]
enum PlanStep {
    Patch(Vec<(u32, SegmentSpec)>),
    Append(Vec<SegmentSpec>),
}

#[derive(Debug, Arbitrary)]
struct Input {
    specs: Vec<SegmentSpec>,
    steps: Vec<PlanStep>,
    reads: Vec<(u32, u16)>,
    distant_offset: u64,
}

fn segment_bytes(segment: &Segment) -> Vec<u8> {
    match segment {
        Segment::Base(extent) => BASE[extent.offset() as usize..extent.end() as usize].to_vec(),
        Segment::Bytes(bytes) => bytes.to_vec(),
        Segment::Zero(len) => vec![0; *len as usize],
    }
}

fn concatenated_bytes(segments: impl IntoIterator<Item = Segment>) -> Vec<u8> {
    // Concatenate whole slices. A loop over bytes would be instrumented and take most of the time.
    segments.into_iter().map(|segment| segment_bytes(&segment)).collect::<Vec<_>>().concat()
}

/// Returns the bytes with the patches applied, or `None` if two patches overlap or one reaches past the end.
fn naive_patch(model: &[u8], patches: &[Patch]) -> Option<Vec<u8>> {
    let mut copy = model.to_vec();
    let mut patched_ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for patch in patches {
        let bytes = segment_bytes(&patch.segment);
        let start = patch.offset as usize;
        let range = start..start + bytes.len();
        if bytes.is_empty() {
            continue;
        }
        if patched_ranges.iter().any(|other| range.start < other.end && other.start < range.end) {
            return None;
        }
        copy.get_mut(range.clone())?.copy_from_slice(&bytes);
        patched_ranges.push(range);
    }
    Some(copy)
}

fuzz_target!(|input: Input| {
    let source = Arc::new(Source::from_bytes("base", &BASE[..]));
    source.set_digest(*DIGEST);
    let mut plan = Plan::new(source, input.specs.iter().map(SegmentSpec::segment));
    let mut model = concatenated_bytes(input.specs.iter().map(SegmentSpec::segment));
    for step in &input.steps {
        match step {
            PlanStep::Append(specs) => {
                plan = plan.followed_by(specs.iter().map(SegmentSpec::segment));
                model.extend(concatenated_bytes(specs.iter().map(SegmentSpec::segment)));
            }
            PlanStep::Patch(patches) => {
                let patch = |(offset, piece): &(u32, SegmentSpec)| Patch {
                    offset: u64::from(*offset % 5000),
                    segment: piece.segment(),
                };
                let patches: Vec<Patch> = patches.iter().map(patch).collect();
                match naive_patch(&model, &patches) {
                    Some(changed) => {
                        plan = plan.patched(patches).unwrap();
                        model = changed;
                    }
                    None => assert!(plan.patched(patches).is_err()),
                }
            }
        }
        if model.len() > 5000 {
            return;
        }
    }
    assert_eq!(plan.len(), model.len() as u64);
    assert_eq!(plan.read_all(2 << 20).unwrap(), model);
    for (start, len) in &input.reads {
        let start = (*start as usize) % (model.len() + 10);
        let end = (start + usize::from(*len)).min(model.len()).max(start);
        let expected = model.get(start..end).unwrap_or_default();
        assert_eq!(concatenated_bytes(plan.segments(start as u64..end as u64)), expected);
        let mut buf = vec![0; usize::from(*len)];
        assert_eq!(plan.read_at(&mut buf, start as u64).unwrap(), expected.len());
        assert_eq!(&buf[..expected.len()], expected);
    }
    let mut buf = [0; 3];
    let read_len = plan.read_at(&mut buf, input.distant_offset).unwrap() as u64;
    assert_eq!(read_len, plan.len().saturating_sub(input.distant_offset).min(3));
    assert_eq!(plan.identity().unwrap(), plan.clone().identity().unwrap());
});

//! Plans of any segments and any changes: each range of one is what naive copying gives, however it is asked for.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use isogen::plan::Patch;
use isogen::{Digest, Extent, Plan, Segment, Source};
use libfuzzer_sys::fuzz_target;

const BASE_LEN: usize = 500;

static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| (0..BASE_LEN).map(|at| (at % 251) as u8).collect());

static DIGEST: LazyLock<Digest> = LazyLock::new(|| Digest::of(&BASE));

#[derive(Debug, Clone, Arbitrary)]
enum Piece {
    Base(u16, u16),
    Bytes(Vec<u8>),
    Zero(u16),
}

impl Piece {
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
enum Step {
    Patch(Vec<(u32, Piece)>),
    Append(Vec<Piece>),
}

#[derive(Debug, Arbitrary)]
struct Input {
    pieces: Vec<Piece>,
    steps: Vec<Step>,
    reads: Vec<(u32, u16)>,
    far: u64,
}

fn bytes_of(segment: &Segment) -> Vec<u8> {
    match segment {
        Segment::Base(extent) => BASE[extent.offset() as usize..extent.end() as usize].to_vec(),
        Segment::Bytes(bytes) => bytes.to_vec(),
        Segment::Zero(len) => vec![0; *len as usize],
    }
}

fn joined(segments: impl IntoIterator<Item = Segment>) -> Vec<u8> {
    // In whole pieces: a loop over bytes would be instrumented, and take most of the time.
    segments.into_iter().map(|segment| bytes_of(&segment)).collect::<Vec<_>>().concat()
}

/// The bytes with changes; `None` where two changes share a byte or one passes the end.
fn patched(model: &[u8], patches: &[Patch]) -> Option<Vec<u8>> {
    let mut copy = model.to_vec();
    let mut written: Vec<std::ops::Range<usize>> = Vec::new();
    for patch in patches {
        let bytes = bytes_of(&patch.segment);
        let start = patch.offset as usize;
        let range = start..start + bytes.len();
        if bytes.is_empty() {
            continue;
        }
        if written.iter().any(|other| range.start < other.end && other.start < range.end) {
            return None;
        }
        copy.get_mut(range.clone())?.copy_from_slice(&bytes);
        written.push(range);
    }
    Some(copy)
}

fuzz_target!(|input: Input| {
    let source = Arc::new(Source::from_bytes("base", &BASE[..]));
    source.set_digest(*DIGEST);
    let mut plan = Plan::of(source, input.pieces.iter().map(Piece::segment));
    let mut model = joined(input.pieces.iter().map(Piece::segment));
    for step in &input.steps {
        match step {
            Step::Append(pieces) => {
                plan = plan.followed_by(pieces.iter().map(Piece::segment));
                model.extend(joined(pieces.iter().map(Piece::segment)));
            }
            Step::Patch(patches) => {
                let patch = |(offset, piece): &(u32, Piece)| Patch {
                    offset: u64::from(*offset % 5000),
                    segment: piece.segment(),
                };
                let patches: Vec<Patch> = patches.iter().map(patch).collect();
                match patched(&model, &patches) {
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
        assert_eq!(joined(plan.segments(start as u64..end as u64)), expected);
        let mut buf = vec![0; usize::from(*len)];
        assert_eq!(plan.read_at(&mut buf, start as u64).unwrap(), expected.len());
        assert_eq!(&buf[..expected.len()], expected);
    }
    let mut buf = [0; 3];
    let there = plan.read_at(&mut buf, input.far).unwrap() as u64;
    assert_eq!(there, plan.len().saturating_sub(input.far).min(3));
    assert_eq!(plan.identity().unwrap(), plan.clone().identity().unwrap());
});

//! What differs between two images: first in meaning, then in bytes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::BaseImage;
use crate::digest::Digest;
use crate::error::Result;
use crate::extent::Extent;
use crate::plan::Plan;
use crate::volume::Kind;

/// Differing stretches that are nearer to each other than this are reported as one.
const JOIN_WITHIN: u64 = 64;
/// Most stretches that are listed.
const MAX_STRETCHES: usize = 1000;
/// Bytes compared at a time.
const CHUNK_LEN: usize = 1 << 20;

/// How two images differ. Everything empty means that they are equal to the byte.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs in meaning.
    pub changes: Vec<Change>,
    /// Which bytes differ.
    pub stretches: Vec<Extent>,
    /// Whether there are more stretches than are listed.
    pub more: bool,
    /// The lengths, where they differ.
    pub lengths: Option<(u64, u64)>,
}

/// One difference in meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What differs.
    pub what: String,
    /// How the first image has it; none where it has not.
    pub first: Option<String>,
    /// How the second image has it; none where it has not.
    pub second: Option<String>,
}

impl Difference {
    /// Compares two images: all of their bytes are read.
    ///
    /// # Errors
    ///
    /// Fails where the storage of one does.
    pub fn between(first: &BaseImage, second: &BaseImage) -> Result<Self> {
        let (facts_first, facts_second) = (facts(first)?, facts(second)?);
        let names: std::collections::BTreeSet<_> = facts_first.keys().chain(facts_second.keys()).collect();
        let change = |name: &String| {
            let (first, second) = (facts_first.get(name).cloned(), facts_second.get(name).cloned());
            (first != second).then(|| Change { what: name.clone(), first, second })
        };
        let mut difference =
            Self { changes: names.into_iter().filter_map(change).collect(), ..Self::default() };
        difference.compare_bytes(first, second)?;
        Ok(difference)
    }

    /// Tells whether the images are equal to the byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty() && self.lengths.is_none()
    }

    fn compare_bytes(&mut self, first: &BaseImage, second: &BaseImage) -> Result<()> {
        let lens = [first.source().len(), second.source().len()];
        self.lengths = (lens[0] != lens[1]).then_some((lens[0], lens[1]));
        let end = lens[0].min(lens[1]);
        let mut buffers = [vec![0; CHUNK_LEN], vec![0; CHUNK_LEN]];
        let [a, b] = &mut buffers;
        let mut offset = 0;
        while offset < end {
            let len = usize::try_from(end - offset).map_or(CHUNK_LEN, |rest| rest.min(CHUNK_LEN));
            let (Some(a), Some(b)) = (a.get_mut(..len), b.get_mut(..len)) else { break };
            first.source().read_exact_at(a, offset)?;
            second.source().read_exact_at(b, offset)?;
            if a != b {
                self.add_chunk(a, b, offset);
            }
            offset += len as u64;
        }
        Ok(())
    }

    fn add_chunk(&mut self, a: &[u8], b: &[u8], offset: u64) {
        let different = a.iter().zip(b).zip(offset..).filter(|((a, b), _)| a != b);
        for (_, at) in different {
            let full = self.stretches.len() == MAX_STRETCHES;
            match self.stretches.last_mut() {
                Some(last) if at < last.end() + JOIN_WITHIN => {
                    *last = Extent::new(last.offset(), at + 1 - last.offset()).unwrap_or(*last);
                }
                _ if full => {
                    self.more = true;
                    return;
                }
                _ => self.stretches.extend(Extent::new(at, 1)),
            }
        }
    }
}

/// What an image means, as named facts to compare. Contents stand in it as digests: they may be secret, and long.
fn facts(image: &BaseImage) -> Result<BTreeMap<String, String>> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: String, value: String| drop(facts.insert(name, value));
    fact("volume id".into(), image.volume().id().to_owned());
    fact("generation".into(), image.generation().to_owned());
    if let Some(architecture) = image.architecture() {
        fact("architecture".into(), format!("{architecture:?}"));
    }
    match image.archive() {
        Ok(archive) => archive.iter().for_each(|(name, contents)| {
            fact(format!("ignition area: {name}"), describe(contents.len() as u64, Digest::of(contents)));
        }),
        Err(_) if image.ignition_area().is_none() => {}
        Err(error) => fact("ignition area".into(), crate::error::with_causes(&error)),
    }
    if let Some(kargs) = image.kargs() {
        let text = |kargs: Result<&str, _>| kargs.map_or_else(|error| format!("{error}"), str::to_owned);
        fact("kernel arguments".into(), text(kargs.current()));
        fact("default kernel arguments".into(), text(kargs.default()));
    }
    let tree = image.volume().tree();
    let empty = tree.entries().filter(|(_, entry)| entry.kind == Kind::File && entry.extent.is_empty());
    empty.for_each(|(id, _)| fact(format!("file {}", tree.path(id)), describe(0, Digest::of(b""))));
    // Files that overlap are no files of a sound image; reading each byte once bounds what an unsound one costs.
    let mut read_to = 0;
    for (extent, ids) in image.volume().files_by_extent() {
        // The Ignition area is compared by what it means.
        if image.ignition_area().is_some_and(|area| area.extent == extent) {
            continue;
        }
        let text = if extent.offset() < read_to {
            format!("{} bytes at byte {}, which overlap another file", extent.len(), extent.offset())
        } else {
            read_to = extent.end();
            let plan = Plan::of(image.source().clone(), [crate::plan::Segment::Base(extent)]);
            describe(plan.len(), plan.sha256()?)
        };
        ids.into_iter().for_each(|id| fact(format!("file {}", tree.path(id)), text.clone()));
    }
    Ok(facts)
}

fn describe(len: u64, digest: Digest) -> String {
    format!("{len} bytes, sha256 {digest}")
}

//! Compares two images: which properties differ, and which byte ranges differ.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::BaseImage;
use crate::bytes_at::prefix_mut;
use crate::digest::Digest;
use crate::error::{OrInternal, Result, format_with_causes};
use crate::extent::Extent;

/// Two differing ranges are reported as one if fewer equal bytes than this are between them.
const MAX_JOINED_GAP: u64 = 64;
/// Maximum number of differing ranges in the list.
const MAX_RANGES: usize = 1000;
const CHUNK_LEN: usize = 1 << 20;

/// The differences between two images. Two images with equal bytes have none.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageDifference {
    /// The properties that differ, such as files, kernel arguments or identifiers.
    pub changes: Vec<ImageChange>,
    /// The byte ranges that differ, in ascending order. Ranges close to each other are joined.
    #[serde(rename = "stretches")]
    pub ranges: Vec<Extent>,
    /// `true` if more ranges differ than the list can hold.
    #[serde(rename = "more")]
    pub has_more: bool,
    /// The lengths of the two images in bytes, if they differ.
    pub lengths: Option<(u64, u64)>,
}

/// A property with different values in the two images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageChange {
    /// Name of the property.
    pub what: String,
    /// Value in the first image; `None` if the first image does not have the property.
    pub first: Option<String>,
    /// Value in the second image; `None` if the second image does not have the property.
    pub second: Option<String>,
}

impl ImageDifference {
    /// Compares two images. Reads all bytes of both.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage of either image fails.
    pub fn between(first: &BaseImage, second: &BaseImage) -> Result<Self> {
        let (facts_first, facts_second) = (image_facts(first)?, image_facts(second)?);
        let names: std::collections::BTreeSet<_> = facts_first.keys().chain(facts_second.keys()).collect();
        let change = |name: &String| {
            let (first, second) = (facts_first.get(name).cloned(), facts_second.get(name).cloned());
            (first != second).then(|| ImageChange { what: name.clone(), first, second })
        };
        let mut difference =
            Self { changes: names.into_iter().filter_map(change).collect(), ..Self::default() };
        difference.compare_bytes(first, second)?;
        Ok(difference)
    }

    /// Returns `true` if all bytes of the images are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.lengths.is_none()
    }

    fn compare_bytes(&mut self, first: &BaseImage, second: &BaseImage) -> Result<()> {
        let lens = (first.source().len(), second.source().len());
        self.lengths = (lens.0 != lens.1).then_some(lens);
        let end = lens.0.min(lens.1);
        let (mut a, mut b) = (vec![0; CHUNK_LEN], vec![0; CHUNK_LEN]);
        let mut offset = 0;
        while offset < end {
            let (a, b) = (prefix_mut(&mut a, end - offset), prefix_mut(&mut b, end - offset));
            first.source().read_exact_at(a, offset)?;
            second.source().read_exact_at(b, offset)?;
            if a != b {
                self.add_differing_bytes(a, b, offset)?;
            }
            offset += a.len() as u64;
        }
        Ok(())
    }

    fn add_differing_bytes(&mut self, a: &[u8], b: &[u8], offset: u64) -> Result<()> {
        let different = a.iter().zip(b).zip(offset..).filter(|((a, b), _)| a != b);
        for (_, at) in different {
            let full = self.ranges.len() == MAX_RANGES;
            match self.ranges.last_mut() {
                Some(last) if at < last.end() + MAX_JOINED_GAP => {
                    let joined = Extent::new(last.offset(), at + 1 - last.offset());
                    *last = joined.or_internal("offset of a differing byte", at)?;
                }
                _ if full => {
                    self.has_more = true;
                    return Ok(());
                }
                _ => self.ranges.push(Extent::new(at, 1).or_internal("offset of a differing byte", at)?),
            }
        }
        Ok(())
    }
}

/// Describes an image as named properties that can be compared. Contents appear as digests, because they may be secret
/// or long.
fn image_facts(image: &BaseImage) -> Result<BTreeMap<String, String>> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: String, value: String| drop(facts.insert(name, value));
    fact("volume id".into(), image.volume().id().to_owned());
    fact("generation".into(), image.generation().to_owned());
    if let Some(architecture) = image.architecture() {
        fact("architecture".into(), format!("{architecture:?}"));
    }
    match image.archive() {
        Ok(archive) => archive.iter().for_each(|(name, contents)| {
            let text = describe_contents(contents.len() as u64, Digest::from_data(contents));
            fact(format!("ignition area: {name}"), text);
        }),
        Err(_) if image.ignition_area().is_none() => {}
        Err(error) => fact("ignition area".into(), format_with_causes(&error)),
    }
    if let Some(kargs) = image.kargs() {
        let text = |kargs: Result<&str, _>| kargs.map_or_else(|error| format!("{error}"), str::to_owned);
        fact("kernel arguments".into(), text(kargs.current()));
        fact("default kernel arguments".into(), text(kargs.default()));
    }
    let tree = image.volume().tree();
    for (id, _) in tree.files().filter(|(_, file)| file.extent.is_empty()) {
        fact(format!("file {}", tree.path(id)), describe_contents(0, Digest::from_data(b"")));
    }
    // Files of a valid image do not overlap. Reading each byte at most once limits the cost of a malicious image.
    let mut read_to = 0;
    for (extent, ids) in image.volume().files_by_extent() {
        // Skip the Ignition area, because the members of its archives are compared above.
        if image.ignition_area().is_some_and(|area| area.extent == extent) {
            continue;
        }
        let text = if extent.offset() < read_to {
            format!("{} bytes at byte {}, which overlap another file", extent.len(), extent.offset())
        } else {
            read_to = extent.end();
            describe_contents(extent.len(), image.plan_extent(extent).sha256()?)
        };
        ids.into_iter().for_each(|id| fact(format!("file {}", tree.path(id)), text.clone()));
    }
    Ok(facts)
}

fn describe_contents(len: u64, digest: Digest) -> String {
    format!("{len} bytes, sha256 {digest}")
}

//! Reads the headers at the end of the system area, which images from 2020 and 2021 have.
//!
//! ```text
//! 32672  coreKarg, length of each area, offset of the default arguments, up to six offsets (the first 0 ends them)
//! 32744  coreiso+, offset of the Ignition area, its length
//! ```
//!
//! All numbers are 64-bit little-endian. Some builds of early 2021 have a `corekarg` header with an undocumented
//! layout, which this module does not parse.

use crate::bytes_at::{array_at, u64_le};
use crate::error::Result;
use crate::extent::Extent;
use crate::source::Source;

const KARGS_AT: u64 = 32_672;
const HEADERS_LEN: u64 = 96;
const MAX_KARGS_AREAS: usize = 6;

/// The header of the kernel-argument areas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KargsHeader {
    pub(crate) area_len: u64,
    pub(crate) default_offset: u64,
    pub(crate) offsets: Vec<u64>,
}

/// The CoreOS headers of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SystemAreaHeaders {
    /// The Ignition area from the header `coreiso+`.
    pub(crate) ignition: Option<Extent>,
    pub(crate) kargs: Option<KargsHeader>,
    /// Whether the image has the early `corekarg` header.
    pub(crate) has_early_kargs: bool,
}

impl SystemAreaHeaders {
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let extent = Extent::new(KARGS_AT, HEADERS_LEN).filter(|extent| extent.end() <= source.len());
        let Some(extent) = extent else { return Ok(Self::default()) };
        let bytes = source.read_extent(extent)?;
        let magic: Option<[u8; 8]> = array_at(&bytes, 0);
        let within = |extent: &Extent| extent.end() <= source.len() && !extent.is_empty();
        let ignition = u64_le(&bytes, 80).zip(u64_le(&bytes, 88));
        let ignition = ignition.filter(|_| array_at(&bytes, 72) == Some(*b"coreiso+"));
        Ok(Self {
            ignition: ignition.and_then(|(offset, len)| Extent::new(offset, len)).filter(within),
            kargs: if magic == Some(*b"coreKarg") { parse_kargs(&bytes) } else { None },
            has_early_kargs: magic == Some(*b"corekarg"),
        })
    }
}

fn parse_kargs(bytes: &[u8]) -> Option<KargsHeader> {
    let offsets =
        (0..MAX_KARGS_AREAS).map_while(|index| u64_le(bytes, 24 + 8 * index).filter(|offset| *offset > 0));
    Some(KargsHeader {
        area_len: u64_le(bytes, 8)?,
        default_offset: u64_le(bytes, 16)?,
        offsets: offsets.collect(),
    })
}

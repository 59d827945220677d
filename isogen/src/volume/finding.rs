//! Findings: irregularities of a volume that do not prevent its use.

use std::fmt;

use crate::bytes_at::{u16_be, u16_le, u32_be, u32_le};
use crate::error::{OrInternal, Result};
use crate::source::Source;

/// An irregularity of a volume that does not prevent its use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct VolumeFinding {
    /// Offset of the irregularity in the image.
    pub offset: u64,
    /// Description of the irregularity, in one sentence.
    pub message: String,
}

/// Maximum number of findings. It limits the memory that a malicious image can use.
const MAX_FINDINGS: usize = 100;

/// The source of a volume during reading, and the findings so far.
#[derive(Debug)]
pub(super) struct VolumeReader<'a> {
    pub(super) source: &'a Source,
    pub(super) findings: Vec<VolumeFinding>,
}

impl VolumeReader<'_> {
    /// Reads a number stored in both byte orders. Returns the little-endian number. If the two differ, adds a finding.
    /// `position` is the offset of `bytes` in the image.
    pub(super) fn both_endian_u32(&mut self, bytes: &[u8], offset: usize, position: u64) -> Result<u32> {
        let copies = u32_le(bytes, offset).zip(u32_be(bytes, offset + 4));
        self.compare_copies(copies, position + offset as u64)
    }

    /// Reads a 16-bit number like [`both_endian_u32`](Self::both_endian_u32).
    pub(super) fn both_endian_u16(&mut self, bytes: &[u8], offset: usize, position: u64) -> Result<u16> {
        let copies = u16_le(bytes, offset).zip(u16_be(bytes, offset + 2));
        self.compare_copies(copies, position + offset as u64)
    }

    #[inline]
    fn compare_copies<T: PartialEq + fmt::Display>(
        &mut self,
        copies: Option<(T, T)>,
        offset: u64,
    ) -> Result<T> {
        let (little, big) = copies.or_internal("field outside of its structure", offset)?;
        if little != big && self.findings.len() < MAX_FINDINGS {
            let message = format!("the little-endian copy of a number is {little}, the big-endian one {big}");
            self.findings.push(VolumeFinding { offset, message });
        }
        Ok(little)
    }
}

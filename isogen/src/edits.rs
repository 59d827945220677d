//! What to change in an image.

use bytes::Bytes;

use crate::initrd::Packed;
use crate::kargs::KargsEdit;

/// Changes of a base image. What is not named stays as it is.
///
/// Ignition config and network files both travel as initrd archives; several archives may share the Ignition area,
/// and a later one replaces members of the same name of an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    pub(crate) archive: Option<Bytes>,
    pub(crate) kargs: Option<KargsEdit>,
}

impl Edits {
    /// Begins with no changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a packed archive into the Ignition area, in place of what the image holds there, behind archives that
    /// were added before. An empty one empties the area.
    #[must_use]
    pub fn archive(mut self, packed: Packed) -> Self {
        self.archive = Some(match self.archive {
            Some(before) if !before.is_empty() => [before, packed.as_bytes().clone()].concat().into(),
            _ => packed.as_bytes().clone(),
        });
        self
    }

    /// Changes the kernel arguments.
    #[must_use]
    pub fn kargs(mut self, edit: KargsEdit) -> Self {
        self.kargs = Some(edit);
        self
    }
}

//! What to change in an image.

use std::collections::BTreeMap;

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
    pub(crate) minimal: Option<Minimal>,
    pub(crate) images: BTreeMap<String, Bytes>,
}

/// The minimal form: without root file system, which the live system fetches instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Minimal {
    pub(crate) rootfs_url: Option<String>,
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

    /// Leaves the root file system out. The live system fetches it from the URL; without one, somebody has to add that
    /// kernel argument later.
    #[must_use]
    pub fn minimal(mut self, rootfs_url: Option<&str>) -> Self {
        self.minimal = Some(Minimal { rootfs_url: rootfs_url.map(str::to_owned) });
        self
    }

    /// Adds an initrd image as a file of its own, `images/NAME`, which the boot loaders load behind the Ignition area.
    /// (On s390x, which loads a single initrd, it goes into that area.)
    #[must_use]
    pub fn initrd_image(mut self, name: impl Into<String>, packed: &Packed) -> Self {
        self.images.insert(name.into(), packed.as_bytes().clone());
        self
    }

    /// Changes the kernel arguments.
    #[must_use]
    pub fn kargs(mut self, edit: KargsEdit) -> Self {
        self.kargs = Some(edit);
        self
    }
}

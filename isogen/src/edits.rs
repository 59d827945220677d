//! The edits of an image.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::initrd::PackedArchive;
use crate::kargs::KargsEdit;

/// Changes of a base image.
///
/// Ignition configs and network files are members of initrd archives. Several archives may share the Ignition area; a
/// member of a later archive replaces one of the same name in an earlier archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    pub(crate) archive: Option<Bytes>,
    pub(crate) kargs: Option<KargsEdit>,
    pub(crate) minimal: Option<MinimalEdit>,
    pub(crate) images: BTreeMap<String, Bytes>,
}

/// A minimal ISO: its live system fetches the root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MinimalEdit {
    pub(crate) rootfs_url: Option<String>,
}

impl Edits {
    /// Creates an empty set of changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the contents of the Ignition area with a packed archive. A second archive is appended to the first. An
    /// empty archive empties the area.
    #[must_use]
    pub fn archive(mut self, packed: PackedArchive) -> Self {
        self.archive = Some(match self.archive {
            Some(before) if !before.is_empty() => [before, packed.as_bytes().clone()].concat().into(),
            _ => packed.as_bytes().clone(),
        });
        self
    }

    /// Leaves the root file system out. The live system fetches it from the URL. If that is `None`, the caller must add
    /// that kernel argument later.
    #[must_use]
    pub fn minimal(mut self, rootfs_url: Option<&str>) -> Self {
        self.minimal = Some(MinimalEdit { rootfs_url: rootfs_url.map(str::to_owned) });
        self
    }

    /// Adds an initrd image as the file `images/NAME`, which boot loaders load after the Ignition area. s390x loads a
    /// single initrd, so there the image goes into that area.
    #[must_use]
    pub fn initrd_image(mut self, name: impl Into<String>, packed: &PackedArchive) -> Self {
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

//! The edits of a base image: Ignition archives, kernel arguments, and the removal of the root file system.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::initrd::PackedArchive;
use crate::kargs::KargsEdit;

/// A set of changes to a base image.
///
/// Ignition configs and network files are members of initrd archives. Several archives may share the Ignition area. A
/// member of a later archive replaces a member with the same name in an earlier archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    pub(crate) archive: Option<Bytes>,
    pub(crate) kargs: Option<KargsEdit>,
    pub(crate) minimal: Option<MinimalEdit>,
    pub(crate) images: BTreeMap<String, Bytes>,
}

/// The edit that makes a minimal ISO, whose live system fetches the root file system over HTTP.
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

    /// Replaces the contents of the Ignition area with a packed archive. A second call appends its archive to the
    /// first. An empty archive empties the area.
    #[must_use]
    pub fn archive(mut self, packed: PackedArchive) -> Self {
        self.archive = Some(match self.archive {
            Some(before) if !before.is_empty() => [before, packed.as_bytes().clone()].concat().into(),
            _ => packed.as_bytes().clone(),
        });
        self
    }

    /// Omits the root file system, which the live system then fetches from the URL. If the URL is `None`, the caller
    /// must add the kernel argument `coreos.live.rootfs_url=` later.
    #[must_use]
    pub fn minimal(mut self, rootfs_url: Option<&str>) -> Self {
        self.minimal = Some(MinimalEdit { rootfs_url: rootfs_url.map(str::to_owned) });
        self
    }

    /// Adds an initrd image as the file `images/NAME`, which boot loaders load after the Ignition area. On s390x, the
    /// boot loader loads a single initrd, so the image goes into the Ignition area instead.
    #[must_use]
    pub fn initrd_image(mut self, name: impl Into<String>, packed: &PackedArchive) -> Self {
        self.images.insert(name.into(), packed.as_bytes().clone());
        self
    }

    /// Sets the edit of the kernel arguments.
    #[must_use]
    pub fn kargs(mut self, edit: KargsEdit) -> Self {
        self.kargs = Some(edit);
        self
    }
}

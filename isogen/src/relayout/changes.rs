//! The input of a re-layout: new contents of files, and the kernel-argument areas in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::BaseImage;
use crate::error::Result;
use crate::plan::{Patch, Plan, Segment};

/// The bytes of a new or replaced file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileContents(pub(super) Vec<Segment>);

impl FileContents {
    /// Creates contents from segments. Base extents refer to the image that is re-laid out.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// Returns the number of bytes, at most `u64::MAX`. A file in an image must be smaller than 4 GiB.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(Segment::len).fold(0, u64::saturating_add)
    }

    /// Returns `true` if the contents are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for FileContents {
    fn from(bytes: Bytes) -> Self {
        Self(vec![Segment::Bytes(bytes)])
    }
}

/// A set of changes to the files of an image, for [`BaseImage::relayout`].
#[derive(Debug, Clone, Default)]
pub struct FileOperations {
    /// The new contents of the file at each path; `None` drops the file.
    pub(super) files: BTreeMap<String, Option<FileContents>>,
}

impl FileOperations {
    /// Creates an empty set of operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops a file.
    pub fn drop_file(&mut self, path: impl Into<String>) {
        self.files.insert(path.into(), None);
    }

    /// Adds a file to an existing directory, or replaces the file at `path`.
    pub fn put_file(&mut self, path: impl Into<String>, contents: FileContents) {
        self.files.insert(path.into(), Some(contents));
    }

    /// Returns `true` if there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// All changes of one re-layout.
#[derive(Debug)]
pub(super) struct RelayoutChanges {
    pub(super) files: FileOperations,
    /// The new kernel-argument areas, or `None` if they do not change.
    pub(super) kargs: Option<KargsLayout>,
    /// The reason for the re-layout, which is written to the image.
    pub(super) reason: &'static str,
}

/// The kernel-argument areas after a change.
#[derive(Debug)]
pub(super) struct KargsLayout {
    /// Length of each area in bytes.
    pub(super) len: u64,
    /// The offset of each area in its file, by the path of the file.
    pub(super) offsets: BTreeMap<String, u64>,
}

impl RelayoutChanges {
    /// Returns the contents of a file after the changes so far.
    pub(super) fn current_file(&self, image: &BaseImage, path: &str) -> Result<Plan> {
        match self.files.files.get(path) {
            Some(Some(contents)) => Ok(Plan::new(Arc::clone(image.source()), contents.0.iter().cloned())),
            _ => image.file(path),
        }
    }

    pub(super) fn put_file(&mut self, path: impl Into<String>, bytes: impl Into<Bytes>) {
        self.files.put_file(path, FileContents::from(bytes.into()));
    }

    /// Patches a file without changing its length. The re-layout moves the file after the files that all artifacts of a
    /// base image share.
    pub(super) fn patch_file(&mut self, image: &BaseImage, path: &str, patches: Vec<Patch>) -> Result<()> {
        let plan = self.current_file(image, path)?.patched_structures(patches)?;
        let segments = plan.layout().iter().map(|placed| placed.segment.clone());
        self.files.put_file(path, FileContents::new(segments.collect()));
        Ok(())
    }
}

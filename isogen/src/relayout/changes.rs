//! The changes that a re-layout makes: new contents of files, and the kernel-argument areas in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::BaseImage;
use crate::error::Result;
use crate::plan::{Patch, Plan, Segment};

/// The bytes of a new or replaced file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents(pub(super) Vec<Segment>);

impl Contents {
    /// Contents made of segments, of this or no base.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(Segment::len).fold(0, u64::saturating_add)
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Contents {
    fn from(bytes: Bytes) -> Self {
        Self(vec![Segment::Bytes(bytes)])
    }
}

/// What to do with the files of an image.
#[derive(Debug, Clone, Default)]
pub struct FileOperations {
    /// The new contents of a path; none to drop it.
    pub(super) files: BTreeMap<String, Option<Contents>>,
}

impl FileOperations {
    /// Begins with nothing to do.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves a file out.
    pub fn drop_file(&mut self, path: impl Into<String>) {
        self.files.insert(path.into(), None);
    }

    /// Adds a file to a directory that exists, or replaces the one of that path.
    pub fn put_file(&mut self, path: impl Into<String>, contents: Contents) {
        self.files.insert(path.into(), Some(contents));
    }

    /// Tells whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// All that a new layout changes.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) files: FileOperations,
    /// Where the kernel arguments are then, if files around them are among those that change.
    pub(super) kargs: Option<KargsPlaces>,
    /// Why there is a new layout.
    pub(super) reason: &'static str,
}

/// Kernel-argument areas after an edit.
#[derive(Debug)]
pub(super) struct KargsPlaces {
    /// The length of each.
    pub(super) len: u64,
    /// Where they are in their files, by path.
    pub(super) offsets: BTreeMap<String, u64>,
}

impl Changes {
    /// A file as it is so far, as a plan of its own.
    pub(super) fn file(&self, image: &BaseImage, path: &str) -> Result<Plan> {
        match self.files.files.get(path) {
            Some(Some(contents)) => Ok(Plan::of(Arc::clone(image.source()), contents.0.iter().cloned())),
            _ => image.file(path),
        }
    }

    pub(super) fn put(&mut self, path: impl Into<String>, bytes: impl Into<Bytes>) {
        self.files.put_file(path, Contents::from(bytes.into()));
    }

    /// Puts other bytes into a file, as long as those that were there. The file thereby goes behind those that all
    /// images of a base share.
    pub(super) fn overwrite(&mut self, image: &BaseImage, path: &str, patches: Vec<Patch>) -> Result<()> {
        let plan = self.file(image, path)?.patched(patches)?;
        let segments = plan.layout().iter().map(|placed| placed.segment.clone());
        self.files.put_file(path, Contents::new(segments.collect()));
        Ok(())
    }
}

//! A cache of image revisions, because computing a revision requires rendering the image.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use discovery::ImageRevision;
use lru::LruCache;

use super::record::InfraEnvRecord;
use crate::id::InfraEnvId;
use crate::time::Micros;

/// Maximum number of cached revisions. An entry takes about 150 bytes.
const MAX_REVISIONS: NonZero<usize> = NonZero::new(1 << 15).unwrap();

/// An image whose URL contains a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RevisedImage {
    /// The full or minimal ISO, as selected by the infra-env.
    Iso,
    /// The initrd for network boot.
    Initrd,
}

/// The identity of one version of an image source. A revision also depends on the base images and the settings, but
/// they stay the same while this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceIdentity {
    created_at: Micros,
    changed_at: Micros,
    generation: u64,
}

impl SourceIdentity {
    fn from_record(record: &InfraEnvRecord) -> Self {
        Self {
            created_at: record.created_at,
            changed_at: record.image_changed_at,
            generation: record.image_generation,
        }
    }
}

/// The latest known revisions.
#[derive(Debug)]
pub(crate) struct RevisionCache(Mutex<RevisionTable>);

type RevisionTable = LruCache<(InfraEnvId, RevisedImage), (SourceIdentity, ImageRevision)>;

impl Default for RevisionCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_REVISIONS)))
    }
}

impl RevisionCache {
    /// Returns the revision of an image, unless the image source of the infra-env has changed since the revision was
    /// added.
    pub(crate) fn find(&self, record: &InfraEnvRecord, image: RevisedImage) -> Option<ImageRevision> {
        let identity = SourceIdentity::from_record(record);
        self.with_table(|table| {
            let (of, revision) = table.get(&(record.id, image))?;
            (*of == identity).then_some(*revision)
        })
    }

    /// Adds the revision of an image, and replaces an earlier one.
    pub(crate) fn add(&self, record: &InfraEnvRecord, image: RevisedImage, revision: ImageRevision) {
        let entry = (SourceIdentity::from_record(record), revision);
        self.with_table(|table| table.put((record.id, image), entry));
    }

    fn with_table<T>(&self, use_it: impl FnOnce(&mut RevisionTable) -> T) -> T {
        // A panic leaves the table consistent: at worst, a revision must be computed again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

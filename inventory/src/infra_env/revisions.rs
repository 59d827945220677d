//! A cache of the revisions of images, which are rendered to learn them.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use discovery::ImageRevision;
use lru::LruCache;

use super::record::InfraEnvRecord;
use crate::id::InfraEnvId;
use crate::time::Micros;

/// Maximum number of revisions in the cache. An entry takes about 150 bytes.
const MAX_REVISIONS: NonZero<usize> = NonZero::new(1 << 15).unwrap();

/// An image of an infra-env that has a revision in its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RevisedImage {
    /// The ISO of the infra-env's type.
    Iso,
    /// The initrd for hosts that boot over the network.
    Initrd,
}

/// The identity of an image source. The base images and the settings are the same as long as this process runs.
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

/// The last known revisions.
#[derive(Debug)]
pub(crate) struct RevisionCache(Mutex<RevisionTable>);

type RevisionTable = LruCache<(InfraEnvId, RevisedImage), (SourceIdentity, ImageRevision)>;

impl Default for RevisionCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_REVISIONS)))
    }
}

impl RevisionCache {
    /// Returns the revision of an image, if it was added since the image source of the infra-env last changed.
    pub(crate) fn find(&self, record: &InfraEnvRecord, image: RevisedImage) -> Option<ImageRevision> {
        let identity = SourceIdentity::from_record(record);
        self.with_table(|table| {
            let (of, revision) = table.get(&(record.id, image))?;
            (*of == identity).then_some(*revision)
        })
    }

    /// Adds the revision of an image. Replaces an earlier one.
    pub(crate) fn add(&self, record: &InfraEnvRecord, image: RevisedImage, revision: ImageRevision) {
        let entry = (SourceIdentity::from_record(record), revision);
        self.with_table(|table| table.put((record.id, image), entry));
    }

    fn with_table<T>(&self, use_it: impl FnOnce(&mut RevisionTable) -> T) -> T {
        // A panic leaves the table valid, because each revision can be computed again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

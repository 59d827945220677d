//! A cache of image revisions, because computing a revision requires rendering the image.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use discovery::ImageRevision;
use lru::LruCache;

use super::record::InfraEnvRecord;
use crate::id::InfraEnvId;
use crate::time::Micros;

/// Maximum number of infra-envs in the cache. An entry takes about 150 bytes.
const MAX_INFRA_ENVS: NonZero<usize> = NonZero::new(1 << 15).unwrap();

/// The revisions of an infra-env's images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageRevisions {
    /// Revision of the full or minimal ISO, as selected by the infra-env. `None` if this service does not make the ISO.
    pub(crate) iso: Option<ImageRevision>,
    /// Revision of the initrd for network boot.
    pub(crate) initrd: ImageRevision,
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

type RevisionTable = LruCache<InfraEnvId, (SourceIdentity, ImageRevisions)>;

impl Default for RevisionCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_INFRA_ENVS)))
    }
}

impl RevisionCache {
    /// Returns the revisions of an infra-env's images, unless the image source has changed since they were added.
    pub(crate) fn find(&self, record: &InfraEnvRecord) -> Option<ImageRevisions> {
        let identity = SourceIdentity::from_record(record);
        self.with_table(|table| {
            let (of, revisions) = table.get(&record.id)?;
            (*of == identity).then_some(*revisions)
        })
    }

    /// Adds the revisions of an infra-env's images, and replaces earlier ones.
    pub(crate) fn add(&self, record: &InfraEnvRecord, revisions: ImageRevisions) {
        let entry = (SourceIdentity::from_record(record), revisions);
        self.with_table(|table| table.put(record.id, entry));
    }

    fn with_table<T>(&self, use_it: impl FnOnce(&mut RevisionTable) -> T) -> T {
        // A panic leaves the table consistent: at worst, a revision must be computed again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

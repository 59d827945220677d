//! Caches of records with frequent reads and rare changes. The change feed keeps them current.

use std::num::NonZero;

use crate::cluster::AssessmentRecord;
use crate::host::HostRecord;
use crate::infra_env::InfraEnvRecord;
use crate::store::{Feed, RecordCache};

/// Maximum number of infra-envs in the cache.
const MAX_INFRA_ENVS: NonZero<usize> = NonZero::new(2048).unwrap();
/// Maximum number of hosts in the cache. A host takes about 3 KiB.
const MAX_HOSTS: NonZero<usize> = NonZero::new(20_000).unwrap();

/// Maximum number of assessments in the cache.
const MAX_ASSESSMENTS: NonZero<usize> = NonZero::new(4096).unwrap();

/// Returns a cache of infra-envs for the image server and for requests of agents.
pub(super) fn infra_env_cache(feed: &Feed) -> RecordCache<InfraEnvRecord> {
    RecordCache::on_feed(feed, MAX_INFRA_ENVS)
}

/// Returns a cache of hosts for requests of their agents.
pub(super) fn host_cache(feed: &Feed) -> RecordCache<HostRecord> {
    RecordCache::on_feed(feed, MAX_HOSTS)
}

/// Returns a cache of the assessments that responses about clusters show.
pub(super) fn assessment_cache(feed: &Feed) -> RecordCache<AssessmentRecord> {
    RecordCache::on_feed(feed, MAX_ASSESSMENTS)
}

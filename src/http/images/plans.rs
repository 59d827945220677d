//! A cache of the plans of recently requested images.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ignition::network::MacAddr;
use isogen::{BaseImage, Digest};
use lru::LruCache;
use tokio::sync::OnceCell;

use super::artifact::{Artifact, BaseImageFile};
use super::digest_file::SharedDigest;
use crate::http::content::Representation;
use inventory::api::ApiError;
use inventory::id::InfraEnvId;

/// The key of a plan: the file, the infra-env with its revision, and the digest of the base image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    pub(super) what: PlanKind,
    pub(super) revision: Option<(InfraEnvId, Arc<str>)>,
    pub(super) base: Digest,
}

/// The file that a plan describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PlanKind {
    /// An artifact of an infra-env, for all of its hosts or for one.
    Image(Artifact, Option<MacAddr>),
    /// A file of the base image.
    File(BaseImageFile),
}

impl PlanKind {
    /// Returns its name in the URLs under `/i`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Image(artifact, _) => artifact.name(),
            Self::File(file) => file.name(),
        }
    }

    /// Returns the MAC address of the host, if the file is for one host only.
    pub(super) fn host_mac(self) -> Option<MacAddr> {
        match self {
            Self::Image(_, machine) => machine,
            Self::File(_) => None,
        }
    }
}

/// A plan, ready to be served.
#[derive(Debug)]
pub(super) struct PlannedFile {
    pub(super) what: PlanKind,
    pub(super) base: Arc<BaseImage>,
    pub(super) content: Representation,
    /// The number of bytes in memory that no other plan shares.
    pub(super) memory_bytes: usize,
    /// The digest of all bytes, once it was requested.
    pub(super) sha256: SharedDigest,
}

/// Plans by key. If the cache is full, the least recently used plans are dropped.
#[derive(Debug)]
pub(super) struct SharedPlanCache(Mutex<PlanCache>);

/// The most bytes of plans: enough for hundreds of images with typical configs.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
struct PlanCache {
    entries: LruCache<PlanKey, PlanEntry>,
    /// The base images of the plans. A base image that is opened again, after its download or because it was broken, is
    /// another object, and its old plans are dropped.
    bases: HashMap<Digest, Weak<BaseImage>>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct PlanEntry {
    cell: Arc<OnceCell<Arc<PlannedFile>>>,
    bytes: usize,
}

impl Default for SharedPlanCache {
    fn default() -> Self {
        let cache = PlanCache { entries: LruCache::unbounded(), bases: HashMap::new(), bytes: 0 };
        Self(Mutex::new(cache))
    }
}

impl SharedPlanCache {
    /// Returns the plan for a key. The first caller makes it, and concurrent callers wait for the result.
    pub(super) async fn get(
        &self,
        (key, base): (PlanKey, &Arc<BaseImage>),
        make: impl AsyncFnOnce() -> Result<PlannedFile, ApiError>,
    ) -> Result<Arc<PlannedFile>, ApiError> {
        let cell = self.with_cache(|cache| cache.plan_cell(&key, base));
        if let Some(planned) = cell.get() {
            return Ok(Arc::clone(planned));
        }
        let planned = cell.get_or_try_init(async || make().await.map(Arc::new)).await;
        match planned {
            Ok(planned) => {
                self.with_cache(|cache| cache.record_size(&key, planned.memory_bytes, MAX_BYTES));
                Ok(Arc::clone(planned))
            }
            Err(refusal) => {
                self.with_cache(|cache| cache.remove_unmade(&key));
                Err(refusal)
            }
        }
    }

    fn with_cache<T>(&self, use_it: impl FnOnce(&mut PlanCache) -> T) -> T {
        // A panic leaves the map valid, because each entry can be made again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PlanCache {
    fn plan_cell(&mut self, key: &PlanKey, base: &Arc<BaseImage>) -> Arc<OnceCell<Arc<PlannedFile>>> {
        let base = Arc::downgrade(base);
        if self.bases.get(&key.base).is_none_or(|known| !known.ptr_eq(&base)) {
            self.bases.insert(key.base, base);
            let keys = self.entries.iter().map(|(other, _)| other).filter(|other| other.base == key.base);
            let outdated: Vec<PlanKey> = keys.cloned().collect();
            outdated.iter().for_each(|other| self.remove(other));
        }
        Arc::clone(&self.entries.get_or_insert_mut_ref(key, PlanEntry::default).cell)
    }

    fn remove(&mut self, key: &PlanKey) {
        if let Some(entry) = self.entries.pop(key) {
            self.bytes -= entry.bytes;
        }
    }

    fn remove_unmade(&mut self, key: &PlanKey) {
        if self.entries.peek(key).is_some_and(|entry| !entry.cell.initialized()) {
            self.remove(key);
        }
    }

    /// Records the size of a plan, and drops the least recently used plans if the cache is too big.
    fn record_size(&mut self, key: &PlanKey, bytes: usize, most_bytes: usize) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.bytes == 0
        {
            entry.bytes = bytes;
            self.bytes += bytes;
        }
        // The plan itself is the most recently used one, so it stays.
        while self.bytes > most_bytes
            && self.entries.len() > 1
            && let Some((_, entry)) = self.entries.pop_lru()
        {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_key(number: usize) -> PlanKey {
        let infra_env = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
        let revision = Some((infra_env, Arc::from(number.to_string())));
        PlanKey { what: PlanKind::Image(Artifact::FullIso, None), revision, base: Digest([0; 32]) }
    }

    #[test]
    fn least_recently_used_plans_are_dropped() {
        let plans = SharedPlanCache::default();
        plans.with_cache(|cache| {
            let add = |cache: &mut PlanCache, number, bytes| {
                cache.entries.put(plan_key(number), PlanEntry::default());
                // A request for the first plan in between.
                cache.entries.get(&plan_key(0));
                cache.record_size(&plan_key(number), bytes, 350);
            };
            for number in 0..10 {
                add(cache, number, 100);
                assert!(cache.bytes <= 350, "{number}");
            }
            let kept: Vec<usize> =
                (0..10).filter(|number| cache.entries.contains(&plan_key(*number))).collect();
            assert_eq!((kept, cache.bytes), (vec![0, 8, 9], 300));
            // A plan that is larger than the cache stays until the next one is made.
            add(cache, 10, 1000);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 1000));
            add(cache, 11, 100);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 100));
        });
    }
}

//! A cache of the plans of recently requested images.
//!
//! A plan is dropped when its infra-env or its base image is removed. A plan keeps the file of the base image open, so
//! a deleted file would otherwise still occupy disk space. Responses in progress keep their plans. A change of the
//! infra-env does not drop its plans: a client that is still reading ranges of the old revision can continue while the
//! plan is cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ignition::network::MacAddr;
use isogen::BaseImage;
use lru::LruCache;
use tokio::sync::OnceCell;

use super::artifact::{Artifact, BaseImageFile};
use super::shared_digest::SharedDigest;
use crate::http::content::ServedFile;
use crate::images::library::{BaseImageId, OpenBaseImage};
use discovery::ImageRevision;
use inventory::api::ApiError;
use inventory::id::InfraEnvId;

/// The key of a plan: the file, the infra-env and its revision in the source, and the base image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    pub(super) what: PlanKind,
    pub(super) revision: Option<(InfraEnvId, Arc<str>)>,
    pub(super) base: BaseImageId,
}

/// The key of a plan by content: the file, the infra-env, the revision of the image in URLs, and the base image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RevisionKey {
    pub(super) what: PlanKind,
    pub(super) infra_env: InfraEnvId,
    pub(super) revision: ImageRevision,
    pub(super) base: BaseImageId,
}

impl PlanKey {
    /// Returns the key by content, if the plan belongs to an infra-env.
    fn with_content(&self, revision: Option<ImageRevision>) -> Option<RevisionKey> {
        let (infra_env, _) = self.revision.as_ref()?;
        let (what, base) = (self.what, self.base);
        Some(RevisionKey { what, infra_env: *infra_env, revision: revision?, base })
    }
}

/// The kind of file that a plan describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PlanKind {
    /// An artifact of an infra-env, for all hosts or for the host with a MAC address.
    Image(Artifact, Option<MacAddr>),
    /// A file extracted from the base image.
    File(BaseImageFile),
}

impl PlanKind {
    /// Returns the name of the file in URLs under `/i`.
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

/// A plan with everything needed to serve it.
#[derive(Debug)]
pub(super) struct PlannedFile {
    pub(super) what: PlanKind,
    pub(super) base: Arc<BaseImage>,
    pub(super) content: ServedFile,
    /// The revision of the image in URLs. `None` for a file of the base image.
    pub(super) revision: Option<ImageRevision>,
    /// The number of bytes in memory, without bytes that other plans share.
    pub(super) memory_bytes: usize,
    /// The SHA-256 digest of the file, computed when it is first requested.
    pub(super) sha256: SharedDigest,
}

/// Plans by key. If the cache is full, the least recently used plans are dropped.
#[derive(Debug)]
pub(super) struct SharedPlanCache(Mutex<PlanCache>);

/// Maximum size of all cached plans in bytes: enough for hundreds of images with typical configs.
const MAX_BYTES: usize = 16 << 20;
/// The size of an entry in addition to the segments of its plan.
const ENTRY_OVERHEAD: usize = 1024;

#[derive(Debug)]
struct PlanCache {
    entries: LruCache<PlanKey, PlanEntry>,
    /// The keys of plans by content. If several plans have the same content, the key of the latest.
    by_content: HashMap<RevisionKey, PlanKey>,
    bytes: usize,
}

/// The plan of an entry. Empty until the plan is created.
type PlanCell = Arc<OnceCell<Arc<PlannedFile>>>;

/// The size of a plan, and its key by content if it has one.
#[derive(Clone, Copy, Debug)]
struct PlanSize {
    bytes: usize,
    content: Option<RevisionKey>,
}

#[derive(Debug, Default)]
struct PlanEntry {
    cell: PlanCell,
    bytes: usize,
    content: Option<RevisionKey>,
}

impl Default for SharedPlanCache {
    fn default() -> Self {
        let (entries, by_content) = (LruCache::unbounded(), HashMap::new());
        Self(Mutex::new(PlanCache { entries, by_content, bytes: 0 }))
    }
}

impl SharedPlanCache {
    /// Returns the plan for a key. The first caller creates it, and concurrent callers wait for the result. If the
    /// library has released the base image, the plan is not cached. If the infra-env is removed while its plan is
    /// created, the plan is dropped from the cache.
    pub(super) async fn get(
        &self,
        (key, base): (PlanKey, &OpenBaseImage),
        is_removed: impl Fn() -> bool,
        make: impl AsyncFnOnce() -> Result<PlannedFile, ApiError>,
    ) -> Result<Arc<PlannedFile>, ApiError> {
        // Check this under the lock: if the base image is released later, the new plan is dropped with all other plans
        // for that base image.
        let cell = self.with_cache(|cache| match base.is_released() {
            true => Arc::default(),
            false => cache.plan_cell(&key),
        });
        if let Some(planned) = cell.get() {
            return Ok(Arc::clone(planned));
        }
        let planned = cell.get_or_try_init(async || make().await.map(Arc::new)).await;
        match planned {
            Ok(planned) => {
                let size = PlanSize {
                    bytes: planned.memory_bytes + ENTRY_OVERHEAD,
                    content: key.with_content(planned.revision),
                };
                drop(self.with_cache(|cache| cache.record_size((&key, &cell), size, MAX_BYTES)));
                // The infra-env may have been deleted before the entry was added.
                if is_removed() {
                    drop(self.with_cache(|cache| cache.remove_cell(&key, &cell)));
                }
                Ok(Arc::clone(planned))
            }
            Err(refusal) => {
                drop(self.with_cache(|cache| cache.remove_unmade(&key, &cell)));
                Err(refusal)
            }
        }
    }

    /// Returns the plan with this content, if it is cached.
    pub(super) fn find_content(&self, key: &RevisionKey) -> Option<Arc<PlannedFile>> {
        self.with_cache(|cache| {
            let key = cache.by_content.get(key)?;
            cache.entries.get(key)?.cell.get().map(Arc::clone)
        })
    }

    /// Drops all plans for a base image.
    pub(super) fn drop_base(&self, base: BaseImageId) {
        drop(self.with_cache(|cache| cache.remove_all(|key| key.base == base)));
    }

    /// Drops the plans of a removed infra-env. If the event about the removal is lost, the plans stay until the cache
    /// is full.
    pub(super) fn drop_infra_env(&self, id: InfraEnvId) {
        let is_of = |key: &PlanKey| key.revision.as_ref().is_some_and(|(infra_env, _)| *infra_env == id);
        drop(self.with_cache(|cache| cache.remove_all(is_of)));
    }

    /// Calls `use_it` with the cache. Callers drop removed entries after this call, without the lock: dropping the last
    /// plan for a base image closes its file.
    fn with_cache<T>(&self, use_it: impl FnOnce(&mut PlanCache) -> T) -> T {
        // A panic leaves the map valid, because every plan can be created again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PlanCache {
    fn plan_cell(&mut self, key: &PlanKey) -> PlanCell {
        Arc::clone(&self.entries.get_or_insert_mut_ref(key, PlanEntry::default).cell)
    }

    fn remove_all(&mut self, is_removed: impl Fn(&PlanKey) -> bool) -> Vec<PlanEntry> {
        let keys = self.entries.iter().map(|(key, _)| key).filter(|key| is_removed(key));
        let keys: Vec<PlanKey> = keys.cloned().collect();
        keys.iter().filter_map(|key| self.remove(key)).collect()
    }

    fn remove(&mut self, key: &PlanKey) -> Option<PlanEntry> {
        let removed = self.entries.pop(key)?;
        self.forget(key, &removed);
        Some(removed)
    }

    /// Updates the sizes and the keys by content after an entry was removed.
    fn forget(&mut self, key: &PlanKey, removed: &PlanEntry) {
        self.bytes -= removed.bytes;
        if let Some(content) = &removed.content
            && self.by_content.get(content) == Some(key)
        {
            self.by_content.remove(content);
        }
    }

    /// Removes the entry with this cell. If the entry was evicted and another caller has added a new one, the new one
    /// stays.
    fn remove_cell(&mut self, key: &PlanKey, cell: &PlanCell) -> Option<PlanEntry> {
        let is_own = self.entries.peek(key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, cell));
        if is_own { self.remove(key) } else { None }
    }

    /// Removes the entry with this cell if its plan could not be created.
    fn remove_unmade(&mut self, key: &PlanKey, cell: &PlanCell) -> Option<PlanEntry> {
        if cell.initialized() { None } else { self.remove_cell(key, cell) }
    }

    /// Records the size and content of a new plan, unless its entry was removed or replaced. If the cache is full,
    /// removes and returns the least recently used plans.
    fn record_size(
        &mut self,
        (key, cell): (&PlanKey, &PlanCell),
        size: PlanSize,
        max_bytes: usize,
    ) -> Vec<PlanEntry> {
        if let Some(entry) = self.entries.get_mut(key)
            && Arc::ptr_eq(&entry.cell, cell)
            && entry.bytes == 0
        {
            (entry.bytes, entry.content) = (size.bytes, size.content);
            self.bytes += size.bytes;
            if let Some(content) = size.content {
                self.by_content.insert(content, key.clone());
            }
        }
        let mut removed = Vec::new();
        // The new plan is the most recently used one, so it stays.
        while self.bytes > max_bytes
            && self.entries.len() > 1
            && let Some((key, entry)) = self.entries.pop_lru()
        {
            self.forget(&key, &entry);
            removed.push(entry);
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: BaseImageId = BaseImageId::from_number(1);
    const OTHER_BASE: BaseImageId = BaseImageId::from_number(2);

    fn plan_key(number: usize) -> PlanKey {
        let infra_env = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11".parse().unwrap();
        let revision = Some((infra_env, Arc::from(number.to_string())));
        PlanKey { what: PlanKind::Image(Artifact::FullIso, None), revision, base: BASE }
    }

    /// Returns a size whose content is different for each key.
    fn plan_size(key: &PlanKey, bytes: usize) -> PlanSize {
        let number = key.revision.as_ref().map(|(_, revision)| format!("{revision:0>16}").parse().unwrap());
        PlanSize { bytes, content: key.with_content(number) }
    }

    #[test]
    fn plans_are_dropped_with_their_base_image_and_infra_env() {
        let plans = SharedPlanCache::default();
        let other_env = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c12".parse().unwrap();
        let other_revision = Some((other_env, Arc::from("0")));
        let file = PlanKey { what: PlanKind::File(BaseImageFile::Kernel), revision: None, ..plan_key(0) };
        let keys = [
            plan_key(0),
            plan_key(1),
            PlanKey { base: OTHER_BASE, ..plan_key(0) },
            PlanKey { revision: other_revision, ..plan_key(0) },
            file,
        ];
        let add_all = || {
            for key in &keys {
                plans.with_cache(|cache| {
                    let cell = cache.plan_cell(key);
                    cache.record_size((key, &cell), plan_size(key, 100), MAX_BYTES);
                });
            }
        };
        let are_cached = || {
            plans.with_cache(|cache| {
                assert_eq!(cache.bytes, 100 * cache.entries.len());
                let with_content = cache.entries.iter().filter(|(key, _)| key.revision.is_some()).count();
                assert_eq!(cache.by_content.len(), with_content);
                keys.iter().map(|key| cache.entries.contains(key)).collect::<Vec<_>>()
            })
        };
        add_all();
        plans.drop_base(BASE);
        assert_eq!(are_cached(), [false, false, true, false, false]);
        add_all();
        plans.drop_infra_env(plan_key(0).revision.unwrap().0);
        assert_eq!(are_cached(), [false, false, false, true, true]);
    }

    #[test]
    fn least_recently_used_plans_are_dropped() {
        let plans = SharedPlanCache::default();
        plans.with_cache(|cache| {
            let add = |cache: &mut PlanCache, number, bytes| {
                let cell = cache.plan_cell(&plan_key(number));
                // Use the first plan again before each new one.
                cache.entries.get(&plan_key(0));
                let key = plan_key(number);
                cache.record_size((&key, &cell), plan_size(&key, bytes), 350);
            };
            for number in 0..10 {
                add(cache, number, 100);
                assert!(cache.bytes <= 350, "{number}");
            }
            let cached: Vec<usize> =
                (0..10).filter(|number| cache.entries.contains(&plan_key(*number))).collect();
            assert_eq!((cached, cache.bytes, cache.by_content.len()), (vec![0, 8, 9], 300, 3));
            // A plan larger than the cache stays until the next one is added.
            add(cache, 10, 1000);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 1000));
            add(cache, 11, 100);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 100));
        });
    }

    /// If an infra-env is changed and changed back, two plans have the same content.
    #[test]
    fn content_is_found_while_its_latest_plan_is_cached() {
        let plans = SharedPlanCache::default();
        let (first, second) = (plan_key(0), plan_key(1));
        let size = plan_size(&first, 100);
        plans.with_cache(|cache| {
            for key in [&first, &second] {
                let cell = cache.plan_cell(key);
                cache.record_size((key, &cell), size, MAX_BYTES);
            }
            let content = size.content.unwrap();
            assert_eq!(cache.by_content.get(&content), Some(&second));
            cache.remove(&first);
            assert_eq!(cache.by_content.get(&content), Some(&second));
            cache.remove(&second);
            assert_eq!(cache.by_content.get(&content), None);
        });
    }

    /// The entry may be evicted and added again by another request before the first plan is complete.
    #[test]
    fn entry_of_another_request_keeps_its_size() {
        let plans = SharedPlanCache::default();
        let key = plan_key(0);
        plans.with_cache(|cache| {
            let first = cache.plan_cell(&key);
            cache.remove_all(|_| true);
            let second = cache.plan_cell(&key);
            cache.record_size((&key, &first), plan_size(&key, 100), MAX_BYTES);
            cache.remove_unmade(&key, &first);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 0));
            cache.record_size((&key, &second), plan_size(&key, 200), MAX_BYTES);
            cache.remove_cell(&key, &first);
            assert_eq!((cache.entries.len(), cache.bytes), (1, 200));
            cache.remove_cell(&key, &second);
            assert_eq!((cache.entries.len(), cache.bytes), (0, 0));
        });
    }
}

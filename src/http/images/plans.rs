//! A cache of the plans of recently requested images.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ignition::network::MacAddr;
use isogen::{BaseImage, Digest};
use tokio::sync::OnceCell;

use super::artifact::{Artifact, BootFile};
use crate::api_error::ApiError;
use crate::http::content::Content;
use crate::inventory::id::InfraEnvId;

/// The key of a plan: the file, the infra-env with its revision, and the digest of the base image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    pub(super) what: What,
    pub(super) revision: Option<(InfraEnvId, Arc<str>)>,
    pub(super) base: Digest,
}

/// The file that a plan describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// An artifact of an infra-env, for all of its hosts or for one.
    Image(Artifact, Option<MacAddr>),
    /// A file of the base image.
    File(BootFile),
}

impl What {
    /// Returns its name in the URLs under `/i`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Image(artifact, _) => artifact.name(),
            Self::File(file) => file.name(),
        }
    }

    /// Returns the MAC address of the host, if the file is for one host only.
    pub(super) fn machine(self) -> Option<MacAddr> {
        match self {
            Self::Image(_, machine) => machine,
            Self::File(_) => None,
        }
    }
}

/// A plan, ready to be served.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) what: What,
    pub(super) base: Arc<BaseImage>,
    pub(super) content: Content,
    /// The number of bytes in memory that no other plan shares.
    pub(super) own_bytes: usize,
    /// The digest of all bytes, once it was requested.
    pub(super) sha256: OnceCell<Digest>,
}

/// Plans by key. If the cache is full, the least recently used plans are dropped.
#[derive(Debug)]
pub struct Plans {
    cache: Mutex<PlanCache>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct PlanCache {
    entries: HashMap<PlanKey, Entry>,
    /// The base images of the plans. A base image that is opened again, after its download or because it was broken, is
    /// another object, and its old plans are dropped.
    bases: HashMap<Digest, Weak<BaseImage>>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    cell: Arc<OnceCell<Arc<Planned>>>,
    bytes: usize,
    used_at: u64,
}

impl Default for Plans {
    fn default() -> Self {
        /// Enough for hundreds of images with typical configs.
        const ROOM: usize = 16 << 20;
        Self::with_room(ROOM)
    }
}

impl Plans {
    /// Creates a cache that keeps up to `most_bytes` bytes of plans.
    #[must_use]
    pub fn with_room(most_bytes: usize) -> Self {
        Self { cache: Mutex::default(), most_bytes }
    }

    /// Returns the plan for a key. The first caller makes it, and concurrent callers wait for the result.
    pub(super) async fn get(
        &self,
        (key, base): (PlanKey, &Arc<BaseImage>),
        make: impl AsyncFnOnce() -> Result<Planned, ApiError>,
    ) -> Result<Arc<Planned>, ApiError> {
        let cell = self.with(|cache| cache.cell(&key, base));
        if let Some(planned) = cell.get() {
            return Ok(Arc::clone(planned));
        }
        let planned = cell.get_or_try_init(async || make().await.map(Arc::new)).await;
        match planned {
            Ok(planned) => {
                self.with(|cache| cache.weigh(&key, planned.own_bytes, self.most_bytes));
                Ok(Arc::clone(planned))
            }
            Err(refusal) => {
                self.with(|cache| cache.forget(&key));
                Err(refusal)
            }
        }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut PlanCache) -> T) -> T {
        // A panic leaves the map valid, because each entry can be made again.
        use_it(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PlanCache {
    fn cell(&mut self, key: &PlanKey, base: &Arc<BaseImage>) -> Arc<OnceCell<Arc<Planned>>> {
        let base = Arc::downgrade(base);
        if self.bases.get(&key.base).is_none_or(|known| !known.ptr_eq(&base)) {
            self.bases.insert(key.base, base);
            self.entries.retain(|other, _| other.base != key.base);
            self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
        }
        self.clock += 1;
        let used_at = self.clock;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.used_at = used_at;
            return Arc::clone(&entry.cell);
        }
        let fresh = || Entry { cell: Arc::default(), bytes: 0, used_at };
        Arc::clone(&self.entries.entry(key.clone()).or_insert_with(fresh).cell)
    }

    fn forget(&mut self, key: &PlanKey) {
        if self.entries.get(key).is_some_and(|entry| !entry.cell.initialized())
            && let Some(entry) = self.entries.remove(key)
        {
            self.bytes -= entry.bytes;
        }
    }

    /// Records the size of a plan, and drops the least recently used plans if the cache is too big.
    fn weigh(&mut self, key: &PlanKey, bytes: usize, most_bytes: usize) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.bytes == 0
        {
            entry.bytes = bytes;
            self.bytes += bytes;
        }
        while self.bytes > most_bytes && self.entries.len() > 1 {
            let oldest =
                self.entries.iter().filter(|(other, _)| *other != key).min_by_key(|(_, entry)| entry.used_at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

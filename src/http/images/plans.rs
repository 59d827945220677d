//! The plans of images that were asked for lately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ignition::network::MacAddr;
use isogen::{BaseImage, Digest};
use tokio::sync::OnceCell;

use super::artifact::{Artifact, BootFile};
use crate::api_error::ApiError;
use crate::http::content::Content;
use crate::inventory::id::InfraEnvId;

/// What names a plan: what it is, of which infra-env in which revision, and the digest of the base.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    pub(super) what: What,
    pub(super) revision: Option<(InfraEnvId, Arc<str>)>,
    pub(super) base: Digest,
}

/// What a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// An image of an infra-env, for all of its machines or for one.
    Image(Artifact, Option<MacAddr>),
    /// A file of the base.
    File(BootFile),
}

impl What {
    /// Its name in our own URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Image(artifact, _) => artifact.name(),
            Self::File(file) => file.name(),
        }
    }

    /// The machine that it is for alone.
    pub(super) fn machine(self) -> Option<MacAddr> {
        match self {
            Self::Image(_, machine) => machine,
            Self::File(_) => None,
        }
    }
}

/// A plan as it is served.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) what: What,
    pub(super) base: Arc<BaseImage>,
    pub(super) content: Content,
    /// How many bytes of memory are kept for it alone.
    pub(super) own_bytes: usize,
    /// The digest of all bytes, once somebody asked for it.
    pub(super) sha256: OnceCell<Digest>,
}

/// Plans by what they are made of. The ones that were not used for the longest time go when there is no more room.
#[derive(Debug)]
pub struct Plans {
    known: Mutex<Known>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Known {
    entries: HashMap<PlanKey, Entry>,
    /// What plans refer to. A live image that is opened again, as it was coming or was broken, is another one.
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
        /// Room for hundreds of images with usual configs.
        const ROOM: usize = 16 << 20;
        Self::with_room(ROOM)
    }
}

impl Plans {
    /// Plans of which so many bytes are kept.
    #[must_use]
    pub fn with_room(most_bytes: usize) -> Self {
        Self { known: Mutex::default(), most_bytes }
    }

    /// The plan of a key on a base; who asks first makes it, and others wait for that.
    pub(super) async fn get(
        &self,
        (key, base): (PlanKey, &Arc<BaseImage>),
        make: impl AsyncFnOnce() -> Result<Planned, ApiError>,
    ) -> Result<Arc<Planned>, ApiError> {
        let cell = self.with(|known| known.cell(&key, base));
        if let Some(planned) = cell.get() {
            return Ok(Arc::clone(planned));
        }
        let planned = cell.get_or_try_init(async || make().await.map(Arc::new)).await;
        match planned {
            Ok(planned) => {
                self.with(|known| known.weigh(&key, planned.own_bytes, self.most_bytes));
                Ok(Arc::clone(planned))
            }
            Err(refusal) => {
                self.with(|known| known.forget(&key));
                Err(refusal)
            }
        }
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Known) -> T) -> T {
        // Whoever panicked over the map left it whole: each entry can be made again.
        use_it(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
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

    /// Notes how much room a plan takes, and makes room for it.
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
